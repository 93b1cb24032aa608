"""Many methods on several datasets: scores, ranks and paired tests in one table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import PermutationMethod, t, wilcoxon
from sklearn.base import clone

from manyview._labels import class_codes
from manyview._types import Array
from manyview._warn import warn_user
from manyview.app.compare.comparison import RANKED, Comparison, found_by, planned
from manyview.app.compare.methods import resolve
from manyview.app.compare.runs import carry_out
from manyview.datasets import Dataset
from manyview.datasets._dataset import import_pandas

#: Fewest datasets with which a signed-rank test can give p < .05: 2/2⁶ = .031.
FEWEST = 6


@dataclass(eq=False, repr=False)
class Benchmark:
    """Result of `compare_datasets`.

    Attributes
    ----------
    table : DataFrame, one row per dataset, method and run, as `Comparison.table`
    metric : {"acc", "nmi", "ari", "f_score"}
        The score of all summaries. Set it to summarize another one.
    comparisons : dict of dataset name to `Comparison`
    """

    table: Any
    metric: str
    comparisons: dict[str, Comparison]

    def summary(self) -> Any:
        """Mean, sd and rank of every method on every dataset.

        Returns
        -------
        DataFrame
            A row per dataset and method: mean and sd over runs, n_ok, status, rank (1 is best; ties share
            the mean rank; methods that choose by the true classes have none).
        """
        score = _checked(self.metric)
        found = self.table.groupby(["dataset", "method"], sort=False).agg(
            mean=(score, "mean"),
            sd=(score, "std"),
            n_ok=(score, "count"),
            status=("status", "first"),
            oracle=("oracle", "any"),
        )
        found.loc[found["n_ok"] > 0, "status"] = "ok"
        found = found.reset_index()
        fair = found["mean"].where(~found["oracle"])
        found["rank"] = (-fair.round(12)).groupby(found["dataset"]).rank()
        return found

    def tests(self, reference: str | None = None) -> Any:
        """Compare one method with each other method by tests paired by dataset.

        Datasets count, not runs: runs on one dataset are not independent evidence.

        Parameters
        ----------
        reference : str, optional
            The method to compare with; by default the first.

        Returns
        -------
        DataFrame
            A row per other method: n datasets on which both have a result; difference, mean of
            reference − method, and its 95% t interval from low to high; wins, ties, losses of the
            reference; p of Wilcoxon's signed-rank test (exact up to 13 datasets, beyond by 9999 random
            signs), and p_holm, corrected for the number of methods.
        """
        found = self.summary()
        means = found[~found["oracle"]].pivot(index="dataset", columns="method", values="mean")
        names = [m for m in found["method"].unique() if m in means]
        reference = names[0] if reference is None else reference
        if reference not in names:
            raise ValueError(f"there is no method {reference!r}; known are {', '.join(names)}")
        rows = []
        for name in names:
            d = (means[reference] - means[name]).dropna().round(12).to_numpy()
            if name == reference:
                continue
            n, mean = len(d), d.mean() if len(d) else np.nan
            half = t.ppf(0.975, n - 1) * d.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
            counts = {"wins": d > 0, "ties": d == 0, "losses": d < 0}
            rows.append(
                {
                    "method": name,
                    "n": n,
                    "difference": mean,
                    "low": mean - half,
                    "high": mean + half,
                }
                | {key: int(value.sum()) for key, value in counts.items()}
                | {"p": signed_rank(d)}
            )
        table = import_pandas("compare_datasets()").DataFrame(rows)
        if len(table):
            table["p_holm"] = holm(table["p"].to_numpy(float))
        if len(means) < FEWEST:
            warn_user(
                f"{len(means)} datasets: the smallest possible p-value is "
                f"{2 / 2 ** len(means):.3g}; use at least {FEWEST} datasets to test at .05"
            )
        return table

    def to_markdown(self) -> str:
        """The main table as Markdown: mean ± sd in percent, mean rank, the best of a dataset in bold."""
        rows = self._cells("**{}**".format, "±", lambda text: text.replace("|", "\\|"))
        lines = [f"| {' | '.join(row)} |" for row in rows]
        return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:], ""])

    def to_latex(self) -> str:
        """The main table as LaTeX, for the package booktabs."""
        rows = self._cells("\\textbf{{{}}}".format, "$\\pm$", _latex)
        lines = [f"{' & '.join(row)} \\\\" for row in rows]
        columns = "l" + "r" * (len(rows[0]) - 1)
        body = [lines[0], "\\midrule", *lines[1:], "\\bottomrule", "\\end{tabular}", ""]
        return "\n".join([f"\\begin{{tabular}}{{{columns}}}", "\\toprule", *body])

    def _cells(
        self, bold: Callable[[str], str], between: str, escape: Callable[[str], str]
    ) -> list[list[str]]:
        """The table as text. The longer of methods and datasets goes down the page."""
        found = self.summary()
        best = found.groupby("dataset")["rank"].min()
        ranks = found.groupby("method", sort=False)["rank"].mean()
        methods, datasets = list(ranks.index), list(found["dataset"].unique())
        grid = [[escape(self.metric.upper()), *map(escape, datasets), "rank"]]
        by_method = {name: part.set_index("dataset") for name, part in found.groupby("method")}
        for method in methods:
            row = [escape(method)]
            for dataset in datasets:
                cell = by_method[method].loc[dataset]
                if not cell["n_ok"]:
                    row.append("n/a" if cell["status"] == "not applicable" else cell["status"])
                    continue
                text = f"{100 * cell['mean']:.1f}"
                if cell["n_ok"] > 1:
                    text += f"{between}{100 * cell['sd']:.1f}"
                row.append(bold(text) if cell["rank"] == best[dataset] else text)
            grid.append([*row, "" if np.isnan(ranks[method]) else f"{ranks[method]:.1f}"])
        if len(datasets) > len(methods):
            return [list(column) for column in zip(*grid, strict=True)]
        return grid

    def __repr__(self) -> str:
        size = f"{self.table['method'].nunique()} methods on {len(self.comparisons)} datasets"
        return f"<Benchmark of {size}>\n{self.to_markdown()}"


def compare_datasets(
    datasets: Mapping[str, Any],
    methods: Any = "honest",
    *,
    seeds: int = 5,
    metric: str = "nmi",
    random_state: int = 0,
    out: str | Path | None = None,
    n_jobs: int = 1,
    progress: bool = False,
    **options: Any,
) -> Benchmark:
    """Run many methods on several datasets with known classes, and compare them in one table.

    Each dataset is compared as by `compare`, with as many clusters as it has classes. The runs of all
    datasets share ``n_jobs`` processes. Methods that need complete views are "not applicable" on datasets
    with missing views.

    Parameters
    ----------
    datasets : dict of name → (views, y) or `Dataset`
    methods : as for `compare`, default="honest"
        In dicts, every parameter ``n_clusters`` of an estimator (also of its parts) is set to the number
        of classes, unless it is a text such as "auto".
    seeds : int, default=5
        Runs of each method on each dataset; run r has the same seed everywhere.
    metric : {"acc", "nmi", "ari", "f_score"}, default="nmi"
        The score in the printed table; ``table`` has all.
    random_state : int, default=0
    out : path, optional
        Folder in which finished runs are kept: an interrupted call continues.
    n_jobs : int, default=1
        Processes at a time.
    progress : bool, default=False
    **options : as for `compare`
        max_seconds, max_memory, scale.

    Returns
    -------
    Benchmark

    Examples
    --------
    >>> import manyview as mv
    >>> data = {f"set{i}": mv.datasets.make_synthetic(60, n_clusters=3, random_state=i) for i in range(2)}
    >>> found = mv.compare_datasets(data, ["RobustWMNMF", "ConcatK-z"], seeds=2)  # doctest: +SKIP
    >>> print(found.to_markdown())  # doctest: +SKIP
    """
    _checked(metric)
    if not isinstance(datasets, Mapping) or not datasets:
        raise ValueError("datasets must be a dict of name → (views, y) with at least one dataset")
    sets = {}
    for name, item in datasets.items():
        pair = (item.views, item.labels) if isinstance(item, Dataset) else item
        if not isinstance(pair, tuple) or len(pair) != 2 or pair[1] is None:
            raise ValueError(
                f"dataset {name!r} must be (views, y) with known classes y, or a Dataset"
            )
        sets[str(name)] = pair[0], pair[1], len(np.unique(class_codes(pair[1], "y")))
    for _, _, k in sets.values():  # a wrong method is refused before any data are read
        resolve(_for_clusters(methods, k), k)
    plans = {
        name: planned(
            views,
            y,
            n_clusters=k,
            methods=_for_clusters(methods, k),
            n_runs=seeds,
            random_state=random_state,
            n_jobs=n_jobs,
            **options,
        )
        for name, (views, y, k) in sets.items()
    }
    carry_out(list(plans.values()), out, n_jobs, progress)
    found = {name: found_by(plan) for name, plan in plans.items()}
    tables = [comparison.table.assign(dataset=name) for name, comparison in found.items()]
    table = import_pandas("compare_datasets()").concat(tables, ignore_index=True)
    table.insert(0, "dataset", table.pop("dataset"))
    return Benchmark(table, metric, found)


def _checked(metric: str) -> str:
    if metric not in RANKED:
        raise ValueError(f"metric must be one of {', '.join(RANKED)}, got {metric!r}")
    return metric


def _for_clusters(methods: Any, n_clusters: int) -> Any:
    """Estimators of a dict with the number of clusters of a dataset."""
    if isinstance(methods, list | tuple):
        return [_for_clusters(item, n_clusters) for item in methods]
    if not isinstance(methods, Mapping):
        return methods
    found = dict(methods)
    for name, value in methods.items():
        if hasattr(value, "get_params") and not isinstance(value, type):
            numbers = {
                key: n_clusters
                for key, now in value.get_params().items()
                if key.split("__")[-1] == "n_clusters" and not isinstance(now, str)
            }
            found[name] = clone(value, safe=False).set_params(**numbers)
    return found


def signed_rank(differences: Array) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test by the signs; 1 where all differences are 0."""
    if not len(differences):
        return float("nan")
    if not differences.any():
        return 1.0
    method = PermutationMethod(n_resamples=9999, random_state=0)
    return float(wilcoxon(differences, zero_method="zsplit", method=method).pvalue)


def holm(p: Array) -> Array:
    """Holm's correction; NaN stays and is not counted as a test."""
    found = np.full(len(p), np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    steps = p[order] * np.arange(len(order), 0, -1)
    found[order] = np.minimum(1, np.maximum.accumulate(steps))
    return found


def _latex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    special |= {c: f"\\{c}" for c in "&%$#_{}"}
    return "".join(special.get(c, c) for c in text)
