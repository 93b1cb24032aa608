"""Which numbers of clusters the commands try, and what they say about a choice."""

from __future__ import annotations

import numpy as np
from rich.markup import escape

from manyview.app.files import ReadViews
from manyview.engines.numpy.presence import present_rows
from manyview.selection import Selection, usual_candidates


def candidates_for(data: ReadViews, smallest: int = 2) -> list[int]:
    """The numbers of clusters tried unless asked otherwise, for as many samples as have data."""
    here = np.any([present_rows(X) for X in data.views.values()], axis=0)
    usual = usual_candidates(int(here.sum()))
    return [K for K in usual if smallest <= K] or [smallest]


def reasons(selection: Selection) -> list[str]:
    """What a choice of the number of clusters says to people."""
    answer = selection.answer if selection.found else f"No number stands out: {selection.answer}"
    return [f"[bold]{escape(answer)}[/bold]", *(f"- {escape(why)}" for why in selection.reasons)]
