"""Each claim of the paper beside what was measured, with a verdict in plain words."""

from __future__ import annotations

from manyview.reproduction.page.read import Results

from . import digits, lihc, noise, objective, runtime, sweeps
from .judging import OWN, Verdict

__all__ = ["Verdict", "verdicts"]


def verdicts(results: Results) -> list[Verdict]:
    """All claims whose experiment was run, in the order of the page."""
    parts = (digits, lihc, sweeps, runtime, objective, noise)
    found = [verdict for part in parts for verdict in part.verdicts(results)]
    return [v._replace(verdict=OWN.get(v.verdict, v.verdict)) if v.is_own else v for v in found]
