"""A fitted RobustWMNMF once more, on a part of its observations or without a view, from what it measured.

Nearly all of a fit measures: it scales features, looks for neighbours, compares halves of views. What is
the same for a part of the data is taken from the model, so that a refit costs a small share of a fit:

- without a view, everything that was measured of the others is what a fit of them would measure; weights,
  fused graph, embedding, start and loop are made anew;
- on a part of the observations neighbours are those of the model's longer lists that belong to it, with its
  weights; graphs, embedding, start and loop are made anew.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import cached_property

import numpy as np
from threadpoolctl import threadpool_limits

from manyview._types import Array
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.neighbors import masses
from manyview.engines.numpy.repeats import Repeats, distinct
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import Distances, Lists
from manyview.maths import agreement as ag

from . import agree, stages
from .communities import communities
from .given import with_weight
from .robust import RobustWMNMF
from .robust_fit import LoopSettings, RobustView, Start, Weights, run_robust
from .seeds import generator

#: Iterations of the loop of a refit: labels settle long before the objective does.
MOST_ITERATIONS = 20
#: How much longer the lists are from which the neighbours among a part are taken: of 80% of the rows, a
#: third of the list is all but never too short.
LONGER = 3
#: Runs of Leiden of a refit; a fit makes more and keeps the best.
TRIALS = 3


class Refits:
    """The labels that a fitted model would give to parts of its data."""

    def __init__(self, model: RobustWMNMF):
        self.model = model
        # Copies: what refits make of them, such as products of all rows, is not the model's to keep.
        self.spaces: list[Distances] = [copy(view) for view in model._geometry]
        self.agreement = model._agreement
        names = [str(name) for name in model.view_names_in_]
        self.settings = agree.Settings.of(model, names, model._kept())
        telling = with_weight(self.spaces, self.settings.view_weights)
        self.distinct, self.repeats = distinct(self.spaces, telling)

    @staticmethod
    def possible(model: object) -> bool:
        """Whether a model has all that is needed in memory."""
        return isinstance(model, RobustWMNMF) and all(
            isinstance(view, Geometry) and not is_streamed(view.Z) for view in model._geometry
        )

    # --- a part of the observations ------------------------------------------------------------

    def part(self, rows: Array, rng: np.random.Generator) -> Array:
        """Labels of some of the observations that have one, by their places in what was given."""
        with threadpool_limits(1):
            rows = self._fitted_rows(rows)
            # One vertex for each distinct observation; copies share its label.
            of = rows if self.repeats is None else self.repeats.of[rows]
            nodes, of, count = np.unique(of, return_inverse=True, return_counts=True)
            found = self._some(nodes)
            labels, K, P = self._start(found, count, rng)
            return self._settled(found.alpha, rows, P[of], labels[of], K)

    def _fitted_rows(self, rows: Array) -> Array:
        """Places in what was given → places among the rows of the fit."""
        here = self.model._rows
        return rows if here is None else (np.cumsum(here) - 1)[rows]

    @cached_property
    def _wide(self) -> tuple[list[Lists], Lists]:
        """Long lists of neighbours in every view, and under the fused distance."""
        views, n = self.distinct, self.distinct[0].n_samples
        k = ag.in_proportion(self.settings.n_neighbors, n)
        largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), n)
        lists = [view.nearest(LONGER * k) for view in views]
        weights = self.agreement.distance_weights
        indices, F = HOST.fused_nearest(views, weights, LONGER * largest, [], 0, None)
        everyone = np.arange(n)
        return lists, Lists(everyone, indices, F, masses(views[0], everyone, indices, None))

    def _some(self, nodes: Array) -> ag.Agreement:
        n, n_part = self.distinct[0].n_samples, len(nodes)
        lists, fused = self._wide
        k = ag.in_proportion(self.settings.n_neighbors, n_part)
        largest = ag.in_proportion(max(*ag.SCALES, ag.NEIGHBORS), n_part)
        near, mass = among(fused, nodes, n, largest), self.distinct[0].mass
        both = agree.scale_graphs(near, n_part, None if mass is None else mass[nodes])
        return replace(
            self.agreement,
            view_graphs=[agree.list_graph(among(near, nodes, n, k), n_part) for near in lists],
            fused=both[0],
            fused_single=both[1],
        )

    def _start(
        self, found: ag.Agreement, count: Array, rng: np.random.Generator, n_clusters: int = 0
    ) -> tuple[Array, int, Array]:
        """First labels of the vertices, their number, and the embedding."""
        model, groups = self.model, None
        K = n_clusters or int(model.n_clusters_)
        if model.n_clusters == "communities":
            seed = int(rng.integers(2**31))
            groups = communities(found.fused, model.resolution, seed, count, TRIALS).labels
            K = int(groups.max()) + 1
        P = agree.embed(found, K, rng).astype(model._embedding.dtype)
        if groups is None:
            mass = None if (count == count[0]).all() else count / count.min()
            groups = stages.kmeans(P, K, rng, stages.STARTS, mass)
        return groups, K, P

    def _settled(
        self,
        alpha: Array,
        rows: Array,
        P: Array,
        labels: Array,
        K: int,
        views: list[int] | None = None,
        w: Array | None = None,
    ) -> Array:
        """Labels after the loop of some views (by default all), on some of the rows of the fit."""
        model = self.model
        views = list(range(len(self.spaces))) if views is None else views
        w = model._result.w[rows] if w is None else w
        spaces = [self.spaces[s] for s in views]
        if len(rows) < spaces[0].n_samples:
            spaces = [view.rows(rows) for view in spaces]
        loop = [
            RobustView(HOST.factor_rows(view), view.present, None, model._taus[s])
            for s, view in zip(views, spaces, strict=True)
        ]
        weights = Weights(model.consensus_weight, model.cluster_weight)
        settings = LoopSettings(weights, min(model.max_iter, MOST_ITERATIONS), model.tol)
        found, _ = run_robust(loop, Start(alpha, w, P, labels, K), settings)
        return np.asarray(found.factors.consensus).argmax(axis=1)

    # --- without a view ------------------------------------------------------------------------

    def without(self, s: int, n_clusters: int) -> Array | None:
        """Labels of all observations without view ``s``; None where a fit of the rest is another problem.

        That is where an observation has no other view, or another one becomes its copy, and where
        settings name views.
        """
        model = self.model
        rest = [t for t in range(len(self.spaces)) if t != s]
        named = (model.scale, model.zero_rows, model.view_weights)
        if model._columns is not None or any(not isinstance(x, str | None) for x in named):
            return None
        if model._rows is not None or not self._as_distinct(rest, n_clusters):
            return None
        with threadpool_limits(1):
            rng = generator(model.random_state)
            found = self._agreed(rest, int(rng.integers(2**31)))
            present = [self.spaces[t].present for t in rest]
            if not stages.counted(present, found.alpha).all():
                return None
            of = np.arange(len(present[0])) if self.repeats is None else self.repeats.of
            K = 0 if model.n_clusters == "communities" else n_clusters
            labels, K, P = self._start(found, np.bincount(of), rng, K)
            w = np.where(np.column_stack(present), found.w[of], 0)
            return self._settled(found.alpha, np.arange(len(of)), P[of], labels[of], K, rest, w)

    def _as_distinct(self, rest: list[int], n_clusters: int) -> bool:
        """Whether these views tell the same observations apart, and enough of them."""
        _, repeats = distinct([self.spaces[t] for t in rest])
        n = self.spaces[0].n_samples if repeats is None else len(repeats.first)
        return n > n_clusters and _first(repeats, n) == _first(self.repeats, n)

    @cached_property
    def contrasts(self) -> Array:
        """Row contrasts of all views, which the model does not keep."""
        return HOST.row_contrasts(self.distinct, self.agreement.view_graphs)

    def _agreed(self, rest: list[int], seed: int) -> ag.Agreement:
        """What the views of ``rest`` say of each other, as `agree.agree` would find it."""
        whole, some = self.agreement, np.ix_(rest, rest)
        found = agree.Evidence(
            [whole.view_graphs[t] for t in rest],
            self.contrasts[some],
            whole.split_half[rest],
            whole.spread[rest],
            whole.redundancy[some],
        )
        given = self.settings.view_weights
        even = None if given is None else np.full(len(rest), 1 / len(rest))
        settings = replace(self.settings, view_weights=even)
        return agree.weigh_views([self.distinct[t] for t in rest], found, settings, seed)


def among(near: Lists, nodes: Array, n: int, k: int) -> Lists:
    """The first k of the lists of ``nodes`` that are nodes themselves, by their places among these.

    Where a list has fewer, its nearest stands in for those that lack.
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
