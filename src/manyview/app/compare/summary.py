"""From the records of runs to the tidy table and its summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from manyview._types import Array
from manyview.metrics import scores

from .methods import Method

#: Scores against known classes, in the order of the columns.
SCORES = ("acc", "nmi", "ari", "f_score", "precision", "recall")
#: Those that rank methods. Precision and recall can each be had for nothing: one cluster has recall 1.
RANKED = ("acc", "nmi", "ari", "f_score")
#: What every finished run has.
ALWAYS = ("seconds", "peak_memory_mb")


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


def summarise(pandas: Any, table: Any, labels: Mapping[str, Sequence[Array]]) -> Any:
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
            **{f"n_{s}": int((runs["status"] == s).sum()) for s in ("ok", "failed", "skipped")},
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

    An oracle is told where it would stand, but pushes nobody down: it has seen the answers.
    """
    ranks = np.full(means.shape, np.nan)
    for i in range(len(means)):
        rivals = ~oracle & (np.arange(len(means)) != i)
        with np.errstate(invalid="ignore"):
            better = (means[rivals] > means[i] + 1e-12).sum(axis=0)
            equal = (np.abs(means[rivals] - means[i]) <= 1e-12).sum(axis=0)
        ranks[i] = np.where(np.isnan(means[i]), np.nan, 1 + better + equal / 2)
    counted = ~np.isnan(ranks)
    return np.divide(
        np.where(counted, ranks, 0).sum(axis=1),
        counted.sum(axis=1),
        out=np.full(len(means), np.nan),
        where=counted.any(axis=1),
    )


def stability(runs: Sequence[Array]) -> float:
    """Mean adjusted Rand index over all pairs of runs; empty for fewer than two."""
    pairs = [adjusted_rand_score(a, b) for a, b in combinations(runs, 2)]
    return float(np.mean(pairs)) if pairs else float("nan")
