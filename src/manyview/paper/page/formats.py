"""A table as plain values, and as CSV, LaTeX and Markdown."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from manyview.io.writing import csv_bytes


class Table(NamedTuple):
    """``name`` is also the stem of its files; ``folded`` ones are opened by the reader."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False


def as_csv(table: Table) -> bytes:
    return csv_bytes(table.columns, table.rows)


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "α": r"$\alpha$", "β": r"$\beta$", "≥": r"$\geq$",
    "≤": r"$\leq$", "∝": r"$\propto$", "→": r"$\to$", "×": r"$\times$", "²": "$^2$",
    "ᵀ": r"$^\top$", "−": "$-$", "±": r"$\pm$",
}  # fmt: skip


def as_latex(table: Table) -> bytes:
    """A plain tabular, to be included by \\input; needs booktabs."""

    def line(values: Sequence[Any]) -> str:
        return (
            " & ".join(re.sub(".", lambda m: _LATEX.get(m[0], m[0]), _text(v)) for v in values)
            + r" \\"
        )

    lines = [
        rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}", r"\toprule", line(table.columns), r"\midrule",
        *(line(row) for row in table.rows), r"\bottomrule", r"\end{tabular}", "",
    ]  # fmt: skip
    return "\n".join(lines).encode()


def as_markdown(table: Table) -> str:
    def line(values: Sequence[Any]) -> str:
        return (
            "| "
            + " | ".join(_text(v).replace("|", "/").replace("<", "&lt;") for v in values)
            + " |"
        )

    return "\n".join(
        [line(table.columns), "|" + "---|" * len(table.columns), *map(line, table.rows)]
    )


def _text(value: Any) -> str:
    return "" if value is None else " ".join(str(value).split())
