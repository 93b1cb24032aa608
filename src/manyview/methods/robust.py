"""`RobustWMNMF`, the recommended estimator: weights from agreement between views, then parts."""

from __future__ import annotations

import os
import warnings
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from manyview._arrays import is_tensor, namespace, on_host
from manyview._types import Array, FitResult, Matrix, Stop, Views, storable
from manyview.data.containers import Collection
from manyview.data.views import LOAD_LIMIT
from manyview.engines.affinity import has_nan
from manyview.engines.dask.cluster import cluster_for
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.files.distances import (
    FileGeometry,
    ScaledElsewhere,
    ScaledFile,
    fit_scaling,
    scaled_rows,
    unit_rows_of_file,
)
from manyview.engines.numpy.distances import Geometry, RobustScaling, present_rows, unobserved
from manyview.engines.numpy.masked import FEWEST_SHARE, MaskedView
from manyview.engines.numpy.repeats import Repeats, distinct, expanded_graph
from manyview.engines.numpy.sources import UnitRows, is_streamed
from manyview.engines.threads import Threads
from manyview.maths import agreement as ag
from manyview.maths import equations as eq
from manyview.storage.checkpoint import Checkpoint, digest

from .assign import kmeans
from .base import MultiViewEstimator, generator, in_dtype, on_host_factors, working_dtype
from .distinct import row_kinds, tell_empty_clusters, tell_few_kinds
from .robust_fit import RobustView, place_robust, run_robust
from .scaling import largest, tell_rounded

#: What the scaling of a view may be, besides None.
SCALINGS = {"auto", "log", "quantile", "sqrt"}
#: Views with less weight than this in sum cannot place an observation.
NO_WEIGHT = 1e-3
#: A row with a larger share of its features unobserved counts as missing in that view.
MAX_UNOBSERVED = 0.5


@storable
class RobustWMNMF(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MultiViewEstimator
):
    """Robust weighted multi-view clustering: the recommended default.

    Two stages. First, what the views say about each other, in closed form: two views agree when
    neighbours in one are close in the other. From it come the view weights α (a view nobody
    agrees with gets about 0), the observation weights w (a view never votes for itself), a fused
    neighbour graph, and an embedding P of it. Second, a factorisation that explains the clusters
    by parts U of every view, minimising::

        Σ_s α_s Σ_i w_is [ ‖x_i − U_s v_i‖²/τ_s + λ‖v_i − v*_i‖² ] + β Σ_ik v*_ik ‖p_i − c_k‖²

    over U ≥ 0 with unit column sums, V ≥ 0, rows of V* on the simplex, and cluster centres c. The
    objective never rises. The largest entry of a row of V* is the label. Negative values and
    features of any unit are welcome: each feature is scaled by its 1st and 99th percentile, after a
    logarithm in views with heavy tails; views with over 90% zeros are taken as counts.

    A row of NaN (an id absent from a DataFrame, an all-zero row of counts) means that this view is
    missing for this observation; NaN inside a row means unobserved entries, which do not count (a
    row with over half of its features unobserved is taken as missing). An observation missing in
    every view gets the label −1. A column or view without any value is left out with a warning and
    changes nothing: its entries of ``components_`` and its weight are 0, and `impute` leaves it NaN.

    Parameters
    ----------
    n_clusters : int or "auto", default=8
        Number of clusters; "auto" asks `select_n_clusters` (stability and eigengap of the fused
        graph), whose answer and reasons are in ``selection_``.
    consensus_weight : float, default=1
        λ, how strongly the coefficients of a view follow the consensus.
    cluster_weight : float, default=5
        β, how strongly the consensus follows the clusters of the fused graph.
    n_neighbors : int, default=10
        Neighbours in the graph of a view.
    reliability_weight : float, default=0.1
        δ, how much the agreement of two random halves of a view's own features counts beside the
        agreement with other views. It decides where views do not agree.
    scale : {"auto", "log", "quantile", "sqrt"} or None, or a dict, default="auto"
        "auto" looks at each view: "sqrt" (square roots, rows of unit length) if over 90% are zeros;
        "log" (percentiles, then a logarithm that puts the mean of a feature in the middle) for counts
        and heavy tails; otherwise "quantile" (percentiles). ``None`` takes the data as they are. A
        dict gives these by the names of views, {"rna": "log", "cnv": None}; views it lacks are "auto".
    learn_view_weights, learn_sample_weights : bool, default=True
        Whether α and w come from the data; otherwise all (present) views count alike.
    max_iter : int, default=200
    tol : float, default=1e-5
        Stop when an iteration lowers the objective by less than this share.
    missing : {"allow", "error"}, default="allow"
        Whether NaN is accepted.
    views : sequence of int, optional
        If the input is one 2-D array: the number of columns of each view. ``None``: one view.
    engine : {"numpy", "torch", "dask"}, default="numpy"
        Where the computation runs. "torch" (extra ``torch``): for GPUs; NumPy in, NumPy out; the
        fitted model lives on the host, and so does `predict`. "dask" (extra ``dask``): the passes
        over the rows of the factorisation run on Dask workers; everything before (weights, graph,
        embedding) runs in this process, to which dask arrays are brought whole, and so do V and V*
        in every iteration. Use `WMNMF` for data that do not fit here.
    device : str, default="auto"
        With engine="torch": "cpu", "cuda" (or "cuda:1", …), or "auto", a GPU where there is one and
        the views are large enough to pay for the way there.
    n_jobs : int, optional
        Threads; ``None`` takes the cores this process may use. The results are the same for any
        number.
    dtype : dtype, optional
        Precision of the computation. ``None`` computes in float64 (in float32 if the input is
        float32 and larger than 1 GiB) and returns the input's precision.
    checkpoint : path, or (path, seconds), optional
        Write the state of the fit to this file every minute (or so many seconds). A fit that finds
        the file goes on from there to the same result, bit for bit; when it is done the file is
        removed. A checkpoint of other data or settings is refused.
    random_state : int, RandomState, Generator or None
    verbose : int, default=0
    callback : callable, optional
        Called after every iteration with a dict of its objective terms; True stops the fit.

    Attributes
    ----------
    n_clusters_ : int, fewer than asked for where there are fewer distinct observations
    selection_ : Selection, with ``n_clusters="auto"``
    labels_ : ndarray (N,); −1 for observations missing in every view that has weight
    confidence_ : ndarray (N, K), how sure each label is; rows sum to 1
        From the distances to the cluster centres in the embedding, in units of the mean distance
        to the own centre: near ½ between two clusters.
    consensus_ : ndarray (N, K), V*; rows sum to 1
    view_weights_ : ndarray (n_views,), α
    sample_weights_ : ndarray (N, n_views), w in [0, 1], 0 where missing
    reliance_ : ndarray (N, n_views), α_s w_is normalised over views
    agreement_ : ndarray (n_views, n_views), how much views agree
    split_half_ : ndarray (n_views,), how much the halves of each view agree
    redundancy_ : ndarray (n_views, n_views), how much views repeat each other, from 0 to 1
        Correlation of their distances between neighbours (0 where negative). Views that see the same
        clusters independently have about 0; views computed from the same data more.
    graph_ : sparse array (N, N), the fused neighbour graph
    components_ : list of ndarray (K, M_s), the parts of every cluster; each sums to 1
    coefficients_ : list of ndarray (N, K)
    objective_, history_, n_iter_, stop_reason_, view_names_in_, n_features_in_, …
        As in `WMNMF`.

    Examples
    --------
    >>> import manyview as mv
    >>> digits = mv.datasets.load_handwritten(views="paper")
    >>> model = mv.RobustWMNMF(n_clusters=10, random_state=0)
    >>> labels = model.fit_predict(digits.views)
    >>> bool(mv.metrics.accuracy(digits.labels, labels) > 0.96)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "consensus_weight": [Interval(Real, 0, None, closed="neither")],
        "cluster_weight": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "reliability_weight": [Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions(SCALINGS), dict, None],
        "learn_view_weights": ["boolean"],
        "learn_sample_weights": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "missing": [StrOptions({"allow", "error"})],
        "views": ["array-like", None],
        "engine": [StrOptions({"numpy", "torch", "dask"})],
        "device": [str],
        "n_jobs": [Integral, None],
        "checkpoint": [str, os.PathLike, tuple, None],
        "random_state": ["random_state", np.random.Generator],
        "verbose": ["verbose"],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        consensus_weight: float = 1.0,
        cluster_weight: float = 5.0,
        n_neighbors: int = 10,
        reliability_weight: float = 0.1,
        scale: str | dict[str, str | None] | None = "auto",
        learn_view_weights: bool = True,
        learn_sample_weights: bool = True,
        max_iter: int = 200,
        tol: float = 1e-5,
        missing: str = "allow",
        views: Any = None,
        engine: str = "numpy",
        device: str = "auto",
        n_jobs: int | None = None,
        dtype: Any = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Any = None,
    ):
        self.n_clusters = n_clusters
        self.consensus_weight = consensus_weight
        self.cluster_weight = cluster_weight
        self.n_neighbors = n_neighbors
        self.reliability_weight = reliability_weight
        self.scale = scale
        self.learn_view_weights = learn_view_weights
        self.learn_sample_weights = learn_sample_weights
        self.max_iter = max_iter
        self.tol = tol
        self.missing = missing
        self.views = views
        self.engine = engine
        self.device = device
        self.n_jobs = n_jobs
        self.dtype = dtype
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def fit(self, X: Any, y: Any = None) -> RobustWMNMF:
        """Weigh the views, fuse them, and factorise. ``y`` is ignored."""
        self._validate_params()
        # One thread: the sums inside BLAS and k-means differ between thread counts.
        with (
            threadpool_limits(1),
            self._whole_or_nothing(),
            cluster_for(self.engine) as cluster,
        ):
            views = self._read(X, reset=True)
            rng = generator(self.random_state)
            checkpoint = Checkpoint(self.checkpoint, self, views, rng)
            self.n_clusters_: int = (
                self._choose(X, views, checkpoint)
                if isinstance(self.n_clusters, str)
                else self.n_clusters
            )
            self._check_n_clusters(self.n_clusters_, views.n_samples)
            self._fit(views, rng, checkpoint, cluster)
            checkpoint.finish()
        return self

    def _choose(self, X: Any, views: Views, checkpoint: Checkpoint) -> int:
        """n_clusters="auto": ask the fused graph, by stability and by its eigengap."""
        from manyview.judge.selection import select_n_clusters

        # Nobody can tell the cluster of an observation that is nowhere present.
        n = int(np.any([present_rows(M) for M in views.matrices], axis=0).sum())
        self.selection_ = checkpoint.keep(
            "selection",
            lambda: select_n_clusters(
                X,
                range(2, max(3, min(15, n))),
                ["stability", "eigengap"],
                model=self,
                random_state=generator(self.random_state),
            ),
        )
        return self.selection_.n_clusters

    def _fit(
        self,
        views: Views,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
        cluster: Any = None,
    ) -> None:
        dtype = working_dtype(views, self.dtype)
        present = self._presence(views)
        self._remember(views)
        self._rows = self._described(views, present)
        if self._rows is not None:
            views = views.with_matrices([X[self._rows] for X in views.matrices])
            present = [here[self._rows] for here in present]
        given = views
        if self.engine == "torch":
            from manyview.engines.torch.distances import moved

            views, dtype = moved(views, self.device, self.dtype, dtype)
        self._check_scale()
        if dtype == np.float32:
            for X, name in zip(given.matrices, given.names, strict=True):
                if self._asked(name) in (None, "none"):
                    tell_rounded(X, name, stacklevel=4)
        geometry = self._geometries(views, present, dtype)
        del views  # on a GPU a copy of the data
        self._heed_few_kinds(given, np.any(present, axis=0))
        told, repeats = distinct(geometry)
        agreement = checkpoint.keep(
            "agreement",
            lambda: ag.agree(
                told,
                self.n_neighbors,
                self.reliability_weight,
                rng,
                self.learn_view_weights,
                self.learn_sample_weights,
                Threads(self.n_jobs),
            ),
        )
        P = checkpoint.keep("embedding", lambda: ag.embed(agreement, self.n_clusters_, rng))
        P = P if is_tensor(P) else P.astype(dtype)
        anywhere = self._counted(present, agreement.alpha)
        self._check_n_clusters(self.n_clusters_, int(anywhere.sum()))
        start = checkpoint.keep(
            "start", lambda: start_labels(P, anywhere, self.n_clusters_, rng, repeats)
        )
        w = agreement.w
        if repeats is not None:
            P, start, w = P[repeats.of], start[repeats.of], w[repeats.of]
        w = np.where(anywhere[:, None], w, 0)
        w = namespace(P).as_tensor(w, dtype=P.dtype, device=P.device) if is_tensor(P) else w
        robust_views = self._robust_views(geometry, cluster)
        run = partial(
            run_robust,
            robust_views,
            agreement.alpha,
            w,
            P,
            start,
            self.n_clusters_,
            lam=self.consensus_weight,
            beta=self.cluster_weight,
            max_iter=self.max_iter,
            tol=self.tol,
            callback=self._callback,
            checkpoint=checkpoint,
        )
        result, self._centres = checkpoint.keep("fit", run)
        self._taus = [view.tau for view in robust_views]
        if is_tensor(P):
            # What the model keeps: saving and predicting need no GPU.
            from manyview.engines.torch.distances import agreement_on_host

            pairs = zip(geometry, given.matrices, strict=True)
            geometry = [view.to_host(sp.issparse(X)) for view, X in pairs]  # type: ignore
            self._centres, P = on_host(self._centres), on_host(P)
            agreement = agreement_on_host(agreement)
            result = replace(result, factors=on_host_factors(result.factors))
        for view in geometry:
            if isinstance(getattr(view, "source", None), ScaledElsewhere):
                view.source = None  # type: ignore[attr-defined]  # a model outlives the cluster
        self._geometry = geometry
        self._embedding, self._agreement, self._result = P, agreement, result.factors
        self._repeats = None if repeats is None else (repeats.first, repeats.mass)
        own = eq.cluster_distances(P, self._centres)[
            np.arange(len(P)), result.factors.consensus.argmax(axis=1)
        ]
        self._width = max(
            float(own[anywhere].mean()), np.finfo(float).eps
        )  # rows of P are of length 1
        self._warn(result, self._all_rows(anywhere))
        self.graph_ = self._graph_of_all(expanded_graph(agreement.fused, repeats))
        self._expose(result, agreement, present, anywhere, given.dtype)

    def _heed_few_kinds(self, views: Views, here: Array) -> None:
        """No more clusters than distinct observations: identical ones stay together."""
        kinds = row_kinds(views.matrices, self.n_clusters_, here)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters_, stacklevel=4)
            self.n_clusters_ = int(kinds.max()) + 1

    @staticmethod
    def _described(views: Views, present: list[Array]) -> Array | None:
        """Observations that some view has, if not all: the others are no neighbours of anybody.

        Rows of files stay: none can be taken out.
        """
        rows = np.any(present, axis=0)
        in_memory = not any(is_streamed(X) for X in views.matrices)
        return rows if in_memory and rows.any() and not rows.all() else None

    def _remember(self, views: Views) -> None:
        """What `impute` fills in: copies, since users' arrays change. Of what is too large to be copied
        there is a checksum."""
        held = [X for X in views.matrices if not is_streamed(X)]
        large = sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in held) > LOAD_LIMIT
        self._data = [X if large or is_streamed(X) else X.copy() for X in views.matrices]
        self._digests = [
            digest(X) if large and not is_streamed(X) else None for X in views.matrices
        ]

    @staticmethod
    def _counted(present: list[Array], alpha: Array) -> Array:
        """Observations that some view with weight describes; the others get the label −1."""
        return np.column_stack(present) @ alpha > NO_WEIGHT

    # --- views ---------------------------------------------------------------------------------

    def _presence(self, views: Views) -> list[Array]:
        present = []  # no comprehension: warnings count the frames up to the caller of `fit`
        for X, name in zip(views.matrices, views.names, strict=True):
            present.append(self._present(X, name))
        return present

    def _geometries(
        self, views: Views, present: list[Array], dtype: np.dtype | None = None
    ) -> list[Geometry]:
        """Fit the scalings to the views, and measure distances in what they give."""
        dtype = working_dtype(views, self.dtype) if dtype is None else dtype
        self._scalings = [
            self._scaling(X, here, name)
            for X, here, name in zip(views.matrices, present, views.names, strict=True)
        ]
        return [
            geometry_of(Z)(Z, here, scaling is not None and scaling.low is None)
            for Z, here, scaling in zip(
                self._scaled(views, present, dtype), present, self._scalings, strict=True
            )
        ]

    def _present(self, X: Matrix, name: str) -> Array:
        present = present_rows(X)
        share = unobserved(X)
        zeros = ~present & (share < 1)
        if not present.any():
            warnings.warn(
                f"view {name!r} has no observed value that is not zero; it gets no weight",
                UserWarning,
                stacklevel=5,
            )
        elif zeros.any():
            warnings.warn(
                f"view {name!r}: {int(zeros.sum())} observations are zero throughout and count as "
                "missing there; add a constant to the view if zeros are values",
                UserWarning,
                stacklevel=5,
            )
        mostly = present & (share > MAX_UNOBSERVED)
        if mostly.any():
            warnings.warn(
                f"view {name!r}: {int(mostly.sum())} observations have over "
                f"{MAX_UNOBSERVED:.0%} of their features unobserved and count as missing there",
                UserWarning,
                stacklevel=5,
            )
        enough = present & ~mostly
        if present.any() and enough.mean() < FEWEST_SHARE:
            warnings.warn(
                f"view {name!r} is observed for {int(enough.sum())} of {len(enough)} observations: "
                "too few for the view to tell much",
                UserWarning,
                stacklevel=5,
            )
        return enough

    def _scaling(self, X: Matrix, present: Array, name: str) -> RobustScaling | None:
        kind = self._asked(name)
        if kind is None or kind == "none":
            size = largest(X)
            if size and not 1e-150 < size < 1e150:
                raise ValueError(
                    f"view {name!r} has a largest entry of {size:g}, whose square is no number to "
                    "compute with; divide the view by a constant, or use scale='auto'"
                )
            return None
        return (fit_scaling if is_streamed(X) else RobustScaling.fit)(X, present, name, kind)

    def _asked(self, name: str) -> str | None:
        """The scaling of one view as the user asked for it."""
        return self.scale.get(name, "auto") if isinstance(self.scale, dict) else self.scale

    def _check_scale(self) -> None:
        """A dict names views and scalings that exist."""
        if not isinstance(self.scale, dict):
            return
        for name, kind in self.scale.items():
            if name not in self.view_names_in_:
                raise ValueError(
                    f"scale names the view {name!r}, and the views are {list(self.view_names_in_)}"
                )
            if kind is not None and kind not in {*SCALINGS, "none"}:
                raise ValueError(
                    f"scale of view {name!r} must be one of {sorted(SCALINGS)} or None, got {kind!r}"
                )

    def _scaled(self, views: Views, present: list[Array], dtype: np.dtype) -> list[Matrix]:
        """z of every view; rows missing there are zero."""
        scaled = []
        for X, here, scaling in zip(views.matrices, present, self._scalings, strict=True):
            if hasattr(X, "scaled"):
                scaled.append(X.scaled(scaling, here, dtype))
                continue
            if is_streamed(X):
                kind = ScaledElsewhere if hasattr(X, "each") else ScaledFile
                scaled.append(kind(X, scaling, here, dtype))
                continue
            if is_tensor(X):
                from manyview.engines.torch.distances import scaled_tensor

                scaled.append(scaled_tensor(X, here, scaling, dtype))
                continue
            scaled.append(scaled_rows(X, scaling, here, dtype))
        return scaled

    def _robust_views(self, geometry: list[Geometry], cluster: Any) -> list[RobustView]:
        rows = [unit_sum_rows(getattr(view, "source", view.Z), view.observed) for view in geometry]
        if cluster is not None:  # a view with unobserved entries is factorised in this process
            rows = [cluster.view(x) if isinstance(x, UnitRows) else x for x in rows]
        return [
            RobustView(x, view.present, Threads(self.n_jobs))
            for x, view in zip(rows, geometry, strict=True)
        ]

    # --- results -------------------------------------------------------------------------------

    def _expose(
        self,
        result: FitResult,
        agreement: ag.Agreement,
        present: list[Array],
        anywhere: Array,
        dtype: np.dtype,
    ) -> None:
        dtype = np.dtype(dtype if self.dtype is None else self.dtype)
        factors = result.factors
        V_star = np.where(anywhere[:, None], factors.consensus, 1 / self.n_clusters_)
        labels = np.where(anywhere, V_star.argmax(axis=1), -1)
        self.labels_ = self._all_rows(labels, empty=-1)
        tell_empty_clusters(labels, self.n_clusters_, stacklevel=4)
        even = 1 / self.n_clusters_
        sure = self._confidence(self._embedding, anywhere)
        self.confidence_ = self._all_rows(in_dtype(sure, dtype), even)
        self.consensus_ = self._all_rows(in_dtype(V_star, dtype), even)
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
        self.history_ = result.history
        self.objective_ = float(result.history["objective"][-1])
        self.n_iter_, self.stop_reason_ = result.n_iter, result.stop
        self._n_features_out = self.n_clusters_

    def _all_rows(self, array: Array, empty: float = 0) -> Array:
        """Rows of the fit as rows of what was given, ``empty`` where no view has the observation."""
        if self._rows is None:
            return array
        whole = np.full((len(self._rows), *array.shape[1:]), empty, dtype=array.dtype)
        whole[self._rows] = array
        return whole

    def _graph_of_all(self, graph: sp.csr_array) -> sp.csr_array:
        if self._rows is None:
            return graph
        edges, place = graph.tocoo(), np.flatnonzero(self._rows)
        i, j = (place[ends] for ends in edges.coords)
        return sp.csr_array((edges.data, (i, j)), shape=(len(self._rows),) * 2)

    def _coordinates(self) -> Array:
        """Where the observations are in the embedding; at 0 if no view has them."""
        return self._all_rows(self._embedding)

    @property
    def reliance_(self) -> Array:
        """Which view each observation relies on: α_s w_is, normalised over views (N×n_views)."""
        product = self.sample_weights_ * self.view_weights_.astype(self.sample_weights_.dtype)
        total = product.sum(axis=1, keepdims=True)
        return np.divide(product, total, out=np.zeros_like(product), where=total > 0)

    def _confidence(self, P: Array, anywhere: Array) -> Array:
        shares = eq.cluster_confidence(eq.cluster_distances(P, self._centres), self._width)
        return np.where(anywhere[:, None], shares, 1 / self.n_clusters_)

    def _warn(self, result: FitResult, anywhere: Array) -> None:
        if result.stop is Stop.MAX_ITER:
            warnings.warn(
                f"RobustWMNMF stopped after {result.n_iter} iterations before the objective settled "
                f"to tol={self.tol:g}; raise max_iter",
                ConvergenceWarning,
                stacklevel=4,
            )
        if not any(view.comparable.any() for view in self._geometry):
            warnings.warn(
                "no view tells observations apart (each is constant): the clusters mean nothing; look "
                "at how the views were read",
                UserWarning,
                stacklevel=4,
            )
        names = self.view_names_in_[self._kept()]
        bent = [
            str(name)
            for name, scaling in zip(names, self._scalings, strict=True)
            if scaling is not None and scaling.kind == "log" and self._asked(name) == "auto"
        ]
        if bent:
            warnings.warn(
                f"views {bent} hold counts or have heavy tails: their logarithms are taken; "
                f"scale={{{bent[0]!r}: 'quantile'}} keeps them as they are",
                UserWarning,
                stacklevel=4,
            )
        repeated = ag.repeated_views(self._agreement.redundancy) if self.learn_view_weights else []
        for group in repeated:
            alike = [str(name) for name in names[group]]
            warnings.warn(
                f"views {alike} are near-duplicates (their distances correlate by "
                f"{ag.REPEATED:g} or more even between neighbours); they share one weight",
                UserWarning,
                stacklevel=4,
            )
        if not anywhere.all():
            warnings.warn(
                f"{int((~anywhere).sum())} observations are missing in every view that has weight "
                f"(the first is row "
                f"{int(np.flatnonzero(~anywhere)[0])}); they get the label -1",
                UserWarning,
                stacklevel=4,
            )

    @property
    def partial_fit(self) -> Any:
        """Not available; `WMNMF` has it."""
        raise AttributeError(
            "RobustWMNMF has no partial_fit: its weights and its graph come from all observations at "
            "once; use WMNMF for a stream, or fit again and place new observations by predict"
        )

    # --- new observations ----------------------------------------------------------------------

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Fit, and return ``labels_`` (as a tensor, if the views are tensors)."""
        return self._like_input(super().fit_predict(X, y, **kwargs), X)

    def transform(self, X: Any) -> Array:
        """V* of observations (rows sum to 1), placed by their fitted neighbours and U.

        What ``consensus_`` is to the fitted ones; for how sure a label is, see `predict_confidence`.
        """
        views = self._read(X, reset=False)
        with threadpool_limits(1):
            V_star, _ = self._place(views)
        dtype = np.dtype(views.dtype if self.dtype is None else self.dtype)
        return self._like_input(self._named_rows(in_dtype(V_star, dtype), views), X)

    def predict(self, X: Any) -> Array:
        """Cluster of each observation; −1 where every view is missing."""
        views = self._read(X, reset=False)
        with threadpool_limits(1):
            V_star, anywhere = self._place(views)
        return self._like_input(np.where(anywhere, V_star.argmax(axis=1), -1), X)

    def predict_confidence(self, X: Any) -> Array:
        """Confidence of each observation in each cluster (rows sum to 1), as in ``confidence_``."""
        views = self._read(X, reset=False)
        with threadpool_limits(1):
            *_, P, anywhere = self._place_all(views)
        dtype = np.dtype(views.dtype if self.dtype is None else self.dtype)
        return self._like_input(in_dtype(self._confidence(P, anywhere), dtype), X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean reconstruction error of the present rows, in units of each view's spread.

        More clusters reconstruct better: `select_n_clusters` chooses their number, not a grid search.
        """
        views = self._read(X, reset=False)
        with threadpool_limits(1):
            error = self._place_all(views)[1]
        if error is None:
            raise ValueError("score needs an observation that some view describes; all are missing")
        return -error

    def _place(self, views: Views) -> tuple[Array, Array]:
        V_star, _, _, anywhere = self._place_all(views)
        return V_star, anywhere

    def _place_all(self, views: Views) -> tuple[Array, float | None, Array, Array]:
        """V*, the mean error if any row is there, the embedding, and who can be placed at all."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            present = self._presence(views)
        Zs = self._scaled(views, present, working_dtype(views, self.dtype))
        observed = [~np.isnan(Z) if has_nan(Z) else None for Z in Zs]
        Zs = [Z if o is None else np.where(o, Z, 0) for Z, o in zip(Zs, observed, strict=True)]
        for view, o, name in zip(self._geometry, observed, views.names, strict=True):
            if o is not None and isinstance(view, FileGeometry):
                raise ValueError(
                    f"view {name!r} has unobserved (NaN) entries inside rows; the model measures its "
                    "distances along leading directions (it was too large to hold), which need whole "
                    "rows: fill them in, or leave out the whole row"
                )
        fitted, known = self._geometry, self._embedding
        if self._repeats is not None:
            first, _ = self._repeats
            fitted, known = [view.distinct(*self._repeats) for view in fitted], known[first]
        P, w = ag.place(
            fitted,
            [view.coordinates(Z) for view, Z in zip(fitted, Zs, strict=True)],
            observed,
            present,
            self._agreement,
            known,
            self.n_neighbors,
        )
        rows = [
            RobustView(unit_sum_rows(Z, o), here)
            for Z, o, here in zip(Zs, observed, present, strict=True)
        ]
        for new, tau in zip(rows, self._taus, strict=True):
            new.tau = tau
        V, V_star = place_robust(
            rows, self._result, self._centres, w, P, self.consensus_weight, self.cluster_weight
        )
        anywhere = self._counted(present, self._agreement.alpha)
        errors = [
            (view.residuals(U, Vs) / view.tau)[here].mean()
            for view, U, Vs, here in zip(rows, self._result.U, V, present, strict=True)
            if here.any()
        ]
        V_star = np.where(anywhere[:, None], V_star, 1 / self.n_clusters_)
        return V_star, float(np.mean(errors)) if errors else None, P, anywhere

    def impute(self, view: str | int) -> Array:
        """The fitted data of a view with what is absent filled in from its parts: U v*.

        The data are those of the fit, whatever became of the arrays since (views of over 256 MiB in
        all are not copied: if they have changed, that is an error). Rows where the view is missing are
        filled whole, at the size of a typical row; unobserved entries of other rows at the size of
        their own row. Observed entries are kept, and a feature that no row has stays NaN. Views of
        counts come back dense, as shares times the row's (or the mean) total.
        """
        check_is_fitted(self)
        given = self._view_position(view)
        columns = None if self._columns is None else self._columns[given]
        shape = (len(self.labels_), self._view_widths[given])
        if columns is not None and not columns.any():
            return np.full(shape, np.nan, dtype=self.consensus_.dtype)
        filled = self._imputed(self._kept().index(given), self.components_[given])
        if columns is None or columns.all():
            return filled
        whole = np.full(shape, np.nan, dtype=filled.dtype)
        whole[:, columns] = filled
        return whole

    def _imputed(self, s: int, parts: Array) -> Array:
        """`impute` of the s-th of the fitted views, whose parts these are (of all columns given)."""
        geometry, X, scaling = self._geometry[s], self._data[s], self._scalings[s]
        name = self.view_names_in_[self._kept()[s]]
        if self._columns is not None:
            parts = parts[:, self._columns[self._kept()[s]]]
        if is_streamed(X):
            raise ValueError(
                f"{X.label} is read from its file by rows and has nothing missing but rows of zeros; "
                "impute works on views in memory"
            )
        if self._digests is not None and self._digests[s] not in (None, digest(X)):
            raise ValueError(
                f"view {name!r} was changed after the fit (it is too large to be copied, and the model "
                "reads it where it is); fit again, or put its numbers back"
            )
        dense = X.toarray() if sp.issparse(X) else X
        present = self._all_rows(geometry.present)
        guess = self.consensus_.astype(float) @ parts.astype(float)
        known = ~np.isnan(dense)
        zeros = ~present & ~np.where(known, dense, 0).any(axis=1)
        known &= ~zeros[:, None]  # rows of zeros count as missing
        Z = dense if scaling is None else scaling.apply(dense.astype(float))
        # A row of z is as large, against its U v*, as its observed entries are.
        covered = np.where(known, guess, 0).sum(axis=1)
        size = np.divide(
            np.where(known, Z, 0).sum(axis=1), covered, out=np.zeros(len(Z)), where=covered > 0
        )
        typical = size[present].mean() if present.any() else 1.0
        size = np.where(size > 0, size, typical)[:, None]
        filled = size * guess if scaling is None else scaling.undo(size * guess)
        if scaling is not None and scaling.low is None:
            totals = np.nansum(np.abs(dense), axis=1)
            mean_total = totals[present].mean() if present.any() else 1.0
            filled = filled * np.where(totals > 0, totals, mean_total)[:, None]
        filled[:, ~known.any(axis=0)] = np.nan
        # What was observed comes back as it was, whatever the precision of the fit.
        return np.where(known, dense, filled).astype(np.result_type(dense, self.consensus_))

    def _view_position(self, view: str | int) -> int:
        names = list(self.view_names_in_)
        if view in names:
            return names.index(view)
        if isinstance(view, Integral) and 0 <= int(view) < len(names):
            return int(view)
        raise ValueError(f"view must be one of {names} or its position, got {view!r}")

    # --- scikit-learn --------------------------------------------------------------------------

    #: Which observations some view has, where not all; the fit is of these.
    _rows: Array | None = None
    #: Checksums of the user's own arrays, where views are too large to be copied.
    _digests: Any = None
    #: Models of earlier versions, and fits without repeated observations.
    _repeats: tuple[Array, Array | None] | None = None
    _zero_is_missing = True
    _reads_files = True

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


def geometry_of(Z: Matrix) -> type[Geometry]:
    if is_streamed(Z):
        return FileGeometry
    if isinstance(Z, np.ndarray) or sp.issparse(Z):
        return Geometry
    from manyview.engines.torch.distances import TorchGeometry
    from manyview.engines.torch.streamed import StreamedGeometry

    return TorchGeometry if is_tensor(Z) else StreamedGeometry


def start_labels(
    P: Array,
    anywhere: Array,
    n_clusters: int,
    rng: np.random.Generator,
    repeats: Repeats | None,
) -> Array:
    """k-means of the embedding P of distinct observations; 0 for those that are nowhere.

    ``anywhere`` tells of all observations, copies included.
    """
    here = anywhere if repeats is None else anywhere[repeats.first]
    start = namespace(P).zeros_like(P[:, 0], dtype=namespace(P).int64)
    mass = None if repeats is None or repeats.mass is None else repeats.mass[here]
    # One in twenty fits of the digits met a poor local minimum with 10 starts.
    if repeats is not None and (is_tensor(P) or here.sum() < n_clusters):
        # On a device rows have no mass: all copies take part.
        found = kmeans(P[repeats.of[anywhere]], n_clusters, rng, n_init=30)
        start[repeats.of[anywhere]] = found
        return start
    start[here] = kmeans(P[here], n_clusters, rng, 30, mass)
    return start


def unit_sum_rows(Z: Matrix, observed: Array | None) -> Any:
    """x: rows of z with unit L1 norm, over all features where some are unobserved."""
    if is_streamed(Z):
        return unit_rows_of_file(Z)
    if hasattr(Z, "give_rows_unit_sums"):
        return Z.give_rows_unit_sums()
    if is_tensor(Z):
        from manyview.engines.torch.rows import TorchView

        total = abs(Z).sum(axis=1, keepdims=True)
        return TorchView(Z / namespace(Z).where(total > 0, total, 1), Z.device)
    total = np.ravel(abs(Z).sum(axis=1))
    if observed is not None:
        total = total * Z.shape[1] / np.maximum(observed.sum(axis=1), 1)
    scale = np.divide(1, total, out=np.zeros_like(total), where=total > 0)
    if observed is None:
        return UnitRows(Z, scale)
    return MaskedView(np.where(observed, Z * scale[:, None], np.nan))
