"""What the panels share: colours, and numbers short enough for a page."""

from __future__ import annotations

from typing import Any

from manyview._colors import PALETTE
from manyview.app.report.page import clean, plot_text

Rows = list[dict[str, Any]]
#: Columns of the reliance figure; rows kept for the largest CSVs.
DRAWN, EMBEDDED = 5000, 20_000


def axis_labels(names: list[str], longest: int = 24) -> list[str]:
    """Names short enough for an axis, and as different as they were: plotly joins equal ones."""
    found: list[str] = []
    for name in names:
        text = str(clean(name))
        if len(text) > longest:  # names often differ at their ends
            text = f"{text[: longest // 2]}…{text[len(text) - longest // 2 + 1 :]}"
        label, n = plot_text(text, longest), 1
        while label in found:
            n += 1
            label = plot_text(f"{text} ({n})", longest + 8)
        found.append(label)
    return found


def color(cluster: int) -> str:
    return PALETTE[cluster % len(PALETTE)]


def short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
