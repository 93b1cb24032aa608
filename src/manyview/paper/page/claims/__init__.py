"""Each claim of the paper beside what was measured, with a verdict in plain words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from manyview.paper.page.read import Results

from . import (
    digits,
    lihc,
    mlrssc,
    noise,
    objective,
    runtime,
    seeds,
    sweeps,
)
from .judging import OWN, Verdict, listed

__all__ = ["Verdict", "contributions", "verdicts"]

#: What the paper contributes, and the experiments or topics of the claims that bear on it.
CONTRIBUTIONS = {
    "Clusters better than those of earlier methods": ("digits", "lihc"),
    "Weights w that find unreliable observations": ("w",),
    "View weights α that find unreliable views, sparse for small p": ("alpha",),
    "Little tuning: scores alike over p, β and K": ("p", "beta", "k"),
    "An algorithm that converges, in time about linear in the data": ("convergence", "runtime"),
}


def verdicts(results: Results) -> list[Verdict]:
    """All claims whose experiment was run, in the order of the page."""
    parts = (digits, mlrssc, lihc, sweeps, seeds, runtime, objective, noise)
    found = [verdict for part in parts for verdict in part.verdicts(results)]
    return [v._replace(verdict=OWN.get(v.verdict, v.verdict)) if v.is_own else v for v in found]


def contributions(found: Sequence[Verdict]) -> list[tuple[str, str]]:
    """Each contribution of the paper, and how many of its claims got which verdict."""
    lines = []
    for contribution, topics in CONTRIBUTIONS.items():
        mine = [v for v in found if not v.is_own and (v.topic or v.experiment) in topics]
        counts = Counter(v.verdict for v in mine).most_common()
        if mine:
            said = listed([f"{verdict} {n}" for verdict, n in counts])
            lines.append((contribution, f"{said} of {len(mine)} claim{'s' * (len(mine) > 1)}"))
    return lines
