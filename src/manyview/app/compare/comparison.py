"""Every method on one dataset, side by side: runs, tables, summary, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from manyview._labels import class_codes
from manyview._types import Array, Views
from manyview._warn import warn_user
from manyview.app.compare.consensus import agreed
from manyview.app.compare.methods import Method, resolve
from manyview.app.compare.page import SCORES, draw, files_of
from manyview.app.compare.runs import KIND, Plan, carry_out, versions, with_nan
from manyview.app.processes import RunLimits, memory_is_watched
from manyview.app.run.meaning import known
from manyview.baselines._base import check_covered, scaled
from manyview.datasets._dataset import import_pandas
from manyview.engines.numpy.presence import has_nan, observed_rows
from manyview.io.writing import claimed
from manyview.metrics import scores
from manyview.views.views import as_views

FILES = ("results.csv", "summary.csv", "agreement.csv", "consensus.csv", "clinical.csv",
         "clinical_columns.csv", "comparison.png", "comparison.html")  # fmt: skip
#: Those that rank methods. Precision and recall can each be had for nothing: one cluster has recall 1.
RANKED = ("acc", "nmi", "ari", "f_score")
#: What every finished run has.
ALWAYS = ("seconds", "peak_memory_mb")
#: Columns of the summary that count the runs without a result, by their status.
COUNTS = {
    "failed": "n_failed",
    "skipped": "n_skipped",
    "not applicable": "n_not_applicable",
}
#: The default where neither a number nor known classes are given, as in the estimators.
DEFAULT_CLUSTERS = 8


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Result of `compare`.

    Attributes
    ----------
    table : DataFrame, one row per method and run
        method, run, seed, status ("ok", "failed", "skipped", "not applicable"), reason; with known
        classes acc, nmi, ari, f_score, precision, recall; always seconds, peak_memory_mb (of the
        whole process, Python included), n_found (clusters), oracle, shifted (features moved to start
        at 0), remark.
    summary : DataFrame, one row per method
        Mean and sd of each; mean_rank over acc, nmi, ari and f_score (precision and recall can
        each be had for nothing: one cluster has recall 1), empty if no classes are known;
        stability: mean adjusted Rand index between runs.
    labels : dict of method name to list of ndarray, the labels of its finished runs
    methods : list of the methods' names, groups and one-sentence descriptions
    settings : dict, the request; "data" is a hash of the views
    ids : list, the samples' names, or their numbers
    """

    table: Any
    summary: Any
    labels: dict[str, list[Array]]
    methods: list[dict[str, Any]]
    settings: dict[str, Any] = field(default_factory=dict)
    ids: list[Any] = field(default_factory=list)

    def shared(
        self,
        clinical: Any = None,
        *,
        time: str | None = None,
        event: str | None = None,
        horizon: float | None = None,
        covariates: Sequence[str] = (),
    ) -> tuple[dict[str, Any], list[str]]:
        """Compare the clusters of all methods with each other and with clinical data, without ranking
        methods.

        Parameters
        ----------
        clinical : DataFrame or dict of columns, optional
            A row per sample, in their order or, if it is indexed by ids, matched by these.
        time, event : columns of ``clinical`` with the time of survival and whether the event happened
        horizon, covariates : as `outcomes.survival` takes them; covariates are names of columns

        Returns
        -------
        tables : dict of file name → DataFrame
            agreement.csv: adjusted Rand index of every two methods, by the typical run of each.
            consensus.csv: clusters by average linkage of how often two samples are together (all methods
            that have not seen the classes count alike), the support of every sample (how often it is
            with the others of its cluster) and the labels of every method. clinical.csv: a row per method
            and for the consensus: sizes, survival, significant clinical columns; survival_q is
            Benjamini–Hochberg over the methods. clinical_columns.csv: every test.
        notes : list of str
        """
        ids = [str(i) for i in self.ids]
        beside = known(ids, clinical, time, event, horizon=horizon, covariates=covariates)
        fair = [m["name"] for m in self.methods if not m["oracle"]]
        return agreed(self.labels, fair, self.settings["n_clusters"], self.ids, beside)

    def figure(self) -> Any:
        """A matplotlib figure: a row per method, a panel per score, a dot per run.

        Returns
        -------
        matplotlib Figure
        """
        return draw(self.table, self.summary, self.methods)

    def save(
        self, out: str | Path, *, command: str | None = None, shared: Any = None
    ) -> list[Path]:
        """Write tables (results, summary, agreement, consensus), comparison.png and comparison.html.

        Files of an earlier comparison there are replaced, all or none; those of others are never
        written over.

        Parameters
        ----------
        out : path
            The folder, made if need be.
        command : str, optional
            Shown at the foot of the page, for whoever wants to do it again.
        shared : what `shared` gave, optional
            By default without a clinical table.

        Returns
        -------
        list of Path
            The files written.
        """
        out = Path(out)
        contents = files_of(self, command, *(self.shared() if shared is None else shared))
        with claimed(out, KIND, mixed=True) as place:
            place.put(contents)
        return [out / name for name in contents]

    @property
    def troubles(self) -> list[str]:
        """A line for each method with runs that gave no result, with the first reason."""
        lines = []
        for row in self.summary.to_dict("records"):
            kinds = [f"{row[column]} {kind}" for kind, column in COUNTS.items() if row[column]]
            if kinds and not row["n_ok"] + row["n_failed"] + row["n_skipped"]:
                lines.append(f"{row['method']}: not applicable: {row['reason']}")
            elif kinds:
                lines.append(f"{row['method']}: {', '.join(kinds)}: {row['reason']}")
        return lines

    def __repr__(self) -> str:
        counts = self.table["status"].value_counts()
        runs = ", ".join(f"{counts[s]} {s}" for s in ("ok", *COUNTS) if s in counts)
        first = f"<Comparison of {len(self.methods)} methods: {runs}>"
        return "\n".join([first, *(f"  {line}" for line in self.troubles)])


def compare(
    views: Any,
    y: Any = None,
    *,
    n_clusters: int | None = None,
    methods: Any = "all",
    n_runs: int = 10,
    random_state: int = 0,
    out: str | Path | None = None,
    n_jobs: int = 1,
    max_seconds: float = 300.0,
    max_memory: float = 4.0,
    progress: bool = True,
    scale: str | None = None,
) -> Comparison:
    """Run many methods on the same views, several times each, and compare them.

    Each run has a process of its own, so its time and memory are measured, and if a run fails, hangs or
    crashes, the table has the reason. Run r has the same seed for every method. Features with negative
    values are shifted to start at 0 for methods that need nonnegative data; the table says so. Views may
    be missing for some samples: methods that need complete views are then listed as "not applicable".

    Parameters
    ----------
    views : list, dict or array
        As for `RobustWMNMF`: a missing view is a row of NaN, or an id that a DataFrame lacks.
    y : sequence, optional
        Known classes, used to score only. Exception: `BestSingleView` ("BSV-kmeans", "BSV-Spectral")
        chooses its view by ``y``, as in the paper; these rows are marked ``oracle`` and do not change
        the ranks of others. Estimators of your own never see ``y``.
    n_clusters : int, optional
        For the methods called by name. ``None``: as many as ``y`` has distinct labels, or 8 without
        ``y``.
    methods : "all", "paper", "honest", "omics", dict of name → estimator, or a list of names and dicts
        By default "all". "honest" are simple methods the paper left out, "omics" those that are usual
        for omics; RobustWMNMF and WM-NMF are in each of them. A dict may also hold classes with a parameter
        ``n_clusters``, and functions of a seed, or of the number of clusters and a seed, that make an
        estimator; they may be defined in the script or notebook itself.
    n_runs : int, default=10
    random_state : int, default=0
        The seed of run r is derived from this and r.
    out : path, optional
        Folder in which finished runs are kept (``out/runs``). Interrupted and called again with the
        same data and settings, none of them is repeated; runs that failed are tried again, those
        ended by a limit under a wider one. `Comparison.save` writes the results.
    n_jobs : int, default=1
        Processes at a time. Times depend on it, results do not (those of MLRSSC up to rounding:
        the processes share the cores for its linear algebra).
    max_seconds, max_memory : float, default=300 and 4
        Most seconds and GiB of memory for one run. A method that can tell its cost beforehand
        (MLRSSC) and would exceed them is skipped; a run that does exceed them is ended, and so
        are all runs of a method whose first was. Memory is watched on Linux; elsewhere a warning
        says that only the estimate counts.
    progress : bool, default=True
        Show a progress bar.
    scale : {"standard", "minmax"} or None, default=None
        Scale every feature before all methods. ``None`` leaves the views as they are, and each method
        uses its own scaling.

    Returns
    -------
    Comparison

    Examples
    --------
    >>> import manyview as mv
    >>> digits = mv.datasets.load_handwritten(views="paper")
    >>> found = mv.compare(
    ...     digits.views, digits.labels, n_clusters=10, methods=["WM-NMF", "ConcatSpectral-z"],
    ...     n_runs=2, progress=False)  # doctest: +SKIP
    >>> found.summary[["method", "acc_mean"]]  # doctest: +SKIP
    """
    plan = planned(
        views,
        y,
        n_clusters=n_clusters,
        methods=methods,
        n_runs=n_runs,
        random_state=random_state,
        n_jobs=n_jobs,
        max_seconds=max_seconds,
        max_memory=max_memory,
        scale=scale,
    )
    carry_out([plan], out, n_jobs, progress)
    return found_by(plan)


def planned(
    views: Any,
    y: Any,
    *,
    n_clusters: int | None,
    methods: Any,
    n_runs: int,
    random_state: int,
    n_jobs: int = 1,
    max_seconds: float = 300.0,
    max_memory: float = 4.0,
    scale: str | None = None,
) -> Plan:
    """The runs of `compare` on one dataset; its arguments are checked."""
    import_pandas("compare()")
    data = with_nan(as_views(views, allow_negative=True, allow_missing=True, caller="compare"))
    rows = [np.flatnonzero(observed_rows(X)) for X in data.matrices]
    check_covered(rows, data.n_samples)
    _check_scale(scale)
    if scale is not None:
        data = replace(data, matrices=tuple(scaled(data, scale)))
    truth = None if y is None else class_codes(y, "y")
    if n_clusters is None:
        n_clusters = DEFAULT_CLUSTERS if truth is None else len(np.unique(truth))
    counts = {"n_clusters": n_clusters, "n_runs": n_runs, "random_state": random_state}
    limits = {"max_seconds": max_seconds, "max_memory": max_memory}
    _check(data, limits, **counts, n_jobs=n_jobs)
    if truth is not None and len(truth) != data.n_samples:
        raise ValueError(
            f"y has {len(truth)} labels for {data.n_samples} samples; give one each, or none"
        )
    chosen = resolve(methods, int(n_clusters), any(has_nan(X) for X in data.matrices))
    if not memory_is_watched():
        warn_user(
            "this system does not report the memory of a process: "
            f"max_memory={max_memory:g} only skips methods that estimate their cost beforehand"
        )
    seeds = [seed_of(random_state, run) for run in range(n_runs)]
    settings = {
        "n_samples": data.n_samples,
        "views": dict(zip(data.names, data.n_features, strict=True)),
        "n_classes": None if truth is None else len(np.unique(truth)),
        **{name: int(value) for name, value in counts.items()},
        **{name: float(value) for name, value in limits.items()},
        "n_jobs": int(n_jobs),
        "scale": scale,
        "missing": {
            name: data.n_samples - len(r) for name, r in zip(data.names, rows, strict=True)
        },
        "versions": versions(),
    }
    ids = list(range(data.n_samples)) if data.sample_names is None else data.sample_names.tolist()
    limit = RunLimits(float(max_seconds), float(max_memory))
    return Plan(data, truth, chosen, seeds, limit, settings, ids)


def found_by(plan: Plan) -> Comparison:
    """The tables of a plan that was carried out."""
    pandas = import_pandas("compare()")
    table = tidy(pandas, plan.methods, plan.seeds, plan.records, plan.truth)
    labels = {
        method.name: [
            np.asarray(plan.records[method.name, run]["labels"])
            for run in range(len(plan.seeds))
            if plan.records[method.name, run]["status"] == "ok"
        ]
        for method in plan.methods
    }
    summary = summarize(pandas, table, labels)
    shifted = dict(zip(summary["method"], summary["shifted"], strict=True))
    told = [
        {
            "name": method.name,
            "group": method.group,
            "description": method.description,
            "oracle": method.oracle and plan.truth is not None,
            "caution": method.caution or "shifted" * bool(shifted[method.name]),
        }
        for method in plan.methods
    ]
    settings = plan.settings | {"data": plan.data_key}
    return Comparison(table, summary, labels, told, settings, plan.ids)


def check_request(methods: Any, n_clusters: int, scale: str | None) -> None:
    """What can be said of a request before there are data: large files are not read in vain."""
    _check_scale(scale)
    resolve(methods, int(n_clusters))


def _check_scale(scale: str | None) -> None:
    if scale not in (None, "standard", "minmax"):
        raise ValueError(f"scale must be 'standard', 'minmax' or None, got {scale!r}")


def seed_of(random_state: int, run: int) -> int:
    """The seed of a run: its own stream, whatever the number of runs."""
    sequence = np.random.SeedSequence(int(random_state), spawn_key=(run,))
    return int(sequence.generate_state(1)[0] >> 1)  # scikit-learn takes 31 bits


def _check(data: Views, limits: Mapping[str, Any], **counts: Any) -> None:
    least = {"n_clusters": 1, "n_runs": 1, "random_state": 0, "n_jobs": 1}
    for name, value in counts.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least[name]:
            raise ValueError(
                f"{name} must be a whole number of at least {least[name]}, got {value!r}"
            )
    for name, value in limits.items():
        if not isinstance(value, Real) or isinstance(value, bool) or not float(value) > 0:
            raise ValueError(f"{name} must be a number above 0, got {value!r}")
    if counts["n_clusters"] > data.n_samples:
        raise ValueError(
            f"n_clusters={counts['n_clusters']} is more than the number of samples "
            f"(n_samples={data.n_samples}); choose fewer clusters"
        )


def tidy(
    pandas: Any,
    methods: Sequence[Method],
    seeds: Sequence[int],
    records: Mapping[tuple[str, int], Mapping[str, Any]],
    y: Array | None,
) -> Any:
    """One row per method and run; what was not computed is empty."""
    rows = []
    for method in methods:
        for run, seed in enumerate(seeds):
            record = records[method.name, run]
            row: dict[str, Any] = {
                "method": method.name,
                "run": run,
                "seed": seed,
                "status": record["status"],
                "reason": record.get("reason", ""),
            }
            labels = record.get("labels")
            if y is not None:
                found = {} if labels is None else scores(y, np.asarray(labels))
                row |= {name: found.get(name) for name in SCORES}
            row |= {name: record.get(name) for name in ALWAYS}
            row["n_found"] = None if labels is None else len(set(labels))
            row["oracle"] = method.oracle and y is not None
            row["shifted"] = bool(record.get("shifted", False))
            row["remark"] = record.get("remark", "")
            rows.append(row)
    table = pandas.DataFrame(rows)
    numbers = [*(SCORES if y is not None else ()), *ALWAYS]
    return table.astype({**dict.fromkeys(numbers, float), "n_found": "Int64"})


def summarize(pandas: Any, table: Any, labels: Mapping[str, Sequence[Array]]) -> Any:
    """One row per method, best mean rank first, those without a rank last."""
    names = [name for name in SCORES if name in table]
    rows = []
    for method, runs in table.groupby("method", sort=False):
        ok = runs[runs["status"] == "ok"]
        reasons = [reason for reason in runs["reason"] if reason]
        row = {
            "method": method,
            "oracle": bool(runs["oracle"].iloc[0]),
            "shifted": bool(runs["shifted"].any()),
            "n_ok": len(ok),
            **{column: int((runs["status"] == s).sum()) for s, column in COUNTS.items()},
            "mean_rank": np.nan,
        }
        for name in names:
            # Empty, not zero: the mean of no run, and the spread of one.
            row[f"{name}_mean"] = ok[name].mean()
            row[f"{name}_sd"] = ok[name].std(ddof=1)
        row["stability"] = stability(labels.get(str(method), ()))
        row["seconds_mean"] = ok["seconds"].mean()
        row["peak_memory_mb"] = ok["peak_memory_mb"].max()
        row["reason"] = reasons[0] if reasons else ""
        rows.append(row)
    summary = pandas.DataFrame(rows)
    summary["mean_rank"] = mean_ranks(
        summary[[f"{name}_mean" for name in RANKED if name in names]].to_numpy(float),
        summary["oracle"].to_numpy(bool),
    )
    return summary.sort_values("mean_rank", kind="stable", na_position="last", ignore_index=True)


def mean_ranks(means: Array, oracle: Array) -> Array:
    """Rank of every row among those that are no oracle, averaged over the columns; 1 is best.

    An oracle has the rank that it would have, and does not change the ranks of others.
    """
    means = means.round(12)
    fair = np.where(oracle[:, None], np.nan, means)
    better = (fair > means[:, None]).sum(axis=1)
    equal = (fair == means[:, None]).sum(axis=1) - ~oracle[:, None]
    ranks = np.where(np.isnan(means), np.nan, 1 + better + equal / 2)
    return np.ma.masked_invalid(ranks).mean(axis=1).filled(np.nan)


def stability(runs: Sequence[Array]) -> float:
    """Mean adjusted Rand index over all pairs of runs; empty for fewer than two."""
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(runs, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")
