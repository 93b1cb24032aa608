"""The fitted attributes of RobustWMNMF, and what its user is told about a fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from manyview._arrays import on_host
from manyview._types import Array, Factors, FitResult, Matrix, Stop, Views
from manyview._warn import warn_user
from manyview.engines.numpy.repeats import Repeats, expanded_graph
from manyview.engines.protocols import Distances, Engine, Scaling
from manyview.maths import agreement as ag
from manyview.maths import equations as eq
from manyview.maths.tails import COUNTS, HEAVY
from manyview.storage.checkpoint import Checkpoint

from . import stages
from .agree import Settings
from .distant import hidden_groups, tell_merged
from .distinct import row_kinds, tell_empty_clusters, tell_few_kinds
from .number import chosen_number
from .precision import in_dtype, on_host_factors
from .resampling import clusters_of_halves
from .scored import ScoredByReconstruction


@dataclass(frozen=True)
class Results:
    """What the stages of a fit and its loop leave behind, where the engine computed it."""

    spaces: list[Distances]
    agreement: ag.Agreement
    embedding: Array
    repeats: Repeats | None
    fit: FitResult
    centres: Array
    taus: list[float]
    present: list[Array]
    anywhere: Array


class RobustResults(ScoredByReconstruction):
    """The fitted attributes of `RobustWMNMF`, made from what its stages found."""

    #: Which observations some view has, where not all; the fit is of these.
    _rows: Array | None = None
    #: The data of the fit, and checksums of the user's own arrays where they are too large to be copied.
    _data: list[Matrix]
    _digests: Any = None
    #: First rows of distinct observations and how often they count; None where none repeats.
    _repeats: tuple[Array, Array | None] | None = None
    _scalings: list[Scaling | None]
    _geometry: list[Distances]
    _agreement: ag.Agreement
    _result: Factors
    #: Centres of the clusters in random halves of the observations, and the widths of these.
    _halves: tuple[Array, Array]
    n_clusters_: int

    # --- results -------------------------------------------------------------------------------

    def _expose(self, found: Results, given: Views, engine: Engine) -> None:
        """Set the fitted attributes; saving and predicting need no engine."""
        pairs = zip(found.spaces, given.matrices, strict=True)
        self._geometry = [view.for_model(sp.issparse(X)) for view, X in pairs]
        self._centres, self._embedding = on_host(found.centres), on_host(found.embedding)
        self._agreement = agreement = stages.agreement_on_host(found.agreement, engine)
        self._result, self._taus = on_host_factors(found.fit.factors), found.taus
        repeats, anywhere = found.repeats, found.anywhere
        self._repeats = None if repeats is None else (repeats.first, repeats.mass)
        self._warn(found.fit, self._all_rows(anywhere))
        self.graph_ = stages.graph_of_all(expanded_graph(agreement.fused, repeats), self._rows)
        dtype = np.dtype(given.dtype if self.dtype is None else self.dtype)
        V_star = np.where(anywhere[:, None], self._result.consensus, 1 / self.n_clusters_)
        labels = np.where(anywhere, V_star.argmax(axis=1), -1)
        self.labels_ = self._all_rows(labels, empty=-1)
        tell_empty_clusters(labels, self.n_clusters_)
        self._tell_distant(given, found)
        even = 1 / self.n_clusters_
        self._halves = clusters_of_halves(self._embedding, labels, self._repeats, self.n_clusters_)
        sure = self._confidence(self._embedding, labels)
        self.confidence_ = self._all_rows(in_dtype(sure, dtype), even)
        self.consensus_ = self._all_rows(in_dtype(V_star, dtype), even)
        self._expose_views(found.present, V_star, dtype)
        self.history_ = found.fit.history
        self.objective_ = float(found.fit.history["objective"][-1])
        self.n_iter_, self.stop_reason_ = found.fit.n_iter, found.fit.stop
        self._n_features_out = self.n_clusters_

    def _tell_distant(self, given: Views, found: Results) -> None:
        """Say which groups far from all others are in a cluster with them."""
        seen = list(self._agreement.distant)
        if found.repeats is not None:
            seen = [np.flatnonzero(np.isin(found.repeats.of, group)) for group in seen]
        hidden = hidden_groups(given.matrices, self._scalings, found.present)
        hidden = [
            group for group in hidden if not any(np.isin(group, known).any() for known in seen)
        ]
        more = "if they are a group of their own, ask for more clusters, or for communities"
        limited = (
            "features are limited to their 1st to 99th percentile, which hides a group this small: if it "
            "is one, take it out, or scale the features yourself, and then use scale=None and communities"
        )
        for groups, remedy in ((seen, more), (hidden, limited)):
            if self._rows is not None:
                groups = [np.flatnonzero(self._rows)[group] for group in groups]
            tell_merged(groups, self.labels_, self.n_clusters_, self.sample_names_in_, remedy)

    def _expose_views(self, present: list[Array], V_star: Array, dtype: np.dtype) -> None:
        """The attributes with an entry for every view that was given."""
        agreement, factors, even = self._agreement, self._result, 1 / self.n_clusters_
        self.view_weights_ = self._all_views(agreement.alpha)
        self.sample_weights_ = self._all_rows(self._all_views(in_dtype(factors.w, dtype)))
        self.components_ = self._all_columns([in_dtype(U.T, dtype) for U in factors.U])
        found = {
            s: self._all_rows(in_dtype(np.where(here[:, None], V, V_star), dtype), even)
            for s, V, here in zip(self._kept(), factors.V, present, strict=True)
        }
        every = range(len(self._view_widths))
        self.coefficients_ = [found.get(s, self.consensus_) for s in every]
        self.agreement_ = self._all_views(self._all_views(agreement.matrix).T).T
        self.split_half_ = self._all_views(agreement.split_half)
        self.redundancy_ = self._all_views(self._all_views(agreement.redundancy).T).T

    def _tell_logarithms(self) -> None:
        """Which views a logarithm was taken of that nobody asked for, and why."""
        found: dict[str, list[str]] = {}
        for name, reason in self.log_reasons_.items():
            found.setdefault(reason, []).append(name)
        if found:
            verbs = {COUNTS: "hold counts", HEAVY: "have heavy tails"}
            told = ", ".join(f"views {names} {verbs[why]}" for why, names in found.items())
            first = next(iter(self.log_reasons_))
            warn_user(
                f"{told}: their logarithms are taken; scale={{{first!r}: 'quantile'}} keeps them as "
                "they are"
            )

    @property
    def scaling_(self) -> dict[str, str]:
        """How each view was made comparable: "log", "quantile", "sqrt" or "none"."""
        found = {str(name): "none" for name in self.view_names_in_}
        for name, scaling in zip(self.view_names_in_[self._kept()], self._scalings, strict=True):
            found[str(name)] = "none" if scaling is None else scaling.kind
        return found

    @property
    def log_reasons_(self) -> dict[str, str]:
        """Why ``scale="auto"`` took the logarithm of a view: "counts" or "heavy tails"."""
        pairs = zip(self.view_names_in_[self._kept()], self._scalings, strict=True)
        return {
            str(name): scaling.because
            for name, scaling in pairs
            if scaling is not None and scaling.because
        }

    def _all_rows(self, array: Array, empty: float = 0) -> Array:
        """Rows of the fit as rows of what was given, ``empty`` where no view has the observation."""
        if self._rows is None:
            return array
        whole = np.full((len(self._rows), *array.shape[1:]), empty, dtype=array.dtype)
        whole[self._rows] = array
        return whole

    @property
    def embedding_(self) -> Array:
        """Where the observations are in the embedding of the fused graph; at 0 if no view has them."""
        return self._all_rows(self._embedding)

    @property
    def learned_view_weights_(self) -> Array:
        """α as the data give it; the same as ``view_weights_`` unless others were given."""
        return self._all_views(self._agreement.learned)

    @property
    def reliance_(self) -> Array:
        """Which view each observation relies on: α_s w_is, normalised over views (N×n_views)."""
        described = np.column_stack([view.present for view in self._geometry])
        described = self._all_rows(self._all_views(described))
        return ag.reliance(self.view_weights_, self.sample_weights_, described)

    def _confidence(self, P: Array, labels: Array) -> Array:
        """Probability of each cluster from places in the embedding; even without a label."""
        with threadpool_limits(1):
            shares = eq.cluster_confidence(P, np.maximum(labels, 0), *self._halves)
        return np.where(labels[:, None] >= 0, shares, 1 / self.n_clusters_)

    def _settle_number(
        self, views: Views, present: list[Array], settings: Settings, checkpoint: Checkpoint
    ) -> None:
        """The number of clusters: as asked for, or chosen."""
        if self.n_clusters == "auto":
            self.selection_ = chosen_number(
                views,
                present,
                self._scalings,
                settings,
                checkpoint,
                self.random_state,
                self.dtype,
                self.resolution,
            )
            self.n_clusters_ = self.selection_.n_clusters
        elif not isinstance(self.n_clusters, str):  # communities are counted in the graph, later
            self.n_clusters_ = self.n_clusters

    def _heed_few_kinds(self, matrices: list[Matrix], here: Array) -> None:
        """No more clusters than distinct observations: identical ones stay together."""
        kinds = row_kinds(matrices, self.n_clusters_, here)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters_)
            self.n_clusters_ = int(kinds.max()) + 1

    def _warn(self, result: FitResult, anywhere: Array) -> None:
        if result.stop is Stop.MAX_ITER:
            warn_user(
                f"RobustWMNMF stopped after {result.n_iter} iterations before the objective settled "
                f"to tol={self.tol:g}; raise max_iter",
                ConvergenceWarning,
            )
        if not any(view.comparable.any() for view in self._geometry):
            warn_user(
                "no view tells observations apart (each is constant): the clusters mean nothing; look "
                "at how the views were read"
            )
        names = self.view_names_in_[self._kept()]
        self._tell_logarithms()
        learned = np.array_equal(self._agreement.alpha, self._agreement.learned)
        repeated = ag.repeated_views(self._agreement.redundancy) if learned else []
        for group in repeated:
            alike = [str(name) for name in names[group]]
            warn_user(
                f"views {alike} are near-duplicates (their distances correlate by "
                f"{ag.REPEATED:g} or more even between neighbours); they share one weight"
            )
        if not anywhere.all():
            warn_user(
                f"{int((~anywhere).sum())} observations are missing in every view that has weight "
                f"(the first is row "
                f"{int(np.flatnonzero(~anywhere)[0])}); they get the label -1"
            )
