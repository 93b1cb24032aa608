"""Batch effects: technical columns by their headings, and clusters that follow them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from .columns import Column, read_column

#: What a technical column is called: how, where and when samples were measured.
_NOUN = re.compile(
    "batch|plate|site|cent(er|re)|run|lane|chip|slide|flowcell|array|cartridge|kit|pool|well|lab(oratory)?"
    "|library|hospital|clinic|institut(e|ion)|facility|scanner|sequencer|instrument|machine|platform"
    "|technician|operator|shipment|tss|study|dataset|cohort"
)
#: What may come after the noun ("plate_id", "Center.Name"), and what makes a site one of the body.
_SUFFIX = re.compile("ids?|no|nr|num|number|code|name|label|index")
_BODY = re.compile(
    "primary|tumou?r|anatomic(al)?|metasta(tic|sis)|disease|biopsy|body|cancer|lesion|organ|tissue|relapse"
    "|recurrence|neoplasm|surg(ery|ical)|specimen"
)
#: Clusters follow a column if the test says so at this level, and Cramér's V is at least so large:
#: Cohen's medium effect for a technical column; for any other, nearly one level to a cluster.
LEVEL, TECHNICAL, ANY = 0.01, 0.3, 0.8


class Followed(NamedTuple):
    """A categorical column that the clusters follow.

    Attributes
    ----------
    column : str
    technical : bool
        Its heading says that it is a batch, a site, a plate, …
    effect : float
        Cramér's V, corrected for bias.
    p_value : float
    marked : str
        The cluster and the level that go together most.
    """

    column: str
    technical: bool
    effect: float
    p_value: float
    marked: str

    @property
    def holds(self) -> bool:
        """Whether the association is there, and large."""
        least = TECHNICAL if self.technical else ANY
        return self.effect >= least and self.p_value <= LEVEL

    def sentence(self, remedy: str, adjusted: bool = False) -> str:
        """What was found, what it means, and what to do; ``adjusted``: it was regressed out before."""
        if not self.technical:
            return (
                f"The clusters nearly coincide with the column “{self.column}” (Cramér's V "
                f"{self.effect:.2f}, where 1 is the same). If it describes the samples, that is what the "
                f"clusters are. If it is technical, such as a batch, remove its effect. {remedy}"
            )
        found = (
            f"The clusters follow “{self.column}” (Cramér's V {self.effect:.2f}, where 0 is none and 1 is "
            f"complete; p {'=' if self.p_value >= 1e-4 else '<'} {max(self.p_value, 1e-4):.2g}; cluster "
            f"{self.marked}). They may show how samples were measured, not how samples differ. High "
            "stability does not rule this out: a batch effect returns in every refit. "
        )
        if adjusted:
            return found + (
                f"“{self.column}” was regressed out already. What remains is not linear in it, or comes "
                "from views of zeros and ones, which are not adjusted: correct the tables before, or "
                "cluster its levels one by one."
            )
        return found + remedy + " This also removes what truly differs between its levels."


def is_technical(name: str) -> bool:
    """Tell from its heading that a column says how, where or when samples were measured."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    words = re.findall(r"[a-z]+", re.sub(r"flow[ _.-]?cell", "flowcell", spaced.lower()))
    while len(words) > 1 and _SUFFIX.fullmatch(words[-1]):
        words.pop()
    if not words or not _NOUN.fullmatch(words[-1]):
        return False
    return words[-1] != "site" or not any(map(_BODY.fullmatch, words[-2:-1]))


def read_levels(name: str, data: Any) -> Column | None:
    """A technical column as levels, even if these are numbers (plate 1 to 40); None for all others."""
    column = read_column(name, data, "category") if is_technical(name) else None
    return None if column is None or column.kind is None else column
