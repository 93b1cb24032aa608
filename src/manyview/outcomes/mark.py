"""`markers`: the features that set each cluster apart from the others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment
from sklearn.base import BaseEstimator
from sklearn.metrics import adjusted_rand_score
from sklearn.metrics.cluster import contingency_matrix

from manyview._types import Array, Clustering, Matrix, Views
from manyview.base import unfitted
from manyview.maths.agreement import repeated_views
from manyview.views.views import as_views

from .align import (
    Groups,
    Table,
    counted,
    frame,
    match,
    pandas,
    printed,
    quoted,
)
from .chance import adjusted, fisher, on_grid, rank_sum_p


class FeatureTests(NamedTuple):
    """Clusters × features.

    Attributes
    ----------
    effect : ndarray
        Rank-biserial correlation in [−1, 1]: the chance that a member exceeds an outsider, less the
        reverse. Of a binary feature the difference of the two shares.
    p_value : ndarray
        Two-sided; NaN where not tested.
    inside, outside : ndarray
        Mean of the members and of all others.
    """

    effect: Array
    p_value: Array
    inside: Array
    outside: Array


def rank_tests(X: Matrix, codes: Array, k: int) -> FeatureTests:
    """Compare the ranks of members and others, for every column of X (n, M).

    Of a dense X, NaN is left out; of a sparse one, only what is not zero is sorted.
    """
    (n, m), size = X.shape, np.bincount(codes[codes >= 0], minlength=k).astype(float)
    if sp.issparse(X):
        X = sp.csc_array(X, dtype=float, copy=True)
        X.eliminate_zeros()
        feature = np.repeat(np.arange(m), np.diff(X.indptr))
        # One entry stands for all zeros of a feature, in its place among the others.
        zeros = n - np.diff(X.indptr)
        some = np.flatnonzero(zeros)
        feature, values = np.r_[feature, some], np.r_[X.data, np.zeros(len(some))]
        order = np.lexsort((values, feature))
        feature, values = feature[order], values[order]
        cell = np.r_[codes[X.indices], np.full(len(some), -1)][order]
        weight = np.r_[np.ones(len(X.data)), zeros[some]][order]
        seen, n_in = np.full(m, float(n)), np.broadcast_to(size, (m, k))
    else:
        order = np.argsort(X.T, axis=1, kind="stable")  # NaN last
        sorted_ = np.take_along_axis(np.asarray(X.T, dtype=float), order, axis=1)
        there = ~np.isnan(sorted_)
        feature, values, cell = np.nonzero(there)[0], sorted_[there], codes[order][there]
        weight, seen = np.ones(len(values)), there.sum(axis=1).astype(float)
        n_in = np.broadcast_to(size, (m, k))
        if not there.all():
            known = cell >= 0
            n_in = np.bincount(feature[known] * k + cell[known], minlength=m * k).reshape(m, k)
    return _of_sorted(feature, values, cell, weight, seen, n_in)


def _of_sorted(
    feature: Array, values: Array, cell: Array, weight: Array, n: Array, n_in: Array
) -> FeatureTests:
    """Tests of sorted entries: feature, value, cluster, and how many samples an entry stands for.

    ``n`` are the samples of each feature, ``n_in`` those of each feature and cluster. Members that
    no entry has are zeros.
    """
    m, k = n_in.shape
    new = np.ones(len(values), dtype=bool)
    new[1:] = (values[1:] != values[:-1]) | (feature[1:] != feature[:-1])
    starts, run = np.flatnonzero(new), np.cumsum(new) - 1
    lengths = np.add.reduceat(weight, starts) if len(starts) else np.empty(0)
    own = feature[starts]
    # Average ranks of the runs of equal values; the lowest, and the largest step to the next.
    before = np.cumsum(n) - n
    middle = np.cumsum(lengths) - before[own] - (lengths - 1) / 2
    lowest, gap = np.ones(m), np.zeros(m)
    same = own[1:] == own[:-1]
    np.maximum.at(gap, own[1:][same], np.diff(middle)[same])
    first = np.r_[True, ~same][: len(own)]
    lowest[own[first]] = middle[first]
    grid = on_grid(middle, lowest[own], gap[own], n[own])
    points = int(grid.max(initial=0)) + 1
    counts = np.bincount(own * points + grid.astype(np.int64), lengths, m * points)
    place, known = feature * k + cell, cell >= 0

    def by_cluster(what: Array) -> Array:
        return np.bincount(place[known], what[known], m * k).reshape(m, k)

    here, sums = by_cluster(np.ones(len(values))), by_cluster(values)
    rank_of_zero, grid_of_zero = np.zeros((2, m, 1))
    zero = values[starts] == 0
    rank_of_zero[own[zero], 0], grid_of_zero[own[zero], 0] = middle[zero], grid[zero]
    ranks = by_cluster(middle[run]) + (n_in - here) * rank_of_zero
    total = by_cluster(grid[run]) + (n_in - here) * grid_of_zero
    p = rank_sum_p(counts.reshape(m, points), n_in, total)
    rest, n = np.bincount(feature, values, m)[:, None] - sums, n[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        # Rank-biserial correlations, from the sums of the members' ranks.
        effect = 2 * (ranks - n_in * (n_in + 1) / 2) / (n_in * (n - n_in)) - 1
        return FeatureTests(effect.T, p.T, (sums / n_in).T, (rest / (n - n_in)).T)


def binary_tests(X: Array, codes: Array, k: int) -> FeatureTests:
    """Fisher's exact tests of features that are 0 or 1 (NaN where missing)."""
    Z = np.ascontiguousarray(X.T, dtype=float)
    there = ~np.isnan(Z)
    filled = np.where(there, Z, 0.0)
    member = (codes[:, None] == np.arange(k)).astype(float)
    ones, n_in = np.rint(filled @ member), np.rint(there @ member)
    n, total = there.sum(axis=1), np.rint(filled.sum(axis=1)).astype(np.int64)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = (ones / n_in).T
        outside = ((total[:, None] - ones) / (n[:, None] - n_in)).T
    p = np.full((k, len(Z)), np.nan)
    for c in range(k):
        # Margins repeat: one distribution serves all features that share them.
        keys = np.column_stack([n, total, n_in[:, c].astype(np.int64)])
        kinds, which = np.unique(keys, axis=0, return_inverse=True)
        for j, (all_, marked, size) in enumerate(kinds.tolist()):
            if 0 < marked < all_ and 0 < size < all_:
                rows = np.flatnonzero(which.ravel() == j)
                p[c, rows] = fisher(all_, marked, size)[ones[rows, c].astype(np.int64)]
    return FeatureTests(inside - outside, p, inside, outside)


#: Effects that are counted when markers are printed: a member exceeds an outsider 3 times of 4.
LARGE = 0.5
#: The numbers of a table of markers.
NUMBERS = ("effect", "inside", "outside", "p_value", "q_value")


class ViewMarkers(NamedTuple):
    """Every cluster of every feature of one view; the arrays are clusters × features.

    Attributes
    ----------
    view : str
    kind : {"binary", "counts", "continuous"}
    features : tuple of str
    effect : ndarray in [−1, 1]
        Rank-biserial correlation: positive where the members have the higher values. Of binary
        features the share among members less that among others.
    p_value, q_value : ndarray
        NaN where not tested. Without ``leave_view_out`` they are descriptive, and tables call
        them ``p_descriptive`` and ``q_descriptive``.
    inside, outside : ndarray
        Means of the members and of all others (shares of binary features; of counts after
        scaling to the median total).
    agreement : float
        With ``leave_view_out``: adjusted Rand index between the clusters and those found without
        this view. NaN otherwise.
    """

    view: str
    kind: str
    features: tuple[str, ...]
    effect: Array
    p_value: Array
    q_value: Array
    inside: Array
    outside: Array
    agreement: float


@dataclass(frozen=True, eq=False)
class Markers:
    """What `markers` found.

    Attributes
    ----------
    clusters : tuple
    sizes : ndarray
    views : tuple of ViewMarkers
    left_view_out : bool
        Whether every view was tested on clusters found without it.
    notes : tuple of str
        What was left out, and how far the p-values may be trusted.
    """

    clusters: tuple[Any, ...]
    sizes: Array
    views: tuple[ViewMarkers, ...]
    left_view_out: bool
    notes: tuple[str, ...]

    def top(self, n: int = 10, *, direction: str | None = None, max_q: float | None = 0.05) -> Any:
        """Return the ``n`` features with the largest effects of every cluster and view.

        ``direction`` "up" or "down" restricts them to features that are higher, or lower, in the
        cluster; ``max_q`` to q-values of at most this (None: all).
        """
        if direction not in (None, "up", "down"):
            raise ValueError(f'direction must be "up", "down" or None, got {direction!r}')
        parts = []
        for k in range(len(self.clusters)):
            for view in self.views:
                effect = np.nan_to_num(view.effect[k])
                effect = -effect if direction == "down" else effect
                size = np.abs(effect) if direction is None else effect
                fine = size > 0
                if max_q is not None:
                    fine &= view.q_value[k] <= max_q
                best = np.argsort(-size, kind="stable")
                parts.append(self._rows(k, view, best[fine[best]][:n]))
        return pandas().concat(parts, ignore_index=True)

    def _rows(self, k: int, view: ViewMarkers, of: Any) -> Any:
        """Features ``of`` a view; p-values are descriptive where the same data made the clusters."""
        names, effect = np.array(view.features, dtype=object)[of], view.effect[k][of]
        n = len(names)
        own = {"cluster": [self.clusters[k]] * n, "view": [view.view] * n, "feature": names}
        own["direction"] = ["down" if e < 0 else "up" for e in effect]
        numbers = {name: getattr(view, name)[k][of] for name in NUMBERS}
        end = "value" if self.left_view_out else "descriptive"
        return frame(own | {n.replace("_value", f"_{end}"): v for n, v in numbers.items()})

    @property
    def table(self) -> Any:
        """The ten leading features of every cluster and view with q ≤ 0.05."""
        return self.top(10)

    @property
    def full_table(self) -> Any:
        """Every feature of every view and cluster."""
        parts = [
            self._rows(k, view, slice(None))
            for view in self.views
            for k in range(len(self.clusters))
        ]
        return pandas().concat(parts, ignore_index=True)

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: top and markers (all features)."""
        return {"top": self.table, "markers": self.full_table}

    def __repr__(self) -> str:
        counts = []
        for view in self.views:
            large = int((np.abs(np.nan_to_num(view.effect)) >= LARGE).any(axis=0).sum())
            text = f"{view.view} ({view.kind}): {large} of {len(view.features)}"
            if self.left_view_out:
                text += f", {int((view.q_value <= 0.05).any(axis=0).sum())} with q ≤ 0.05"
            counts.append(text)
        lines = [
            f"Markers of {len(self.clusters)} clusters; features with an effect of {LARGE} or more, up or "
            f"down: {'; '.join(counts)}",
            printed(self.top(3)),
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


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
    """Find the features of each view that differ between a cluster and the others.

    Every cluster is compared with all other samples. Binary features (mutations), and those
    with one value in most samples, are tested by Fisher's exact test; others by ranks
    (Mann–Whitney; p-values from the distribution of the rank sum over shuffled labels, with all its
    ties), counts after division by the sample's total. q-values are Benjamini–Hochberg over all
    features and clusters of a view.

    The clusters were made from the same features, so p-values are descriptive. With
    ``leave_view_out=True`` the model is refitted without each view in turn, and the view is tested on the
    clusters of the others. These p-values are valid, unless another view is a near-duplicate.

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
    >>> found.top(1)["feature"].tolist()
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
    """The same, with ``without`` to say how samples cluster without a view."""
    split = labels.get_params().get("views") if isinstance(labels, BaseEstimator) else None
    given = as_views(views, split, allow_negative=True, allow_missing=True, caller="markers")
    unknown = [name for name in kinds or {} if name not in given.names]
    if unknown:
        raise ValueError(
            f"kinds names {quoted(unknown[0])}, which is no view; the views are {list(given.names)}"
        )
    notes: list[str] = []
    groups, rows = groups_of_views(labels, given, ids, notes)
    found = []
    for s, name in enumerate(given.names):
        own, here, agreement = groups, rows, np.nan
        if without is not None:
            new = without(labels, given, s, len(groups.names))
            own, here, agreement = matched_clusters(new, groups, rows)
        X = given.matrices[s]
        kind = view_kind(X, name, (kinds or {}).get(name))
        found.append(_of_view(given, s, X[here], kind, own, agreement, notes))
    left_out = without is not None
    notes.append(HONEST if left_out else DESCRIPTIVE)
    redundancy = getattr(labels, "redundancy_", None)
    for group in repeated_views(redundancy) if left_out and redundancy is not None else []:
        alike = " and ".join(quoted(given.names[j]) for j in group)
        notes.append(
            f"{alike} are near-duplicates: clusters found without one of them still follow the other, so "
            "their p-values are descriptive. Fit with one of them."
        )
    return Markers(groups.names, groups.sizes, tuple(found), left_out, tuple(notes))


def groups_of_views(labels: Any, views: Views, ids: Any, notes: list[str]) -> tuple[Groups, Array]:
    """Return the clusters and the row of the views for each of their samples."""
    rows_of_views = None if views.sample_names is None else views.sample_names.tolist()
    numbers = pandas().DataFrame({"row": np.arange(views.n_samples)})
    matched = match(labels, [Table("views", numbers, rows_of_views)], ids)
    notes += matched.notes
    here = matched.present[0]
    rows = matched.tables[0]["row"][here].to_numpy(np.intp)
    return matched.groups.only(here).without_empty(), rows


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
    views: Views, s: int, X: Matrix, kind: str, groups: Groups, agreement: float, notes: list[str]
) -> ViewMarkers:
    """Test all features of one view, some columns at a time."""
    name, k = views.names[s], len(groups.names)
    if kind == "counts":
        X = per_total(X)
    X = sp.csc_array(X) if sp.issparse(X) else X
    width = max(1, BLOCK // max(X.shape[0], 1))
    test = binary_tests if kind == "binary" else rank_tests
    parts = []
    for start in range(0, X.shape[1], width):
        part = X[:, start : start + width]
        if sp.issparse(part) and (kind == "binary" or np.isnan(part.data).any()):
            part = part.toarray()
        parts.append(test(part, groups.codes, k))
    tests = FeatureTests(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))
    tests.p_value[groups.sizes < LEAST_MEMBERS] = np.nan
    _tell(name, tests, groups, notes)
    features = views.feature_names[s]
    texts = tuple(map(str, range(X.shape[1]) if features is None else features))
    effect, p, inside, outside = tests
    return ViewMarkers(name, kind, texts, effect, p, adjusted(p), inside, outside, agreement)


def per_total(X: Matrix) -> Matrix:
    """Counts per sample, scaled to the median total: deep sequencing marks no cluster."""
    totals = np.asarray(np.nansum(X, axis=1) if not sp.issparse(X) else X.sum(axis=1)).ravel()
    middle = np.median(totals[totals > 0]) if (totals > 0).any() else 1.0
    factor = np.divide(middle, totals, out=np.zeros(len(totals)), where=totals > 0)
    return sp.diags_array(factor) @ X if sp.issparse(X) else X * factor[:, None]


def _tell(name: str, tests: FeatureTests, groups: Groups, notes: list[str]) -> None:
    if len(groups.names) < 2:
        alone = "There is one cluster only; testing features needs two or more."
        notes += [] if alone in notes else [alone]
        return
    large = groups.sizes >= LEAST_MEMBERS
    constant = int(np.isnan(tests.p_value[large]).all(axis=0).sum()) if large.any() else 0
    if constant:
        notes.append(
            f"View {quoted(name)}: {counted(constant, 'feature')} with one value only, not tested."
        )
    small = [n for n, size in zip(groups.names, groups.sizes, strict=True) if size < LEAST_MEMBERS]
    note = f"Not tested, with fewer than {LEAST_MEMBERS} members: {', '.join(map(quoted, small))}."
    if small and note not in notes:
        notes.append(note)


def fitted_without(model: Any, views: Views, s: int, n_clusters: int) -> Array:
    """Labels of a fit of all views but one; a number chosen by "auto" is kept."""
    if not (isinstance(model, BaseEstimator) and isinstance(model, Clustering)):
        raise ValueError(
            "leave_view_out=True fits the model again and needs a fitted model such as RobustWMNMF, "
            f"got {type(model).__name__}"
        )
    if len(views) < 2:
        raise ValueError("leave_view_out=True needs at least two views, got one")
    rest = [t for t in range(len(views)) if t != s]
    return np.asarray(fitted_on(model, views, rest, n_clusters).labels_)


def fitted_on(model: Any, views: Views, some: Sequence[int], n_clusters: int) -> Any:
    """Fit a clone of the model on some of its views and its batches; an "auto" number is kept."""
    again, names = unfitted(model, n_clusters), [views.names[t] for t in some]
    less: dict[str, Any] = {"views": None} if "views" in again.get_params() else {}
    for setting, value in again.get_params().items():  # settings may speak of single views
        if isinstance(value, Mapping) and set(value) & set(views.names):
            less[setting] = {name: v for name, v in value.items() if name in names}
        elif setting == "view_weights" and not isinstance(value, str | Mapping | None):
            less[setting] = [value[t] for t in some]
    again.set_params(**less)
    batch = {"batch": model.batch_of(views)} if getattr(model, "needs_batch", False) else {}
    return again.fit(
        {name: views.matrices[t] for name, t in zip(names, some, strict=True)}, **batch
    )


def matched_clusters(new: Array, groups: Groups, rows: Array) -> tuple[Groups, Array, float]:
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
