"""`WMNMF`, the paper's method as a scikit-learn estimator: its parameters, and its recipe."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from sklearn.utils._param_validation import Interval, StrOptions

from manyview._arrays import namespace, on_host
from manyview._types import Array, Factors, Seed, Views, storable
from manyview.engines.affinity import AFFINITIES
from manyview.engines.protocols import Engine
from manyview.maths.solvers import make_solver
from manyview.maths.terms import Term
from manyview.storage.checkpoint import Checkpoint

from .assign import ASSIGNMENTS, assign
from .base import SHARED_CONSTRAINTS
from .distinct import row_kinds, tell_empty_clusters, tell_few_kinds
from .fit import run_starts
from .fitted_wmnmf import FittedWMNMF
from .initialize import GNMF_WEIGHT, INITS, observed_init, starting_factors
from .observed import observed_somewhere
from .scaling import SCALES
from .seeds import generator
from .stand_ins import filling
from .state import Problem
from .warn import warn_about, warn_scarce_views, warn_unobserved_rows
from .working_views import masked, scale_and_place, some_rows


@storable
class WMNMF(FittedWMNMF):
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
    solver : {"multiplicative", "hals"} or object, default="multiplicative"
        The paper's rule, or exact coordinate steps on the well-posed form in which every column
        of U sums to 1 (fewer iterations to the same objective, each a little dearer); or an object
        of your own class derived from `manyview.solvers.Solver`.
    init : {"gnmf", "random", "nndsvd"} or dict, default="gnmf"
        Starting factors; a dict holds "components" (K×M_s each) and "coefficients" (N×K each).
        Under the multiplicative rule a zero stays zero: a start that has any is told.
    gnmf_weight : float, default=10
        λ of the GNMF start: the weight of the graph while U and V of each view are first found.
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
    inner_tol : float, default=0
        End the iterations on a view when one changes the objective by less than this share; 0 does
        them all, as the authors' program does.
    tol : float, default=0
        Stop when a round changes the objective by less than this share; 0 does all rounds.
    n_init : int, default=1
        Number of starts. The consensus matrices of all starts are set side by side and clustered
        once; the other attributes describe the first start.
    assign_labels : {"spectral", "njw", "kmeans", "argmax"}, default="spectral"
        How clusters are read from the consensus; "njw" (unit rows) is often a little better than
        the paper's random-walk "spectral".
    connect : bool, default=False
        For these two: link the rows in small parts of the consensus's neighbour graph (fewer than a
        quarter of an average cluster) to their nearest rows in the rest. Without, as in the paper,
        such a part may take a cluster of its own, which is told.
    missing : {"error", "mask"}, default="error"
        "mask": NaN entries are unobserved and do not count, in the errors, the scaling or the
        distances between rows. Weights compare errors and gaps by what is observed: an unobserved
        entry counts like an observed one of its view on average. An observation without enough
        values in a view (fewer than K, and less than half) gets weight 0 there, and coefficients from
        its neighbours in other views. Columns, views and observations without any value are left out
        with a warning and change nothing: their weights, components and coefficients are 0, the
        label is −1. A view observed for too few rows (below 10 K and half of them, or below 5%) is
        told, and gets no more than that share of the smallest weight of the others.
    views : sequence of int or of str, optional
        If the input is one 2-D array: the number of columns of each view; ``None``: one view. Of a
        list: a name for each view. Of a dict, a container or a DataFrame with two levels of columns:
        the names of those to use.
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
        results are the same for any number. −1 takes all cores, −2 all but one.
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
        total number of iterations, whose attribute ``state`` is the frozen state of the loop (U, V,
        consensus, alpha, w; where the engine has them) during the call. True stops the fit.

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

    _parameter_constraints: ClassVar[dict] = {
        **SHARED_CONSTRAINTS,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "p": [Interval(Real, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions(set(AFFINITIES))],
        "scale": [StrOptions(set(SCALES)), None],
        "init": [StrOptions(set(INITS)), dict],
        "gnmf_weight": [Interval(Real, 0, None, closed="left")],
        "rescale": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "inner_iter": [Interval(Integral, 1, None, closed="left")],
        "inner_tol": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions(set(ASSIGNMENTS))],
        "connect": ["boolean"],
        "missing": [StrOptions({"error", "mask"})],
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
        solver: Any = "multiplicative",
        init: Any = "gnmf",
        gnmf_weight: float = GNMF_WEIGHT,
        learn_view_weights: bool = True,
        learn_sample_weights: bool = True,
        rescale: bool = True,
        max_iter: int = 2,
        inner_iter: int = 30,
        inner_tol: float = 0.0,
        tol: float = 0.0,
        n_init: int = 1,
        assign_labels: str = "spectral",
        connect: bool = False,
        missing: str = "error",
        views: Any = None,
        engine: str = "numpy",
        device: str = "auto",
        n_jobs: int | None = None,
        dtype: npt.DTypeLike | None = None,
        checkpoint: Any = None,
        random_state: Seed = None,
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
        self.gnmf_weight = gnmf_weight
        self.learn_view_weights = learn_view_weights
        self.learn_sample_weights = learn_sample_weights
        self.rescale = rescale
        self.max_iter = max_iter
        self.inner_iter = inner_iter
        self.inner_tol = inner_tol
        self.tol = tol
        self.n_init = n_init
        self.assign_labels = assign_labels
        self.connect = connect
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

    def fit(self, X: Any, y: object = None) -> WMNMF:
        """Factorise the views and cluster their consensus. ``y`` is ignored.

        Parameters
        ----------
        X : list, dict or array
            The views; see `manyview.as_views`.
        y : ignored

        Returns
        -------
        WMNMF
            The estimator itself, fitted.
        """
        self._validate_params()
        with self._opened() as engine:
            self._stream, self._solver = None, make_solver(self.solver)
            views = self._read(X, reset=True)
            anywhere = observed_somewhere(views.matrices)
            self._check(int(anywhere.sum()), engine)
            self._fit(views, anywhere, engine)
        return self

    def _fit(self, views: Views, anywhere: Array, engine: Engine) -> None:
        """Scale, find neighbours, start, run the loop, read clusters from the consensus."""
        rng = generator(self.random_state)
        checkpoint = Checkpoint(self.checkpoint, self, views, rng)
        warn_unobserved_rows(anywhere)
        views = some_rows(views, anywhere)
        Xs, self._fitted_views, self._scalings, sums = scale_and_place(
            views, self.scale, self.dtype, self.missing == "mask", engine
        )
        self._warn_extremes(views)
        K = self._rank
        terms, start_terms = self._prepared_terms(Xs, checkpoint, engine)
        fill = filling(Xs, self._fitted_views, self.n_neighbors, K)
        Xs = masked(Xs, views.names, self._solver, K)
        warn_scarce_views(Xs, views.names, K)
        kinds = row_kinds(views.matrices, self.n_clusters)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters)
        problem = Problem(Xs, terms, self._solver, fill, self._threads)
        init = observed_init(self.init, self._columns, self._view_widths, anywhere)
        start = partial(self._start, problem, start_terms, init, rng, checkpoint)
        fits = run_starts(problem, start, self.n_init, self._settings, self._callback, checkpoint)
        warn_about(fits[0], views.names, self.tol)
        consensus = [fit.factors.consensus for fit in fits]
        stacked = namespace(consensus[0]).hstack(consensus)

        def read_clusters() -> Array:
            if kinds is not None:
                return kinds
            return assign(stacked, self.n_clusters, self.assign_labels, rng, connect=self.connect)

        labels = on_host(checkpoint.keep("labels", read_clusters))
        if kinds is None:
            tell_empty_clusters(labels, self.n_clusters)
        fits = self._keep(fits, terms, stacked, sums())
        self._expose(fits[0], self._stacked, labels, views.dtype, anywhere)
        checkpoint.finish()

    def _start(
        self,
        problem: Problem,
        terms: list[Term],
        init: Any,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
        i: int,
    ) -> Factors:
        """The factors that start number i begins with."""
        return starting_factors(
            list(problem.views),
            init,
            self._rank,
            terms,
            self._solver,
            self.p,
            rng,
            self._output_unit,
            problem.fill,
            self._threads,
            lambda name, compute: checkpoint.keep(f"start {i} {name}", compute),
            self.gnmf_weight,
        )
