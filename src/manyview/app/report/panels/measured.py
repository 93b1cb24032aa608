"""How often the report's signs of doubt are right, measured where the classes are known.

`benchmarks/sentences.py` prints these numbers (eleven data sets, up to 600 observations of each): the share
of observations in the cluster that belongs to their class, among those a sign points out and all others.
"""

from __future__ import annotations

from typing import NamedTuple

from manyview.app.report.run_files import Run


class Shares(NamedTuple):
    """Shares of labels that agree with the class, with the sign of doubt and without it."""

    pointed_out: float
    others: float

    def __str__(self) -> str:
        return f"{self.pointed_out:.0%} against {self.others:.0%} of the others"


#: Where the sentences come from, for the reader of a page.
BASIS = "on eleven data sets with known classes"

LOW_CONFIDENCE = Shares(0.467, 0.799)  # below .8
ONE_VIEW = Shares(0.626, 0.701)  # three in ten observations keep one view
UNUSUAL_RELIANCE = Shares(0.547, 0.733)
NO_SUPPORT = Shares(0.598, 0.720)
UNSTABLE_OBSERVATION = Shares(0.352, 0.751)  # below .6
UNSTABLE_CLUSTER = Shares(0.356, 0.737)  # below .6


def basis(run: Run, shares: Shares, before: str = "", after: str = "") -> str:
    """What a claim rests on, between two texts; "" for a method that it was not measured with."""
    if run.about["method"] != "RobustWMNMF":
        return ""
    return f"{before}{BASIS} {shares} lay in the cluster of their class{after}"
