"""The frame of every self-contained page: one file, no network, nothing from users' files unescaped.

A page is a list of `Section`; their bodies come from `html`, `chart`, `figure` and `table`. Charts are
SVG; the map, which readers explore, is drawn by the page's own script from JSON values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from manyview.plot._draw import INK

#: Control characters, and the marks that reverse the direction of the text after them.
_UNPRINTABLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)


#: Turn the direction of the text that follows.
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


class Section(NamedTuple):
    """A part of a page: the anchor, the heading, and a body made by `html`, `figure` or `table`."""

    id: str
    title: str
    body: Any


def page(
    title: str,
    sections: Sequence[Section],
    *,
    lead: Any = "",
    footer: Any = "",
    css: str = "",
    nav: Sequence[tuple[str, str]] | None = None,
) -> str:
    """The whole document. ``lead`` and ``footer`` are text, or made by `html`; ``css`` is added.

    ``nav`` has the anchors of the sidebar with their headings; by default every section.
    """
    js = asset("page.js")
    digest = base64.b64encode(hashlib.sha256(js.encode()).digest()).decode()
    return _template("page.html").render(
        title=title,
        sections=sections,
        nav=[(s.id, s.title) for s in sections] if nav is None else nav,
        lead=lead,
        footer=footer,
        css=trusted(asset("page.css") + css),
        js=trusted(js),
        # Only this very script may run, and nothing can be fetched.
        policy=f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'",
    )


def html(template: str, **values: Any) -> Any:
    """A piece of HTML from a jinja2 template; every value is escaped unless made by this module."""
    return trusted(_environment().from_string(template).render(values))


def macros(name: str, **values: Any) -> Any:
    """The macros of a template in ``assets``, as functions; they see ``values``, escaped as always."""
    return _template(name).make_module(values)


def parts() -> Any:
    """The macros of figures and tables."""
    return _template("parts.html").module


def figure(content: Mapping[str, Any], *, label: str, name: str, caption: Any = "") -> Any:
    """The map, with buttons that save it as ``name``, and a switch of what its dots are colored by.

    ``label`` says what it shows to those who cannot see it. ``content`` has a list for each property of
    the points (ids, x, y, clusters, confidence), "names" and "labels" of the clusters, and "by": for each
    coloring a "name", and "values", or "groups" with their "names" and "colors".
    """
    return parts().figure(
        label=label,
        name=file_stem(name),
        caption=caption,
        switch=[item["name"] for item in content["by"]],
        json=script_json(content),
        csv=file_stem(name),
    )


def chart(
    svg: str,
    label: str,
    name: str,
    caption: Any = "",
    rows: Sequence[Mapping[str, Any]] | None = None,
) -> Any:
    """A static chart, an <svg> element of ours, with the buttons that save it, and its ``rows`` as CSV."""
    values = None
    if rows:
        values = script_json({"columns": list(rows[0]), "rows": [list(r.values()) for r in rows]})
    return parts().figure(
        label=label,
        name=file_stem(name),
        caption=caption,
        svg=trusted(svg),
        wide=svg.partition('viewBox="0 0 ')[2].partition(" ")[0],
        csv=file_stem(name) if values else "",
        csv_json=values or "",
    )


def inline(svg: bytes, ink: str = INK) -> str:
    """The <svg> element of a file, to put into a page: what has the color ``ink`` takes the page's."""
    text = svg.decode()
    return clean(text[text.index("<svg") :]).replace(ink, "currentColor")


def table(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    name: str,
    caption: Any = "",
    formats: Mapping[str, str] | None = None,
    shown: int | None = None,
    full: tuple[Sequence[str], Sequence[Sequence[Any]]] | None = None,
) -> Any:
    """A table with sortable columns and a button that saves it as ``name``.csv.

    ``formats`` maps a column to a format specification (".3f"); the CSV always has the full values.
    With ``shown`` only this many rows are on the page, in the CSV all of them; ``full`` has the columns
    and rows of the CSV where the page shows fewer columns.
    """
    rows = [[_plain(value) for value in row] for row in rows]
    formats = formats or {}
    visible = rows if shown is None else rows[:shown]
    numeric = [
        any(_is_number(r[j]) for r in rows) and all(_is_number(r[j]) or r[j] is None for r in rows)
        for j in range(len(columns))
    ]
    body = parts().table(
        columns=list(zip(columns, numeric, strict=True)),
        cells=[
            [(_shown(v, formats.get(c)), v) for c, v in zip(columns, r, strict=True)]
            for r in visible
        ],
        sortable=1 < len(visible) == len(rows),
    )
    left_out = len(rows) > len(visible)
    remark = f"{len(visible)} of {len(rows)} rows are shown; the CSV has all." if left_out else ""
    columns, rows = (columns, rows) if full is None else full
    return with_csv(body, columns, rows, name=name, remark=remark, caption=caption)


def with_csv(
    body: Any,
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    *,
    name: str,
    label: str = "",
    remark: str = "",
    caption: Any = "",
) -> Any:
    """A table made by `html`, with a button below that saves ``rows`` as ``name``.csv."""
    return parts().with_csv(
        body=body,
        name=file_stem(name),
        label=label or caption or name,
        remark=remark,
        caption=caption,
        json=script_json({"columns": columns, "rows": rows}),
    )


def printable(text: Any) -> str:
    """Characters that are not seen but do something, or are none, written as escapes."""
    return "".join(
        ascii(c)[1:-1] if unicodedata.category(c) in ("Cc", "Cs") or c in _TURNS else c
        for c in str(text)
    )


def clean(value: Any) -> Any:
    """Text without characters that no reader can see or that turn the line around; else the value."""
    if isinstance(value, str) and not hasattr(value, "__html__"):
        return _UNPRINTABLE.sub("\ufffd", value)
    return value


def file_stem(name: str) -> str:
    """``name`` as a file name every system takes: letters, digits, dots, hyphens, underscores."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._")[:80]
    return stem or "unnamed"


def script_json(value: Any) -> Any:
    """JSON that can stand inside <script>; numbers that are not finite become null."""
    text = json.dumps(_plain(value), ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return trusted(text)


def _shown(value: Any, spec: str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if spec is not None:
        return format(value, spec)
    return str(value) if isinstance(value, int) else f"{value:.4g}"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _plain(value: Any) -> Any:
    """Values JSON knows: NumPy's become Python's, NaN and infinities None, other keys text."""
    if isinstance(value, str) or value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return str(value)


@cache
def asset(name: str) -> str:
    """The text of a file of this folder's ``assets``."""
    return resources.files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _template(name: str) -> Any:
    return _environment().from_string(asset(name))


@cache
def _environment() -> Any:
    try:
        import jinja2
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "writing a page needs jinja2: pip install 'manyview[app]'", name="jinja2"
        ) from error
    return jinja2.Environment(
        autoescape=True, finalize=clean, undefined=jinja2.StrictUndefined, trim_blocks=True
    )


def trusted(text: str) -> Any:
    """Mark text as HTML that needs no escaping; never for anything from a user's file."""
    _environment()
    from markupsafe import Markup  # comes with jinja2

    return Markup(text)
