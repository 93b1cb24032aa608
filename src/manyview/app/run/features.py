"""The features that say what each cluster is: chosen once, for its card and for the heat map."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.outcomes.align import frame
from manyview.plot.heatmap import BINARY, CALLS, NUMBERS, SAME, kind_of

from .evidence import drawn, feature_names

#: Samples of the heat map, its rows, and rows for each cluster and view at most.
COLUMNS, ROWS, EACH = 400, 48, 5
#: Features that differ less surely say nothing about a cluster.
LEVEL = 0.05


def columns_of(X: Matrix, places: Sequence[int]) -> Array:
    """Some columns, dense, as numbers."""
    part = X[:, list(places)]
    return part.toarray().astype(float) if sp.issparse(part) else np.asarray(part, dtype=float)


def standardized(X: Array) -> Array:
    """Columns less their means, in standard deviations; NaN stays."""
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # features that no sample here has
        mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return (X - mean) / np.where(sd > 0, sd, 1)


def correlations(X: Matrix, Z: Array) -> Array:
    """Correlation of every column of X with the standardized columns Z (M × columns); NaN as the mean."""
    Z, n = np.nan_to_num(Z), len(Z)
    found = np.empty((X.shape[1], Z.shape[1]))
    width = max(1, 2**22 // max(n, 1))
    for start in range(0, X.shape[1], width):
        part = columns_of(X, range(start, min(X.shape[1], start + width)))
        found[start : start + width] = np.nan_to_num(standardized(part)).T @ Z / n
    return found


def leading_features(
    views: Views, labels: Array, leading: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The features named for each cluster and view, and which others run in parallel with each.

    ``leading`` has the candidates, the strongest of each cluster and view first. One that correlates
    with a named one of the same cluster is counted there instead.
    """
    named: list[dict[str, Any]] = []
    alike: list[dict[str, Any]] = []
    for s, view in enumerate(views.names):
        features, X = feature_names(views, s), views.matrices[s]
        place = {feature: j for j, feature in enumerate(features)}
        own = [row for row in leading if row["view"] == view]
        candidates = list(dict.fromkeys(place[row["feature"]] for row in own))
        if not candidates:
            continue
        values = columns_of(X, candidates)
        Z, at, kind = (
            standardized(values),
            {j: c for c, j in enumerate(candidates)},
            kind_of(values),
        )
        R = correlations(values, Z)
        chosen: list[int] = []
        for cluster in dict.fromkeys(row["cluster"] for row in own):
            mine: list[int] = []
            for row in (row for row in own if row["cluster"] == cluster):
                c = at[place[row["feature"]]]
                q = row.get("q_descriptive")
                unsure = q is not None and not q <= LEVEL
                if len(mine) == EACH or unsure or (mine and np.abs(R[c, mine]).max() >= SAME):
                    continue
                mine.append(c)
                altered, inside, outside = shares(values[:, c], labels == cluster, kind)
                named.append(
                    {"cluster": int(cluster), "view": view, "rank": len(mine), "kind": kind,
                     "feature": row["feature"], "effect": row["effect"], "altered": altered,
                     "inside": inside, "outside": outside}
                )  # fmt: skip
            chosen += [c for c in mine if c not in chosen]
        if chosen and kind != BINARY:
            near = correlations(X, Z[:, chosen])
            for r, c in enumerate(chosen):
                others = np.flatnonzero(np.abs(near[:, r]) >= SAME)
                alike += [
                    {"view": view, "feature": features[candidates[c]], "like": features[j],
                     "correlation": near[j, r]}
                    for j in others if j != candidates[c]
                ]  # fmt: skip
    parallel: dict[tuple[str, str], int] = {}
    for row in alike:
        parallel[row["view"], row["feature"]] = parallel.get((row["view"], row["feature"]), 0) + 1
    for row in named:
        row["parallel"] = parallel.get((row["view"], row["feature"]), 0)
    return named, alike


def shares(values: Array, own: Array, kind: str) -> tuple[str, float, float]:
    """Inside and outside the cluster: the mean; or of losses and gains the share of what differs more."""

    def compared(x: Array) -> tuple[float, float]:
        with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
            # no value in the cluster, or outside it
            return float(np.nanmean(x[own])), float(np.nanmean(x[~own]))

    if kind != CALLS:
        return "", *compared(values)
    gap = np.isnan(values)
    sides = {
        word: compared(np.where(gap, np.nan, altered))
        for word, altered in (("gain", values > 0), ("loss", values < 0))
    }
    word = max(sides, key=lambda name: abs(np.subtract(*sides[name])))
    return word, *sides[word]


def heatmap(
    views: Views,
    labels: Array,
    sure: Array,
    ids: Array,
    named: Sequence[Mapping[str, Any]],
    logged: Sequence[str] = (),
) -> tuple[Any, list[dict[str, Any]]]:
    """The rows of the heat map as columns of a table, and what they are.

    Numbers are in standard deviations (of views in ``logged`` after a logarithm that keeps signs), zeros
    and ones and losses and gains are as they are.
    """
    groups = len({(row["cluster"], row["view"]) for row in named})
    each = max(1, min(EACH, ROWS // max(groups, 1)))
    picked = [row for row in named if row["rank"] <= each]
    about: list[dict[str, Any]] = []
    rows = drawn(labels, COLUMNS)
    rows = rows[np.lexsort((-sure[rows], labels[rows]))]
    columns: dict[str, Array] = {}
    for s, view in enumerate(views.names):
        own = sorted((row for row in picked if row["view"] == view), key=lambda r: r["cluster"])
        first = {row["feature"]: row for row in reversed(own)}
        fresh = [row for row in own if first[row["feature"]] is row]
        place = {feature: j for j, feature in enumerate(feature_names(views, s))}
        values = columns_of(views.matrices[s], [place[row["feature"]] for row in fresh])
        if view in logged:
            values = np.sign(values) * np.log1p(np.abs(values))
        Z = standardized(values)
        filled, kept = np.nan_to_num(Z), list[int]()
        for j, row in enumerate(fresh):
            # What says the same of two clusters, as the halves of a lost arm do, is one row.
            if kept and np.abs(filled[:, j] @ filled[:, kept]).max() >= SAME * len(Z):
                continue
            kept.append(j)
            heading = (
                f"{len(about) + 1}:{view}:{row['feature']}"  # views may share a feature's name
            )
            item = {key: row[key] for key in ("view", "feature", "cluster", "kind", "parallel")}
            about.append(
                {**item, "heading": heading, "share": float(np.nanmean(values[:, j] != 0))}
            )
            columns[heading] = (Z if row["kind"] == NUMBERS else values)[rows, j]
    table = frame({"id": ids[rows], "cluster": labels[rows], **columns}) if about else []
    return table, about
