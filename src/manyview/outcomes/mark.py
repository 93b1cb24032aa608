"""`markers`: the features that set each cluster apart from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator, clone
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from manyview._types import Array, Matrix, Views
from manyview.views.ids import places
from manyview.views.views import as_views

from .chance import adjusted
from .feature_tests import FeatureTests, binary_tests, rank_tests, sparse_rank_tests
from .groups import Clustering, Groups, read_groups, read_labels
from .markers_result import Markers, ViewMarkers
from .table import counted, quoted

KINDS = ("binary", "counts", "continuous")
#: Whole numbers below this are grades rather than counts.
LEAST_COUNT = 10
#: Clusters with fewer members are described and not tested.
LEAST_MEMBERS = 3
#: Entries of a view tested at a time.
BLOCK = 4_000_000

#: A model, its views, which of them is left out, the number of clusters → labels without it.
Without: TypeAlias = Callable[[Any, Views, int, int], Array]

DESCRIPTIVE = (
    "Read the effect sizes. The same data found the clusters, so p- and q-values are descriptive: they "
    "say how sharply features differ and prove no difference. leave_view_out=True tests every view on "
    "clusters found without it."
)
HONEST = (
    "The features of each view were tested on clusters found without that view; p-values are of "
    "the hypothesis that the view has nothing to do with the clusters of the others."
)


def markers(
    labels: Any,
    views: Any,
    *,
    ids: Any = None,
    kinds: Mapping[str, str] | None = None,
    leave_view_out: bool = False,
) -> Markers:
    """Find the features that set each cluster apart, in every view.

    Every cluster is compared with all other observations. Binary features (mutations), and those
    with one value in most observations, are tested by Fisher's exact test; others by ranks
    (Mann–Whitney; p-values from the distribution of the rank sum over shuffled labels, with all its
    ties), counts after division by the observation's total. q-values are Benjamini–Hochberg over all
    features and clusters of a view.

    The same data found the clusters: features differ because clusters were made to differ in
    them, and p-values only describe. ``leave_view_out=True`` refits the model without each view in
    turn and tests that view on the clusters of the others, which makes its p-values honest
    (splitting the observations would not; thinning of counts is not done).

    Parameters
    ----------
    labels : fitted model, array-like, pandas Series, or dict of id → label
        −1, None and NaN are left out.
    views : as `as_views` takes them
        Sparse views stay sparse. NaN is left out feature by feature.
    ids : sequence, optional
        Ids of the labels. Where labels and views have ids they are matched by them, otherwise by
        position.
    kinds : dict of view → {"binary", "counts", "continuous"}, optional
        By default found from the values: only 0 and 1, whole numbers up to 10 or more, others.
    leave_view_out : bool, default=False
        Needs a fitted model and at least two views. One fit per view.

    Returns
    -------
    Markers

    Examples
    --------
    >>> import numpy as np
    >>> from manyview.outcomes import markers
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> X[:20, 3] += 3
    >>> found = markers([0] * 20 + [1] * 40, {"rna": X})
    >>> found.top(1)["feature"]
    ['3', '3']
    """
    return tested_markers(labels, views, ids, kinds, fitted_without if leave_view_out else None)


def tested_markers(
    labels: Any,
    views: Any,
    ids: Any = None,
    kinds: Mapping[str, str] | None = None,
    without: Without | None = None,
) -> Markers:
    """The same, with ``without`` to say how observations cluster without a view."""
    split = labels.get_params().get("views") if isinstance(labels, BaseEstimator) else None
    given = as_views(views, split, allow_negative=True, allow_missing=True, caller="markers")
    unknown = [name for name in kinds or {} if name not in given.names]
    if unknown:
        raise ValueError(
            f"kinds names {quoted(unknown[0])}, which is no view; the views are {list(given.names)}"
        )
    notes: list[str] = []
    groups, rows = _groups(labels, given, ids, notes)
    found = []
    for s, name in enumerate(given.names):
        own, here, agreement = groups, rows, np.nan
        if without is not None:
            new = without(labels, given, s, len(groups.names))
            own, here, agreement = _matched(new, groups, rows)
        X = given.matrices[s]
        kind = view_kind(X, name, (kinds or {}).get(name))
        found.append(_of_view(given, s, X[here], kind, own, agreement, notes))
    left_out = without is not None
    notes.append(HONEST if left_out else DESCRIPTIVE)
    return Markers(groups.names, groups.sizes, tuple(found), left_out, tuple(notes))


def _groups(labels: Any, views: Views, ids: Any, notes: list[str]) -> tuple[Groups, Array]:
    """Return the clusters and the row of the views for each of their observations."""
    rows_of_views = None if views.sample_names is None else views.sample_names.tolist()
    given = read_labels(labels, ids).beside(rows_of_views)
    values, known = given.columns["labels"], given.ids
    groups = read_groups(values, notes)
    if known is None or views.sample_names is None:
        if len(values) != views.n_samples:
            raise ValueError(
                f"labels has {len(values)} entries and the views have {views.n_samples} rows; pass both "
                "with ids (a pandas Series and DataFrames indexed by id) or one label per row"
            )
        return groups, groups.rows
    rows = places((known[i] for i in groups.rows), views.sample_names.tolist())
    if not (rows >= 0).any():
        raise ValueError(
            f"labels and views share no id: labels has {known[0]!r}, the views have "
            f"{views.sample_names[0]!r}; give one observation one id everywhere"
        )
    if (rows < 0).any():
        notes.append(
            f"Left out: {counted(int((rows < 0).sum()), 'labelled observation')} not in the views."
        )
    return groups.only(rows >= 0).without_empty(), rows[rows >= 0]


def view_kind(X: Matrix, name: str, kind: str | None) -> str:
    """Return whether a view holds zeros and ones, counts, or other numbers."""
    if kind is not None and kind not in KINDS:
        raise ValueError(f"the kind of view {name!r} must be one of {list(KINDS)}, got {kind!r}")
    values = X.data if sp.issparse(X) else X
    values = values[~np.isnan(values)]
    is_binary = bool(((values == 0) | (values == 1)).all())
    is_whole = bool((values >= 0).all() and (values == np.floor(values)).all())
    if kind == "binary" and not is_binary:
        raise ValueError(f"view {name!r} is not binary: it holds values other than 0 and 1")
    if kind == "counts" and not (values >= 0).all():
        raise ValueError(f"view {name!r} holds negative values and cannot be counts")
    if kind is not None:
        return kind
    if is_binary:
        return "binary"
    return "counts" if is_whole and values.max(initial=0) >= LEAST_COUNT else "continuous"


def _of_view(
    views: Views,
    s: int,
    X: Matrix,
    kind: str,
    groups: Groups,
    agreement: float,
    notes: list[str],
) -> ViewMarkers:
    """Test all features of one view, some columns at a time."""
    name, k = views.names[s], len(groups.names)
    if kind == "counts":
        X = _per_total(X)
    X = sp.csc_array(X) if sp.issparse(X) else X
    width = max(1, BLOCK // max(X.shape[0], 1))
    parts = []
    for start in range(0, X.shape[1], width):
        parts.append(_tested(X[:, start : start + width], kind, groups.codes, k))
    tests = FeatureTests(
        *(
            np.concatenate([vars(part)[field] for part in parts], axis=1)
            for field in ("effect", "p_value", "inside", "outside")
        )
    )
    tests.p_value[groups.sizes < LEAST_MEMBERS] = np.nan
    _tell(name, tests, groups, notes)
    features = views.feature_names[s]
    texts = [str(j) for j in range(X.shape[1])] if features is None else list(features)
    q = adjusted(tests.p_value)
    return ViewMarkers(
        name,
        kind,
        tuple(str(text) for text in texts),
        tests.effect,
        tests.p_value,
        q,
        tests.inside,
        tests.outside,
        agreement,
    )


def _tested(X: Matrix, kind: str, codes: Array, k: int) -> FeatureTests:
    if sp.issparse(X):
        if kind != "binary" and not np.isnan(X.data).any():
            return sparse_rank_tests(X, codes, k)
        X = X.toarray()
    return (binary_tests if kind == "binary" else rank_tests)(X, codes, k)


def _per_total(X: Matrix) -> Matrix:
    """Counts per observation, scaled to the median total: deep sequencing marks no cluster."""
    totals = np.asarray(np.nansum(X, axis=1) if not sp.issparse(X) else X.sum(axis=1)).ravel()
    middle = np.median(totals[totals > 0]) if (totals > 0).any() else 1.0
    factor = np.divide(middle, totals, out=np.zeros(len(totals)), where=totals > 0)
    return sp.diags_array(factor) @ X if sp.issparse(X) else X * factor[:, None]


def _tell(name: str, tests: FeatureTests, groups: Groups, notes: list[str]) -> None:
    if len(groups.names) < 2:
        alone = "There is one cluster only; no feature can set it apart."
        notes += [] if alone in notes else [alone]
        return
    large = groups.sizes >= LEAST_MEMBERS
    constant = int(np.isnan(tests.p_value[large]).all(axis=0).sum()) if large.any() else 0
    if constant:
        notes.append(
            f"View {quoted(name)}: {counted(constant, 'feature')} with one value only, not tested."
        )
    small = [n for n, size in zip(groups.names, groups.sizes, strict=True) if size < LEAST_MEMBERS]
    told = f"Not tested, with fewer than {LEAST_MEMBERS} members: {', '.join(map(quoted, small))}."
    if small and told not in notes:
        notes.append(told)


def _settings_without(settings: dict[str, Any], names: Sequence[str], s: int) -> dict[str, Any]:
    """Settings that speak of single views (a dict by name, a weight each), without view s."""
    less: dict[str, Any] = {}
    for setting, value in settings.items():
        if isinstance(value, Mapping) and names[s] in value:
            less[setting] = {name: v for name, v in value.items() if name != names[s]}
        elif setting == "view_weights" and not isinstance(value, str | Mapping):
            less[setting] = [v for t, v in enumerate(value) if t != s]
    return less


def fitted_without(model: Any, views: Views, s: int, n_clusters: int) -> Array:
    """Labels of a fit of all views but one; a number chosen by "auto" is kept."""
    if not (isinstance(model, BaseEstimator) and isinstance(model, Clustering)):
        raise ValueError(
            "leave_view_out=True fits the model again and needs a fitted model such as RobustWMNMF, "
            f"got {type(model).__name__}"
        )
    if len(views) < 2:
        raise ValueError("leave_view_out=True needs at least two views, got one")
    again = clone(model)
    if hasattr(model, "zero_rows_"):
        again.set_params(zero_rows=model.zero_rows_)
    known = again.get_params()
    new_settings: dict[str, Any] = {"views": None, "checkpoint": None}
    if known.get("n_clusters") == "auto":
        new_settings["n_clusters"] = n_clusters
    again.set_params(**{name: value for name, value in new_settings.items() if name in known})
    again.set_params(**_settings_without(known, views.names, s))
    rest = {n: X for n, X in zip(views.names, views.matrices, strict=True) if n != views.names[s]}
    return np.asarray(again.fit(rest).labels_)


def _matched(new: Array, groups: Groups, rows: Array) -> tuple[Groups, Array, float]:
    """New clusters under the names of those they overlap most with.

    Returns them, their rows of the views, and the agreement with the old ones.
    """
    found = new[rows]
    kept = found >= 0
    table = contingency_matrix(groups.codes[kept], found[kept])
    names = np.unique(found[kept])
    old, partner = linear_sum_assignment(-table)
    known = np.unique(groups.codes[kept])[old].tolist()
    code = dict(zip(names[partner].tolist(), known, strict=True))
    # Members of a cluster without partner are others to all clusters that have one.
    codes = np.array([code.get(label, -1) for label in found[kept].tolist()], dtype=np.intp)
    agreement = float(adjusted_rand_score(groups.codes[kept], found[kept]))
    return Groups(codes, groups.names, groups.rows[kept]), rows[kept], agreement
