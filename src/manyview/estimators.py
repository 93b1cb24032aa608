"""`WMNMF`, the paper's method as a scikit-learn estimator: store, validate, call fit, expose."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from threadpoolctl import threadpool_limits

from . import equations as eq
from ._types import Array, Factors, FitResult, Matrix, Views
from .assign import ASSIGNMENTS, assign, assign_new
from .base import MultiViewEstimator, generator, in_dtype
from .fit import PlainView, run, warn_about
from .graph import AFFINITIES, has_nan, nearest_neighbors
from .initialize import INITS, starting_factors
from .masked import MaskedView
from .regularizers import Graph, make_regularizer
from .scaling import SCALES, SHIFTING, fit_scaling
from .solvers import SOLVERS


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
        Weight of the regulariser.
    regularizer : {"graph", "sparse", "orthogonal"}, None or object, default="graph"
        g, or any object with ``prepare(X)``, ``value(V)``, ``split(V)`` (`manyview.regularizers`).
    n_neighbors : int, default=5
        Neighbours of an observation in its view's graph.
    affinity : {"binary", "heat", "cosine"}, default="binary"
        Edge weights. For a heat kernel of fixed width, or mutual neighbours, pass
        ``regularizer=Graph(affinity="heat", width=..., mutual=True)``.
    scale : {"sum", "minmax", "standard", "tfidf", "sqrt"} or None, default="sum"
        How views are made comparable; "minmax" and "standard" accept negative values.
    solver : {"multiplicative", "hals"}, default="multiplicative"
        The paper's rule, or the faster exact coordinate steps on the well-posed form in which
        every column of U sums to 1.
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
        distances between rows; an observation without any value in a view gets weight 0 there.
    views : sequence of int, optional
        If the input is one 2-D array: the number of columns of each view. ``None``: one view.
    engine : {"numpy"}, default="numpy"
        Where the computation runs.
    dtype : dtype, optional
        Precision of the computation. ``None`` computes in float64 and returns the input's
        precision.
    random_state : int, RandomState, Generator or None
        Seed of every random draw. Results do not depend on the number of threads.
    verbose : int, default=0
        1 prints a line per round, 2 one per iteration.
    callback : callable, optional
        Called after every iteration with a dict of the round, view, iteration, objective terms and
        total number of iterations; returning True stops the fit.

    Attributes
    ----------
    labels_ : ndarray (N,)
    consensus_ : ndarray (N, K), or (N, K·n_init)
    view_weights_ : ndarray (n_views,), α
    sample_weights_ : ndarray (N, n_views), w
    reliance_ : ndarray (N, n_views), α_s w_is normalised over views
    components_ : list of ndarray (K, M_s), the U_s transposed
    coefficients_ : list of ndarray (N, K), the V_s
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
        "engine": [StrOptions({"numpy"})],
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
        dtype: Any = None,
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
        self.dtype = dtype
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
        views = self._read(X, reset=True)
        self._check_n_clusters(self.n_clusters, views.n_samples)
        n_components = self.n_components or self.n_clusters
        if self.assign_labels == "argmax" and n_components != self.n_clusters:
            raise ValueError(
                "assign_labels='argmax' reads one cluster per component, but "
                f"n_components={n_components} and n_clusters={self.n_clusters}; make them equal"
            )
        # One thread: the sums inside BLAS and k-means differ between thread counts.
        with threadpool_limits(1):
            self._fit(views, n_components)
        return self

    def _fit(self, views: Views, n_components: int) -> None:
        rng = generator(self.random_state)
        scalings = fit_scaling(views, self.scale)
        Xs = self._scaled(views, scalings)
        regularizer = make_regularizer(self.regularizer, self.n_neighbors, self.affinity)
        terms = [regularizer.prepare(X) for X in Xs]
        start_terms = terms
        if self.init == "gnmf" and not isinstance(regularizer, Graph):
            start_terms = [Graph(self.n_neighbors, self.affinity).prepare(X) for X in Xs]
        solver = SOLVERS[self.solver]()
        self._fitted_views = Xs  # unseen rows look for their neighbours here
        Xs = self._masked(Xs, views.names)
        fits = []
        for _ in range(self.n_init):
            start = starting_factors(Xs, self.init, n_components, start_terms, solver, self.p, rng)
            fits.append(self._run(Xs, start, terms, solver))
        warn_about(fits[0], views.names, self.tol)
        stacked = np.hstack([fit.factors.consensus for fit in fits])
        labels = assign(stacked, self.n_clusters, self.assign_labels, rng)
        self._scalings, self._terms, self._solver = scalings, terms, solver
        self._starts = [fit.factors for fit in fits]
        self._expose(fits[0], stacked, labels, views.dtype)

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
        }
        return run(Xs, start, terms, solver, **(settings | kwargs))

    def _expose(self, fit: FitResult, stacked: Array, labels: Array, dtype: np.dtype) -> None:
        factors, unit = fit.factors, self._output_unit
        self.labels_ = labels
        self.consensus_ = in_dtype(stacked * unit, dtype)
        self.view_weights_ = factors.alpha
        self.sample_weights_ = in_dtype(factors.w, dtype)
        self.components_ = [in_dtype(U.T, dtype) for U in factors.U]
        self.coefficients_ = [in_dtype(V * unit, dtype) for V in factors.V]
        self.history_ = fit.history
        self.objective_ = float(fit.history["objective"][-1])
        self.n_iter_ = fit.n_iter
        self.stop_reason_ = fit.stop
        self._n_features_out = stacked.shape[1]

    @property
    def reliance_(self) -> Array:
        """Which view each observation relies on: α_s w_is, normalised over views (N×n_views)."""
        product = self.sample_weights_ * self.view_weights_.astype(self.sample_weights_.dtype)
        return product / product.sum(axis=1, keepdims=True)

    def transform(self, X: Any) -> Array:
        """Consensus coefficients of observations, given the fitted U and view weights.

        Every row is linked to its nearest fitted rows in each view, so that the graph term is
        kept. For the fitted observations themselves this is close to ``consensus_``, not equal:
        that one was found together with U.
        """
        views = self._read(X, reset=False)
        with threadpool_limits(1):
            placed = self._place(views)
        stacked = np.hstack([factors.consensus for factors in placed])
        return in_dtype(stacked * self._output_unit, views.dtype)

    def predict(self, X: Any) -> Array:
        """Cluster of each observation: the vote of its nearest fitted neighbours in the consensus."""
        new = self.transform(X).astype(float)
        with threadpool_limits(1):
            return assign_new(new, self.consensus_.astype(float), self.labels_, self.assign_labels)

    def score(self, X: Any, y: Any = None) -> float:
        """Minus the mean squared reconstruction error of the scaled views (higher is better)."""
        views = self._read(X, reset=False)
        Xs = self._scaled(views, self._scalings)
        with threadpool_limits(1):
            factors = self._place(views)[0]
            errors = [
                (X if isinstance(X, MaskedView) else PlainView(X, self._solver))
                .residuals(U, V)
                .mean()
                for X, U, V in zip(self._masked(Xs, views.names), factors.U, factors.V, strict=True)
            ]
        return -float(np.mean(errors))

    def _place(self, views: Views) -> list[Factors]:
        """The fit's loop with U and α kept: V, V* and w of new rows, for every start."""
        Xs = self._scaled(views, self._scalings)
        placed = []
        for fitted in self._starts:
            terms, V0 = [], []
            for X, seen, g, V in zip(Xs, self._fitted_views, self._terms, fitted.V, strict=True):
                term = g.link(X, V) if hasattr(g, "link") else g
                terms.append(term)
                V0.append(_first_coefficients(X, seen, V, term, self.n_neighbors))
            q = [U.sum(axis=0) for U in fitted.U]
            w = np.full((views.n_samples, len(Xs)), 1 / len(Xs))
            V_star = eq.consensus(V0, q, fitted.alpha, self.p)
            start = Factors(fitted.U, tuple(V0), V_star, fitted.alpha, w)
            result = self._run(
                self._masked(Xs, views.names),
                start,
                terms,
                self._solver,
                learn_basis=False,
                learn_view_weights=False,
                tol=0.0,
                callback=None,
            )
            placed.append(result.factors)
        return placed

    def _scaled(self, views: Views, scalings: list) -> list[Matrix]:
        dtype = np.dtype(np.float64 if self.dtype is None else self.dtype)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32, float64 or None, got {self.dtype!r}")
        return [
            scaling.apply(X.astype(dtype, copy=False))
            for X, scaling in zip(views.matrices, scalings, strict=True)
        ]

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
        return [MaskedView(X) if hole else X for X, hole in zip(Xs, holes, strict=True)]

    def _allows_missing(self) -> bool:
        return self.missing == "mask"

    def _allows_negative(self) -> bool:
        return self.scale in SHIFTING

    @property
    def _callback(self) -> Any:
        if not self.verbose:
            return self.callback

        def report(info: dict[str, Any]) -> Any:
            last = (
                info["iteration"] == self.inner_iter and info["view"] == len(self._view_widths) - 1
            )
            if last or self.verbose > 1:
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


def _first_coefficients(X: Matrix, fitted: Matrix, V: Array, term: Any, n_neighbors: int) -> Array:
    """Where unseen rows start: the mean coefficients of their nearest fitted rows."""
    if hasattr(term, "pull"):
        return term.pull / np.maximum(term.degrees, np.finfo(V.dtype).tiny)
    indices, _ = nearest_neighbors(fitted, n_neighbors, X)
    return V[indices].mean(axis=1)
