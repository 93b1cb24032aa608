"""Tables as plain values, and as CSV, LaTeX and Markdown."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .read import SCORES, Results, Spread, grouped, spread
from .verdicts import PARTS, Verdict, digits_rows, in_order, total_seconds


class Table(NamedTuple):
    """``name`` is also the stem of its files; ``folded`` ones are opened by the reader."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False


def claims(found: Sequence[Verdict]) -> Table:
    rows = [_told(v) for v in found]
    columns = ("Claim", "Paper", "Ours", "Difference", "Verdict", "In words")
    return Table("summary", "The paper's claims beside what was measured", columns, rows)


def _told(v: Verdict) -> list[str]:
    return [v.claim, v.paper, v.ours, v.difference, v.verdict, v.words]


def tables(results: Results, experiment: str) -> list[Table]:
    """The tables of an experiment, those without rows left out."""
    if experiment == "digits":
        found = [digits(results), differences(results)]
    elif experiment in ("honest", "synthetic", "lihc", "nutrimouse"):
        found = [scores(results, experiment, "method")]
    elif experiment in ("p", "beta", "k"):
        found = [scores(results, experiment, "value")]
    elif experiment == "runtime":
        found = [runtime(results)]
    elif experiment == "operations":
        found = [operations(results), formulas()]
    elif experiment == "noise":
        found = [noise(results)]
    else:
        found = []
    return [table for table in found if table.rows]


def digits(results: Results) -> Table:
    """Every method: paper and ours for all six scores, and whether ours lies in the paper's spread."""
    rows = []
    for row in digits_rows(results):
        inside = f"on {row.n_inside} of {len(row.cells)} scores"
        inside = {0: "no", len(row.cells): "yes"}.get(row.n_inside, inside)
        theirs = [Spread(m, sd, 20) for m, sd, _, _ in row.cells.values()]
        rows.append([row.method, "paper", *map(str, theirs), "", ""])
        rows.append(
            [row.method, "ours", *(str(c[2]) for c in row.cells.values()), inside, row.note]
        )
    columns = ("Method", "Source", *SCORES.values())
    caption = (
        "Mean (standard deviation) over the runs. Within the spread: our mean lies within one of the "
        "paper's standard deviations of its mean, or within rounding where it gives none."
    )
    return Table("digits", caption, (*columns, "Within the paper's spread", "Note"), rows)


def differences(results: Results) -> Table:
    rows = [
        [row.method, *(round(ours.mean - m, 3) for m, _, ours, _ in row.cells.values())]
        for row in digits_rows(results)
    ]
    columns = ("Method", *SCORES.values())
    return Table("digits-differences", "Ours minus the paper's means", columns, rows, folded=True)


def scores(results: Results, experiment: str, key: str) -> Table:
    rows = []
    for dataset, mine in grouped(results.rows(experiment), "dataset").items():
        for value, runs in grouped(in_order(mine) if key == "method" else mine, key).items():
            spreads = [spread(runs, score) for score in SCORES]
            rows.append([dataset, value, *(str(s) if s else "" for s in spreads), len(runs)])
    names = {
        "method": "Method",
        "value": {"p": "p", "beta": "β", "k": "K"}.get(experiment, "value"),
    }
    columns = ("Data", names[key], *SCORES.values(), "Runs")
    caption = "Mean (standard deviation) over the runs"
    return Table(f"{experiment}-scores", caption, columns, rows, folded=True)


def runtime(results: Results) -> Table:
    rows = []
    for (axis, value, method), mine in grouped(
        results.rows("runtime"), lambda r: (r["axis"], r["value"], r["method"])
    ).items():
        parts = [s.mean if (s := spread(mine, part)) else None for part in PARTS]
        total = sum(total_seconds(r) for r in mine) / len(mine)
        shown = [None if p is None else round(p, 3) for p in parts]
        rows.append(
            [axis, value, method, *shown, round(total, 3) if method == "manyview" else None]
        )
    columns = ("Varies", "Value", "Program", "Graph", "Start", "Loop", "Labels", "Whole fit")
    return Table("runtime", "CPU seconds of one thread", columns, rows, folded=True)


def operations(results: Results) -> Table:
    names = ("dataset", "view", "N", "M", "K", "nnz", "U_paper", "U_ours", "V_paper", "V_ours")
    rows = []
    for row in results.rows("operations"):
        rows.append([*(row[name] for name in names), round(row["V_paper"] / row["V_ours"], 1)])
    columns = (
        "Data",
        "View",
        "N",
        "M",
        "K",
        "nnz(A)",
        "U: paper",
        "U: ours",
        "V: paper",
        "V: ours",
        "V: ratio",
    )
    return Table("operations", "Multiplications of one iteration", columns, rows)


def formulas() -> Table:
    rows = [
        ["U of one view", "O(M N K)", "O(M N K)", "the products XᵀW²V and VᵀW²V"],
        ["V of one view", "O(M N K + N² K)", "O(M N K + nnz(A) K)", "the graph is kept sparse"],
        ["memory of the graph", "O(N²)", "O(nnz(A)) ≤ O(2 k N)", "k nearest neighbours, union"],
    ]
    return Table(
        "operations-formulas", "Appendix D and ours", ("Update", "Paper", "Ours", "Why"), rows
    )


def noise(results: Results) -> Table:
    rows = []
    for (dataset, method, scenario, view), mine in grouped(
        results.rows("noise"), lambda r: (r["dataset"], r["method"], r["scenario"], r["of_view"])
    ).items():
        spreads = [spread(mine, c) for c in ("alpha", "w_noisy", "w_clean", "acc", "nmi")]
        shown = [None if s is None else round(s.mean, 4) for s in spreads]
        rows.append([dataset, method, scenario, view, *shown, len(mine)])
    columns = (
        "Data",
        "Method",
        "Noise",
        "View",
        "α of it",
        "w noisy",
        "w clean",
        "ACC",
        "NMI",
        "Runs",
    )
    caption = "Weights and scores under noise, means over the runs"
    return Table("noise", caption, columns, rows, folded=True)


def as_csv(table: Table) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([["" if v is None else v for v in row] for row in table.rows])
    return text.getvalue().encode()


_LATEX = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{",
    "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", "α": r"$\alpha$", "β": r"$\beta$", "≥": r"$\geq$",
    "≤": r"$\leq$", "∝": r"$\propto$", "→": r"$\to$", "×": r"$\times$", "²": "$^2$",
    "ᵀ": r"$^\top$", "−": "$-$",
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
