"""The files of a comparison: two tables, a picture, a page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from manyview.app.compare.methods import GROUPS
from manyview.app.compare.store import KIND
from manyview.app.report import comparison_page
from manyview.io.writing import claimed, csv_of_dicts
from manyview.plot import pyplot

from .figure import draw, svg

DPI = 130
FILES = ("results.csv", "summary.csv", "comparison.png", "comparison.html")


def save(found: Any, out: Path, command: str | None) -> list[Path]:
    """Make everything first, then write: a page that cannot be made leaves no half of the files."""
    figure = draw(found.table, found.summary, found.methods)
    try:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=DPI, facecolor="white")
        drawing = svg(figure)
    finally:
        pyplot().close(figure)
    summary, results = plain_rows(found.summary), plain_rows(found.table)
    page = comparison_page(
        summary=summary,
        results=results,
        methods=found.methods,
        groups=GROUPS,
        settings=found.settings,
        figure_svg=drawing,
        command=command,
    )
    contents = {
        "results.csv": csv_of_dicts(results, columns=found.table.columns),
        "summary.csv": csv_of_dicts(summary, columns=found.summary.columns),
        "comparison.png": picture.getvalue(),
        "comparison.html": page.encode(),
    }
    with claimed(out, KIND, beside=True) as place:
        place.put(contents)
    return [out / name for name in contents]


def plain_rows(frame: Any) -> list[dict[str, Any]]:
    """Rows of plain values, None where empty: what a page builder may be given."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
