"""WMNMF, the method of the paper: a loop of multiplicative (or HALS) steps, weights in closed form, labels.

Read from top to bottom: the parameters, `WMNMF._fit` (the recipe), results and new samples, then `Loop`
(the steps of Algorithm 1), the state it passes on, and the warnings. Formulas are in
`manyview.maths.equations`, starts in `manyview.initialize`. `tests/reference/wmnmf.py` is the method in
dense NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from threadpoolctl import threadpool_limits

from manyview import stream
from manyview._arrays import is_tensor, namespace, on_host
from manyview._types import (
    Array,
    Callback,
    CollapseWarning,
    Factors,
    FitResult,
    Matrix,
    Seed,
    Stop,
    Sums,
    Views,
    storable,
)
from manyview._warn import warn_user
from manyview.base import (
    SHARED_CONSTRAINTS,
    ByView,
    MultiViewEstimator,
    generator,
    in_dtype,
    observed_part,
    observed_somewhere,
    of_view,
    on_host_factors,
    refuse_changed,
    refuse_strangers,
    reordered,
    spread_out,
    working_dtype,
)
from manyview.engines.affinity import AFFINITIES, inverse_distances, nearest_neighbors
from manyview.engines.numpy.engine import Engine
from manyview.engines.numpy.masked import (
    Fill,
    MaskedView,
    expected_gap,
    expected_residuals,
    least_entries,
    mean_error,
    reaches,
    views_that_tell,
)
from manyview.engines.numpy.presence import check_finite, has_nan
from manyview.engines.numpy.rows import rows_of
from manyview.engines.numpy.sources import Scaled, is_streamed, resident
from manyview.engines.protocols import DeviceView
from manyview.engines.table import ENGINES
from manyview.engines.threads import Threads, beside
from manyview.initialize import (
    GNMF_WEIGHT,
    INITS,
    filling,
    observed_init,
    starting_factors,
    starting_weights,
)
from manyview.labels import (
    ASSIGNMENTS,
    assign,
    assign_new,
    by_size,
    largest_first,
    row_kinds,
    tell_empty_clusters,
    tell_few_kinds,
)
from manyview.maths import equations as eq
from manyview.maths.agreement import reliance
from manyview.maths.solvers import Solver, check_needs, make_solver, own_name
from manyview.maths.terms import Linkable, NoPenalty, Term
from manyview.nonnegative import (
    SCALES,
    SHIFTING,
    UNIT_ROWS,
    NonnegativeScaling,
    fit_nonnegative,
    is_constant,
    tell_level,
    tell_outliers,
    tell_rounded,
)
from manyview.regularizers import Graph, kept_term, make_regularizer, prepared_term, without_edges
from manyview.storage.checkpoint import Checkpoint, digest

# --- the estimator ------------------------------------------------------------------------------


@storable
@dataclass(eq=False, repr=False)
class WMNMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MultiViewEstimator):
    """Weighted multi-view nonnegative matrix factorization (Liu & Lin).

    Several nonnegative views X_s (N×M_s) of the same N samples are factorized together,
    X_s ≈ V_s U_sᵀ, with a consensus V*, a weight α_s for every view and a weight w_is for every
    sample in every view, minimizing::

        Σ_s ‖Diag(w_s)(X_s − V_s U_sᵀ)‖² + Σ_s α_s^p ‖V_s Q_s − V*‖² + β Σ_s g(V_s)

    where Q_s holds the column sums of U_s and g is a regularizer, by default the Laplacian of the
    view's nearest-neighbor graph. Clusters are read from V*.

    The defaults are the recipe that reproduces the paper's table, not Algorithm 1 as printed. They make
    four choices that are not in the paper: w starts at 1/n_views, V* starts without Q, columns of U
    are rescaled, and the loop stops after two rounds of 30 iterations. `WMNMF.as_printed` is the
    algorithm as printed.

    Neighbors are exact up to 30,000 samples; above that the search is approximate. Spectral clustering
    of V* uses the whole neighbor graph up to 20,000 samples; above that it uses landmarks. The GNMF
    start builds a neighbor graph even if ``regularizer`` is not a graph.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    n_components : int, optional
        Number K of columns of U, V and V*; ``n_clusters`` if not given.
    p : float, default=5
        At least 1; small values make the view weights sparse (1: one view gets all the weight). Large
        values switch the consensus term off, because α^p is then tiny; a warning appears.
    beta : float, default=0.01
        Weight of the regularizer. The default is for the graph; "sparse" and "orthogonal" may need
        less, especially with HALS, where no rescaling counteracts their pull towards zero.
    regularizer : {"graph", "sparse", "orthogonal"}, None, object or dict, default="graph"
        g, or an object with ``prepare(X, view)`` (`manyview.extend`). A dict sets these for views by
        name, {"rna": MyGraph(A), "cnv": None}; others are "graph".
    n_neighbors : int, default=5
        Neighbors of a sample in its view's graph.
    affinity : {"binary", "heat", "cosine"}, default="binary"
        Edge weights; the width of "heat" is automatic. For a fixed width or mutual neighbors, pass
        ``regularizer=Graph(affinity="heat", width=..., mutual=True)``.
    scale : {"sum", "total", "minmax", "standard", "tfidf", "sqrt"} or None, or a dict, default="sum"
        How views are made comparable; "minmax" and "standard" accept negative values. "sum" gives rows
        the sum 1 on average, "total" gives all entries of a view together the sum 1 (the paper's scale;
        all views or none). A dict sets these for views by name, {"rna": "sqrt", "cnv": "minmax"};
        others are "sum".
    solver : {"multiplicative", "hals"} or object, default="multiplicative"
        The paper's rule; or exact coordinate steps on the well-posed form in which every column
        of U sums to 1 (fewer iterations to the same objective, each a little slower); or an object
        of your own class derived from `manyview.extend.Solver`.
    init : {"gnmf", "random", "nndsvd"} or dict, default="gnmf"
        Starting factors; a dict holds "components" (K×M_s each) and "coefficients" (N×K each).
        Under the multiplicative rule a zero stays zero: a start with zeros gives a warning.
    gnmf_weight : float, default=10
        λ of the GNMF start: the weight of the graph while U and V of each view are first found.
    init_consensus : {"mean", "scaled"}, default="mean"
        V* at the start: the mean of the V_s, or of the V_s Q_s.
    init_sample_weights : {"views", "samples"}, default="views"
        w at the start: 1/n_views, or 1/N as the paper prints.
    learn_view_weights, learn_sample_weights : bool, default=True
        Whether α and w are learned; otherwise they stay at their start.
    rescale : bool, default=True
        Scale U to unit column sums after each view's inner loop. This is part of the recipe, although
        it may raise the objective. HALS always has unit sums.
    max_iter : int, default=2
        Rounds. More rounds lower the objective and, on real data, tend to collapse the view
        weights onto one view and to worsen the clusters.
    inner_iter : int, default=30
        Iterations per view and round.
    inner_tol : float, default=0
        End the iterations on a view when one changes the objective by less than this share. 0: do
        all iterations, as the authors' program.
    tol : float, default=0
        Stop when a round changes the objective by less than this share. 0: do all rounds.
    absolute_tol : bool, default=False
        ``tol`` and ``inner_tol`` are differences of the objective, not shares of it.
    n_init : int, default=1
        Number of starts. The consensus matrices of all starts are joined and clustered once; the
        other attributes are those of the first start.
    assign_labels : {"spectral", "njw", "kmeans", "argmax"}, default="spectral"
        How clusters are read from the consensus; "njw" (unit rows) is often a little better than
        the paper's random-walk "spectral".
    connect : bool, default=False
        For "spectral" and "njw": link the rows in small parts of the consensus's neighbor graph (fewer
        than a quarter of an average cluster) to their nearest rows in the rest. Otherwise, as in the
        paper, such a part may become a cluster, with a warning.
    missing : {"error", "allow"} or a dict, default="error"
        A dict gives it by the names of views. "allow": NaN entries are unobserved and are ignored in
        the errors, the scaling and the distances between rows. Weights compare errors and gaps by
        what is observed: an unobserved entry has the mean error of its view's observed ones. A
        sample without enough values in a view (fewer than K, and less than half) gets weight 0
        there, and coefficients from its neighbors in other views. Columns, views and samples
        without any value are left out with a warning and change nothing: their weights, components
        and coefficients are 0, the label is −1. A view observed for too few rows (below 10 K and
        half of them, or below 5%) gives a warning, and gets no more than that share of the smallest weight
        of the others.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view, or a dict with a number
        or a list of columns (names in a DataFrame, otherwise positions) for each view, {"rna": 100,
        "meth": 400}; ``None``: one view. Of a list: a name for each view. Of a dict, a container or
        a DataFrame with two levels of columns: the names of those to use.
    engine : {"numpy", "torch", "dask"}, default="numpy"
        Where the computation runs. "torch" (extra ``torch``): for GPUs; NumPy in, NumPy out; the
        fitted model lives on the host, and so does `predict`. "dask" (extra ``dask``): on the
        workers of the current `distributed.Client`, or of a local cluster started for the fit.
        Views may then be dask arrays or data frames cut by rows, whose blocks stay on the workers;
        the factors pass through this process once per view and round (`docs/scaling.md`).
    device : str, default="auto"
        With engine="torch": "cpu", "cuda" (or "cuda:1", …), or "auto", a GPU where there is one and
        the views are large enough that the transfer pays off.
    n_jobs : int, optional
        Threads for the passes over the rows; ``None`` takes the cores this process may use. The
        results are the same for any number. −1 takes all cores, −2 all but one.
    dtype : dtype, optional
        Precision of the computation. ``None`` computes in float64 (in float32 if the input is
        float32 and larger than 1 GiB) and returns the input's precision.
    checkpoint : path, or (path, seconds), optional
        Write the state of the fit to this file every minute (or every ``seconds``). A fit that finds
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
    labels_ : ndarray (N,); −1 for samples without any value
        The largest cluster is 0.
    consensus_ : ndarray (N, K), or (N, K·n_init)
    view_weights_ : ndarray (n_views,), α
    sample_weights_ : ndarray (N, n_views), w
    reliance_ : ndarray (N, n_views), α_s w_is normalized over views
    components_ : list of ndarray (K, M_s), the U_s transposed
    coefficients_ : list of ndarray (N, K), the V_s
        ``coefficients_[s] @ components_[s]`` approximates the *scaled* view s, whose rows sum to 1
        on average (with ``scale=None`` the view itself). The model keeps the scaled views, in
        which unseen rows look for their neighbors.
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
    array([0.25, 0.29, 0.2 , 0.27])
    """

    _parameter_constraints: ClassVar[dict] = {
        **SHARED_CONSTRAINTS,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_components": [Interval(Integral, 1, None, closed="left"), None],
        "p": [Interval(Real, 1, None, closed="left")],
        "beta": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "affinity": [StrOptions(set(AFFINITIES))],
        "scale": [StrOptions({*SCALES, "none"}), dict, None],
        "init": [StrOptions(set(INITS)), dict],
        "gnmf_weight": [Interval(Real, 0, None, closed="left")],
        "init_consensus": [StrOptions({"mean", "scaled"})],
        "init_sample_weights": [StrOptions({"views", "samples"})],
        "rescale": ["boolean"],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "inner_iter": [Interval(Integral, 1, None, closed="left")],
        "inner_tol": [Interval(Real, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "absolute_tol": ["boolean"],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "assign_labels": [StrOptions(set(ASSIGNMENTS))],
        "connect": ["boolean"],
        "missing": [StrOptions({"error", "allow"}), dict],
    }
    _by_view: ClassVar[dict] = {"scale": (*SCALES, None), "missing": ("error", "allow")}

    n_clusters: int = 8
    _: KW_ONLY
    n_components: int | None = None
    p: float = 5.0
    beta: float = 0.01
    regularizer: Any = "graph"
    n_neighbors: int = 5
    affinity: str = "binary"
    scale: ByView = "sum"
    solver: Any = "multiplicative"
    init: Any = "gnmf"
    gnmf_weight: float = GNMF_WEIGHT
    init_consensus: str = "mean"
    init_sample_weights: str = "views"
    learn_view_weights: bool = True
    learn_sample_weights: bool = True
    rescale: bool = True
    max_iter: int = 2
    inner_iter: int = 30
    inner_tol: float = 0.0
    tol: float = 0.0
    absolute_tol: bool = False
    n_init: int = 1
    assign_labels: str = "spectral"
    connect: bool = False
    missing: ByView = "error"
    views: Any = None
    engine: str = "numpy"
    device: str = "auto"
    n_jobs: int | None = None
    dtype: npt.DTypeLike | None = None
    checkpoint: Any = None
    random_state: Seed = None
    verbose: int = 0
    callback: Any = None

    _rows_stay = True
    _reads_files = True
    #: After `partial_fit`: sums and gaps of all batches, their number, labels of the remembered rows.
    _stream = None  # type: Any

    def fit(self, X: Any, y: object = None) -> WMNMF:
        """Factorize the views and cluster their consensus. ``y`` is ignored.

        Parameters
        ----------
        X : list, dict or array
            The views.
        y : ignored

        Returns
        -------
        WMNMF
            The estimator itself, fitted.
        """
        self._validate_params()
        with self._opened() as engine:
            self._solver = make_solver(self.solver)
            views = self._read(X, reset=True)
            anywhere = observed_somewhere(views.matrices)
            self._check(int(anywhere.sum()))
            self._fit(views, anywhere, engine)
        return self

    def _fit(self, views: Views, anywhere: Array, engine: Engine) -> None:
        """Scale, find neighbors, start, run the loop, read clusters from the consensus."""
        rng, K, threads = generator(self.random_state), self._rank, Threads(self.n_jobs)
        checkpoint = Checkpoint(self.checkpoint, self, views, rng)
        if not anywhere.all():
            warn_user(
                f"{int((~anywhere).sum())} samples have no value in any view (the first is row "
                f"{int(np.flatnonzero(~anywhere)[0])}); they are left out and get the label -1"
            )
        views = some_rows(views, anywhere)

        # 1. Scale each view.
        dtype, holes = working_dtype(views, self.dtype), self._may_have_holes
        fit = partial(fit_nonnegative, kind=self.scale)
        copy = partial(scaled, views, dtype=dtype, always_copied=holes)
        Xs, fitted, self._scalings = engine.loop_views(views, fit, copy, self.dtype, dtype)
        if not (holes or isinstance(Xs[0], DeviceView)):  # tensors were checked where they are
            check_finite(fitted, views.names)
        sums = beside(partial(checksums, fitted))
        single = self.dtype is not None and np.dtype(self.dtype) == np.float32
        for X, name in zip(views.matrices, views.names, strict=True):
            tell_outliers(X, name)
            if not self._allows_negative(name) and not (single and tell_rounded(X, name)):
                tell_level(X, name)

        # 2. The neighbor graph of each view, or another regularizer.
        if isinstance(self.regularizer, dict):
            refuse_strangers("regularizer", self.regularizer, self.view_names_in_.tolist())
        graph, terms, start_terms = Graph(self.n_neighbors, self.affinity), [], []
        prepare = partial(
            prepared_term, keep=checkpoint.keep, tensors=ENGINES[self.engine].takes_devices
        )
        for s, (X, name) in enumerate(zip(Xs, views.names, strict=True)):
            g = make_regularizer(of_view(self.regularizer, name, "graph"), graph)
            terms.append(prepare(g, X, name, s))
            starts_alike = self.init != "gnmf" or isinstance(g, Graph)
            start_terms.append(terms[s] if starts_alike else prepare(graph, X, name, s))
        fill = filling(Xs, fitted, self.n_neighbors, K)
        Xs = masked(Xs, views.names, self._solver, K)
        warn_scarce_views(Xs, views.names, K)
        kinds = row_kinds(views.matrices, self.n_clusters)
        if kinds is not None:
            tell_few_kinds(int(kinds.max()) + 1, self.n_clusters)

        # 3. Starting factors, then 4. the loop; both for each of ``n_init`` starts.
        loop = partial(
            Loop, Xs, terms, self._solver, **self._settings, fill=fill, threads=threads,
            callback=self._callback, checkpoint=checkpoint,
        )  # fmt: skip
        init = observed_init(self.init, self._columns, self._view_widths, anywhere)

        def fit_from_start(i: int) -> FitResult:
            start = starting_factors(
                Xs, init, K, start_terms, self._solver, self.p, rng, self._output_unit, fill, threads,
                keep=lambda name, compute: checkpoint.keep(f"start {i} {name}", compute),
                gnmf_weight=self.gnmf_weight,
                init_consensus=self.init_consensus,
                init_sample_weights=self.init_sample_weights,
            )  # fmt: skip
            return loop().run(start)

        fits: list[FitResult] = []
        for i in range(self.n_init):
            fits.append(checkpoint.keep(f"fit {i}", partial(fit_from_start, i)))
            checkpoint.forget(f"start {i} ")
            if fits[-1].stop is Stop.CALLBACK:
                break
        warn_about(fits[0], views.names, self.tol, self.p)

        # 5. Clusters of the consensus.
        consensus = [fit.factors.consensus for fit in fits]
        stacked = namespace(consensus[0]).hstack(consensus)

        def read_clusters() -> Array:
            if kinds is not None:
                return kinds
            return assign(stacked, self.n_clusters, self.assign_labels, rng, connect=self.connect)

        labels = on_host(checkpoint.keep("labels", read_clusters))
        # What later calls need is kept on the host: saving and predicting need no GPU and no workers.
        fits = [replace(fit, factors=on_host_factors(fit.factors)) for fit in fits]
        stacked = on_host(stacked)
        if kinds is None:
            tell_empty_clusters(labels, self.n_clusters)
            if self.assign_labels == "argmax":  # clusters are components
                order = by_size(labels, self.n_clusters)
                fits = [replace(fits[0], factors=reordered(fits[0].factors, order))]
                stacked = fits[0].factors.consensus

        # What `predict` and `partial_fit` need, and the results.
        self._fitted_views, self._stacked = fitted, stacked
        self._terms = [kept_term(g, X) for g, X in zip(terms, fitted, strict=True)]
        self._starts = [fit.factors for fit in fits]
        #: Mean squared error of an entry of every view, for each start.
        self._entry_errors = [fit.entry_errors for fit in fits]
        #: Checksums of the user's own arrays, where views are too large to be copied.
        self._digests: list[str | None] = sums()
        self._stream = None
        self._expose(fits[0], stacked, largest_first(labels), views.dtype, anywhere)
        checkpoint.finish()

    def _expose(
        self,
        fit: FitResult,
        stacked: Array,
        labels: Array,
        dtype: np.dtype,
        anywhere: Array | None = None,
    ) -> None:
        """Set the results in the shape of the input: 0 where nothing is observed, and the label −1."""
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
        """Which view each sample relies on: α_s w_is, normalized over views (N×n_views)."""
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
            The same views of new samples.

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
            Xs = self._scaled(some_rows(views, anywhere))
            found = self._consensus(self._neighbor_coefficients(Xs))
        return spread_out(found, anywhere, 0)

    def predict(self, X: Any) -> Array:
        """Cluster of each sample: the vote of its nearest fitted samples in the consensus.

        Votes weigh the more, the nearer they are: fitted samples get their ``labels_``. −1 where every
        view is missing.

        Parameters
        ----------
        X : list, dict or array
            The same views of new samples.

        Returns
        -------
        ndarray (n_samples,)
        """
        views = self._read(X, reset=False)
        if not self._stacked.any():
            warn_user(
                "the consensus of the fit is zero, so the clusters of "
                "new samples mean nothing; fit again with a lower beta",
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
            The same views of any samples.
        y : ignored

        Returns
        -------
        float
        """
        views = self._read(X, reset=False)
        self._tell_favored()
        anywhere = observed_somewhere(views.matrices)
        if not anywhere.any():
            raise ValueError("score needs at least one sample with values; all are missing")
        with threadpool_limits(1):
            scaled_rows = self._scaled(some_rows(views, anywhere))
            factors = self._placed(scaled_rows, self._neighbor_coefficients(scaled_rows))[0]
            Xs = masked(scaled_rows, views.names, self._solver, self._rank)
            errors = [
                rows_of(X, self._solver).all_residuals(U, V)
                for X, U, V in zip(Xs, factors.U, factors.V, strict=True)
            ]
        # Per observed entry: what is missing is not explained without error.
        means = [mean_error(X, r) * X.shape[1] for X, r in zip(Xs, errors, strict=True)]
        return -float(np.mean(means))

    def _scaled(self, views: Views) -> list[Any]:
        """Views scaled as those of the fit."""
        dtype = working_dtype(views, self.dtype)
        return scaled(views, self._scalings, dtype, self._may_have_holes)

    def _neighbor_coefficients(self, Xs: list[Any]) -> list[list[Array]]:
        """V of new rows (scaled) in every view, for every start.

        They are the mean of those of the nearest fitted rows, weighted by inverse squared distance:
        fitted rows get exactly their own.
        """
        names = self.view_names_in_[self._kept()]
        for seen, before, name in zip(self._fitted_views, self._digests, names, strict=True):
            if before is not None:  # a view that wraps the user's own array
                refuse_changed(seen.X, before, name)
        shares = []
        for X, seen in zip(Xs, self._fitted_views, strict=True):
            near, squared = nearest_neighbors(resident(seen), self.n_neighbors, resident(X))
            indptr = np.arange(0, near.size + 1, near.shape[1])
            parts = (inverse_distances(squared).ravel(), near.ravel(), indptr)
            shares.append(sp.csr_array(parts, shape=(len(near), seen.shape[0])))
        found = []
        for start in self._starts:
            V = [(W @ known).astype(known.dtype) for W, known in zip(shares, start.V, strict=True)]
            fill = self._filling(Xs, start)
            found.append(V if fill is None else [fill(s, Vs) for s, Vs in enumerate(V)])
        return found

    def _filling(self, Xs: list[Any], start: Factors) -> Fill | None:
        """How rows that a view does not observe get coefficients there."""
        rank = start.consensus.shape[1]
        return filling(Xs, self._fitted_views, self.n_neighbors, rank, start.V)

    def _consensus(self, known: list[list[Array]]) -> Array:
        """V* of rows with these coefficients: that of all starts, side by side."""
        pairs = zip(self._starts, known, strict=True)
        return np.hstack([consensus_of(start, V, self.p) for start, V in pairs])

    def _placed(self, Xs: list[Any], known: list[list[Array]]) -> list[Factors]:
        """The loop with U and α kept: V, V* and w of the new rows ``Xs`` (scaled), by start.

        ``known`` are the coefficients that it begins with, those of the `_neighbor_coefficients`.
        """
        # Where rescaling lets U absorb a penalty on V (it does not for a graph, whose links pull towards
        # known rows), the same penalty with U fixed would crush the coefficients.
        counts = self._solver.unit_sums or not self.rescale
        settings = self._settings | {"learn_view_weights": False, "tol": 0.0}
        names = self.view_names_in_[self._kept()].tolist()
        placed = []
        for start, errors, V in zip(self._starts, self._entry_errors, known, strict=True):
            terms = [
                (g.link(resident(X), of_fit) if isinstance(g, Linkable) else g if counts else None)
                or NoPenalty()
                for X, g, of_fit in zip(Xs, self._terms, start.V, strict=True)
            ]
            rows = masked(Xs, names, self._solver, start.consensus.shape[1])
            fill, threads = self._filling(Xs, start), Threads(self.n_jobs)
            V_star = consensus_of(start, V, self.p)
            first = Factors(start.U, tuple(V), V_star, start.alpha, starting_weights(rows))
            loop = Loop(
                rows, terms, self._solver, **settings, learn_basis=False, fill=fill,
                threads=threads, entry_errors=errors,
            )  # fmt: skip
            placed.append(loop.run(first).factors)
        return placed

    def partial_fit(self, X: Any, y: object = None) -> Self:
        """Learn from one more batch of samples; ``y`` is ignored.

        The first batch is fitted as by `fit` (also where `fit` was called before, whose data then are
        the first batch). For later ones U and the view weights move by what is remembered of all
        batches, the older the less; scaling stays that of the first batch. ``labels_``,
        ``consensus_`` and the other attributes of samples are those of the latest batch, its
        labels by the vote of the nearest of some samples of every cluster that are remembered.
        The result is near that of a fit of all samples, not equal to it (`docs/scaling.md` says
        how near).

        Parameters
        ----------
        X : list, dict or array
            A batch of samples, in the same views as those before.
        y : ignored

        Returns
        -------
        WMNMF
            The estimator itself.
        """
        self._validate_params()
        if self.n_init > 1 or self.missing != "error":
            raise ValueError(
                "partial_fit needs n_init=1 and missing='error', got "
                f"n_init={self.n_init} and missing={self.missing!r}"
            )
        if "labels_" in vars(self) and len(self.components_[0]) != self._rank:
            raise ValueError(
                f"the batches before were fitted with {len(self.components_[0])} components, and now "
                f"{self._rank} are requested (n_clusters or n_components); set it back, or call fit "
                "to start again"
            )
        if "labels_" not in vars(self):
            return self.fit(X)
        views = self._read(X, reset=False)
        with self._opened("numpy"):
            self._add_batch(views)
        return self

    def _add_batch(self, views: Views) -> None:
        """Place a batch, move U and the view weights by all batches, and remember some of its rows."""
        solver, threads, before = self._solver, Threads(self.n_jobs), self._starts[0]
        if self._stream is None:  # so far there was one batch, that of `fit`
            rows = [rows_of(X, solver, threads) for X in self._fitted_views]
            sums = stream.batch_sums(rows, before)
            self._stream = (sums, stream.batch_gaps(before), 1, self.labels_)
        past, gaps, n_batches, old_labels = self._stream
        Xs = self._scaled(views)
        known = self._neighbor_coefficients(Xs)
        placed, near = self._placed(Xs, known)[0], self._consensus(known)
        labels = assign_new(near, self._stacked, old_labels, self.assign_labels, exact=True)
        rows = [rows_of(X, solver, threads) for X in Xs]
        new = stream.batch_sums(rows, placed)
        sums = [stream.added(Sums(*old), s) for old, s in zip(past, new, strict=True)]
        gaps = stream.FORGET * gaps + stream.batch_gaps(placed)
        factors, sums, scales = stream.updated_basis(placed, sums, solver, self.p, self.rescale)
        if self.learn_view_weights:
            factors = replace(factors, alpha=eq.weights_of_gaps(gaps, self.p))
            factors = replace(factors, consensus=consensus_of(factors, factors.V, self.p))
        chosen = stream.which_to_remember(labels, old_labels)
        kept_views = stream.chosen_views(Xs, self._fitted_views, chosen)
        kept = stream.chosen_factors(factors, before, scales, chosen)
        # Later rows are linked to these; among themselves they need no graph any more.
        self._terms = [without_edges(g, X) for g, X in zip(self._terms, kept_views, strict=True)]
        self._fitted_views, self._stacked, self._starts = kept_views, kept.consensus, [kept]
        self._digests = [None] * len(kept_views)
        kept_labels = np.concatenate([labels[chosen[0]], old_labels[chosen[1]]])
        self._stream = ([tuple(s) for s in sums], gaps, n_batches + 1, kept_labels)
        self.sample_names_in_ = views.sample_names
        history = stream.batch_history(rows, factors, self.p, n_batches + 1)
        result = FitResult(factors, history, self.n_iter_, Stop.BATCH)
        self._expose(result, factors.consensus, labels, views.dtype)

    def _remembered_labels(self) -> Array:
        """The clusters of the rows among which unseen ones find theirs."""
        if self._stream is not None:
            return self._stream[3]
        return self.labels_[self.labels_ >= 0]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = not self._allows_negative()
        tags.input_tags.allow_nan = self._allows_missing()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @classmethod
    def nmf_w1(cls, n_clusters: int = 8, **params: Any) -> Self:
        """The paper's ablation NMF-W1: sample weights stay equal.

        Parameters
        ----------
        n_clusters : int
        **params : dict
            Further parameters of `WMNMF`.
        """
        return cls(n_clusters, **({"learn_sample_weights": False} | params))

    @classmethod
    def nmf_w2(cls, n_clusters: int = 8, **params: Any) -> Self:
        """The paper's ablation NMF-W2: equal sample weights and no regularizer.

        Parameters
        ----------
        n_clusters : int
        **params : dict
            Further parameters of `WMNMF`.
        """
        return cls(n_clusters, **({"learn_sample_weights": False, "beta": 0.0} | params))

    @classmethod
    def as_printed(cls, n_clusters: int = 8, **params: Any) -> Self:
        """Algorithm 1 as the paper prints it; it clusters worse than the default recipe.

        Entries of a view sum to 1, w starts at 1/N, U is not rescaled, and both loops stop when the
        objective changes by less than 9e-8, after 200 iterations or rounds at the latest. The paper
        does not say how V* starts: here its printed formula is used, with Q; ``init_consensus="mean"``
        leaves Q out.

        Parameters
        ----------
        n_clusters : int
        **params : dict
            Further parameters of `WMNMF`.
        """
        printed: dict[str, Any] = {"scale": "total", "init_sample_weights": "samples"}
        printed |= {"init_consensus": "scaled", "rescale": False}
        printed |= {"tol": 9e-8, "inner_tol": 9e-8, "absolute_tol": True}
        printed |= {"max_iter": 200, "inner_iter": 200}
        return cls(n_clusters, **(printed | params))

    def _validate_params(self) -> None:
        """Also say who can find the number of clusters, if that is asked."""
        if isinstance(self.n_clusters, str):
            raise InvalidParameterError(
                f"n_clusters={self.n_clusters!r}: WMNMF needs a number, because it has no fused graph from "
                "which to choose it; use RobustWMNMF, or the number that select_n_clusters recommends"
            )
        super()._validate_params()

    @property
    def _rank(self) -> int:
        """K, the number of columns of all factors."""
        return self.n_components or self.n_clusters

    @property
    def _settings(self) -> dict[str, Any]:
        """The numbers and switches of the loop."""
        return {k: v for k, v in vars(self).items() if k in SETTINGS}

    @property
    def _output_unit(self) -> float:
        """With scale=None results are in the units of the data; otherwise in those of the scaled views."""
        return self._scalings[0].unit if self.scale in (None, "none") else 1.0

    def _check(self, n_samples: int) -> None:
        """Refuse settings that do not go together."""
        self._check_n_clusters(self.n_clusters, n_samples)
        if ENGINES[self.engine].takes_devices and not self._solver.takes_tensors:
            raise ValueError(
                f"engine={self.engine!r} would pass tensors to the solver {type(self._solver).__name__}; "
                "set takes_tensors = True on it if it accepts them, or use engine='numpy'"
            )
        if self.assign_labels == "argmax" and self._rank != self.n_clusters:
            raise ValueError(
                "assign_labels='argmax' reads one cluster per component, but "
                f"n_components={self._rank} and n_clusters={self.n_clusters}; make them equal"
            )
        if self.assign_labels == "argmax" and self.n_init > 1:
            raise ValueError(
                f"assign_labels='argmax' needs one start (components of {self.n_init} starts do not "
                "match); use n_init=1 or another assignment"
            )

    def _observed_part(self, given: Views) -> Views:
        """Also leave out views that are constant: any weight suits them, and α would be large."""
        views = super()._observed_part(given)
        scales = [self._of_view("scale", name) for name in views.names]
        # After these only the proportions of a row count.
        constant = [
            is_constant(X, scale in UNIT_ROWS)
            for X, scale in zip(views.matrices, scales, strict=True)
        ]
        if all(constant):
            if any(scale in UNIT_ROWS for scale in scales):
                warn_user(
                    f"every view is constant (after scale={self.scale!r}), so the "
                    "clusters are meaningless; use another scale"
                )
            return views
        if not any(constant):
            return views
        masks = self._columns or [np.ones(m, dtype=bool) for m in given.n_features]
        for s, same, scale in zip(self._kept(), constant, scales, strict=True):
            if same:
                after = f" after scale={scale!r}" if scale in UNIT_ROWS else ""
                masks[s] = np.zeros_like(masks[s])
                warn_user(
                    f"view {given.names[s]!r} is constant{after}: it is left out and gets weight 0"
                )
        self._columns = masks
        return observed_part(given, masks)

    def _allows_missing(self, name: str = "") -> bool:
        return self._of_view("missing", name) == "allow"

    def _allows_negative(self, name: str = "") -> bool:
        return self._of_view("scale", name) in SHIFTING

    @property
    def _may_have_holes(self) -> bool:
        return any(map(self._allows_missing, self.view_names_in_))

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


# --- the loop -----------------------------------------------------------------------------------


#: Parameters of `WMNMF` that the loop has under the same name.
SETTINGS = (
    "p", "beta", "max_iter", "inner_iter", "tol", "inner_tol", "absolute_tol", "rescale",
    "learn_view_weights", "learn_sample_weights",
)  # fmt: skip


@dataclass
class Loop:
    """The loop over rounds and views: the views, their terms, the steps, and the settings (see `WMNMF`).

    Where entries are unobserved, α compares the gaps of observed rows and w the errors of observed
    entries, those of unseen rows with ``entry_errors``. A loop that ``checkpoint`` has seen broken off goes
    on where it was, to the same bits.
    """

    views: Sequence[Any]
    terms: Sequence[Term]
    solver: Solver
    p: float
    beta: float
    max_iter: int
    inner_iter: int
    tol: float = 0.0
    inner_tol: float = 0.0
    absolute_tol: bool = False
    rescale: bool = True
    learn_view_weights: bool = True
    learn_sample_weights: bool = True
    _: KW_ONLY
    #: Whether U moves; placing unseen rows keeps it.
    learn_basis: bool = True
    #: ``fill(s, V)`` gives rows that view s hardly observes the coefficients of their stand-ins.
    fill: Fill | None = None
    threads: Threads | None = None
    #: The mean error of an entry of each view, where that is known from the fitted rows.
    entry_errors: Sequence[float] | None = None
    callback: Callback | None = None
    checkpoint: Checkpoint | None = None

    def __post_init__(self) -> None:
        for g in self.terms:
            check_needs(self.solver, g)
        self.passes = [rows_of(X, self.solver, self.threads) for X in self.views]
        self.observed = views_that_tell(list(self.views))
        total = self.max_iter * self.inner_iter * len(self.passes)
        self.progress = Progress(total, self.callback)

    def run(self, start: Factors) -> FitResult:
        """Minimize O from ``start``."""
        state, stop = self.begin(start), None
        while stop is None:
            for s in range(state.view, len(self.passes)):
                state = self.iterate(state, s)
                if self.progress.stopped:
                    break
            state = self.weigh(state)
            if self.progress.stopped:
                stop = Stop.CALLBACK
            elif self._settled(state.previous, self.tol):
                stop = Stop.CONVERGED
            elif state.round == self.max_iter:
                stop = Stop.MAX_ITER if self.tol > 0 else Stop.ROUNDS
            state = replace(
                state, round=state.round + 1, view=0, iteration=1, previous=self.progress.last
            )
        found = [mean_error(*of) for of in zip(self.views, state.residuals, strict=True)]
        return FitResult(state.factors, self.progress.history(), state.round - 1, stop, found)

    def begin(self, start: Factors) -> State:
        """Where a checkpoint left the loop; otherwise the state of the factors a fit starts with."""
        saved = None if self.checkpoint is None else self.checkpoint.loop()
        if saved is not None:
            self.progress.resume(saved.history)
            return saved
        state = State(
            start.U,
            start.V,
            start.consensus,
            start.alpha,
            start.w,
            tuple(p.all_residuals(*f) for p, *f in zip(self.passes, start.U, start.V, strict=True)),
            errors=(),
            gaps=(),
            penalties=tuple(g.value(V) for g, V in zip(self.terms, start.V, strict=True)),
        )
        state = replace(state, errors=self._errors(state), gaps=self._gaps(state))
        self._record(state, 0, -1, 0)
        return replace(state, previous=self.progress.last)

    def iterate(self, state: State, s: int) -> State:
        """All inner iterations on view s: U, then V, with the weights and the consensus kept."""
        view = self.passes[s]
        w2, a = state.w[:, s] ** 2, float(state.alpha[s] ** self.p)
        view.begin(state.V[s], state.consensus, w2, w2, self.terms[s], self.learn_basis)
        if self.learn_basis and state.sums is not None:
            view.sums = Sums(*state.sums)  # a pass that adds them anew may differ in the last bit
        elif self.learn_basis:
            view.sum(state.V[s])
        state = replace(state, view=s, sums=None, history={})
        for inner in range(state.iteration, self.inner_iter + 1):
            state = replace(state, iteration=inner)
            if self.checkpoint is not None:
                self.checkpoint.offer(partial(self._saved, state))
            U = view.step_U(state.U[s], a) if self.learn_basis else state.U[s]
            last = inner == self.inner_iter
            V = view.step_V(U, state.V[s], a, self.beta, residuals=last)
            error, gap, penalty = view.error(U), view.gap(U, V), view.penalty
            state = state.of_view(s, U=U, V=V, errors=error, gaps=gap, penalties=penalty)
            before = self.progress.last
            if self._record(state, state.round, s, inner):
                break
            if self._settled(before, self.inner_tol):
                break
        # Residuals, stand-ins and the scale of U.
        U, V = state.U[s], state.V[s]
        early = state.iteration < self.inner_iter
        residuals = view.all_residuals(U, V) if early else view.residuals
        V = view.collect(V)
        view.release()
        new = V if self.fill is None else self.fill(s, V)
        if self.rescale and self.learn_basis and not self.solver.unit_sums:
            U, new = eq.rescale(U, new)
        penalty = state.penalties[s] if new is V else self.terms[s].value(new)
        state = state.of_view(s, U=U, V=new, residuals=residuals, penalties=penalty)
        return replace(state, iteration=1)

    def weigh(self, state: State) -> State:
        """α, then V*, then w, in closed form."""
        views = self.views
        if self.learn_view_weights:
            gaps = [
                float(expected_gap(X, gap)) for X, gap in zip(views, self._gaps(state), strict=True)
            ]
            reach = reaches(list(views), state.consensus.shape[1])
            state = replace(state, alpha=eq.weights_of_gaps(np.array(gaps), self.p, reach))
        q = [U.sum(axis=0) for U in state.U]
        V_star = eq.consensus(list(state.V), q, state.alpha, self.p)
        state = replace(state, consensus=V_star)
        state = replace(state, gaps=self._gaps(state))
        if self.learn_sample_weights:
            known: Any = self.entry_errors or [None] * len(views)
            whole = [
                expected_residuals(*of) for of in zip(views, state.residuals, known, strict=True)
            ]
            R = namespace(whole[0]).column_stack(whole)
            R = R.astype(float) if isinstance(R, np.ndarray) else R
            if self.observed is not None:  # no weight for a view in rows it does not observe
                R[~self.observed] = np.inf
            state = replace(state, w=eq.weights_of_residuals(R))
        state = replace(state, errors=self._errors(state))
        self._record(state, state.round, -1, 0)
        return state

    def _settled(self, before: Any, tol: float) -> bool:
        """Whether the objective has changed by no more than ``tol`` since it was ``before``."""
        if tol <= 0:
            return False
        size = 1.0 if self.absolute_tol else abs(float(before))
        return abs(float(before - self.progress.last)) <= tol * size

    def _gaps(self, state: State) -> tuple[Any, ...]:
        return tuple(
            view.gap_to(state.consensus, U, V)
            for view, U, V in zip(self.passes, state.U, state.V, strict=True)
        )

    def _errors(self, state: State) -> tuple[Any, ...]:
        return tuple(eq.reconstruction(r, state.w[:, s]) for s, r in enumerate(state.residuals))

    def _record(self, state: State, round_: int, view: int, iteration: int) -> bool:
        """Keep a line of the history; True if the callback stops the fit."""
        terms = eq.objective(
            state.errors, state.gaps, state.alpha, self.p, state.penalties, self.beta
        )
        return self.progress.record(round_, view, iteration, terms, state)

    def _saved(self, state: State) -> State:
        """The state with all that only the passes and the record hold."""
        sums = self.passes[state.view].sums if self.learn_basis else None
        return replace(
            state,
            V=tuple(view.collect(V) for view, V in zip(self.passes, state.V, strict=True)),
            sums=None if sums is None else tuple(sums),
            history=self.progress.history(),
        )


class Progress:
    """History rows, the last objective, and the callback's wish to stop.

    Terms are stored on their device and read at the end: a number on a GPU is not waited for.
    """

    columns = (
        "round",
        "view",
        "iteration",
        "reconstruction",
        "consensus",
        "regularizer",
        "objective",
    )

    def __init__(self, total: int, callback: Callback | None):
        self.rows: list[tuple[Any, ...]] = []
        #: Iterations if none is saved.
        self.total = total
        self.callback, self.stopped, self.last = callback, False, np.inf

    def record(
        self,
        round_: int,
        view: int,
        iteration: int,
        terms: dict[str, float],
        state: LoopState | None = None,
    ) -> bool:
        """Keep a line; True if the callback, which gets it and the state, stops the fit."""
        row = (round_, view, iteration, *terms.values())
        self.rows.append(row)
        self.last = terms["objective"]
        if not is_tensor(self.last):  # of a GPU it is not waited for
            _check_finite(self.last, round_, iteration)
        if self.callback is not None and view >= 0:
            values = (round_, view, iteration, *(float(term) for term in terms.values()))
            report = Report(zip(self.columns, values, strict=True), total=self.total)
            report.state = state
            self.stopped = bool(self.callback(report)) or self.stopped
            report.state = None
        return self.stopped

    def resume(self, history: dict[str, Array]) -> None:
        self.rows = list(zip(*(history[name].tolist() for name in self.columns), strict=True))
        self.last = self.rows[-1][-1]

    def history(self) -> dict[str, Array]:
        columns = zip(*self.rows, strict=True)
        found = {name: _column(c) for name, c in zip(self.columns, columns, strict=True)}
        worst = int(np.argmin(np.isfinite(found["objective"])))
        _check_finite(*(found[name][worst] for name in ("objective", "round", "iteration")))
        return found


def _check_finite(objective: float, round_: int, iteration: int) -> None:
    if not np.isfinite(objective):
        raise ValueError(
            f"the objective is {objective} in round {round_}, iteration {iteration}: some numbers "
            "are too large or too small, or the data changed during the fit; scale the views"
        )


def _column(values: tuple[Any, ...]) -> Array:
    """One transfer for all values of a GPU."""
    if not any(is_tensor(value) for value in values):
        column = np.array(values)
        return column.astype(float) if column.dtype.kind == "f" else column
    device = next(value.device for value in values if is_tensor(value))
    xp = namespace(next(value for value in values if is_tensor(value)))
    kind = {"dtype": xp.float64, "device": device}
    return on_host(xp.stack([xp.as_tensor(value, **kind) for value in values]))


def consensus_of(factors: Factors, V: Sequence[Array], p: float) -> Array:
    """V* of rows with coefficients V, by the weights of the views and the scale of U."""
    return eq.consensus(list(V), [U.sum(axis=0) for U in factors.U], factors.alpha, p)


# --- the state of the loop ----------------------------------------------------------------------


@dataclass(frozen=True)
class LoopState:
    """What moves in the loops of both methods: parts U, coefficients V, and their consensus V*."""

    U: tuple[Array, ...]
    V: tuple[Array, ...]
    consensus: Array


class Report(dict[str, Any]):
    """An iteration as a callback gets it: its numbers by name, and the state of the loop.

    A callback may keep reports: they let go of the state when it returns.
    """

    state: LoopState | None = None


@storable
@dataclass(frozen=True)
class State(LoopState):
    """Where the loop is before an inner iteration: everything that follows depends on this alone."""

    alpha: Array
    w: Array
    #: ‖x_i − Uv_i‖² of the rows of every view, after its last iteration.
    residuals: tuple[Array, ...]
    #: The terms of the objective by view: weighted error, gap to the consensus, regularizer.
    errors: tuple[Any, ...]
    gaps: tuple[Any, ...]
    penalties: tuple[Any, ...]
    #: The round, view and iteration that come next.
    round: int = 1
    view: int = 0
    iteration: int = 1
    #: The objective at the end of the round before.
    previous: Any = None
    #: The sums over rows of the view whose turn it is, in a state that is saved.
    sums: tuple[Array, ...] | None = None
    #: The lines recorded so far, in a state that is saved.
    history: dict[str, Array] = field(default_factory=dict)

    @property
    def factors(self) -> Factors:
        return Factors(self.U, self.V, self.consensus, self.alpha, self.w)

    def of_view(self, s: int, **parts: Any) -> State:
        """The same state with other parts for view s."""
        new: dict[str, Any] = {}
        for name, part in parts.items():
            old = getattr(self, name)
            new[name] = (*old[:s], part, *old[s + 1 :])
        return replace(self, **new)


# --- scaled views -------------------------------------------------------------------------------

#: Dense views of more bytes than this are scaled when read, not copied.
COPY_LIMIT = 2**28


def scaled(
    views: Views, scalings: list[NonnegativeScaling], dtype: np.dtype, always_copied: bool
) -> list[Matrix]:
    """The scaled views, as copies or, where they are large or in files, scaled when read."""
    size = sum(np.prod(X.shape) for X in views.matrices if not sp.issparse(X)) * dtype.itemsize
    copied = size <= COPY_LIMIT or always_copied
    # Scaled in float64, since the raw numbers may not fit float32; then cast.
    return [
        scaling.apply(X.astype(np.float64, copy=False)).astype(dtype, copy=False)
        if copied and not is_streamed(X)
        else Scaled(X, scaling, dtype)
        for X, scaling in zip(views.matrices, scalings, strict=True)
    ]


def masked(Xs: Sequence[Any], names: Sequence[str], solver: Solver, n_components: int) -> list[Any]:
    """Views with unobserved entries as `MaskedView`; the others as they are."""
    holes = [has_nan(X) for X in Xs]
    rule = own_name(solver)
    if any(holes) and rule != "multiplicative":
        raise ValueError(
            f"view {names[holes.index(True)]!r} has unobserved (NaN) entries, which "
            f"solver={rule or type(solver).__name__!r} does not accept; use solver='multiplicative' or "
            "RobustWMNMF"
        )
    return [
        MaskedView(X, least_entries(X.shape[1], n_components)) if hole else X
        for X, hole in zip(Xs, holes, strict=True)
    ]


def some_rows(views: Views, chosen: Array) -> Views:
    """Some of the samples; all of them as they are."""
    return views if chosen.all() else views.with_matrices([X[chosen] for X in views.matrices])


def checksums(fitted: Sequence[Any]) -> list[str | None]:
    """Checksums of the user's own arrays, where a model reads them rather than a copy."""
    return [digest(X.X) if isinstance(X, Scaled) and not is_streamed(X) else None for X in fitted]


# --- warnings -----------------------------------------------------------------------------------

#: From this weight of one view on, the consensus is that view's alone.
COLLAPSE = 0.9
#: The exponent of the recipe that reproduces the paper.
RECIPE_P = 5.0


def warn_scarce_views(Xs: Sequence[Any], names: Sequence[str], n_components: int) -> None:
    """Say which views are observed for too few rows to learn parts from."""
    for s in np.flatnonzero(reaches(list(Xs), n_components) < 1).tolist():
        X = Xs[s]
        warn_user(
            f"view {names[s]!r} is observed for {int(X.here.sum())} of {X.shape[0]} samples "
            f"({X.counts.sum() / np.prod(X.shape):.1%} of its entries), too few to learn "
            f"{n_components} parts, so its weight is small; leave it out, or choose fewer clusters"
        )


#: With less than this share of the objective, the consensus term has no say in the coefficients.
CONSENSUS_OFF = 0.01


def warn_about(result: FitResult, view_names: Sequence[str], tol: float, p: float) -> None:
    """Warn that the loop did not settle, that one view has taken over, or that p is too large."""
    if result.stop is Stop.MAX_ITER:
        warn_user(
            f"WM-NMF stopped after {result.n_iter} rounds before the objective settled to "
            f"tol={tol:g}; raise max_iter, or set tol=0 for a fixed number of rounds",
            ConvergenceWarning,
        )
    if not result.factors.consensus.any():
        warn_user(
            "the regularizer has driven the consensus to zero: its clusters mean nothing; lower beta",
            CollapseWarning,
        )
    alpha = result.factors.alpha
    if len(alpha) > 1 and alpha.max() > COLLAPSE:
        warn_user(
            f"view {view_names[int(alpha.argmax())]!r} has {alpha.max():.0%} of the view weight: "
            "the consensus has collapsed onto it; use fewer rounds (max_iter) or a larger p",
            CollapseWarning,
        )
    last = {name: float(result.history[name][-1]) for name in ("consensus", "objective")}
    if p > RECIPE_P and len(alpha) > 1 and last["consensus"] < CONSENSUS_OFF * last["objective"]:
        warn_user(
            f"with p={p:g} the consensus term is only {last['consensus'] / last['objective']:.1g} of the "
            "objective, because α^p is tiny: each view is factorized almost alone, and V* is the mean of "
            f"their coefficients; use a smaller p (the recipe has {RECIPE_P:g})"
        )
