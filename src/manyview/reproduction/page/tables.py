"""The tables of every experiment, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from manyview.reproduction.page.claims.digits import digits_rows, in_order, name_of
from manyview.reproduction.page.claims.judging import Verdict
from manyview.reproduction.page.claims.lihc import beside
from manyview.reproduction.page.claims.runtime import PARTS, total_seconds

from .formats import Table
from .read import DATA, SCORES, Results, Row, Spread, grouped, spread


def claims(found: Sequence[Verdict]) -> Table:
    rows = [
        [v.claim, v.paper, v.ours, v.difference, v.verdict, v.words] for v in found if not v.is_own
    ]
    columns = ("Claim", "Paper", "Ours", "Difference", "Verdict", "In words")
    return Table("summary", "The paper's claims beside what was measured", columns, rows)


def observations(found: Sequence[Verdict]) -> Table:
    rows = [[v.claim, v.ours, v.difference, v.verdict, v.words] for v in found if v.is_own]
    columns = ("Observation", "Measured", "Difference", "Answer", "In words")
    return Table("observations", "What the paper does not say, measured here", columns, rows)


def tables(results: Results, experiment: str) -> list[Table]:
    """The tables of an experiment, those without rows left out."""
    makers = {
        "digits": (digits, differences),
        "lihc": (lihc, _by("lihc", "method")),
        **{name: (_by(name, "method"),) for name in ("honest", "synthetic", "nutrimouse")},
        **{name: (_by(name, "value"),) for name in ("p", "beta", "k")},
        "runtime": (runtime,),
        "operations": (operations, formulas),
        "convergence": (convergence,),
        "noise": (noise,),
        "degeneracy": (rounds, sizes, scales),
    }
    found = [make(results) for make in makers.get(experiment, ())]
    return [table for table in found if table.rows]


def _by(experiment: str, key: str) -> Callable[[Results], Table]:
    return lambda results: scores(results, experiment, key)


def digits(results: Results) -> Table:
    """Every method: paper and ours for all six scores, and whether ours lies in the paper's spread."""
    rows = []
    for row in digits_rows(results):
        theirs = [Spread(cell.paper, cell.paper_sd, 20) for cell in row.cells.values()]
        ours = [str(cell.ours) for cell in row.cells.values()]
        inside = _inside(row.n_inside, len(row.cells))
        name = name_of(row.runs[0])
        rows.append([row.method, "paper", *map(str, theirs), "", "", 20])
        rows.append([name, "ours", *ours, inside, row.note, len(row.runs)])
    columns = ("Method", "Source", *SCORES.values(), "Within the paper's spread", "Note", "Runs")
    few = any(not row.is_whole for row in digits_rows(results))
    caption = SPREAD + (" (500): on the first 50 digits of each class." if few else "")
    return Table("digits", caption, columns, rows)


SPREAD = (
    "Mean (standard deviation) over the runs. Within the spread: our mean, rounded as the paper's are, "
    "lies within one of its standard deviations of its mean; where it gives none, the two are equal."
)


def _inside(n: int, of: int) -> str:
    return {0: "no", of: "yes"}.get(n, f"on {n} of {of} scores")


def lihc(results: Results) -> Table:
    """What the paper names of its figure, beside ours."""
    rows: list[list[str]] = []
    for name, method, cells in beside(results):
        inside = _inside(sum(c[3] for c in cells.values()), len(cells))
        theirs = [str(Spread(m, sd, 20)) for m, sd, _, _ in cells.values()]
        rows.append([name, "paper", *theirs, ""])
        rows.append([method, "ours", *(str(c[2]) for c in cells.values()), inside])
    columns = ("Method", "Source", *SCORES.values(), "Within the paper's spread")
    return Table("lihc", SPREAD, columns, rows)


def differences(results: Results) -> Table:
    rows = [
        [name_of(row.runs[0]), *(round(c.ours.mean - c.paper, 3) + 0.0 for c in row.cells.values())]
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


def formulas(results: Results) -> Table:
    rows = [
        ["U of one view", "O(M N K)", "O(M N K)", "the products XᵀW²V and VᵀW²V"],
        ["V of one view", "O(M N K + N² K)", "O(M N K + nnz(A) K)", "the graph is kept sparse"],
        ["memory of the graph", "O(N²)", "O(nnz(A)) ≤ O(2 k N)", "k nearest neighbours, union"],
    ]
    return Table(
        "operations-formulas", "Appendix D and ours", ("Update", "Paper", "Ours", "Why"), rows
    )


def convergence(results: Results) -> Table:
    """The objective and its terms at a few iterations; the curves have them all."""
    terms = ("reconstruction", "consensus", "regularizer", "objective")
    rows = []
    for (dataset, scheme), mine in grouped(
        results.rows("convergence"), lambda r: (r["dataset"], r["scheme"])
    ).items():
        at = grouped(mine, "iteration")
        last = max(at)
        for i in sorted({min(at), 1, 10, 25, 50, 75, 100, last} & set(at)):
            shown = [_rounded(at[i], term) for term in terms]
            rows.append([DATA.get(dataset, dataset), scheme, i, *shown, len(at[i])])
    columns = ("Data", "Scheme", "Iteration", *(term.capitalize() for term in terms), "Runs")
    caption = "Terms of the objective at some iterations, means over the runs"
    return Table("convergence", caption, columns, rows, folded=True)


def rounds(results: Results) -> Table:
    by_round = grouped(results.rows("degeneracy"), "round")
    names = ("acc", "nmi", "max_alpha", "objective")
    rows = [
        [r, *(_rounded(mine, name) for name in names), len(mine)]
        for r, mine in by_round.items()
        if r <= 5 or r % 5 == 0
    ]
    columns = ("Round", "ACC", "NMI", "Largest α", "Objective", "Runs")
    caption = "WM-NMF round by round, means over the runs"
    return Table("degeneracy-rounds", caption, columns, rows, folded=True)


def sizes(results: Results) -> Table:
    rows = []
    for (rescale, r), mine in grouped(
        results.rows("degeneracy", "sizes"), lambda r: (r["rescale"], r["round"])
    ).items():
        if r <= 2 or r % 5 == 0:
            shown = [_rounded(mine, c) for c in ("column_sum_of_U", "size_of_V", "objective")]
            rows.append(["yes" if rescale == "True" else "no", r, *shown, len(mine)])
    columns = (
        "U rescaled",
        "Round",
        "Mean column sum of U",
        "Mean entry of V",
        "Objective",
        "Runs",
    )
    caption = "The sizes of U and V, with and without rescaling"
    return Table("degeneracy-sizes", caption, columns, rows, folded=True)


def scales(results: Results) -> Table:
    terms = ("reconstruction", "consensus", "regularizer", "objective")
    by_t = grouped(results.rows("degeneracy", "scales"), "t")
    rows = [[t, *(_rounded(mine, term) for term in terms)] for t, mine in by_t.items()]
    columns = ("t", *(term.capitalize() for term in terms))
    caption = "Terms of the objective at (tU, V/t)"
    return Table("degeneracy-scales", caption, columns, rows, folded=True)


def _rounded(rows: list[Row], column: str) -> float | None:
    """The mean, to four digits that say something."""
    found = spread(rows, column)
    return None if found is None else float(f"{found.mean:.4g}")


def noise(results: Results) -> Table:
    rows = []
    for (dataset, method, scenario, view), mine in grouped(
        results.rows("noise"), lambda r: (r["dataset"], r["method"], r["scenario"], r["of_view"])
    ).items():
        names = ("alpha_before", "alpha", "w_before", "w_clean", "w_noisy", "acc", "nmi")
        shown = [_rounded(mine, name) for name in names]
        rows.append([dataset, method, scenario, view, *shown, len(mine)])
    columns = (
        "Data", "Method", "Noise", "View", "α before", "α", "w before", "w of clean ones",
        "w of noisy ones", "ACC", "NMI", "Runs",
    )  # fmt: skip
    caption = "Weights and scores, means over the runs; before: without the noise, same seed"
    return Table("noise", caption, columns, rows, folded=True)
