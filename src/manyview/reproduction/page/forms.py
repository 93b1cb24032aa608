"""A figure as plain values: panels of series, drawn by plotly on the page and matplotlib in files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Series:
    """``kind`` is "line", "box" (horizontal, ``x`` are the values), "bar" or "marks"."""

    name: str
    x: Sequence[Any]
    y: Sequence[Any]
    kind: str = "line"
    color: int = 0
    sd: Sequence[float | None] | None = None
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    x_label: str
    y_label: str
    series: Sequence[Series]
    x_log: bool = False
    y_log: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    #: Places of vertical dashed lines, and what they mark.
    marks: Sequence[tuple[float, str]] = ()


@dataclass(frozen=True)
class Figure:
    """``name`` is also the stem of its files."""

    name: str
    caption: str
    panels: Sequence[Panel] = field(default_factory=tuple)
    #: Whether one row of buttons shows and hides series in all panels, instead of a legend in each.
    shared_legend: bool = False
    height: int = 340
    #: Panels side by side where the screen is wide.
    columns: int = 3
