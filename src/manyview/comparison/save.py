"""The files of a comparison: two tables, a picture, a page."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from ..plot import _pyplot
from ..report import comparison_page
from .figure import draw, svg
from .methods import GROUPS
from .store import folder, write_whole

DPI = 130


def save(found: Any, out: Path, command: str | None) -> list[Path]:
    """Make everything first, then write: a page that cannot be made leaves no half of the files."""
    out = folder(out)
    figure = draw(found.table, found.summary, found.methods)
    try:
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=DPI, facecolor="white")
        drawing = svg(figure)
    finally:
        _pyplot().close(figure)
    page = comparison_page(
        summary=_plain(found.summary),
        results=_plain(found.table),
        methods=found.methods,
        groups=GROUPS,
        settings=found.settings,
        figure_svg=drawing,
        command=command,
    )
    contents = {
        "results.csv": _csv(found.table),
        "summary.csv": _csv(found.summary),
        "comparison.png": picture.getvalue(),
        "comparison.html": page.encode(),
    }
    out.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        write_whole(out / name, content)
    return [out / name for name in contents]


def _csv(frame: Any) -> bytes:
    # File names, and so views, may hold bytes that are no text.
    return frame.to_csv(index=False, lineterminator="\n").encode(errors="backslashreplace")


def _plain(frame: Any) -> list[dict[str, Any]]:
    """Rows of plain values, None where empty: what a page builder may be given."""
    return frame.astype(object).where(frame.notna(), None).to_dict("records")
