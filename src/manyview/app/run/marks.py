"""Features behind the clusters: tests, clusters found without each view, values for a heat map."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Views
from manyview.methods.estimators import Estimator
from manyview.outcomes import Markers, markers
from manyview.outcomes.mark import tested_markers
from manyview.views.containers import Collection, Item

from .evidence import drawn
from .features import feature_names
from .refits import clusters_without

Rows = list[dict[str, Any]]

#: Features listed per cluster and view.
LISTED = 50
#: Entries of all views up to which every feature is tested: some seconds.
TESTED = 80_000_000
#: Views up to which the model is fitted again without each.
MOST_VIEWS = 12
#: Observations and features of the heat map.
COLUMNS, FEATURES = 300, 48


def tested(model: Estimator, views: Views, labels: Array, refits: bool) -> tuple[Rows, Rows, str]:
    """Leading features with tests; a row per view on the clusters found without it; why not, if so."""
    entries = views.n_samples * sum(views.n_features)
    if len(np.unique(labels[labels >= 0])) < 2:
        return [], [], "there is one cluster only"
    if entries > TESTED:
        return [], [], f"the views hold {entries} numbers, more than are tested unasked"
    given = _named(views)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit of all views has said them
        found = markers(labels, given)
        honest, why = None, "no refits were asked for"
        if refits:
            honest, why = _without_views(model, given, len(views), views.n_samples)
    rows = _leading(found, honest)
    left_out = [] if honest is None else _left_out(honest)
    return rows, left_out, why


def _named(views: Views) -> Collection:
    """The views with a name for every feature, as the other tables call them."""
    items = [
        Item(X, views.sample_names, np.array(feature_names(views, s), dtype=object))
        for s, X in enumerate(views.matrices)
    ]
    return Collection(list(views.names), items, by_name=True)


def _without_views(
    model: Estimator, views: Collection, n_views: int, n_samples: int
) -> tuple[Markers | None, str]:
    if not 2 <= n_views <= MOST_VIEWS:
        return None, (
            "there is one view only" if n_views < 2 else f"there are more than {MOST_VIEWS} views"
        )
    try:
        return tested_markers(model, views, without=clusters_without(model, n_samples)), ""
    except ValueError as error:  # a rest of the views that the model does not take
        return None, str(error)


def _leading(found: Markers, honest: Markers | None) -> Rows:
    table = found.top(LISTED, max_q=None)
    rows: Rows = []
    places = {
        view.view: {feature: j for j, feature in enumerate(view.features)} for view in found.views
    }
    again = {} if honest is None else {view.view: view for view in honest.views}
    number = {cluster: k for k, cluster in enumerate(found.clusters)}
    for row in table.to_dict("records"):
        if honest is not None:
            k, j = number[row["cluster"]], places[row["view"]][row["feature"]]
            row["q_without_view"] = float(again[row["view"]].q_value[k, j])
        rows.append(row)
    return rows


def _left_out(honest: Markers) -> Rows:
    return [
        {
            "view": view.view,
            "agreement": view.agreement,
            "features": len(view.features),
            "features_that_differ": int((view.q_value <= 0.05).any(axis=0).sum()),
        }
        for view in honest.views
    ]


def heatmap(
    views: Views, labels: Array, sure: Array, ids: list[str], leading: Rows
) -> tuple[Rows, list[dict[str, Any]]]:
    """z-scores of the leading features, a row per observation; and what the columns are."""
    picked = _picked(leading)
    if not picked:
        return [], []
    rows = drawn(labels, COLUMNS)
    rows = rows[np.lexsort((-sure[rows], labels[rows]))]
    columns: list[Array] = []
    about: list[dict[str, Any]] = []
    for s, name in enumerate(views.names):
        places = {feature: j for j, feature in enumerate(feature_names(views, s))}
        own = [row for row in picked if row["view"] == name]
        at = [places[row["feature"]] for row in own]
        if not own:
            continue
        X: Any = views.matrices[s][:, at]
        Z = _z(X.toarray() if sp.issparse(X) else np.asarray(X, dtype=float))[rows]
        columns += [Z[:, j] for j in range(len(at))]
        about += [
            {"view": name, "feature": row["feature"], "cluster": row["cluster"]} for row in own
        ]
    order = sorted(range(len(about)), key=lambda j: about[j]["cluster"])
    about = [about[j] for j in order]
    for n, item in enumerate(about):  # two views may have a feature of one name
        item["heading"] = f"{n + 1}:{item['view']}:{item['feature']}"
    table = [
        {"id": ids[i], "cluster": int(labels[i])}
        | {item["heading"]: columns[j][at] for item, j in zip(about, order, strict=True)}
        for at, i in enumerate(rows.tolist())
    ]
    return table, about


def _picked(leading: Rows) -> Rows:
    """The same number of features of every cluster and view, each feature once."""
    groups: dict[tuple[Any, Any], Rows] = {}
    for row in leading:
        groups.setdefault((row["cluster"], row["view"]), []).append(row)
    each = max(1, min(5, FEATURES // max(len(groups), 1)))
    seen: set[tuple[Any, Any]] = set()
    picked: Rows = []
    for rows in groups.values():
        fresh = [row for row in rows if (row["view"], row["feature"]) not in seen][:each]
        seen |= {(row["view"], row["feature"]) for row in fresh}
        picked += fresh
    return picked


def _z(X: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # features that nobody here has
        mean, sd = np.nanmean(X, axis=0), np.nanstd(X, axis=0)
    return (X - mean) / np.where(sd > 0, sd, 1)
