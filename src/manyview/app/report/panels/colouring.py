"""Observations coloured by what is known of them: class, confidence, reliance, clinical columns."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

from manyview._colors import PALETTE, SCALE
from manyview.app.report.page import plot_text
from manyview.app.report.run_files import Run

from .shared import Rows, short

SYMBOLS = ("circle", "diamond", "square", "triangle-up", "cross", "star")
#: Levels with a colour of their own; the rarer ones share grey.
MOST_LEVELS = 20
OTHER, UNKNOWN = "#b0b0b0", "#d5d5d5"


class Colouring(NamedTuple):
    """A property of observations by id: levels in order for categories, None for numbers."""

    name: str
    values: dict[str, Any]
    levels: list[str] | None = None
    percent: bool = False


def known(run: Run) -> list[Colouring]:
    """What the annotations of the run say: the class first, then the clinical columns."""
    rows: Rows = run.tables["annotations"]
    found = []
    for about in run.about.get("annotations") or []:
        heading, levels = about["heading"], about.get("levels")
        texts = {row["id"]: row[heading] for row in rows if row.get(heading)}
        values = texts if levels is not None else {i: float(text) for i, text in texts.items()}
        found.append(Colouring(about["name"], values, levels))
    return found


def measured(run: Run) -> list[Colouring]:
    """What the fit says of every observation: confidence, and reliance on each view."""
    sure = {row["id"]: row["confidence"] for row in run.tables["labels"]}
    found = [Colouring("confidence", sure, percent=True)]
    if len(run.views) > 1:
        found += [
            Colouring(
                f"reliance on {view}",
                {row["id"]: row[f"reliance:{view}"] for row in run.tables["sample_weights"]},
                percent=True,
            )
            for view in run.views
        ]
    return found


def shown_levels(levels: list[str], values: list[Any]) -> list[str]:
    """The levels that occur; of very many the commonest, in their order."""
    counts = Counter(value for value in values if value is not None)
    here = [level for level in levels if counts[level]]
    if len(here) <= MOST_LEVELS:
        return here
    common = {level for level, _ in counts.most_common(MOST_LEVELS - 1)}
    return [level for level in here if level in common]


def traces(colouring: Colouring, ids: list[str]) -> list[dict[str, Any]]:
    """Traces for the map: one per level, or one with a scale."""
    values = [colouring.values.get(i) for i in ids]
    unknown = [r for r, value in enumerate(values) if value is None]
    grey = {
        "rows": unknown,
        "trace": {"name": f"not known ({len(unknown)})", "marker": {"color": UNKNOWN}},
    }
    if colouring.levels is None:
        rows = [r for r, value in enumerate(values) if value is not None]
        numbers = [short(values[r]) for r in rows]
        words = [f"{v:.0%}" if colouring.percent else f"{v:.4g}" for v in numbers if v is not None]
        marker = {
            "color": numbers,
            "colorscale": SCALE,
            "showscale": True,
            "colorbar": {
                "thickness": 12,
                "title": {"text": plot_text(colouring.name, 24)},
                **({"tickformat": ".0%"} if colouring.percent else {}),
            },
        }
        scaled = {"rows": rows, "words": words, "trace": {"marker": marker, "showlegend": False}}
        return [grey, scaled] if unknown else [scaled]
    found = [grey] if unknown else []
    shown = shown_levels(colouring.levels, values)
    rare = [r for r, v in enumerate(values) if v is not None and v not in shown]
    for k, level in enumerate(shown):
        rows = [r for r, value in enumerate(values) if value == level]
        marker = {
            "color": PALETTE[k % len(PALETTE)],
            "symbol": SYMBOLS[k // len(PALETTE) % len(SYMBOLS)],
        }
        name = f"{plot_text(level, 24)} ({len(rows)})"
        words = [plot_text(level)] * len(rows)
        found.append({"rows": rows, "words": words, "trace": {"name": name, "marker": marker}})
    if rare:
        words = [plot_text(values[r]) for r in rare]
        trace = {"name": f"others ({len(rare)})", "marker": {"color": OTHER}}
        found.append({"rows": rare, "words": words, "trace": trace})
    return found
