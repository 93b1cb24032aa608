"""The tables of every experiment, as frames, and as CSV, LaTeX and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from manyview.io.writing import csv_bytes

from .claims import (
    FAILED,
    PARTS,
    SMALL,
    TUNINGS,
    Claim,
    by_method,
    name_of,
    paper_rows,
)
from .results import SCORES, Results, grouped, in_print, spread
from .texts import DIGITS, TEXTS

SPREAD, STARTS = TEXTS["tables"]["spread"], TEXTS["tables"]["starts"]
#: The symbols of the parameters that the tuning experiments vary.
SYMBOLS = {"p": "p", "beta": "β", "k": "K"}
#: What the column "rescale" says.
RESCALED = {"True": "U rescaled", "False": "not rescaled"}
#: Columns of the objective.
TERMS = ("objective", "reconstruction", "consensus", "regularizer")
#: Datasets in words.
DATA = {"synthetic": "synthetic data", "lihc": "LIHC"}


class Table(NamedTuple):
    """``name`` is also the stem of its files; ``folded`` ones are opened by the reader."""

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    folded: bool = False


def as_csv(table: Table) -> bytes:
    return csv_bytes(table.columns, table.rows)


def as_latex(table: Table) -> bytes:
    """A plain tabular, to be included by \\input; needs booktabs."""
    frame = pd.DataFrame(map(_texts, table.rows), columns=_texts(table.columns), dtype=str)
    text = frame.to_latex(index=False, escape=True, column_format="l" * len(table.columns))
    return text.encode()


def as_markdown(table: Table) -> str:
    def line(values: Sequence[Any]) -> str:
        cells = [text.replace("|", "/").replace("<", "&lt;") for text in _texts(values)]
        return f"| {' | '.join(cells)} |"

    rule = "|" + "---|" * len(table.columns)
    return "\n".join([line(table.columns), rule, *map(line, table.rows)])


def _texts(values: Sequence[Any]) -> list[str]:
    return ["" if value is None else " ".join(str(value).split()) for value in values]


def of_claims(found: Sequence[Claim], basis: Mapping[str, str], own: bool) -> Table:
    """The paper's claims beside ours, or our own observations; why, and by which runs, at the end."""
    rows = [
        [c.claim, *(() if own else (c.paper,)), c.ours, c.difference, c.verdict, c.words,
         basis.get(c.experiment, "")]
        for c in found if c.is_own == own
    ]  # fmt: skip
    last = ("In words", "Measured by")
    if own:
        columns = ("Observation", "Measured", "Difference", "Answer", *last)
        return Table("observations", "What the paper does not say, measured here", columns, rows)
    heads = ("Claim", "Paper", "Ours", "Difference", "Verdict", *last)
    return Table("summary", "The paper's claims beside what was measured", heads, rows)


def tables(results: Results, experiment: str) -> list[Table]:
    """The tables of an experiment, those without rows left out."""
    makers: dict[str, Callable[..., list[Table]]] = {
        "digits": digits,
        "mlrssc": mlrssc,
        "seeds": seeds,
        "lihc": lambda results, _: [_beside(results, "lihc", SPREAD), *scores(results, "lihc")],
        **dict.fromkeys(("honest", "synthetic", "nutrimouse", "p", "beta", "k"), scores),
        "operations": operations,
        **dict.fromkeys(("runtime", "convergence", "degeneracy", "noise"), averages),
    }
    return [table for table in makers[experiment](results, experiment) if table.rows]


def _beside(results: Results, experiment: str, caption: str) -> Table:
    """Every method: paper and ours for all six scores, and whether ours lies in the paper's spread."""
    rows: list[list[Any]] = []
    for row in paper_rows(results, experiment):
        theirs = [in_print(*cell) for cell in row.scores[["paper", "sd"]].itertuples(index=False)]
        ours = [spread(row.runs[score]) for score in SCORES]
        rows.append([row.name, "paper", *theirs, "", "", 20])
        rows.append([name_of(row.runs), "ours", *ours, row.inside, row.note, len(row.runs)])
    columns = ("Method", "Source", *SCORES.values(), "Within the paper's spread", "Note", "Runs")
    return Table(experiment, caption, columns, rows)


def digits(results: Results, experiment: str = "digits") -> list[Table]:
    found = paper_rows(results, "digits")
    few = any(not row.is_whole for row in found)
    caption = f"{SPREAD} {STARTS}" + (
        " (500): on the first 50 digits of each class." if few else ""
    )
    gaps = [
        [name_of(row.runs), *((row.scores.ours - row.scores.paper).round(3) + 0.0)] for row in found
    ]
    return [
        _beside(results, "digits", caption),
        Table("digits-differences", "Ours minus the paper's means",
              ("Method", *SCORES.values()), gaps, folded=True),
    ]  # fmt: skip


def mlrssc(results: Results, experiment: str = "mlrssc") -> list[Table]:
    """Paper, defaults and tuned, one below the other; the defaults on all digits are those of the table."""
    tuned = results.rows("mlrssc")
    if tuned.empty:
        return []
    tuned = tuned[(tuned.dataset != "digits") | (tuned.tuning != "default")]
    whole = results.rows("digits")
    if not whole.empty:
        whole = whole[whole.method.str.contains("MLRSSC")].assign(
            dataset="digits", tuning="default"
        )
    rows: list[list[Any]] = []
    for method, runs in by_method(pd.concat([whole, tuned])).items():
        theirs = [in_print(*cell) for cell in DIGITS[method]]
        rows.append([method, "paper", *theirs, "", 20])
        for (dataset, tuning), mine in runs.groupby(["dataset", "tuning"], sort=False):
            few = "" if dataset == "digits" else f", {name_of(mine).split('(')[1][:-1]} digits"
            source = f"ours, {TUNINGS[tuning]}{few}"
            ours = [spread(mine[score]) for score in SCORES]
            rows.append([method, source, *ours, mine.remark.iloc[0], len(mine)])
    columns = ("Method", "Source", *SCORES.values(), "ADMM", "Runs")
    return [Table("mlrssc", "Mean (standard deviation) over the runs", columns, rows)]


def seeds(results: Results, experiment: str = "seeds") -> list[Table]:
    """Scores by reading; and of the paper's reading, by the smallest part of the graph it reads."""
    by = grouped(results.rows("seeds"), "reading")
    rows = [
        [name, *(f"{mine[s].mean():.3f} ({mine[s].std() if len(mine) > 1 else 0:.3f})" for s in SCORES),
         int((mine.acc < FAILED).sum()), len(mine)]
        for name, mine in by.items()
    ]  # fmt: skip
    failed = f"ACC below {FAILED:.2f}"
    columns = ("Read by", *SCORES.values(), failed, "Runs")
    readings = Table("seeds", "Mean (standard deviation) over the runs", columns, rows)
    if "spectral" not in by:
        return [readings]
    plain = by["spectral"]
    kind = plain.parts.eq(1).map({True: "one part", False: "large"})
    groups = plain.assign(kind=kind.mask(plain.smallest_part < SMALL, "small"))
    rows = [
        [name, round(mine.smallest_part.mean(), 1), round(mine.acc.mean(), 4),
         int((mine.acc < FAILED).sum()), len(mine)]
        for name, mine in grouped(groups, "kind").items()
    ]  # fmt: skip
    columns = ("Smallest part of V*'s graph", "Observations in it", "ACC", failed, "Runs")
    return [
        readings,
        Table("seeds-parts", "Runs by V*'s graph, means over the runs", columns, rows),
    ]


def scores(results: Results, experiment: str) -> list[Table]:
    rows = results.rows(experiment)
    if experiment in SYMBOLS:
        keys = {"dataset": "Data", "value": SYMBOLS[experiment]}
    else:
        keys = {"dataset": "Data", "method": "Method"}
        rows = pd.concat(by_method(rows).values()) if len(rows) else rows
    heads = {"caption": "Scores (standard deviations)", "keys": keys, "values": SCORES}
    return [_means(f"{experiment}-scores", rows, heads, spread)]


def averages(results: Results, experiment: str) -> list[Table]:
    """Means over the runs of what the other experiments measure."""
    rows = results.rows(experiment)
    if experiment == "degeneracy":
        sizes = results.rows("degeneracy", "sizes")
        if len(sizes):
            sizes = sizes[(sizes["round"] <= 2) | (sizes["round"] % 5 == 0)]
            sizes = sizes.assign(rescale=sizes.rescale.replace(RESCALED))
        rounds = rows[(rows["round"] <= 5) | (rows["round"] % 5 == 0)]
        parts = {"rounds": rounds, "sizes": sizes, "scales": results.rows("degeneracy", "scales")}
        return [_means(f"degeneracy-{name}", part) for name, part in parts.items()]
    if experiment == "runtime":
        whole = rows.reindex(columns=list(PARTS)).sum(axis=1).where(rows.method == "manyview")
        rows = rows.assign(whole=whole)
    elif experiment == "convergence":  # the curves have all iterations
        last = rows.groupby("scheme").iteration.transform("max")
        rows = rows[rows.iteration.isin((0, 1, 10, 25, 50, 75, 100)) | (rows.iteration == last)]
        rows = rows.assign(dataset=rows.dataset.replace(DATA))
    return [_means(experiment, rows)]


def operations(results: Results, experiment: str = "operations") -> list[Table]:
    leading, every = TEXTS["operations"]["leading"], TEXTS["operations"]["all"]
    rows, whole = results.rows("operations"), results.rows("operations", "whole")
    rows = rows.assign(ratio=(rows.V_paper / rows.V_ours).round(1))[list(leading)]
    caption, heads = "Multiplications of one iteration", ("Update", "Paper", "Ours", "Why")
    formulas = TEXTS["operations"]["formulas"]
    return [
        Table("operations", caption, [*leading.values()], _plain(rows)),
        Table("operations-formulas", "Appendix D and ours", heads, formulas),
        Table("operations-all", "All operations of one iteration", [*every.values()],
              _plain(whole.reindex(columns=list(every))), folded=True),
    ]  # fmt: skip


def _four(values: pd.Series) -> float | None:
    return float(f"{values.mean():.4g}") if values.notna().any() else None


def _means(
    name: str,
    rows: pd.DataFrame,
    heads: Mapping[str, Any] | None = None,
    shown: Callable[[pd.Series], Any] = _four,
) -> Table:
    """A row for each combination of keys with means of the values; `texts` has both, with headings."""
    heads = heads or TEXTS["means"][name]
    keys, values = heads["keys"], heads["values"]
    by = rows.groupby(list(keys), sort=False, dropna=False) if len(rows) else ()
    found = [[*key, *(shown(mine[value]) for value in values), len(mine)] for key, mine in by]
    columns = (*keys.values(), *values.values(), "Runs")
    return Table(name, f"{heads['caption']}, means over the runs", columns, found, folded=True)


def _plain(frame: pd.DataFrame) -> list[list[Any]]:
    return [list(row) for row in frame.astype(object).itertuples(index=False)]
