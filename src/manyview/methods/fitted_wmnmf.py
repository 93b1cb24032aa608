"""What a fitted `WMNMF` tells and does: its attributes, unseen rows, scores, further batches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from threadpoolctl import threadpool_limits

from manyview._arrays import on_host
from manyview._types import Array, CollapseWarning, Factors, FitResult, Stop, Sums, Views
from manyview._warn import warn_user
from manyview.engines.numpy.masked import mean_error
from manyview.engines.numpy.rows import rows_of
from manyview.maths.agreement import reliance
from manyview.regularizers import kept_term, without_edges

from . import stream
from .asked import AskedOfWMNMF
from .assign import assign_new
from .observed import observed_somewhere, spread_out
from .place_wmnmf import Fitted, neighbor_consensus, solve
from .precision import in_dtype, on_host_factors, working_dtype
from .working_views import check_unchanged, masked, scaled, some_rows


class FittedWMNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, AskedOfWMNMF):
    """The half of `WMNMF` that comes after the fit."""

    _rows_stay = True
    _reads_files = True

    # What the fit leaves for later calls: views and terms of the fitted rows, factors of all starts,
    # their consensus side by side. After partial_fit these are of the rows it remembers, whose labels
    # `_stream` holds with sums, gaps and the number of batches.
    _fitted_views: list[Any]
    _terms: list[Any]
    _solver: Any
    _scalings: list[Any]
    _starts: list[Factors]
    _stacked: Array
    #: Mean squared error of an entry of every view, for each start.
    _entry_errors: Any = None
    #: Checksums of the user's own arrays, where views are too large to be copied.
    _digests: Any = None
    _stream: Any = None

    def _keep(
        self, fits: list[FitResult], terms: list[Any], stacked: Any, sums: list[str | None]
    ) -> list[FitResult]:
        """Keep what later calls need on the host: saving and predicting need no GPU and no workers."""
        fits = [replace(fit, factors=on_host_factors(fit.factors)) for fit in fits]
        self._terms = [kept_term(g, X) for g, X in zip(terms, self._fitted_views, strict=True)]
        self._starts = [fit.factors for fit in fits]
        self._entry_errors = [fit.entry_errors for fit in fits]
        self._digests, self._stacked = sums, on_host(stacked)
        return fits

    def _expose(
        self,
        fit: FitResult,
        stacked: Array,
        labels: Array,
        dtype: np.dtype,
        anywhere: Array | None = None,
    ) -> None:
        """Results in the shape of what was given: 0 for what nobody observed, and the label −1."""
        factors, unit = fit.factors, self._output_unit
        rows = np.ones(len(labels), dtype=bool) if anywhere is None else anywhere
        self.labels_ = labels if rows.all() else spread_out(labels + 1, rows, 0) - 1
        self.consensus_ = spread_out(in_dtype(stacked * unit, dtype), rows, 0)
        self.view_weights_ = self._all_views(factors.alpha)
        self.sample_weights_ = spread_out(self._all_views(in_dtype(factors.w, dtype)), rows, 0)
        self.components_ = self._all_columns([in_dtype(U.T, dtype) for U in factors.U])
        found = {
            s: spread_out(in_dtype(V * unit, dtype), rows, 0)
            for s, V in zip(self._kept(), factors.V, strict=True)
        }
        none = np.zeros((len(rows), factors.consensus.shape[1]), dtype=dtype)
        self.coefficients_ = [found.get(s, none) for s in range(len(self._view_widths))]
        self.history_ = fit.history
        self.objective_ = float(fit.history["objective"][-1])
        self.n_iter_ = fit.n_iter
        self.stop_reason_ = fit.stop
        self._n_features_out = stacked.shape[1]

    @property
    def reliance_(self) -> Array:
        """Which view each observation relies on: α_s w_is, normalised over views (N×n_views)."""
        return reliance(self.view_weights_, self.sample_weights_, self.sample_weights_ > 0)

    def fit_predict(self, X: Any, y: object = None, **kwargs: Any) -> Array:
        """Fit, and return ``labels_`` (as a tensor, if the views are tensors).

        Parameters
        ----------
        X : list, dict or array
            The views, as for `fit`.
        y : ignored
        **kwargs : ignored

        Returns
        -------
        ndarray (n_samples,)
            ``labels_``.
        """
        return self._like_input(super().fit_predict(X, y, **kwargs), X)

    def transform(self, X: Any) -> Array:
        """Consensus coefficients of samples, interpolated between fitted ones.

        In each view a sample gets the mean coefficients of its ``n_neighbors`` nearest fitted samples,
        weighted by inverse squared distance; the fitted view weights make the consensus of them. Fitted
        samples get their ``consensus_``.

        Parameters
        ----------
        X : list, dict or array
            The same views of new observations.

        Returns
        -------
        ndarray (n_samples, n_components)
        """
        views = self._read(X, reset=False)
        new = in_dtype(self._transform(views) * self._output_unit, views.dtype)
        return self._like_input(self._named_rows(new, views), X)

    def _transform(self, views: Views) -> Array:
        """`transform` in the units of the loop, where squares neither under- nor overflow."""
        anywhere = observed_somewhere(views.matrices)
        if not anywhere.any():
            return np.zeros((views.n_samples, self._n_features_out))
        with threadpool_limits(1):
            part = some_rows(views, anywhere)
            found = neighbor_consensus(self._fitted(), self._scaled(part))
        return spread_out(found, anywhere, 0)

    def predict(self, X: Any) -> Array:
        """Cluster of each sample: the vote of its nearest fitted samples in the consensus.

        Votes weigh the more, the nearer they are: fitted samples get their ``labels_``. −1 where every
        view is missing.

        Parameters
        ----------
        X : list, dict or array
            The same views of new observations.

        Returns
        -------
        ndarray (n_samples,)
        """
        views = self._read(X, reset=False)
        if not self._stacked.any():
            warn_user(
                "the consensus of the fit is zero throughout: nothing tells new samples apart, and their "
                "clusters mean nothing; fit again with a lower beta",
                CollapseWarning,
            )
        new = self._transform(views)
        with threadpool_limits(1):
            known = self._remembered_labels()
            labels = assign_new(new, self._stacked, known, self.assign_labels, exact=True)
        anywhere = observed_somewhere(views.matrices)
        return self._like_input(labels if anywhere.all() else np.where(anywhere, labels, -1), X)

    def score(self, X: Any, y: object = None) -> float:
        """Minus the mean squared reconstruction error of the scaled views (higher is better).

        Parameters
        ----------
        X : list, dict or array
            The same views of any observations.
        y : ignored

        Returns
        -------
        float
        """
        views = self._read(X, reset=False)
        self._tell_favoured()
        anywhere = observed_somewhere(views.matrices)
        if not anywhere.any():
            raise ValueError("score needs an observation that some view describes; all are missing")
        views = some_rows(views, anywhere)
        Xs = masked(self._scaled(views), views.names, self._solver, self._rank)
        with threadpool_limits(1):
            factors = solve(self._fitted(), self._scaled(views), views)[0]
            errors = [
                rows_of(X, self._solver).all_residuals(U, V)
                for X, U, V in zip(Xs, factors.U, factors.V, strict=True)
            ]
        # Per observed entry: what is missing is not explained without error.
        means = [mean_error(X, r) * X.shape[1] for X, r in zip(Xs, errors, strict=True)]
        return -float(np.mean(means))

    def _fitted(self) -> Fitted:
        """What placing new rows needs, after a look whether the fitted rows are still those of the fit."""
        kept = [self.view_names_in_[s] for s in self._kept()]
        check_unchanged(self._fitted_views, self._digests or [None] * len(kept), kept)
        return Fitted(
            self._fitted_views,
            self._terms,
            self._starts,
            self._entry_errors or [None] * len(self._starts),
            self._solver,
            self._settings,
            self.n_neighbors,
            self._threads,
        )

    def _scaled(self, views: Views) -> list[Any]:
        """Views scaled as those of the fit."""
        dtype = working_dtype(views, self.dtype)
        return scaled(views, self._scalings, dtype, self._allows_missing())

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn from one more batch of observations; ``y`` is ignored.

        The first batch is fitted as by `fit` (also where `fit` was called before, whose data then are
        the first batch). For later ones U and the view weights move by what is remembered of all
        batches, the older the less; scaling stays that of the first batch. ``labels_``,
        ``consensus_`` and the other attributes of observations are those of the latest batch, its
        labels by the vote of the nearest of some observations of every cluster that are remembered.
        The result is near that of a fit of all observations, not equal to it (`docs/scaling.md` says
        how near).

        Parameters
        ----------
        X : list, dict or array
            A batch of observations, in the same views as those before.
        y : ignored

        Returns
        -------
        WMNMF
            The estimator itself.
        """
        self._validate_params()
        fitted = len(self.components_[0]) if "labels_" in vars(self) else self._rank
        stream.check_settings(self.n_init, self.missing, self._rank, fitted)
        if "labels_" not in vars(self):
            return self.fit(X)
        views = self._read(X, reset=False)
        with threadpool_limits(1), self._whole_or_nothing():
            self._add_batch(views)
        return self

    def _add_batch(self, views: Views) -> None:
        """Place a batch, move U and the view weights by all batches, and remember some of its rows."""
        solver, threads, before = self._solver, self._threads, self._starts[0]
        if self._stream is None:  # so far there was one batch, that of `fit`
            rows = [rows_of(X, solver, threads) for X in self._fitted_views]
            sums = stream.batch_sums(rows, before)
            self._stream = (sums, stream.batch_gaps(before), 1, self.labels_)
        known, gaps, n_batches, old_labels = self._stream
        Xs, fitted = self._scaled(views), self._fitted()
        placed, near = solve(fitted, Xs, views)[0], neighbor_consensus(fitted, Xs)
        labels = assign_new(near, self._stacked, old_labels, self.assign_labels, exact=True)
        rows = [rows_of(X, solver, threads) for X in Xs]
        new = stream.batch_sums(rows, placed)
        sums = [stream.added(Sums(*past), s) for past, s in zip(known, new, strict=True)]
        gaps = stream.FORGET * gaps + stream.batch_gaps(placed)
        factors, sums, scales = stream.updated_basis(placed, sums, solver, self.p, self.rescale)
        if self.learn_view_weights:
            factors = stream.reweighted(factors, gaps, self.p)
        chosen = stream.which_to_remember(labels, old_labels)
        self._remember(
            stream.chosen_views(Xs, self._fitted_views, chosen),
            stream.chosen_factors(factors, before, scales, chosen),
        )
        kept = np.concatenate([labels[chosen[0]], old_labels[chosen[1]]])
        self._stream = ([tuple(s) for s in sums], gaps, n_batches + 1, kept)
        self.sample_names_in_ = views.sample_names
        history = stream.batch_history(rows, factors, self.p, n_batches + 1)
        result = FitResult(factors, history, self.n_iter_, Stop.BATCH)
        self._expose(result, factors.consensus, labels, views.dtype)

    def _remember(self, views: list[Any], factors: Factors) -> None:
        """Keep the rows that unseen ones are compared with."""
        # Later rows are linked to these; among themselves they need no graph any more.
        self._terms = [without_edges(g, X) for g, X in zip(self._terms, views, strict=True)]
        self._fitted_views, self._stacked, self._digests = views, factors.consensus, None
        self._starts = [factors]

    def _remembered_labels(self) -> Array:
        """The clusters of the rows among which unseen ones find theirs."""
        if self._stream is not None:
            return self._stream[3]
        labels = self.labels_
        return labels if labels.min() >= 0 else labels[labels >= 0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._allows_negative()
        tags.input_tags.allow_nan = self._allows_missing()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
