"""`WMNMF`, the paper's method as a scikit-learn estimator: store, validate, call fit, expose."""

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
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from manyview._arrays import namespace, on_host
from manyview._types import Array, Factors, FitResult, Matrix, Stop, Views, storable
from manyview.engines.affinity import AFFINITIES, has_nan, nearest_neighbors
from manyview.engines.dask.cluster import cluster_for
from manyview.engines.numpy.masked import MaskedView, least_entries, mean_error, reaches, stand_ins
from manyview.engines.numpy.rows import Rows
from manyview.engines.numpy.sources import Scaled, is_streamed, resident
from manyview.engines.threads import Threads
from manyview.maths import equations as eq
from manyview.maths.agreement import reliance
from manyview.maths.solvers import SOLVERS
from manyview.regularizers import Graph, NoPenalty, Orthogonal, Sparse, make_regularizer
from manyview.storage.checkpoint import Checkpoint, digest

from . import stream
from .assign import ASSIGNMENTS, assign, assign_new
from .base import MultiViewEstimator, generator, in_dtype, on_host_factors, working_dtype
from .distinct import row_kinds, tell_empty_clusters, tell_few_kinds
from .fit import run, warn_about
from .initialize import INITS, check_lengths, starting_factors, starting_weights
from .observed import observed_somewhere, spread_out
from .scaling import SCALES, SHIFTING, fit_scaling, tell_rounded

#: Dense views of more bytes than this are scaled when read, not copied.
COPY_LIMIT = 2**28


@storable
class WMNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MultiViewEstimator):
    """Weighted multi-view nonnegative matrix factorisation (Liu & Lin).

    Several nonnegative views X_s (N×M_s) of the same N observations are factorised together,
    X_s ≈ V_s U_sᵀ, with a consensus V*, a weight α_s for every view and a weight w_is for every
    observation in every view, minimising::

        Σ_s ‖Diag(w_s)(X_s − V_s U_sᵀ)‖² + Σ_s α_s^p ‖V_s Q_s − V*‖² + β Σ_s g(V_s)

    where Q_s holds the column sums of U_s and g is a regulariser, by default the Laplacian of the
    view's nearest-neighbour graph. Clusters are read from V*. The defaults are the recipe that
    reproduces the paper; its two rounds are early stopping (see ``max_iter``).

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, optional
        Number K of columns of U, V and V*; ``n_clusters`` if not given.
    p : float, default=5
        At least 1; small values make the view weights sparse (1: a single view wins).
    beta : float, default=0.01
        Weight of the regulariser. The default suits the graph; "sparse" and "orthogonal" may need
        less, above all with HALS, where no rescaling undoes their pull towards zero.
    regularizer : {"graph", "sparse", "orthogonal"}, None or object, default="graph"
        g, or any object with ``prepare(X)``, ``value(V)``, ``split(V)`` (`manyview.regularizers`).
    n_neighbors : int, default=5
        Neighbours of an observation in its view's graph.
    affinity : {"binary", "heat", "cosine"}, default="binary"
        Edge weights; the width of "heat" is automatic. For a fixed width or mutual neighbours, pass
        ``regularizer=Graph(affinity="heat", width=..., mutual=True)``.
    scale : {"sum", "minmax", "standard", "tfidf", "sqrt"} or None, default="sum"
        How views are made comparable; "minmax" and "standard" accept negative values.
    solver : {"multiplicative", "hals"}, default="multiplicative"
        The paper's rule, or exact coordinate steps on the well-posed form in which every column
        of U sums to 1 (fewer iterations to the same objective, each a little dearer).
    init : {"gnmf", "random", "nndsvd"} or dict, default="gnmf"
        Starting factors; a dict holds "components" (K×M_s each) and "coefficients" (N×K each).
    learn_view_weights, learn_sample_weights : bool, default=True
        Whether α and w are learned; otherwise they stay at 1/n_views.
    rescale : bool, default=True
        Give U unit column sums after each view's inner loop. Part of the recipe, though it may
        raise the objective. HALS keeps unit sums always.
    max_iter : int, default=2
        Rounds. More rounds lower the objective and, on real data, tend to collapse the view
        weights onto one view and to worsen the clusters.
    inner_iter : int, default=30
        Iterations per view and round.
    tol : float, default=0
        Stop when a round changes the objective by less than this share; 0 does all rounds.
    n_init : int, default=1
        Number of starts. The consensus matrices of all starts are set side by side and clustered
        once; the other attributes describe the first start.
    assign_labels : {"spectral", "njw", "kmeans", "argmax"}, default="spectral"
        How clusters are read from the consensus; "njw" (unit rows) is often a little better than
        the paper's random-walk "spectral".
    missing : {"error", "mask"}, default="error"
        "mask": NaN entries are unobserved and do not count, in the errors, the scaling or the
        distances between rows. Weights compare errors and gaps by what is observed: an unobserved
        entry counts like an observed one of its view on average. An observation without enough
        values in a view (fewer than K, and less than half) gets weight 0 there, and coefficients from
        its neighbours in other views. Columns, views and observations without any value are left out
        with a warning and change nothing: their weights, components and coefficients are 0, the
        label is −1. A view observed for too few rows (below 10 K and half of them, or below 5%) is
        told, and gets no more than that share of the smallest weight of the others.
    views : sequence of int, optional
        If the input is one 2-D array: the number of columns of each view. ``None``: one view.
    engine : {"numpy", "torch", "dask"}, default="numpy"
        Where the computation runs. "torch" (extra ``torch``): for GPUs; NumPy in, NumPy out; the
        fitted model lives on the host, and so does `predict`. "dask" (extra ``dask``): on the
        workers of the current `distributed.Client`, or of a local cluster started for the fit.
        Views may then be dask arrays or data frames cut by rows, whose blocks stay on the workers;
        the factors pass through this process once per view and round (`docs/scaling.md`).
    device : str, default="auto"
        With engine="torch": "cpu", "cuda" (or "cuda:1", …), or "auto", a GPU where there is one and
        the views are large enough to pay for the way there.
    n_jobs : int, optional
        Threads for the passes over the rows; ``None`` takes the cores this process may use. The
        results are the same for any number.
    dtype : dtype, optional
        Precision of the computation. ``None`` computes in float64 (in float32 if the input is
        float32 and larger than 1 GiB) and returns the input's precision.
    checkpoint : path, or (path, seconds), optional
        Write the state of the fit to this file every minute (or so many seconds). A fit that finds
        the file goes on from there to the same result, bit for bit; when it is done the file is
        removed. A checkpoint of other data or settings is refused.
    random_state : int, RandomState, Generator or None
        Seed of every random draw. Results do not depend on the number of threads.
    verbose : int, default=0
        1 prints a line per round, 2 one per iteration.
    callback : callable, optional
        Called after every iteration with a dict of the round, view, iteration, objective terms and
        total number of iterations; returning True stops the fit.

    Attributes
    ----------
    labels_ : ndarray (N,); −1 for observations without any value
    consensus_ : ndarray (N, K), or (N, K·n_init)
    view_weights_ : ndarray (n_views,), α
    sample_weights_ : ndarray (N, n_views), w
    reliance_ : ndarray (N, n_views), α_s w_is normalised over views
    components_ : list of ndarray (K, M_s), the U_s transposed
    coefficients_ : list of ndarray (N, K), the V_s
        ``coefficients_[s] @ components_[s]`` approximates the *scaled* view s, whose rows sum to 1
        on average (with ``scale=None`` the view itself). The model keeps the scaled views, in
        which unseen rows look for their neighbours.
    objective_ : float
    history_ : dict of arrays
        One entry per iteration: round, view (−1: the weights), iteration, and every objective term.
    n_iter_ : int, rounds done
    stop_reason_ : Stop
    view_names_in_, view_feature_names_in_, sample_names_in_, n_features_in_

    References
    ----------
    S. S. Liu and L. Lin, Adaptive Weighted Multi-View Clustering.

    Examples
    --------
    >>> import manyview as mv
    >>> digits = mv.datasets.load_handwritten(views="paper")
    >>> model = mv.WMNMF(n_clusters=10, random_state=0)
    >>> labels = model.fit_predict(digits.views)
    >>> model.view_weights_.round(2)
    array([0.24, 0.29, 0.21, 0.25])
    """

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

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "p": [Interval(Real, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions(set(AFFINITIES))],
        "scale": [StrOptions(set(SCALES)), None],
        "solver": [StrOptions(set(SOLVERS))],
        "init": [StrOptions(set(INITS)), dict],
        "learn_view_weights": ["boolean"],
        "learn_sample_weights": ["boolean"],
        "rescale": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "inner_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions(set(ASSIGNMENTS))],
        "missing": [StrOptions({"error", "mask"})],
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
        n_clusters: int = 8,
        *,
        n_components: int | None = None,
        p: float = 5.0,
        beta: float = 0.01,
        regularizer: Any = "graph",
        n_neighbors: int = 5,
        affinity: str = "binary",
        scale: str | None = "sum",
        solver: str = "multiplicative",
        init: Any = "gnmf",
        learn_view_weights: bool = True,
        learn_sample_weights: bool = True,
        rescale: bool = True,
        max_iter: int = 2,
        inner_iter: int = 30,
        tol: float = 0.0,
        n_init: int = 1,
        assign_labels: str = "spectral",
        missing: str = "error",
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
        self.n_components = n_components
        self.p = p
        self.beta = beta
        self.regularizer = regularizer
        self.n_neighbors = n_neighbors
        self.affinity = affinity
        self.scale = scale
        self.solver = solver
        self.init = init
        self.learn_view_weights = learn_view_weights
        self.learn_sample_weights = learn_sample_weights
        self.rescale = rescale
        self.max_iter = max_iter
        self.inner_iter = inner_iter
        self.tol = tol
        self.n_init = n_init
        self.assign_labels = assign_labels
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

    @classmethod
    def nmf_w1(cls, n_clusters: int = 8, **params: Any) -> WMNMF:
        """The paper's ablation NMF-W1: observation weights stay equal."""
        return cls(n_clusters, **({"learn_sample_weights": False} | params))

    @classmethod
    def nmf_w2(cls, n_clusters: int = 8, **params: Any) -> WMNMF:
        """The paper's ablation NMF-W2: equal observation weights and no regulariser."""
        return cls(n_clusters, **({"learn_sample_weights": False, "beta": 0.0} | params))

    def fit(self, X: Any, y: Any = None) -> WMNMF:
        """Factorise the views and cluster their consensus. ``y`` is ignored."""
        self._validate_params()
        # One thread: the sums inside BLAS and k-means differ between thread counts.
        with (
            threadpool_limits(1),
            self._whole_or_nothing(),
            cluster_for(self.engine) as cluster,
        ):
            views = self._read(X, reset=True)
            anywhere = observed_somewhere(views.matrices)
            self._check_n_clusters(self.n_clusters, int(anywhere.sum()))
            n_components = self.n_components or self.n_clusters
            self._check_argmax(n_components)
            self._fit(views, n_components, anywhere, cluster)
        return self

    def _check_argmax(self, n_components: int) -> None:
        if self.assign_labels == "argmax" and n_components != self.n_clusters:
            raise ValueError(
                "assign_labels='argmax' reads one cluster per component, but "
                f"n_components={n_components} and n_clusters={self.n_clusters}; make them equal"
            )
        if self.assign_labels == "argmax" and self.n_init > 1:
            raise ValueError(
                f"assign_labels='argmax' needs one start (components of {self.n_init} starts do not "
                "match); use n_init=1 or another assignment"
            )

    def partial_fit(self, X: Any, y: Any = None) -> WMNMF:
        """Learn from one more batch of observations; ``y`` is ignored.

        The first batch is fitted as by `fit` (also where `fit` was called before, whose data then are
        the first batch). For later ones U and the view weights move by what is remembered of all
        batches, the older the less; scaling stays that of the first batch. ``labels_``,
        ``consensus_`` and the other attributes of observations are those of the latest batch, its
        labels by the vote of the nearest of some observations of every cluster that are remembered.
        The result is near that of a fit of all observations, not equal to it (`docs/scaling.md` says
        how near).
        """
        self._validate_params()
        if self.n_init > 1 or self.missing == "mask":
            raise ValueError(
                "partial_fit needs n_init=1 and missing='error', got "
                f"n_init={self.n_init} and missing={self.missing!r}"
            )
        if not hasattr(self, "labels_"):
            self.fit(X)
        else:
            self._check_same_shape()
            views = self._read(X, reset=False)
            with threadpool_limits(1), self._whole_or_nothing():
                stream.add_batch(self, views)
        return self

    def _check_same_shape(self) -> None:
        fitted, asked = len(self.components_[0]), self.n_components or self.n_clusters
        if fitted != asked:
            raise ValueError(
                f"the batches before were fitted with {fitted} components, and now {asked} are asked "
                "for (n_clusters or n_components); set it back, or call fit to start anew"
            )

    def _fit(self, views: Views, n_components: int, anywhere: Array, cluster: Any = None) -> None:
        self._stream = None
        rng = generator(self.random_state)
        checkpoint = Checkpoint(self.checkpoint, self, views, rng)
        if not anywhere.all():
            self._tell_nowhere(anywhere)
            views = _rows(views, anywhere)
        if self.engine == "torch":
            Xs, scalings = self._on_device(views)
        else:
            scalings = fit_scaling(views, self.scale)
            Xs = self._fitted_views = self._scaled(views, scalings)
            self._check_finite(Xs, views.names)
        self._tell_rounded(views)
        if cluster is not None:
            Xs = self._on_workers(Xs, views, cluster)
        regularizer = make_regularizer(self.regularizer, self.n_neighbors, self.affinity)
        terms = self._prepare(regularizer, Xs, checkpoint)
        start_terms = terms
        if self.init == "gnmf" and not isinstance(regularizer, Graph):
            graph = Graph(self.n_neighbors, self.affinity)
            start_terms = self._prepare(graph, Xs, checkpoint)
        solver = SOLVERS[self.solver]()
        fill = self._filling(Xs)
        Xs = self._masked(Xs, views.names)
        self._tell_scarce(Xs, views.names, n_components)
        self._scalings = scalings
        unit = self._output_unit
        kinds = row_kinds(views.matrices, self.n_clusters)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters, stacklevel=3)

        def start_and_run(i: int) -> FitResult:
            start = starting_factors(
                Xs,
                self._observed_init(anywhere),
                n_components,
                start_terms,
                solver,
                self.p,
                rng,
                unit,
                fill,
                Threads(self.n_jobs),
                lambda name, compute: checkpoint.keep(f"start {i} {name}", compute),
            )
            return self._run(Xs, start, terms, solver, fill=fill, checkpoint=checkpoint)

        fits = []
        for i in range(self.n_init):
            fits.append(checkpoint.keep(f"fit {i}", partial(start_and_run, i)))
            checkpoint.forget(f"start {i} ")
            if fits[-1].stop is Stop.CALLBACK:
                break
        warn_about(fits[0], views.names, self.tol)
        consensus = [fit.factors.consensus for fit in fits]
        stacked = namespace(consensus[0]).hstack(consensus)
        labels = checkpoint.keep(
            "labels",
            lambda: (
                assign(stacked, self.n_clusters, self.assign_labels, rng)
                if kinds is None
                else kinds
            ),
        )
        if self.engine == "torch":  # what the model keeps: saving and predicting need no GPU
            terms = [
                term.to_host(X) if hasattr(term, "to_host") else term
                for term, X in zip(terms, self._fitted_views, strict=True)
            ]
            stacked, labels = on_host(stacked), on_host(labels)
            fits = [replace(fit, factors=on_host_factors(fit.factors)) for fit in fits]
        for term, X in zip(terms, self._fitted_views, strict=True):
            if cluster is not None and hasattr(term, "X"):
                term.X = X  # the workers may be gone when unseen rows come
        self._terms, self._solver, self._stacked = terms, solver, stacked
        self._starts = [fit.factors for fit in fits]
        self._entry_errors = [fit.entry_errors for fit in fits]
        if kinds is None:
            tell_empty_clusters(labels, self.n_clusters, stacklevel=3)
        self._digests = [digest(X.X) if _is_live(X) else None for X in self._fitted_views]
        self._expose(fits[0], stacked, labels, views.dtype, anywhere)
        checkpoint.finish()

    def _on_device(self, views: Views) -> tuple[list[Any], list]:
        """The views where the computation will run, moved once and scaled there."""
        from manyview.engines.torch.device import choose, precision
        from manyview.engines.torch.rows import device_views

        self._refuse_holes(list(views.matrices), views.names)
        for X in views.matrices:
            if is_streamed(X):
                raise ValueError(
                    f"{X.label} is read from its file by rows, which engine='numpy' does; use that, "
                    "or load the view into memory"
                )
        device = choose(self.device, sum(int(np.prod(X.shape)) for X in views.matrices))
        dtype = precision(device, self.dtype, working_dtype(views, self.dtype))
        Xs, scalings = device_views(views, lambda raw: fit_scaling(raw, self.scale), device, dtype)
        self._fitted_views = self._scaled(views, scalings)  # unseen rows look for neighbours here
        self._check_finite(Xs, views.names)
        return Xs, scalings

    def _on_workers(self, Xs: list[Matrix], views: Views, cluster: Any) -> list[Any]:
        """The scaled views as row blocks on the workers of a cluster."""
        self._refuse_holes(Xs, views.names)
        return [cluster.view(X) for X in Xs]

    def _prepare(self, regularizer: Any, Xs: list[Any], checkpoint: Checkpoint) -> list[Any]:
        if not isinstance(regularizer, Graph):
            own = not isinstance(regularizer, Sparse | Orthogonal | NoPenalty)
            if self.engine == "torch" and own and not getattr(regularizer, "takes_tensors", False):
                raise ValueError(
                    f"regularizer {type(regularizer).__name__} would be handed tensors by "
                    "engine='torch'; set takes_tensors = True on it if it can, or use engine='numpy'"
                )
            return [regularizer.prepare(resident(X)) for X in Xs]
        terms = []
        for s, X in enumerate(Xs):
            find = partial(lambda X: regularizer.edges(resident(X)), X)
            # The term holds the view as it is read, not a scaled copy of a large one.
            terms.append(regularizer.term(X, *checkpoint.keep(f"graph {s}", find)))
        return terms

    def _refuse_holes(self, Xs: list[Matrix], names: Any) -> None:
        for X, name in zip(Xs, names, strict=True):
            if has_nan(X):
                raise ValueError(
                    f"view {name!r} has unobserved (NaN) entries, which WMNMF takes with "
                    "engine='numpy' only; use that, or fill them in"
                )

    def _run(
        self, Xs: list[Matrix], start: Factors, terms: list, solver: Any, **kwargs: Any
    ) -> FitResult:
        settings: dict[str, Any] = {
            "p": self.p,
            "beta": self.beta,
            "max_iter": self.max_iter,
            "inner_iter": self.inner_iter,
            "tol": self.tol,
            "rescale": self.rescale,
            "learn_view_weights": self.learn_view_weights,
            "learn_sample_weights": self.learn_sample_weights,
            "callback": self._callback,
            "threads": Threads(self.n_jobs),
        }
        return run(Xs, start, terms, solver, **(settings | kwargs))

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

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Fit, and return ``labels_`` (as a tensor, if the views are tensors)."""
        return self._like_input(super().fit_predict(X, y, **kwargs), X)

    def transform(self, X: Any) -> Array:
        """Consensus coefficients of observations, given the fitted U and view weights.

        Every row is linked to its nearest fitted rows in each view, so that the graph term is
        kept. For the fitted observations themselves this is close to ``consensus_``, not equal:
        that one was found together with U.
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
            placed = self._place(_rows(views, anywhere))
        return spread_out(np.hstack([factors.consensus for factors in placed]), anywhere, 0)

    def predict(self, X: Any) -> Array:
        """Cluster of each observation: the vote of its nearest fitted neighbours in the consensus.

        −1 where every view is missing.
        """
        views = self._read(X, reset=False)
        new = self._transform(views)
        with threadpool_limits(1):
            known = stream.remembered_labels(self)
            labels = assign_new(new, self._stacked, known, self.assign_labels)
        anywhere = observed_somewhere(views.matrices)
        return self._like_input(labels if anywhere.all() else np.where(anywhere, labels, -1), X)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared reconstruction error of the scaled views (higher is better)."""
        views = self._read(X, reset=False)
        anywhere = observed_somewhere(views.matrices)
        if not anywhere.any():
            raise ValueError("score needs an observation that some view describes; all are missing")
        views = _rows(views, anywhere)
        Xs = self._masked(self._scaled(views, self._scalings), views.names)
        with threadpool_limits(1):
            factors = self._place(views)[0]
            errors = [
                (X if isinstance(X, MaskedView) else Rows(X, self._solver)).all_residuals(U, V)
                for X, U, V in zip(Xs, factors.U, factors.V, strict=True)
            ]
        # Per observed entry: what is missing is not explained without error.
        means = [mean_error(X, r) * X.shape[1] for X, r in zip(Xs, errors, strict=True)]
        return -float(np.mean(means))

    def _place(self, views: Views) -> list[Factors]:
        """The fit's loop with U and α kept: V, V* and w of new rows, for every start."""
        self._check_unchanged()
        Xs = self._scaled(views, self._scalings)
        placed = []
        known_errors = self._entry_errors or [None] * len(self._starts)
        for fitted, entry_errors in zip(self._starts, known_errors, strict=True):
            terms, V0 = [], []
            # Where rescaling lets U absorb a penalty on V (it does not for a graph, whose links pull
            # towards known rows), the same penalty with U fixed would crush the coefficients.
            linked = all(hasattr(g, "link") for g in self._terms)
            for X, seen, g, V in zip(Xs, self._fitted_views, self._terms, fitted.V, strict=True):
                term = g.link(resident(X), V) if hasattr(g, "link") else g
                terms.append(term)
                V0.append(
                    _first_coefficients(resident(X), resident(seen), V, term, self.n_neighbors)
                )
            fill = self._filling(Xs, fitted.V)
            if fill is not None:
                V0 = [fill(s, V) for s, V in enumerate(V0)]
            q = [U.sum(axis=0) for U in fitted.U]
            V_star = eq.consensus(V0, q, fitted.alpha, self.p)
            masked = self._masked(Xs, views.names)
            start = Factors(fitted.U, tuple(V0), V_star, fitted.alpha, starting_weights(masked))
            result = self._run(
                masked,
                start,
                terms,
                self._solver,
                beta=self.beta if linked or self._solver.unit_sums or not self.rescale else 0.0,
                learn_basis=False,
                learn_view_weights=False,
                tol=0.0,
                callback=None,
                fill=fill,
                entry_errors=entry_errors,
            )
            placed.append(result.factors)
        return placed

    def _check_unchanged(self) -> None:
        """Views too large to be copied are read where they are: they must be those of the fit."""
        for X, mark, s in zip(self._fitted_views, self._digests or [], self._kept(), strict=False):
            if mark is not None and digest(X.X) != mark:
                raise ValueError(
                    f"view {self.view_names_in_[s]!r} was changed after the fit (it is too large to be "
                    "copied, and the model reads it where it is); fit again, or put its numbers back"
                )

    def _scaled(self, views: Views, scalings: list) -> list[Matrix]:
        dtype = working_dtype(views, self.dtype)
        size = sum(np.prod(X.shape) for X in views.matrices if not sp.issparse(X)) * dtype.itemsize
        copied = size <= COPY_LIMIT or self._allows_missing()
        # Scaled in float64, since the raw numbers may not fit float32; then cast.
        scaled = [
            scaling.apply(X.astype(np.float64, copy=False)).astype(dtype, copy=False)
            if copied and not is_streamed(X)
            else Scaled(X, scaling, dtype)
            for X, scaling in zip(views.matrices, scalings, strict=True)
        ]
        return scaled

    def _tell_rounded(self, views: Views) -> None:
        if (
            self.dtype is not None
            and np.dtype(self.dtype) == np.float32
            and self.scale not in SHIFTING
        ):
            for X, name in zip(views.matrices, views.names, strict=True):
                tell_rounded(X, name, stacklevel=4)

    def _check_finite(self, scaled: list[Any], names: Any) -> None:
        for X, name in zip(scaled, names, strict=True):
            if self.missing == "error" and not np.isfinite(X.sum()):
                raise ValueError(
                    f"view {name!r} has entries too large or too small to compute with; divide it "
                    "by a constant"
                )

    @property
    def _output_unit(self) -> float:
        """With scale=None results are in the units of the data; otherwise in those of the scaled views."""
        return self._scalings[0].unit if self.scale is None else 1.0

    def _masked(self, Xs: list[Matrix], names: Any) -> list[Any]:
        """Views with unobserved entries as `MaskedView`; the others as they are."""
        holes = [has_nan(X) for X in Xs]
        if any(holes) and self.solver == "hals":
            raise ValueError(
                f"view {names[holes.index(True)]!r} has unobserved (NaN) entries, which "
                "solver='hals' does not take; use solver='multiplicative' or RobustWMNMF"
            )
        n_components = self.n_components or self.n_clusters
        return [
            MaskedView(X, least_entries(X.shape[1], n_components)) if hole else X
            for X, hole in zip(Xs, holes, strict=True)
        ]

    def _observed_init(self, anywhere: Array) -> Any:
        """The user's own start without what nobody observed."""
        init = self.init
        whole = self._columns is None and anywhere.all()
        if whole or not isinstance(init, dict) or not {"components", "coefficients"} <= set(init):
            return init
        masks = self._columns or [np.ones(m, dtype=bool) for m in self._view_widths]
        check_lengths(init, len(masks))
        kept = self._kept()
        return {
            "components": [np.asarray(init["components"][s])[:, masks[s]] for s in kept],
            "coefficients": [np.asarray(init["coefficients"][s])[anywhere] for s in kept],
        }

    def _tell_nowhere(self, anywhere: Array) -> None:
        warnings.warn(
            f"{int((~anywhere).sum())} observations have no value in any view (the first is row "
            f"{int(np.flatnonzero(~anywhere)[0])}); they are left out and get the label -1",
            UserWarning,
            stacklevel=4,
        )

    def _tell_scarce(self, Xs: list[Any], names: Any, n_components: int) -> None:
        for s in np.flatnonzero(reaches(Xs, n_components) < 1):
            X = Xs[s]
            warnings.warn(
                f"view {names[s]!r} is observed for {int(X.here.sum())} of {X.shape[0]} observations "
                f"({X.counts.sum() / np.prod(X.shape):.1%} of its entries), too few to learn "
                f"{n_components} parts from: it cannot lead, and its weight is small; leave it out, "
                "or ask for fewer clusters",
                UserWarning,
                stacklevel=4,
            )

    def _filling(self, Xs: list[Matrix], known: Any = None) -> Any:
        """How rows a view does not observe get coefficients: from their neighbours in other views.

        ``known`` holds the coefficients of the fitted rows when ``Xs`` are unseen ones.
        """
        if not any(has_nan(X) for X in Xs):
            return None
        n_components = self.n_components or self.n_clusters
        stands = stand_ins(Xs, self._fitted_views, self.n_neighbors, n_components)

        def fill(s: int, V: Array) -> Array:
            B = stands[s]
            if B is None:
                return V
            rows = np.diff(B.indptr) > 0
            return np.where(rows[:, None], B @ (V if known is None else known[s]), V)

        return fill

    def _allows_missing(self) -> bool:
        return self.missing == "mask"

    def _allows_negative(self) -> bool:
        return self.scale in SHIFTING

    @property
    def _callback(self) -> Any:
        if not self.verbose and self.callback is None:
            return None

        def report(info: dict[str, Any]) -> Any:
            info["total"] *= self.n_init
            kept = self._kept()
            last = info["iteration"] == self.inner_iter and info["view"] == len(kept) - 1
            info["view"] = kept[info["view"]]
            if self.verbose > 1 or (self.verbose and last):
                print(
                    f"round {info['round']} view {self.view_names_in_[info['view']]} "
                    f"iteration {info['iteration']}: objective {info['objective']:.6g}"
                )
            return self.callback(info) if self.callback else None

        return report

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._allows_negative()
        tags.input_tags.allow_nan = self._allows_missing()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _is_live(X: Any) -> bool:
    """Whether the model reads the user's own array."""
    return isinstance(X, Scaled) and not X.on_disk


def _rows(views: Views, chosen: Array) -> Views:
    """Some of the observations; all of them as they are."""
    return views if chosen.all() else views.with_matrices([X[chosen] for X in views.matrices])


def _first_coefficients(X: Matrix, fitted: Matrix, V: Array, term: Any, n_neighbors: int) -> Array:
    """Where unseen rows start: the mean coefficients of their nearest fitted rows."""
    if hasattr(term, "pull") and (term.degrees > 0).all():
        return term.pull / term.degrees
    # Also where every edge weight underflowed: from V = 0 the multiplicative rule never leaves.
    indices, _ = nearest_neighbors(fitted, n_neighbors, X)
    return V[indices].mean(axis=1)
