"""`RobustWMNMF`, the recommended estimator: weights from agreement between views, then parts."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from manyview._arrays import converted, namespace
from manyview._types import Array, FitResult, Seed, Views, storable
from manyview.engines.numpy.repeats import distinct
from manyview.engines.protocols import Distances, Engine
from manyview.engines.threads import Threads
from manyview.storage.checkpoint import Checkpoint

from . import agree, stages
from .base import SHARED_CONSTRAINTS, refuse_relations
from .communities import check_installed
from .distinct import tell_unequal_kinds
from .given import ZERO_ROWS, ViewWeights, ZeroRows, check_zero_rows, with_weight
from .impute import remember
from .number import fused_communities
from .precision import working_dtype
from .robust_fit import LoopSettings, RobustView, Start, Weights, run_robust
from .robust_model import RobustModel
from .robust_results import Results
from .seeds import generator

#: Numbers of clusters that the data decide.
_FOUND = StrOptions({"auto", "communities"})


@storable
class RobustWMNMF(RobustModel):
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

    A row of NaN (an id absent from a DataFrame), or of zeros where ``zero_rows`` says so, means
    that this view is missing for this observation; NaN inside a row means unobserved entries, which do
    not count (a row with over half of its features unobserved is taken as missing). An observation
    missing in every view gets the label −1. A column or view without any value is left out with a
    warning and changes nothing: its entries of ``components_`` and its weight are 0, and `impute`
    leaves it NaN.

    Parameters
    ----------
    n_clusters : int, "auto" or "communities", default=8
        Number of clusters. "auto" asks `select_n_clusters`, whose answer and reasons are in
        ``selection_``. "communities" (extra ``communities``) starts from the Leiden communities of
        the fused graph, as many as there are: good for single cells and other data with clusters of
        very unequal size. Any graph has communities: that there are clusters is for "auto" or
        `stability` to say.
    resolution : float, default=1
        Of the communities: more gives more and smaller ones. Those of fewer than 5 observations (5%
        of less than 100) join the community they share most links with.
    consensus_weight : float, default=1
        λ, how strongly the coefficients of a view follow the consensus.
    cluster_weight : float, default=5
        β, how strongly the consensus follows the clusters of the fused graph.
    n_neighbors : int, default=10
        Neighbours in the graph of a view.
    reliability_weight : float, default=0.05
        δ, how much the agreement of two random halves of a view's own features counts beside the
        agreement with other views. It decides where views do not agree.
    scale : {"auto", "log", "quantile", "sqrt"} or None, or a dict, default="auto"
        "auto" looks at each view: "sqrt" (square roots, rows of unit length) if over 90% are zeros;
        "log" (percentiles, then a logarithm that puts the mean of a feature in the middle) for counts
        and heavy tails; otherwise "quantile" (percentiles). ``None`` takes the data as they are. A
        dict gives these by the names of views, {"rna": "log", "cnv": None}; views it lacks are "auto".
    view_weights : {"learned", "equal"}, one number for every view, or a dict, default="learned"
        α: from the data, the same for all views, or yours (made to add up to 1). A dict has a number
        for every view, {"rna": 2, "protein": 1, "cnv": 0}. A view of weight 0 takes no part in the
        labels. What would have been learned is in ``learned_view_weights_`` in any case.
    zero_rows : {"auto", "missing", "observed"}, or a dict, default="auto"
        What a row of zeros says: that the view is missing there, or that nothing was found (no
        mutation, no word). "auto": it is a value in views of zeros and ones, of one column and with
        numbers below zero, and means missing in other views (counts, words, images) and in sparse
        views that lack samples of others. A dict gives it by the names of views,
        {"mutations": "observed"}; views it lacks are "auto".
    learn_view_weights : bool, default=True
        False is an older way to say ``view_weights="equal"``.
    learn_sample_weights : bool, default=True
        Whether w comes from the data; otherwise all present views count alike.
    max_iter : int, default=200
    tol : float, default=1e-5
        Stop when an iteration lowers the objective by less than this share.
    missing : {"allow", "error"}, default="allow"
        Whether NaN is accepted.
    views : sequence of int or of str, optional
        If the input is one 2-D array: the number of columns of each view; ``None``: one view. Of a
        list: a name for each view. Of a dict, MuData, Dataset or DataFrame with two levels of columns:
        the names of those to use; of an AnnData: parts such as ["X", "obsm:protein",
        "layers:counts"].
    engine : {"numpy", "torch", "dask"}, default="numpy"
        Where the computation runs. "torch" (extra ``torch``): for GPUs; NumPy in, NumPy out; the
        fitted model lives on the host, and so does `predict`. "dask" (extra ``dask``): Dask workers
        look for neighbours in dask arrays of over 256 MiB and make the passes of the factorisation;
        weights, graph and embedding are made in this process, to which up to 64 coordinates of every
        row in each view come, and V and V* in every iteration. Smaller arrays are brought here whole.
    device : str, default="auto"
        With engine="torch": "cpu", "cuda" (or "cuda:1", …), or "auto", a GPU where there is one and
        the views are large enough to pay for the way there.
    n_jobs : int, optional
        Threads; ``None`` takes the cores this process may use. The results are the same for any
        number. −1 takes all cores, −2 all but one.
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
        Called after every iteration with a dict of its objective terms, whose attribute ``state`` is
        the frozen state of the loop (U, V, consensus, …) during the call; True stops the fit.

    Attributes
    ----------
    n_clusters_ : int, fewer than asked for where there are fewer distinct observations
        With "auto" and "communities" what was found.
    selection_ : Selection, with ``n_clusters="auto"``
    labels_ : ndarray (N,); −1 for observations missing in every view that has weight
    confidence_ : ndarray (N, K), how sure each label is; rows sum to 1
        The probability that a refit on resampled data puts the observation into each cluster,
        estimated from the embedding. It is no probability that the cluster is a class of yours: a
        cluster that always comes back can be wrong.
    consensus_ : ndarray (N, K), V*; rows sum to 1
    view_weights_ : ndarray (n_views,), α, those used
    learned_view_weights_ : ndarray (n_views,), α as the data give it, whatever ``view_weights`` says
    sample_weights_ : ndarray (N, n_views), w in [0, 1], 0 where missing
    reliance_ : ndarray (N, n_views), α_s w_is normalised over the views that describe the observation
    embedding_ : ndarray (N, 6 K), where the observations are in the fused graph
    agreement_ : ndarray (n_views, n_views), how much views agree
    split_half_ : ndarray (n_views,), how much the halves of each view agree
    redundancy_ : ndarray (n_views, n_views), how much views repeat each other, from 0 to 1
        Correlation of their distances between neighbours (0 where negative). Views that see the same
        clusters independently have about 0; views computed from the same data more.
    scaling_ : dict of view → "log", "quantile", "sqrt" or "none", how each was made comparable
    zero_rows_ : dict of view → "missing" or "observed", what a row of zeros is, also at `predict`
    log_reasons_ : dict of view → "counts" or "heavy tails", where "auto" took a logarithm
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
        **SHARED_CONSTRAINTS,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), _FOUND],
        "resolution": [Interval(Real, 0, None, closed="neither")],
        "consensus_weight": [Interval(Real, 0, None, closed="neither")],
        "cluster_weight": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "reliability_weight": [Interval(Real, 0, None, closed="left")],
        "scale": [StrOptions({*stages.SCALINGS, "none"}), dict, None],
        "view_weights": [StrOptions({"learned", "equal"}), list, tuple, np.ndarray, dict],
        "zero_rows": [StrOptions(set(ZERO_ROWS)), dict],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "missing": [StrOptions({"allow", "error"})],
    }

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        resolution: float = 1.0,
        consensus_weight: float = 1.0,
        cluster_weight: float = 5.0,
        n_neighbors: int = 10,
        reliability_weight: float = 0.05,
        scale: str | dict[str, str | None] | None = "auto",
        view_weights: ViewWeights = "learned",
        zero_rows: ZeroRows = "auto",
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
        random_state: Seed = None,
        verbose: int = 0,
        callback: Any = None,
    ):
        self.n_clusters = n_clusters
        self.resolution = resolution
        self.consensus_weight = consensus_weight
        self.cluster_weight = cluster_weight
        self.n_neighbors = n_neighbors
        self.reliability_weight = reliability_weight
        self.scale = scale
        self.view_weights = view_weights
        self.zero_rows = zero_rows
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
        """Weigh the views, fuse them, and factorise.

        Parameters
        ----------
        X : list, dict, DataFrames, files, or one 2-D array
            The views.
        y : ignored

        Returns
        -------
        RobustWMNMF
            Itself.
        """
        self._validate_params()
        if self.n_clusters == "communities":
            check_installed()
        with self._opened() as engine:
            views = self._read(X, reset=True)
            refuse_relations(self._relations, list(self.view_names_in_), self.engine)
            rng = generator(self.random_state)
            checkpoint = Checkpoint(self.checkpoint, self, views, rng)
            self._fit(views, rng, checkpoint, engine)
            checkpoint.finish()
        return self

    def _fit(
        self, views: Views, rng: np.random.Generator, checkpoint: Checkpoint, engine: Engine
    ) -> None:
        """The recipe: present → scaled → distances, then `_solve`."""
        if not isinstance(self.n_clusters, str):
            self._check_n_clusters(self.n_clusters, views.n_samples)
        dtype = working_dtype(views, self.dtype)
        names = list(self.view_names_in_)
        check_zero_rows(self.zero_rows, names)
        settings = agree.Settings.of(self, names, self._kept())
        present, self.zero_rows_ = stages.presence(views, self.zero_rows)
        self._data, checksums = remember(views)
        self._rows = stages.described(views, with_weight(present, settings.view_weights))
        views, present = stages.only(views, present, self._rows)
        there, dtype = engine.bring(views, self.dtype, dtype)
        self._check_scale(views, dtype)
        self._scalings = stages.fit_scalings(there, present, self.scale, engine)
        self._settle_number(views, present, settings, checkpoint)
        spaces = stages.measure(there, present, self._scalings, dtype, engine)
        del there  # on a GPU a copy of the data
        if self.n_clusters != "communities":
            telling = with_weight(views.matrices, settings.view_weights)
            self._heed_few_kinds(telling, np.any(present, axis=0))
        found = self._solve(spaces, settings, dtype, rng, checkpoint, engine)
        self._expose(found, views, engine)
        self._digests = checksums()

    def _solve(
        self,
        spaces: list[Distances],
        settings: agree.Settings,
        dtype: np.dtype,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
        engine: Engine,
    ) -> Results:
        """The recipe goes on: agreement → embedding → start → parts."""
        threads = Threads(self.n_jobs)
        present = [view.present for view in spaces]
        distinct_spaces, repeats = distinct(spaces, with_weight(spaces, settings.view_weights))
        agreement = checkpoint.keep(
            "agreement",
            lambda: agree.agree(distinct_spaces, settings, rng, engine, threads),
        )
        anywhere = stages.counted(present, agreement.alpha)
        groups: Array | None = None
        if self.n_clusters == "communities":
            groups, self.n_clusters_ = fused_communities(
                agreement, anywhere, repeats, self.resolution, rng, checkpoint, engine
            )
        K = self.n_clusters_
        if repeats is not None and repeats.mass is not None:
            tell_unequal_kinds(repeats.mass, K)
        P = checkpoint.keep("embedding", lambda: agree.embed(agreement, K, rng, engine, threads))
        P = engine.in_precision(P, dtype)
        self._check_n_clusters(K, int(anywhere.sum()))
        if groups is None:
            labels = checkpoint.keep(
                "start", lambda: stages.start_labels(P, anywhere, K, rng, repeats, engine)
            )
        else:
            labels = converted(engine.beside(groups, P), namespace(P).int64)
        w = agreement.w
        if repeats is not None:
            P, labels, w = P[repeats.of], labels[repeats.of], w[repeats.of]
        # Copies are alike in the views with weight; in others one may lack what the first has.
        w = engine.beside(np.where(anywhere[:, None] & np.column_stack(present), w, 0), P)
        start = Start(agreement.alpha, w, P, labels, K)
        result, centres, taus = self._parts(spaces, start, threads, checkpoint, engine)
        return Results(spaces, agreement, P, repeats, result, centres, taus, present, anywhere)

    def _parts(
        self,
        spaces: list[Distances],
        start: Start,
        threads: Threads,
        checkpoint: Checkpoint,
        engine: Engine,
    ) -> tuple[FitResult, Array, list[float]]:
        """The factorisation: its result, the cluster centres, and τ of every view."""
        rows = [RobustView(engine.factor_rows(view), view.present, threads) for view in spaces]
        weights = Weights(self.consensus_weight, self.cluster_weight)
        loop = LoopSettings(weights, self.max_iter, self.tol, self._callback)
        result, centres = checkpoint.keep("fit", lambda: run_robust(rows, start, loop, checkpoint))
        return result, centres, [view.tau for view in rows]
