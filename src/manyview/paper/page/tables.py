"""The tables of every experiment, as plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import paper
from .claims import Verdict
from .claims.beside import (
    PaperRow,
    digits_rows,
    in_order,
    name_of,
)
from .claims.judging import NOT_MEASURED
from .claims.lihc import lihc_rows
from .claims.mlrssc import TUNINGS
from .claims.runtime import PARTS, seconds
from .claims.seeds import FAILED, is_small
from .formats import Table
from .origin import basis
from .read import (
    DATA,
    SCORES,
    TERMS,
    Results,
    Row,
    Spread,
    grouped,
    spread,
)

SPREAD = (
    "Mean (standard deviation) over the runs. Within the spread: our mean, rounded as the paper's are, "
    "lies within one of its standard deviations of its mean; where it gives none, the two are equal."
)
STARTS = (
    " k-means starts once in BSV-kmeans, ConcatK and MLRSSC, five times in spectral clustering and in "
    "MultiNMF."
)
#: Iterations at which the terms of the objective are told; the curves have them all.
ITERATIONS = (0, 1, 10, 25, 50, 75, 100)
BASIS = ("In words", "Measured by", "What would change it")
FORMULAS = [
    ["U of one view", "O(M N K)", "O(M N K)", "the products XᵀW²V and VᵀW²V"],
    ["V of one view", "O(M N K + N² K)", "O(M N K + nnz(A) K)", "the graph is kept sparse"],
    ["memory of the graph", "O(N²)", "O(nnz(A)) ≤ O(2 k N)", "k nearest neighbours, union"],
]
#: Dataset and tuning of the rows of MLRSSC in the paper's table.
WHOLE = ("digits", "default")
#: Operations that are counted one by one.
KINDS = ("additions", "multiplications", "divisions")
#: Columns of the operations: the heading of each.
OPERATIONS = {
    "dataset": "Data", "view": "View", "N": "N", "M": "M", "K": "K", "nnz": "nnz(A)",
    "U_paper": "U: paper", "U_ours": "U: ours", "V_paper": "V: paper", "V_ours": "V: ours",
    "ratio": "V: ratio",
}  # fmt: skip


def claims(results: Results, found: Sequence[Verdict]) -> Table:
    columns = ("Claim", "Paper", "Ours", "Difference", "Verdict")
    rows = [
        [v.claim, v.paper, v.ours, v.difference, v.verdict, *_basis(results, v)]
        for v in found
        if not v.is_own
    ]
    caption = "The paper's claims beside what was measured"
    return Table("summary", caption, (*columns, *BASIS), rows)


def observations(results: Results, found: Sequence[Verdict]) -> Table:
    columns = ("Observation", "Measured", "Difference", "Answer")
    rows = [
        [v.claim, v.ours, v.difference, v.verdict, *_basis(results, v)] for v in found if v.is_own
    ]
    caption = "What the paper does not say, measured here"
    return Table("observations", caption, (*columns, *BASIS), rows)


def _basis(results: Results, verdict: Verdict) -> list[str]:
    """The last columns of a verdict: why, by which runs, and what would change it."""
    measured = verdict.verdict != NOT_MEASURED
    return [verdict.words, basis(results, verdict.experiment) if measured else "", verdict.change]


def tables(results: Results, experiment: str) -> list[Table]:
    """The tables of an experiment, those without rows left out."""
    makers: dict[str, tuple[Callable[..., Table], ...]] = {
        "digits": (digits, differences),
        "mlrssc": (mlrssc,),
        "seeds": (readings, parts),
        "lihc": (lihc, scores),
        **dict.fromkeys(("honest", "synthetic", "nutrimouse", "p", "beta", "k"), (scores,)),
        "runtime": (runtime,),
        "operations": (operations, formulas, every_operation),
        "convergence": (convergence,),
        "noise": (noise,),
        "degeneracy": (rounds, sizes, scales),
    }
    found = [make(results, experiment) for make in makers.get(experiment, ())]
    return [table for table in found if table.rows]


def digits(results: Results, experiment: str = "digits") -> Table:
    found = digits_rows(results)
    few = (
        " (500): on the first 50 digits of each class."
        if any(not r.is_whole for r in found)
        else ""
    )
    return _beside("digits", SPREAD + STARTS + few, found)


def lihc(results: Results, experiment: str) -> Table:
    return _beside("lihc", SPREAD, lihc_rows(results))


def _beside(name: str, caption: str, found: Sequence[PaperRow]) -> Table:
    """Every method: paper and ours for all six scores, and whether ours lies in the paper's spread."""
    rows: list[list[Any]] = []
    for row in found:
        theirs = [str(Spread(c.paper, c.paper_sd, 20)) for c in row.cells.values()]
        ours = [str(c.ours) for c in row.cells.values()]
        rows.append([row.name, "paper", *theirs, "", "", 20])
        rows.append([name_of(row.runs[0]), "ours", *ours, row.inside, row.note, len(row.runs)])
    columns = ("Method", "Source", *SCORES.values(), "Within the paper's spread", "Note", "Runs")
    return Table(name, caption, columns, rows)


def differences(results: Results, experiment: str) -> Table:
    rows = [
        [name_of(row.runs[0]), *(round(c.ours.mean - c.paper, 3) + 0.0 for c in row.cells.values())]
        for row in digits_rows(results)
    ]
    columns = ("Method", *SCORES.values())
    return Table("digits-differences", "Ours minus the paper's means", columns, rows, folded=True)


def mlrssc(results: Results, experiment: str = "mlrssc") -> Table:
    """Paper, defaults and tuned, one below the other; the defaults on all digits are those of the table."""
    rows: list[list[Any]] = []
    tuned = [row for row in results.rows("mlrssc") if (row["dataset"], row["tuning"]) != WHOLE]
    whole = [row | dict(zip(("dataset", "tuning"), WHOLE, strict=True))
             for row in results.rows("digits") if "MLRSSC" in row["method"]]  # fmt: skip
    for method, runs in grouped(in_order(whole + tuned), "method").items():
        theirs = [str(Spread(*cell, 20)) for cell in paper.DIGITS[method]]
        rows.append([method, "paper", *theirs, "", 20])
        for (dataset, tuning), mine in grouped(runs, _dataset_and_tuning).items():
            ours = [str(spread(mine, score)) for score in SCORES]
            few = "" if dataset == "digits" else f", {name_of(mine[0]).split('(')[1][:-1]} digits"
            source = f"ours, {TUNINGS[tuning]}{few}"
            rows.append([method, source, *ours, mine[0]["remark"], len(mine)])
    columns = ("Method", "Source", *SCORES.values(), "ADMM", "Runs")
    return Table("mlrssc", "Mean (standard deviation) over the runs", columns, rows)


def _dataset_and_tuning(row: Row) -> tuple[str, str]:
    return row["dataset"], row["tuning"]


def readings(results: Results, experiment: str) -> Table:
    rows = [
        [name, *(f"{s.mean:.3f} ({s.sd or 0:.3f})" for score in SCORES if (s := spread(mine, score))),
         sum(row["acc"] < FAILED for row in mine), len(mine)]
        for name, mine in grouped(results.rows("seeds"), "reading").items()
    ]  # fmt: skip
    columns = ("Read by", *SCORES.values(), f"ACC below {FAILED:.2f}", "Runs")
    return Table("seeds", "Mean (standard deviation) over the runs", columns, rows)


def parts(results: Results, experiment: str) -> Table:
    """The paper's reading, by the smallest part of the graph it reads."""
    plain = results.rows("seeds", reading="spectral")
    groups = grouped(plain, lambda row: "small" if is_small(row) else
                     "one part" if row["parts"] == 1 else "large")  # fmt: skip
    rows = [
        [name, *(round(s.mean, 4) for c in ("smallest_part", "acc") if (s := spread(mine, c))),
         sum(row["acc"] < FAILED for row in mine), len(mine)]
        for name, mine in groups.items()
    ]  # fmt: skip
    columns = (
        "Smallest part of V*'s graph",
        "Observations in it",
        "ACC",
        f"ACC below {FAILED:.2f}",
    )
    return Table("seeds-parts", "Runs by V*'s graph, means over the runs", (*columns, "Runs"), rows)


def scores(results: Results, experiment: str) -> Table:
    rows = results.rows(experiment)
    key = (
        {"value": paper.SYMBOLS[experiment]}
        if experiment in paper.SYMBOLS
        else {"method": "Method"}
    )
    rows = in_order(rows) if "method" in key else rows
    found = {"dataset": "Data", **key}
    return _means(f"{experiment}-scores", "Scores (standard deviations)", rows, found, SCORES, str)


def runtime(results: Results, experiment: str) -> Table:
    rows = [
        row | {"whole": seconds(row) if row["method"] == "manyview" else None}
        for row in results.rows("runtime")
    ]
    keys = {"axis": "Varies", "value": "Value", "method": "Program"}
    values = {part: name.capitalize() for part, name in PARTS.items()} | {"whole": "Whole fit"}
    return _means("runtime", "CPU seconds of one thread", rows, keys, values)


def operations(results: Results, experiment: str) -> Table:
    rows = [
        [*(row[name] for name in OPERATIONS if name != "ratio"), round(row["V_paper"] / row["V_ours"], 1)]
        for row in results.rows("operations")
    ]  # fmt: skip
    return Table("operations", "Multiplications of one iteration", list(OPERATIONS.values()), rows)


def formulas(results: Results, experiment: str) -> Table:
    columns = ("Update", "Paper", "Ours", "Why")
    return Table("operations-formulas", "Appendix D and ours", columns, FORMULAS)


def every_operation(results: Results, experiment: str) -> Table:
    names = ("dataset", "view", "update", *KINDS)
    rows = [[row[name] for name in names] for row in results.rows("operations", "whole")]
    columns = ("Data", "View", "Update of", *(kind.capitalize() for kind in KINDS))
    return Table("operations-all", "All operations of one iteration", columns, rows, folded=True)


def convergence(results: Results, experiment: str) -> Table:
    every = results.rows("convergence")
    last = {
        scheme: max(r["iteration"] for r in mine)
        for scheme, mine in grouped(every, "scheme").items()
    }
    rows = [
        row | {"dataset": DATA.get(row["dataset"], row["dataset"])}
        for row in every
        if row["iteration"] in (*ITERATIONS, last[row["scheme"]])
    ]
    keys = {"dataset": "Data", "scheme": "Scheme", "iteration": "Iteration"}
    return _means("convergence", "Terms of the objective at some iterations", rows, keys, TERMS)


def rounds(results: Results, experiment: str) -> Table:
    rows = [row for row in results.rows("degeneracy") if row["round"] <= 5 or row["round"] % 5 == 0]
    values = {"acc": "ACC", "nmi": "NMI", "max_alpha": "Largest α", "objective": "Objective"}
    return _means("degeneracy-rounds", "WM-NMF round by round", rows, {"round": "Round"}, values)


def sizes(results: Results, experiment: str) -> Table:
    every = results.rows("degeneracy", "sizes")
    rows = [row for row in every if row["round"] <= 2 or row["round"] % 5 == 0]
    rows = [row | {"rescale": paper.RESCALED[row["rescale"]]} for row in rows]
    values = {"column_sum_of_U": "Mean column sum of U", "size_of_V": "Mean entry of V"}
    values |= {"objective": "Objective"}
    keys = {"rescale": "U", "round": "Round"}
    return _means("degeneracy-sizes", "The sizes of U and V", rows, keys, values)


def scales(results: Results, experiment: str) -> Table:
    rows = results.rows("degeneracy", "scales")
    return _means(
        "degeneracy-scales", "Terms of the objective at (tU, V/t)", rows, {"t": "t"}, TERMS
    )


def noise(results: Results, experiment: str) -> Table:
    keys = {"dataset": "Data", "method": "Method", "scenario": "Noise", "of_view": "View"}
    values = {
        "alpha_before": "α before", "alpha": "α", "w_before": "w before", "w_clean": "w of clean ones",
        "w_noisy": "w of noisy ones", "acc": "ACC", "nmi": "NMI",
    }  # fmt: skip
    caption = "Weights and scores; before: without the noise, same seed"
    return _means("noise", caption, results.rows("noise"), keys, values)


def _means(
    name: str,
    caption: str,
    rows: Sequence[Row],
    keys: Mapping[str, str],
    values: Mapping[str, str],
    shown: Callable[[Spread], Any] = lambda found: float(f"{found.mean:.4g}"),
) -> Table:
    """A row for each combination of ``keys`` with the means of ``values``; both give their headings."""
    found = []
    for key, mine in grouped(rows, lambda row: tuple(row[k] for k in keys)).items():
        means = [shown(s) if (s := spread(mine, value)) else None for value in values]
        found.append([*key, *means, len(mine)])
    columns = (*keys.values(), *(word[:1].upper() + word[1:] for word in values.values()), "Runs")
    return Table(name, f"{caption}, means over the runs", columns, found, folded=True)
