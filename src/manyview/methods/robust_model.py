"""What a fitted RobustWMNMF knows and does: its attributes, unseen observations, imputation."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from manyview._arrays import on_host
from manyview._types import Array, Factors, FitResult, Matrix, Stop, Views
from manyview._warn import warn_user
from manyview.data.containers import Collection
from manyview.data.views import LOAD_LIMIT
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.numpy.repeats import Repeats, expanded_graph
from manyview.engines.protocols import Distances, Engine, Scaling
from manyview.maths import agreement as ag
from manyview.maths import equations as eq

from . import stages
from .base import MultiViewEstimator, in_dtype, on_host_factors, working_dtype
from .distinct import row_kinds, tell_empty_clusters, tell_few_kinds
from .impute import check_unchanged, filled_in
from .place import Fitted, Placed, place
from .robust_fit import Weights


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


class RobustModel(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MultiViewEstimator
):
    """The fitted half of `RobustWMNMF`, which has its parameters and its fit."""

    _zero_is_missing = True
    _reads_files = True
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
        own = eq.cluster_distances(self._embedding, self._centres)[
            np.arange(len(self._embedding)), self._result.consensus.argmax(axis=1)
        ]
        self._width = max(float(own[anywhere].mean()), np.finfo(float).tiny)
        self._warn(found.fit, self._all_rows(anywhere))
        self.graph_ = stages.graph_of_all(expanded_graph(agreement.fused, repeats), self._rows)
        dtype = np.dtype(given.dtype if self.dtype is None else self.dtype)
        V_star = np.where(anywhere[:, None], self._result.consensus, 1 / self.n_clusters_)
        labels = np.where(anywhere, V_star.argmax(axis=1), -1)
        self.labels_ = self._all_rows(labels, empty=-1)
        tell_empty_clusters(labels, self.n_clusters_, stacklevel=4)
        even = 1 / self.n_clusters_
        sure = self._confidence(self._embedding, anywhere)
        self.confidence_ = self._all_rows(in_dtype(sure, dtype), even)
        self.consensus_ = self._all_rows(in_dtype(V_star, dtype), even)
        self._expose_views(found.present, V_star, dtype)
        self.history_ = found.fit.history
        self.objective_ = float(found.fit.history["objective"][-1])
        self.n_iter_, self.stop_reason_ = found.fit.n_iter, found.fit.stop
        self._n_features_out = self.n_clusters_

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
    def reliance_(self) -> Array:
        """Which view each observation relies on: α_s w_is, normalised over views (N×n_views)."""
        described = np.column_stack([view.present for view in self._geometry])
        described = self._all_rows(self._all_views(described))
        return ag.reliance(self.view_weights_, self.sample_weights_, described)

    def _confidence(self, P: Array, anywhere: Array) -> Array:
        shares = eq.cluster_confidence(eq.cluster_distances(P, self._centres), self._width)
        return np.where(anywhere[:, None], shares, 1 / self.n_clusters_)

    def _heed_few_kinds(self, views: Views, here: Array) -> None:
        """No more clusters than distinct observations: identical ones stay together."""
        kinds = row_kinds(views.matrices, self.n_clusters_, here)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters_, stacklevel=4)
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
        repeated = ag.repeated_views(self._agreement.redundancy) if self.learn_view_weights else []
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

    # --- new observations ----------------------------------------------------------------------

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Fit, and return ``labels_`` (as a tensor, if the views are tensors).

        Parameters
        ----------
        X : as `fit` takes it
        y : ignored
        **kwargs : passed to `fit`

        Returns
        -------
        ndarray (N,)
        """
        return self._like_input(super().fit_predict(X, y, **kwargs), X)

    def transform(self, X: Any) -> Array:
        """V* of observations (rows sum to 1), placed by their fitted neighbours and U.

        What ``consensus_`` is to the fitted ones; for how sure a label is, see `predict_confidence`.

        Parameters
        ----------
        X : the views of the fit, of any observations

        Returns
        -------
        ndarray (N, K)
        """
        views = self._read(X, reset=False)
        V_star = in_dtype(self._place(views).consensus, self._output_dtype(views))
        return self._like_input(self._named_rows(V_star, views), X)

    def predict(self, X: Any) -> Array:
        """Cluster of each observation; −1 where every view is missing.

        Parameters
        ----------
        X : the views of the fit, of any observations

        Returns
        -------
        ndarray (N,)
        """
        placed = self._place(self._read(X, reset=False))
        labels = np.where(placed.anywhere, placed.consensus.argmax(axis=1), -1)
        return self._like_input(labels, X)

    def predict_confidence(self, X: Any) -> Array:
        """Confidence of each observation in each cluster (rows sum to 1), as in ``confidence_``.

        Parameters
        ----------
        X : the views of the fit, of any observations

        Returns
        -------
        ndarray (N, K)
        """
        views = self._read(X, reset=False)
        placed = self._place(views)
        sure = self._confidence(placed.embedding, placed.anywhere)
        return self._like_input(in_dtype(sure, self._output_dtype(views)), X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean reconstruction error of the present rows, in units of each view's spread.

        More clusters reconstruct better: `select_n_clusters` chooses their number, not a grid search.

        Parameters
        ----------
        X : the views of the fit, of any observations
        y : ignored

        Returns
        -------
        float
        """
        error = self._place(self._read(X, reset=False)).error
        if error is None:
            raise ValueError("score needs an observation that some view describes; all are missing")
        return -error

    def _place(self, views: Views) -> Placed:
        spaces, known = self._geometry, self._embedding
        if self._repeats is not None:
            first, _ = self._repeats
            spaces, known = [view.distinct(*self._repeats) for view in spaces], known[first]
        fitted = Fitted(
            spaces,
            known,
            self._agreement,
            self._scalings,
            self._result,
            self._centres,
            self._taus,
            self.n_neighbors,
            Weights(self.consensus_weight, self.cluster_weight),
        )
        with threadpool_limits(1):
            return place(fitted, views, working_dtype(views, self.dtype))

    def _output_dtype(self, views: Views) -> np.dtype:
        return np.dtype(views.dtype if self.dtype is None else self.dtype)

    def impute(self, view: str | int) -> Array:
        """The fitted data of a view with what is absent filled in from its parts: U v*.

        The data are those of the fit, whatever became of the arrays since (views of over 256 MiB in
        all are not copied: if they have changed, that is an error). Rows where the view is missing are
        filled whole, at the size of a typical row; unobserved entries of other rows at the size of
        their own row. Observed entries are kept, and a feature that no row has stays NaN. Views of
        counts come back dense, as shares times the row's (or the mean) total.

        Parameters
        ----------
        view : str or int
            Name or position.

        Returns
        -------
        ndarray (N, n_features)
        """
        check_is_fitted(self)
        given = self._view_position(view)
        width, dtype = self._view_widths[given], self.consensus_.dtype
        columns = np.ones(width, bool) if self._columns is None else self._columns[given]
        whole = np.full((len(self.labels_), width), np.nan, dtype=dtype)
        if columns.any():
            s = self._kept().index(given)
            checksum = None if self._digests is None else self._digests[s]
            check_unchanged(self._data[s], checksum, self.view_names_in_[given])
            parts = self.components_[given][:, columns]
            guess = self.consensus_.astype(float) @ parts.astype(float)
            present = self._all_rows(self._geometry[s].present)
            whole[:, columns] = filled_in(self._data[s], present, guess, self._scalings[s])
        return whole

    def _view_position(self, view: str | int) -> int:
        names = list(self.view_names_in_)
        if view in names:
            return names.index(view)
        if isinstance(view, Integral) and 0 <= int(view) < len(names):
            return int(view)
        raise ValueError(f"view must be one of {names} or its position, got {view!r}")

    # --- scikit-learn --------------------------------------------------------------------------

    @property
    def partial_fit(self) -> Any:
        """Not available; `WMNMF` has it."""
        raise AttributeError(
            "RobustWMNMF has no partial_fit: its weights and its graph come from all observations at "
            "once; use WMNMF for a stream, or fit again and place new observations by predict"
        )

    def _leave_to_workers(self, given: Collection) -> None:
        """Large dask arrays stay where they are; of small ones all distances are measured here."""
        for item in given.items:
            if isinstance(item.matrix, DaskMatrix) and item.matrix.nbytes > LOAD_LIMIT:
                item.matrix.keep = True

    def _allows_negative(self) -> bool:
        return True

    def _allows_missing(self) -> bool:
        return self.missing == "allow"

    @property
    def _callback(self) -> Any:
        if not self.verbose:
            return self.callback

        def report(info: dict[str, Any]) -> Any:
            print(f"iteration {info['round']}: objective {info['objective']:.6g}")
            return self.callback(info) if self.callback else None

        return report

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_missing() and self.engine == "numpy"
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
