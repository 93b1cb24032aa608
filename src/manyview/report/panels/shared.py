"""What the panels share: colours, and numbers short enough for a page."""

from __future__ import annotations

from typing import Any

from ..page import PALETTE

Rows = list[dict[str, Any]]
#: Columns of the reliance figure and bars of the silhouettes; rows kept for the largest CSVs.
DRAWN, EMBEDDED = 5000, 20_000


def color(cluster: int) -> str:
    return PALETTE[cluster % len(PALETTE)]


def short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def percent(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"
