"""What clusters mean: survival, clinical columns, known classes, and the features that mark them.

Plain functions on labels, usable with any clustering.
"""

from .cox import Cox
from .kaplan_meier import Curve
from .logrank import LogRank
from .survival_result import Survival
from .survive import survival
from .table import Table

__all__ = ["Cox", "Curve", "LogRank", "Survival", "Table", "survival"]
