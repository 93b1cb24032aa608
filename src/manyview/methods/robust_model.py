"""What a fitted RobustWMNMF does: it places unseen observations and fills in missing views."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from manyview._types import Array, Views
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.table import ENGINES
from manyview.views.containers import Collection
from manyview.views.views import LOAD_LIMIT

from . import stages
from .given import zeros_of
from .impute import check_fillable, filled_in
from .place_robust import Fitted, Placed, place
from .precision import in_dtype, working_dtype
from .robust_fit import Weights
from .robust_results import RobustResults
from .scaling import tell_rounded


class RobustModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, RobustResults):
    """The fitted half of `RobustWMNMF`, which adds its parameters and its fit."""

    _reads_files = True
    _takes_relations = True

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

        What ``consensus_`` is to the fitted ones; for how sure a label is, see `predict_proba`.

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
        """Cluster of each observation; −1 where every view that has weight is missing.

        Parameters
        ----------
        X : the views of the fit, of any observations

        Returns
        -------
        ndarray (N,)
        """
        return self._like_input(self._place(self._read(X, reset=False)).labels, X)

    def predict_proba(self, X: Any) -> Array:
        """Probability of each cluster, for each observation (rows sum to 1), as in ``confidence_``.

        How likely a refit on resampled data is to put the observation there. The largest entry is the
        cluster of `predict`; an observation that no view with weight describes has 1/K everywhere.

        Parameters
        ----------
        X : the views of the fit, of any observations

        Returns
        -------
        ndarray (N, K)
        """
        views = self._read(X, reset=False)
        placed = self._place(views)
        sure = in_dtype(
            self._confidence(placed.embedding, placed.labels), self._output_dtype(views)
        )
        return self._like_input(sure, X)

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
        views = self._read(X, reset=False)
        self._tell_favoured()
        error = self._place(views).error
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
            self.zero_rows_,
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
        their own row. Observed entries are kept; a feature that no row has, or so few that it was
        left out, stays NaN elsewhere. Views of counts come back dense, as shares times the row's (or
        the mean) total.

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
            # What was observed comes back as it was, whatever the precision of the fit.
            whole = whole.astype(np.result_type(self._data[s].dtype, dtype))
            checksum = None if self._digests is None else self._digests[s]
            check_fillable(self._data[s], checksum, self.view_names_in_[given])
            parts = self.components_[given][:, columns]
            guess = self.consensus_.astype(float) @ parts.astype(float)
            present = self._all_rows(self._geometry[s].present)
            whole[:, columns] = filled_in(self._data[s], present, guess, self._scalings[s])
        if self._left_out is not None:
            i, j, values = self._left_out[given]
            whole[i, j] = values
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

    def _check_scale(self, views: Views, dtype: np.dtype) -> None:
        """Refuse scalings of no view; say which views, taken as they are, lose digits."""
        stages.check_scale(self.scale, list(self.view_names_in_))
        if dtype == np.float32:
            for M, name in zip(views.matrices, views.names, strict=True):
                if stages.asked_scaling(self.scale, name) is None:
                    tell_rounded(M, name)

    def _zero_is_missing(self, name: str, reset: bool) -> bool:
        return zeros_of(self.zero_rows if reset else self.zero_rows_, name) != "observed"

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

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        known = ENGINES.get(self.engine)  # tags are also asked for before parameters are validated
        tags.input_tags.allow_nan = (
            self._allows_missing() and known is not None and known.takes_holes
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
