"""WM-NMF from seed to seed: how often a run fails, why, and what helps."""

from __future__ import annotations

import math

from scipy.special import stdtrit

from manyview.paper.page.read import (
    Results,
    Row,
    grouped,
    spread,
)

from .judging import (
    ABOVE,
    BELOW,
    NOT_THEIRS,
    Interval,
    Verdict,
    interval,
    of_one,
    paired,
)

#: A run of less ACC has failed.
FAILED = 0.90
#: A part of V*'s graph with fewer of the 2000 digits is small: a quarter of an average cluster.
SMALL = 50
SAID = {
    "njw": "Unit rows (assign_labels='njw') raise ACC over the paper's reading of the same V*",
    "spectral, connected": "Where V*'s graph has a small part, connect=True raises ACC",
}


def failures(rows: list[Row]) -> str:
    """How many runs failed, in words."""
    n = sum(row["acc"] < FAILED for row in rows)
    return f"{n} of {len(rows)} runs are below ACC {FAILED:.2f}".replace("0.", ".")


def verdicts(results: Results) -> list[Verdict]:
    by = grouped(results.rows("seeds"), "reading")
    if not {"spectral", *SAID} <= set(by):
        return []
    plain = by["spectral"]
    small = {row["run"] for row in plain if is_small(row)}
    found = [_cause(plain)] if small and len(small) < len(plain) else []
    for reading, claim in SAID.items():
        kept = small if "connected" in reading else {row["run"] for row in plain}
        mine = [row for row in by[reading] if row["run"] in kept]
        theirs = [row for row in plain if row["run"] in kept]
        if mine:
            found.append(_better(claim, mine, theirs))
    return found


def is_small(row: Row) -> bool:
    return row["smallest_part"] < SMALL


def _cause(plain: list[Row]) -> Verdict:
    having = [row for row in plain if is_small(row)]
    others = [row for row in plain if not is_small(row)]
    gap = apart([r["acc"] for r in having], [r["acc"] for r in others])
    ours = f"with one, {failures(having)}; without, {failures(others)}"
    said = ("Their mean ACC is clearly lower.", "Their mean ACC is clearly not lower.")
    more = f" In all {failures(plain)}."
    claim = "Runs fail where a few observations are cut off from the rest of V*'s neighbour graph"
    return of_one("seeds", claim, NOT_THEIRS, ours, gap, BELOW, said, more)


def _better(claim: str, mine: list[Row], theirs: list[Row]) -> Verdict:
    gap = paired(mine, theirs, "acc")
    ours = " against ".join(
        f"{s.mean:.3f}" for rows in (mine, theirs) if (s := spread(rows, "acc"))
    )
    ours += f" in {len(mine)} runs; {failures(mine)}, {failures(theirs)} otherwise"
    said = ("It does.", "It does not.")
    return of_one("seeds", claim, NOT_THEIRS, ours, gap, ABOVE, said)


def apart(values: list[float], others: list[float]) -> Interval:
    """The difference of two means of different runs, by Welch's rule."""
    if min(len(values), len(others)) < 2:
        return Interval(interval(values).mean - interval(others).mean, math.inf, 1)
    parts = [
        (interval(v).margin / float(stdtrit(len(v) - 1, 0.975))) ** 2 for v in (values, others)
    ]
    freedom = [part**2 / (len(v) - 1) for part, v in zip(parts, (values, others), strict=True)]
    total = sum(parts)
    dof = total**2 / sum(freedom) if total else len(values) + len(others) - 2
    margin = float(stdtrit(dof, 0.975)) * math.sqrt(total)
    gap = interval(values).mean - interval(others).mean
    return Interval(gap, margin, len(values) + len(others))
