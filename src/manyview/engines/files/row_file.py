"""What a reader of rows of a file says of itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from manyview._types import Array, Matrix


class RowFile(ABC):
    """Rows of a file, with their names and those of the columns if the file has any."""

    shape: tuple[int, ...]
    dtype: np.dtype
    sparse = False
    #: How many rows are stored together.
    piece = 1
    #: Whether any rows can be read as quickly as others: then slabs and a thread would only cost.
    direct = False
    #: Sentences about the file that its user should know.
    notes: Sequence[str] = ()
    ids: Array | None = None
    features: Array | None = None

    @abstractmethod
    def read(self, start: int, stop: int) -> Matrix:
        """Rows from start to before stop."""
