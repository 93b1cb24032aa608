"""Stability of clusters and samples: refits on resampled data."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from manyview import fuse
from manyview._types import Array, Seed, Views
from manyview.base import generator, unfitted, with_weight
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.graph import row_contrasts
from manyview.engines.numpy.neighbors import masses
from manyview.engines.numpy.repeats import Repeats, distinct
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import Lists
from manyview.fuse import settled_zeros
from manyview.labels import (
    communities,
    contingency,
    largest_first,
    pairwise_ari,
    part_size,
    resamples,
    shared_ari,
)
from manyview.maths import agreement as ag
from manyview.robust import RobustView, RobustWMNMF, Start, Weights, run_robust
from manyview.views.containers import is_single
from manyview.views.views import as_views

# --- refits -------------------------------------------------------------------------------------

#: Iterations of the loop on a part: of the labels of the digits 1 in 1,600 changes after the fifth.
MOST_ITERATIONS = 10
#: How much longer the lists are from which the neighbors among a part are taken: of 80% of the rows, a
#: third of the list is all but never too short.
LONGER = 3
#: Runs of Leiden of a refit; a fit makes more and keeps the best.
TRIALS = 3


class Refits:
    """The labels that a fitted model would give to parts of its data, or with some of its views."""

    def __init__(self, model: RobustWMNMF):
        self.model = model
        # Copies: what refits make of them, such as products of all rows, is not the model's to keep.
        self.spaces: list[Geometry] = [copy(view) for view in model._geometry]
        self.agreement, self.taus, self.w = model._agreement, model._taus, model._result.w
        self.labels, self.n_clusters = np.asarray(model.labels_), int(model.n_clusters_)
        names = [str(name) for name in model.view_names_in_]
        self.settings = fuse.Settings.of(model, names, model._kept())
        telling = with_weight(self.spaces, self.settings.view_weights)
        self.distinct, self.repeats = distinct(self.spaces, telling)

    @staticmethod
    def possible(model: object) -> bool:
        """Whether a model has all that is needed in memory."""
        return isinstance(model, RobustWMNMF) and all(
            isinstance(view, Geometry) and not is_streamed(view.Z) for view in model._geometry
        )

    # --- a part of the samples ------------------------------------------------------------

    def stability(
        self, n_runs: int, fraction: float, seed: int, tell: Callable[[int], Any] = int
    ) -> Stability:
        """Over refits of parts; every sample that has a cluster is left out equally often."""
        rng, known = generator(seed), np.flatnonzero(self.labels >= 0)
        runs = np.full((n_runs, len(self.labels)), -1)
        for run, part in enumerate(resamples(len(known), fraction, n_runs, rng)):
            tell(run)
            rows = known[part]
            runs[run, rows] = self.part(rows, generator(int(rng.integers(2**31))))
        return summarize(self.labels, runs)

    def part(self, rows: Array, rng: np.random.Generator) -> Array:
        """Labels of some of the samples that have one, by their places in what was given."""
        with threadpool_limits(1):
            here = self.model._rows
            rows = rows if here is None else (np.cumsum(here) - 1)[rows]  # among those of the fit
            # One vertex for each distinct sample; copies share its label.
            of = rows if self.repeats is None else self.repeats.of[rows]
            nodes, of, count = np.unique(of, return_inverse=True, return_counts=True)
            found = self._some(nodes)
            labels, K, P = self._start(found, count, rng)
            spaces = [view.rows(rows) for view in self.spaces]
            start = Start(found.alpha, self.w[rows], P[of], labels[of], K)
            return self._settled(spaces, start, MOST_ITERATIONS)

    @cached_property
    def _wide(self) -> tuple[list[Lists], Lists]:
        """Long lists of neighbors in every view, and under the fused distance."""
        views, n = self.distinct, self.distinct[0].n_samples
        k = ag.in_proportion(self.settings.n_neighbors, n)
        largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), n)
        lists = [view.nearest(LONGER * k) for view in views]
        weights = self.agreement.distance_weights
        indices, F = views[0].fused_nearest(views, weights, LONGER * largest, 0, None)
        everyone = np.arange(n)
        return lists, Lists(everyone, indices, F, masses(views[0], everyone, indices, None))

    def _some(self, nodes: Array) -> ag.Agreement:
        n, n_part = self.distinct[0].n_samples, len(nodes)
        lists, fused = self._wide
        k = ag.in_proportion(self.settings.n_neighbors, n_part)
        largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), n_part)
        near, mass = among(fused, nodes, n, largest), self.distinct[0].mass
        both = fuse.scale_graphs(near, n_part, None if mass is None else mass[nodes])
        return replace(
            self.agreement,
            view_graphs=[fuse.list_graph(among(near, nodes, n, k), n_part) for near in lists],
            fused=both[0],
            fused_single=both[1],
        )

    def _start(
        self, found: ag.Agreement, count: Array, rng: np.random.Generator
    ) -> tuple[Array, int, Array]:
        """First labels of the vertices, their number, and the embedding."""
        model, groups, K = self.model, None, self.n_clusters
        if model.n_clusters == "communities":
            seed = int(rng.integers(2**31))
            groups = communities(found.fused, model.resolution, seed, count, TRIALS).labels
            K = int(groups.max()) + 1
        P = fuse.embed(found, K, rng).astype(model._embedding.dtype)
        if groups is None:
            mass = None if (count == count[0]).all() else count / count.min()
            groups = fuse.kmeans(P, K, rng, fuse.STARTS, mass)
        return groups, K, P

    def _settled(self, spaces: list[Geometry], start: Start, most: int) -> Array:
        """Labels after the loop, of at most this number of iterations."""
        model = self.model
        views = [
            RobustView(view.unit_sums(), view.present, None, tau)
            for view, tau in zip(spaces, self.taus, strict=True)
        ]
        weights = Weights(model.consensus_weight, model.cluster_weight)
        found, _ = run_robust(views, start, weights, min(model.max_iter, most), model.tol)
        return np.asarray(found.factors.consensus).argmax(axis=1)

    # --- some of the views ----------------------------------------------------------------------

    def on(self, some: Sequence[int]) -> Refits | None:
        """The refits of a fit of some views; None where that is another problem.

        That is where a sample has none of these views, where they tell other samples apart, and where
        batches were aligned, which all views do together.
        """
        model, some = self.model, list(some)
        if model._columns is not None or model.needs_batch or model._rows is not None:
            return None
        spaces, given = [self.spaces[t] for t in some], self.settings.view_weights
        if given is not None:
            if not given[some].any():
                return None
            given = given[some] / given[some].sum()
        _, repeats = distinct(spaces, with_weight(spaces, given))
        n = self.spaces[0].n_samples if repeats is None else len(repeats.first)
        if n <= self.n_clusters or _first(repeats, n) != _first(self.repeats, n):
            return None
        with threadpool_limits(1):
            new, rng = copy(self), generator(model.random_state)
            vars(new).pop("_wide", None)
            new.spaces, new.distinct = spaces, [self.distinct[t] for t in some]
            new.taus, new.settings = (
                [self.taus[t] for t in some],
                replace(self.settings, view_weights=given),
            )
            new.agreement = found = self._agreed(new, some, int(rng.integers(2**31)))
            present = [view.present for view in spaces]
            if not fuse.counted(present, found.alpha).all():
                return None
            of = np.arange(len(present[0])) if self.repeats is None else self.repeats.of
            labels, new.n_clusters, P = new._start(found, np.bincount(of), rng)
            new.w = np.where(np.column_stack(present), found.w[of], 0)
            start = Start(found.alpha, new.w, P[of], labels[of], new.n_clusters)
            new.labels = largest_first(new._settled(spaces, start, model.max_iter))
        return new

    @cached_property
    def contrasts(self) -> Array:
        """Row contrasts of all views, which the model does not keep."""
        rows = row_contrasts(self.distinct, self.agreement.view_graphs)
        return 1 - (1 - rows) / self.agreement.typical[:, None, None]

    def _agreed(self, new: Refits, some: list[int], seed: int) -> ag.Agreement:
        """What some of the views say of each other, as `fuse.agree` would find it."""
        whole, pairs = self.agreement, np.ix_(some, some)
        n = self.distinct[0].n_samples
        k = ag.in_proportion(self.settings.n_neighbors, n)
        lists = [view.nearest(k, seed) for view in new.distinct] if len(some) == 2 else []
        found = fuse.Evidence(
            [whole.view_graphs[t] for t in some],
            self.contrasts[pairs],
            whole.split_half[some],
            whole.spread[some],
            whole.typical[some],
            whole.redundancy[pairs],
            own=fuse.closeness(lists, whole.typical[some], n) if lists else None,
            structure=(whole.structure[some], whole.structure_error[some])
            if len(some) > 1
            else None,
        )
        return fuse.weigh_views(new.distinct, found, new.settings, seed)


def among(near: Lists, nodes: Array, n: int, k: int) -> Lists:
    """The first k of the lists of ``nodes`` that are nodes themselves, by their places among these.

    A shorter list is filled with its nearest.
    """
    place = np.full(n, -1)
    place[nodes] = np.arange(len(nodes))
    mine = place[near.rows] >= 0
    indices = place[near.indices[mine]]
    order = np.argsort(indices < 0, axis=1, kind="stable")[:, :k]
    kept = np.take_along_axis(indices, order, axis=1)
    order = np.where(kept < 0, order[:, :1], order)
    found = (kept[:, :1] >= 0).ravel()  # no list at all without any
    order, rows = order[found], place[near.rows[mine]][found]

    def picked(values: Array) -> Array:
        return np.take_along_axis(values[mine][found], order, axis=1)

    mass = None if near.mass is None else picked(near.mass)
    return Lists(rows, np.take_along_axis(indices[found], order, axis=1), picked(near.d), mass)


def _first(repeats: Repeats | None, n: int) -> list[int]:
    return list(range(n)) if repeats is None else repeats.first.tolist()


# --- stability ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stability:
    """Stability of clusters and samples over refits.

    Attributes
    ----------
    labels : ndarray (N,)
        The clustering whose stability is measured; −1 for samples without a cluster.
    samples : ndarray (N,), in [0, 1]
        Share of the other members of its cluster that are in one cluster with the sample again,
        averaged over the runs that have the sample. NaN without a cluster, 1 for the only member of a
        cluster.
    strangers : ndarray (N,), in [0, 1]
        Share of the members of other clusters that are in one cluster with the sample: near 0 unless
        clusters merge.
    clusters : dict of label → float, in [0, 1]
        Mean over runs of the largest Jaccard index between the cluster and a cluster of the run.
        Hennig (2007) advises not to rely on clusters below .6, and calls those above .85 highly stable.
    pairwise_ari : ndarray
        Adjusted Rand index of every two runs, on the samples both saw.
    reference_ari : ndarray (n_runs,)
        Adjusted Rand index of every run and ``labels``.
    runs : ndarray (n_runs, N)
        The labels of every run; −1 for samples it did not see.
    """

    labels: Array
    samples: Array
    strangers: Array
    clusters: dict[int, float]
    pairwise_ari: Array
    reference_ari: Array
    runs: Array

    def together(self, rows: Array | None = None) -> Array:
        """Return how often every two samples were in one cluster, of the runs that saw both.

        Parameters
        ----------
        rows : ndarray of int, optional
            Positions of the samples; by default all, which takes N² numbers.

        Returns
        -------
        ndarray (rows, rows) in [0, 1]
            NaN where no run saw both.
        """
        runs = self.runs if rows is None else self.runs[:, rows]
        seen = (runs >= 0).astype(float)
        both = seen.T @ seen
        same = np.zeros(both.shape)
        for run in runs:
            same += (run[:, None] == run) & (run >= 0)
        return np.divide(same, both, out=np.full(both.shape, np.nan), where=both > 0)

    @property
    def score(self) -> float:
        """Mean adjusted Rand index between two runs: 1 always the same, about 0 as by chance."""
        return float(self.pairwise_ari.mean())

    @property
    def n_runs(self) -> int:
        return len(self.reference_ari)

    def __repr__(self) -> str:
        return (
            f"<Stability of {len(self.clusters)} clusters over {self.n_runs} runs: "
            f"adjusted Rand index {self.score:.3f}>"
        )

    def __str__(self) -> str:
        lines = [
            f"{self.n_runs} runs; the adjusted Rand index between two runs is {self.score:.3f} on average "
            f"(lowest {self.pairwise_ari.min():.3f})",
            "cluster    size  stability  mean of samples  lowest of a sample",
        ]
        for label, value in self.clusters.items():
            own = self.samples[self.labels == label]
            lines.append(
                f"{label:>7} {len(own):>7} {value:>10.2f} {own.mean():>16.2f} {own.min():>19.2f}"
            )
        return "\n".join(lines)


def stability(
    model: Any,
    views: Any,
    n_runs: int = 20,
    *,
    fraction: float = 0.8,
    random_state: Seed = None,
) -> Stability:
    """Measure the stability of clusters and samples by refits of ``model`` on random parts of the samples.

    Each run uses ``fraction`` of the samples (each is left out equally often) and a new seed. With y the
    clustering of all samples and l that of a run, the stability of sample i in cluster c of y is ::

        (|{j : y_j = c, l_j = l_i}| − 1) / (|{j : y_j = c}| − 1)      j over the run's samples,

    and the stability of cluster c is ``max_k |c ∩ k| / |c ∪ k|`` over the run's clusters k (Hennig 2007).
    Both are averaged over runs. No N×N matrix is computed.

    Parameters
    ----------
    model : estimator with ``fit_predict(views)``
        `RobustWMNMF`, `WMNMF`, a baseline, or any scikit-learn clusterer of one array. It is cloned, not
        changed. If it is fitted on these samples, its ``labels_`` are judged; otherwise a clone is fitted
        on all samples first. A number of clusters chosen by "auto" is used in all runs; communities are
        searched for in each run.
    views : as for the model
    n_runs : int, default=20
        At least 2.
    fraction : float, default=0.8
        Share of the samples in a run, in [0.5, 1]. With 1 only the seed changes.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Stability

    Examples
    --------
    >>> import manyview as mv
    >>> data = mv.datasets.make_synthetic(120, n_clusters=3, noisy_views=(), random_state=0)
    >>> sure = mv.stability(mv.RobustWMNMF(3), data.views, n_runs=3, random_state=0)
    >>> round(sure.score, 2), sorted(sure.clusters)
    (1.0, [0, 1, 2])
    """
    _check(model, n_runs, fraction)
    rng = generator(random_state)
    chosen = None if is_single(views) else getattr(model, "views", None)
    given = as_views(
        views,
        chosen,
        allow_negative=True,
        allow_missing=True,
        allow_relations=True,
        caller="stability",
    )
    n = given.n_samples
    _check_parts(getattr(model, "n_clusters", None), n, fraction)

    def part(rows: Array | slice) -> Any:
        if is_single(views):
            return given.matrices[0][rows]
        return {name: X[rows] for name, X in zip(given.names, given.matrices, strict=True)}

    batch: Array | None = getattr(model, "_batch", None)
    if _fitted_on(model, given):
        fitted, labels = model, np.asarray(model.labels_)
    elif batch is not None:
        raise ValueError(
            "the model was fitted with batch=, and refits need the batch of every sample: pass the views "
            "of the fit"
        )
    else:
        fitted = _seeded(model, rng)
        if isinstance(
            model, RobustWMNMF
        ):  # a part does not show which rows of zeros were filled in
            fitted.set_params(zero_rows=settled_zeros(given, model.zero_rows))
        labels = np.asarray(fitted.fit_predict(part(slice(None))))
    # A number of clusters that was chosen is judged, not chosen again.
    again = unfitted(fitted, getattr(fitted, "n_clusters_", None))
    _check_parts(getattr(again, "n_clusters", None), n, fraction)
    runs = np.full((n_runs, n), -1)
    for run, rows in enumerate(resamples(n, fraction, n_runs, rng)):
        # The fit of all samples has said what there is to say about the data.
        with warnings.catch_warnings(action="ignore", category=UserWarning):
            some = None if batch is None else batch[rows]
            more = {} if some is None or (some == some[0]).all() else {"batch": some}
            runs[run, rows] = _seeded(again, rng).fit_predict(part(rows), **more)
    return summarize(labels, runs)


def summarize(labels: Array, runs: Array) -> Stability:
    """Stability of ``labels`` from the labels of runs (n_runs × N, −1 where not seen)."""
    known = labels >= 0
    names, own = np.unique(labels[known], return_inverse=True)
    n_clusters = len(names)
    together, apart, seen = np.zeros(len(own)), np.zeros(len(own)), np.zeros(len(own))
    jaccard: list[Array] = []
    for run in runs[:, known]:
        rows = np.flatnonzero(run >= 0)
        # A run may label nothing (DBSCAN); one empty cluster then overlaps with none.
        n_found = int(run[rows].max()) + 1 if len(rows) else 1
        table = contingency(own[rows], run[rows], n_clusters, n_found)
        sizes, found = table.sum(axis=1), table.sum(axis=0)
        overlap = table / np.maximum(sizes[:, None] + found - table, 1)
        jaccard.append(np.where((sizes > 0) | (len(rows) == 0), overlap.max(axis=1), np.nan))
        mine = table[own[rows], run[rows]]
        others = len(rows) - sizes[own[rows]]
        size = sizes[own[rows]]
        together[rows] += np.where(size > 1, (mine - 1) / np.maximum(size - 1, 1), 1)
        apart[rows] += (found[run[rows]] - mine) / np.maximum(others, 1)
        seen[rows] += 1
    samples, strangers = np.full(len(labels), np.nan), np.full(len(labels), np.nan)
    samples[known] = np.where(seen > 0, together / np.maximum(seen, 1), np.nan)
    strangers[known] = np.where(seen > 0, apart / np.maximum(seen, 1), np.nan)
    clusters = np.nanmean(jaccard, axis=0)
    return Stability(
        labels=labels,
        samples=samples,
        strangers=strangers,
        clusters={int(c): float(v) for c, v in zip(names, clusters, strict=True)},
        pairwise_ari=pairwise_ari(runs),
        reference_ari=np.array([shared_ari(labels, run) for run in runs]),
        runs=runs,
    )


# --- input -------------------------------------------------------------------------------------


def _fitted_on(model: Any, given: Views) -> bool:
    """Whether the labels of the model are of these samples, as far as can be told."""
    labels, names = getattr(model, "labels_", None), getattr(model, "sample_names_in_", None)
    if labels is None or len(labels) != given.n_samples:
        return False
    if names is None or given.sample_names is None:
        return True
    return np.asarray(names).tolist() == given.sample_names.tolist()


def _seeded(model: Any, rng: np.random.Generator) -> Any:
    """A clone with a seed of its own, if it takes one."""
    fresh = clone(model)
    seed = int(rng.integers(2**31))
    seeds = [
        name
        for name in fresh.get_params()
        if name == "random_state" or name.endswith("__random_state")
    ]
    if "checkpoint" in fresh.get_params():  # that is for the fit of all samples
        fresh.set_params(checkpoint=None)
    return fresh.set_params(**dict.fromkeys(seeds, seed))


def _check(model: Any, n_runs: Any, fraction: Any) -> None:
    if not hasattr(model, "fit_predict") or isinstance(model, type):
        raise TypeError(
            "model must be an estimator with fit_predict(views), such as "
            f"RobustWMNMF(n_clusters=10); got {model!r}"
        )
    if isinstance(n_runs, bool) or not isinstance(n_runs, Integral) or n_runs < 2:
        raise ValueError(f"n_runs must be an integer of at least 2, got {n_runs!r}")
    if (
        isinstance(fraction, bool)
        or not isinstance(fraction, Real)
        or not 0.5 <= float(fraction) <= 1
    ):
        raise ValueError(
            f"fraction must be between 0.5 and 1 (two runs have to share samples), got {fraction!r}"
        )


def _check_parts(n_clusters: Any, n: int, fraction: float) -> None:
    """Whether a run has as many rows as clusters; if not even all rows suffice, the fit says so."""
    rows = part_size(n, fraction)
    if isinstance(n_clusters, Integral) and rows < int(n_clusters) <= n:
        raise ValueError(
            f"a run has {rows} rows (fraction={fraction} of {n}), too few for "
            f"n_clusters={n_clusters}; raise fraction or lower n_clusters"
        )
