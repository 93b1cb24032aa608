"""What all figures share: axes, colors and names given by the user, text that is only text."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyview._types import Array

#: Color-blind safe (Okabe & Ito, then Tol), in an order that keeps neighbors apart; readable on
#: white and on near-black.
PALETTE = (
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#CC79A7",
    "#56B4E9",
    "#D55E00",
    "#AA4499",
    "#999933",
    "#6F63BB",
    "#888888",
    "#44AA99",
    "#B5446E",
    "#5B8C2A",
    "#A0764B",
    "#F28E8E",
)
#: Color of text in a chart that is put into a page, where it becomes the page's own, light or dark.
INK = "#010203"
#: Drawn where nothing is known.
UNKNOWN = "#d5d5d5"
#: Levels that have a color of their own.
MOST_LEVELS = 20


def pyplot() -> Any:
    """matplotlib.pyplot, or a sentence how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "plotting needs matplotlib: pip install 'manyview[app]'", name="matplotlib"
        ) from error
    return plt


def file_of(figure: Any, kind: str, salt: str = "manyview", **how: Any) -> bytes:
    """The figure as a file: text stays text, and the same figure has the same bytes.

    ``salt`` makes the names inside an SVG; ``how`` is for ``savefig``.
    """
    content, made = io.BytesIO(), {"svg": "Date", "pdf": "CreationDate"}
    rules = {"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": salt}
    with pyplot().rc_context(rules):
        dates = {made[kind]: None} if kind in made else None
        figure.savefig(content, format=kind, metadata=dates, **how)
    return content.getvalue()


def axes(ax: Any) -> Any:
    """The Axes given, or the current ones."""
    return pyplot().gca() if ax is None else ax


def short(name: Any, longest: int = 40) -> str:
    """Put a name on one line; cut a long one in its middle, because names often differ at their ends."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(name).split()))
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]}…{text[half + 1 - longest :]}"


def p_text(p: float | None, permutations: int = 0) -> str:
    """Write a p-value with its sign; the smallest that permutations can give is a bound."""
    if p is None or np.isnan(p):
        return "not tested"
    if permutations and p <= 1 / (permutations + 1):
        return f"≤ {p:.2g}"
    return f"= {p:.2g}" if p >= 1e-4 else "< 0.0001"


def name_ticks(ax: Any, axis: str, places: Any, names: Sequence[Any], **how: Any) -> None:
    """Names as they are: dollars are no formulas, and long ones are cut."""
    setter = ax.set_xticks if axis == "x" else ax.set_yticks
    setter(places, [short(name) for name in names], **how)
    ticks = ax.get_xticklabels() if axis == "x" else ax.get_yticklabels()
    for tick in ticks:
        tick.set_parse_math(False)


def write_cells(ax: Any, image: Any, shades: Array, texts: Array) -> None:
    """A text in every cell of an image, black or white, whichever can be read."""
    for (i, j), shade in np.ndenumerate(shades):
        dark = sum(image.cmap(float(shade))[:3]) < 1.5
        ax.text(j, i, texts[i, j], ha="center", va="center", color="white" if dark else "black")


def title(ax: Any, text: str) -> None:
    ax.set_title(short(text, 80), parse_math=False)


def colors_of(names: Sequence[Any], colors: Any) -> dict[Any, Any]:
    """A color for every name: the user's, by name or in order, else the palette's.

    Whole numbers keep their place in the palette, so that a cluster has one color in every figure.
    """
    if isinstance(colors, Mapping):
        given = {name: colors[name] for name in names if name in colors}
    elif colors is not None:
        listed = list(colors)
        if len(listed) < len(names):
            raise ValueError(
                f"colors has {len(listed)} entries for {len(names)} groups; give one each, or a dict"
            )
        given = dict(zip(names, listed, strict=False))
    else:
        given = {}
    found = {}
    for k, name in enumerate(names):
        number = isinstance(name, int | np.integer) and not isinstance(name, bool) and name >= 0
        place = int(name) if number else k
        found[name] = given.get(name, PALETTE[place % len(PALETTE)])
    return found


def text_of(name: Any, labels: Mapping[Any, str] | None, before: str = "") -> str:
    """What a cluster or level is called in the figure."""
    return str(labels[name]) if labels and name in labels else f"{before}{name}"


def boundaries(codes: Array) -> tuple[Array, Array, Array]:
    """Of sorted codes: where every run begins, the middle of each, and its code."""
    starts = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    middles = (starts + np.r_[starts[1:], len(codes)] - 1) / 2
    return starts, middles, codes[starts]


def plain(ax: Any, *sides: str) -> None:
    """Take away the lines around the Axes that say nothing."""
    ax.spines[list(sides or ("top", "right"))].set_visible(False)


def is_numeric(values: Sequence[Any]) -> bool:
    """Whether values are drawn on a scale: numbers, more than two of them different."""
    there = [v for v in values if v is not None and v == v]
    numbers = all(
        isinstance(v, int | float | np.number) and not isinstance(v, bool | np.bool_) for v in there
    )
    return bool(there) and numbers and len(set(there)) > 2


def levels_of(values: Sequence[Any]) -> list[Any]:
    """The different values in order: numbers by size, texts by letters."""
    there = {v for v in values if v is not None and v == v}
    try:
        return sorted(there)
    except TypeError:
        return sorted(there, key=str)
