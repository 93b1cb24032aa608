"""RobustWMNMF, the recommended estimator: compare the views, weigh and fuse them, then factorize.

The recipe is `RobustWMNMF._fit`. Its first stages, from views to the embedding, are in `manyview.fuse`;
the formulas are in `manyview.maths` (`agreement`, `spectrum`, `equations`). `tests/reference/robust.py`
is the whole method in dense NumPy.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from manyview import fuse
from manyview._arrays import (
    DeviceFlag,
    beside,
    constant,
    converted,
    copied,
    is_tensor,
    namespace,
    on_host,
    one_hot,
)
from manyview._types import Array, Callback, Factors, FitResult, Matrix, Seed, Stop, Views, storable
from manyview._warn import warn_user
from manyview.base import (
    NAMED,
    SHARED_CONSTRAINTS,
    ZERO_ROWS,
    ByView,
    MultiViewEstimator,
    ViewWeights,
    generator,
    in_dtype,
    on_host_factors,
    refuse_changed,
    remember,
    reordered,
    with_weight,
    working_dtype,
)
from manyview.criteria import choose
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.numpy.batches import FEWEST, Batches
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import Engine, unit_sums
from manyview.engines.numpy.graph import on_host as graph_on_host
from manyview.engines.numpy.masked import MaskedView
from manyview.engines.numpy.neighbors import equal_share, farthest, nearest
from manyview.engines.numpy.presence import has_nan, is_table
from manyview.engines.numpy.repeats import Repeats, distinct, expanded_graph
from manyview.engines.numpy.rows import rows_of
from manyview.engines.numpy.scaling import SCALINGS, Scaling, Unscaled
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.table import ENGINES
from manyview.engines.threads import Threads, blocks
from manyview.fuse import hidden_groups, tell_merged
from manyview.labels import (
    by_size,
    check_installed,
    clusters_of_halves,
    count_communities,
    fused_communities,
    row_kinds,
    tell_empty_clusters,
    tell_few_kinds,
    tell_unequal_kinds,
)
from manyview.maths import agreement as ag
from manyview.maths import equations as eq
from manyview.maths.agreement import Agreement
from manyview.maths.solvers import SimplexHALS
from manyview.maths.tails import COUNTS, HEAVY
from manyview.nonnegative import tell_rounded
from manyview.regularizers import NoPenalty
from manyview.storage.checkpoint import Checkpoint
from manyview.views.containers import Collection
from manyview.views.ids import is_missing, places
from manyview.views.views import LOAD_LIMIT
from manyview.wmnmf import LoopState, Progress

#: Numbers of clusters that the data decide.
_FOUND = StrOptions({"auto", "communities"})


@storable
class RobustWMNMF(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, MultiViewEstimator
):
    """Robust weighted multi-view clustering: the recommended default.

    The first stage compares the views in closed form: two views agree if neighbors in one are
    close in the other. The agreement gives the view weights α (about 0 for a view that agrees
    with no other), the sample weights w, a fused neighbor graph, and an embedding P of the graph.
    The second stage is a factorization that explains the clusters by parts U of every view. It
    minimizes::

        Σ_s α_s Σ_i w_is [ ‖x_i − U_s v_i‖²/τ_s + λ‖v_i − v*_i‖² ] + β Σ_ik v*_ik ‖p_i − c_k‖²

    over U ≥ 0 with unit column sums, V ≥ 0, rows of V* on the simplex, and cluster centers c. The
    objective never rises. The largest entry of a row of V* is the label. Negative values and
    features of any unit are allowed: each feature is scaled by its 1st and 99th percentile, after a
    logarithm in views with heavy tails; the more zeros a view has, the more it is treated as counts.

    A row of NaN (an id absent from a DataFrame), or of zeros where ``zero_rows`` says so, means
    that the sample lacks this view. NaN inside a row is ignored (if over half of the features of a
    row are NaN, the row is treated as missing). A sample
    missing in every view gets the label −1. A column or view without any value is left out with a
    warning: its entries of ``components_`` and its weight are 0, and `impute` leaves it NaN.

    Parameters
    ----------
    n_clusters : int, "auto" or "communities", default="auto"
        Number of clusters. "auto" uses `select_n_clusters`, whose result and reasons are in
        ``selection_``. "communities" (extra ``communities``) starts from the Leiden communities of
        the fused graph, which suits single cells and other data with clusters of very unequal
        size. Any graph has communities; "auto" and `stability` show whether there are clusters.
    resolution : float, default=1
        With "communities": a higher value gives more and smaller ones of the same graph. Those of fewer
        than 5 samples (5% of less than 100) join the community they share most links with.
    consensus_weight : float, default=1
        λ, how strongly the coefficients of a view follow the consensus.
    cluster_weight : float, default=5
        β, how strongly the consensus follows the clusters of the fused graph.
    n_neighbors : int, default=10
        Neighbors in the graph of a view.
    reliability_weight : float, default=0.05
        δ, how much the agreement of two random halves of a view's own features adds to the agreement
        with other views. It matters most if views do not agree.
    scale : {"auto", "log", "quantile", "sqrt", "embedding"} or None, or a dict, default="auto"
        "auto" decides for each view: "sqrt" (square roots, rows of unit length) if over 90% are zeros, or
        40% in whole numbers; "part sqrt" from 30% (10%) on;
        "log" (percentiles, then a logarithm that puts the mean of a feature in the middle) for counts
        and heavy tails; "embedding" (rows of unit length, no column stretched) for principal components
        and views named ``X_…`` with negative values; otherwise "quantile" (percentiles). ``None`` uses the
        data unchanged. A dict sets these for views by name, {"rna": "log", "cnv": None}; others are
        "auto".
    view_weights : {"learned", "equal"}, one number for every view, or a dict, default="learned"
        α: learned, the same for all views, or your numbers (scaled to sum to 1). A dict has a number
        for every view, {"rna": 2, "protein": 1, "cnv": 0}. A view of weight 0 does not influence the
        labels. ``learned_view_weights_`` always has the learned weights.
    zero_rows : {"auto", "missing", "observed"}, or a dict, default="auto"
        What a row of zeros means: the sample lacks the view, or zeros are values (no mutation, no
        word). "auto": zeros are values in views of zeros and ones, of one column and with negative
        numbers; a row of zeros is missing in other views (counts, words, images) and in sparse views
        that lack samples of others. A dict sets it for views by name, {"mutations": "observed"};
        others are "auto".
    learn_sample_weights : bool, default=True
        Whether w comes from the data; otherwise all present views have the same weight.
    max_iter : int, default=200
    tol : float, default=1e-5
        Stop when an iteration lowers the objective by less than this share. From 10,000 samples on, also
        when it lowers it by less than 10 times this share and the labels stayed the same for five
        iterations (at most 1 in 10,000 changed in each).
    missing : {"allow", "error"} or a dict, default="allow"
        Whether NaN and absent ids are accepted; a dict sets it for views by name.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view, or a dict with a number
        or a list of columns (names in a DataFrame, otherwise positions) for each view, {"rna": 100,
        "meth": 400}; ``None``: one view. Of a list: a name for each view. Of a dict, MuData,
        Dataset or DataFrame with two levels of columns: the names of those to use; of an AnnData:
        parts such as ["X", "obsm:protein", "layers:counts"].
    engine : {"numpy", "torch", "dask"}, default="numpy"
        Where the computation runs. "torch" (extra ``torch``): for GPUs; NumPy in, NumPy out; the
        fitted model lives on the host, and so does `predict`. "dask" (extra ``dask``): Dask workers
        read dask arrays of over 256 MiB, project their rows onto 64 leading directions and make the passes
        of the factorization; neighbors, weights, graph and embedding are found in this process, to which
        these coordinates come, and V and V* in every iteration. Smaller arrays are brought here whole.
    device : str, default="auto"
        With engine="torch": "cpu", "cuda" (or "cuda:1", …), or "auto", a GPU where there is one and
        the views are large enough that the transfer pays off.
    n_jobs : int, optional
        Threads; ``None`` takes the cores this process may use. The results are the same for any
        number. −1 takes all cores, −2 all but one.
    dtype : dtype, optional
        Precision of the computation. ``None`` computes in float64 (in float32 if the input is
        float32 and larger than 1 GiB) and returns the input's precision.
    checkpoint : path, or (path, seconds), optional
        Write the state of the fit to this file every minute (or every ``seconds``). A fit that finds
        the file goes on from there to the same result, bit for bit; when it is done the file is
        removed. A checkpoint of other data or settings is refused.
    random_state : int, RandomState, Generator or None
    verbose : int, default=0
    callback : callable, optional
        Called after every iteration with a dict of its objective terms, whose attribute ``state`` is
        the frozen state of the loop (U, V, consensus, …) during the call; True stops the fit.

    Attributes
    ----------
    n_clusters_ : int, fewer than requested if there are fewer distinct samples
        With "auto" and "communities" what was found.
    selection_ : Selection, with ``n_clusters="auto"``
    labels_ : ndarray (N,); −1 for samples missing in every view that has weight
        The largest cluster is 0.
    confidence_ : ndarray (N, K), how sure each label is; rows sum to 1
        The probability that a refit on resampled data puts the sample into each cluster,
        estimated from the embedding. It is not the probability that the cluster is one of your
        classes: a reproducible cluster can be wrong.
    consensus_ : ndarray (N, K), V*; rows sum to 1
    view_weights_ : ndarray (n_views,), α, those used
    learned_view_weights_ : ndarray (n_views,), learned α, whatever ``view_weights`` says
    sample_weights_ : ndarray (N, n_views), w in [0, 1], 0 where missing
    reliance_ : ndarray (N, n_views), α_s w_is normalized over the views that describe the sample
    embedding_ : ndarray (N, 6 K), coordinates of the samples in the fused graph
    agreement_ : ndarray (n_views, n_views), how much views agree
    split_half_ : ndarray (n_views,), how much the halves of each view agree
    cluster_structure_ : ndarray (n_views,), how clearly each view has clusters
        How reproducible K clusters of this view alone are in random halves of the samples (adjusted
        Rand index, from 0 to 1): high for separated clusters, low for noise and gradients. It is a
        factor of the view weights. NaN with a single view. ``cluster_structure_error_`` is its standard
        error.
    sample_agreement_ : ndarray (N,), how far the views agree on each sample, from 0 to 1
        NaN with fewer than two views. With two views a low value means that one of them is wrong about
        the sample. If the sample is far from all others in one of them, `sample_weights_` is lower for
        this view; if a row belongs to another sample, the weights do not show in which view.
    cluster_view_weights_ : ndarray (K, n_views), how much each view sets each cluster apart; rows sum to 1
    redundancy_ : ndarray (n_views, n_views), how much views repeat each other, from 0 to 1
        Correlation of their distances between neighbors (0 where negative). Views that see the same
        clusters independently have about 0; views computed from the same data more.
    scaling_ : dict of view → "log", "quantile", "sqrt", "part sqrt", "embedding" or "none"
    zero_rows_ : dict of view → "missing" or "observed", what a row of zeros is, also at `predict`
    log_reasons_ : dict of view → "counts" or "heavy tails", where "auto" took a logarithm
    graph_ : sparse array (N, N), the fused neighbor graph
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
        "scale": [StrOptions({"auto", *SCALINGS, "none"}), dict, None],
        "view_weights": [StrOptions({"learned", "equal"}), list, tuple, np.ndarray, dict],
        "zero_rows": [StrOptions(set(ZERO_ROWS)), dict],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "missing": [StrOptions({"allow", "error"}), dict],
    }
    _by_view: ClassVar[dict] = {
        "scale": ("auto", *SCALINGS, None),
        "zero_rows": ZERO_ROWS,
        "missing": ("allow", "error"),
    }

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        resolution: float = 1.0,
        consensus_weight: float = 1.0,
        cluster_weight: float = 5.0,
        n_neighbors: int = 10,
        reliability_weight: float = 0.05,
        scale: ByView = "auto",
        view_weights: ViewWeights = "learned",
        zero_rows: ByView = "auto",
        learn_sample_weights: bool = True,
        max_iter: int = 200,
        tol: float = 1e-5,
        missing: ByView = "allow",
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

    def fit(self, X: Any, y: Any = None, *, batch: Any = None) -> RobustWMNMF:
        """Weigh the views, fuse them, and factorize.

        Parameters
        ----------
        X : list, dict, DataFrames, files, or one 2-D array
            The views.
        y : ignored
        batch : sequence or Series, optional
            The batch of every sample, in the order of the rows; a Series is matched by the names of the
            samples. Batches are aligned in every view before distances are measured, and the weights
            of the views are learned within batches. Groups that a batch lacks stay apart if the batches
            share most others; a warning says where batches seem to share few, so that groups may be merged.
            `predict` then needs the batches of the new samples, which may be new.

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
            if batch is not None:
                views = self._with_batch(views, batch, reset=True)
            self._batch = views.batch
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
        settings = fuse.Settings.of(self, names, self._kept())
        present, self.zero_rows_ = fuse.presence(views, self.zero_rows)
        self._data, checksums = remember(views)
        self._rows = fuse.described(views, with_weight(present, settings.view_weights))
        views, present = fuse.only(views, present, self._rows)
        there, dtype = engine.bring(views, self.dtype, dtype)
        if dtype == np.float32:
            for X, name in zip(views.matrices, views.names, strict=True):
                if self._of_view("scale", name) is None:
                    tell_rounded(X, name)
        self._scalings = fuse.fit_scalings(there, present, self.scale)
        if self.n_clusters == "auto":
            given = (views, present, self._scalings, settings, generator(self.random_state))
            self.selection_ = checkpoint.keep("selection", lambda: choose(*given, dtype=self.dtype))
            self.n_clusters_ = self.selection_.n_clusters
        elif not isinstance(self.n_clusters, str):  # communities are counted in the graph, later
            self.n_clusters_ = self.n_clusters
        spaces = self._measured(there, views, present, dtype, engine)
        if self._batches is not None:
            self._batches.tell_few_shared()
        del there  # on a GPU a copy of the data
        if self.n_clusters != "communities":
            # No more clusters than distinct samples: identical ones stay together.
            telling = with_weight(views.matrices, settings.view_weights)
            kinds = row_kinds(telling, self.n_clusters_, np.any(present, axis=0))
            if kinds is not None:
                tell_few_kinds(int(kinds.max()) + 1, self.n_clusters_)
                self.n_clusters_ = int(kinds.max()) + 1
        found = self._solve(spaces, settings, dtype, rng, checkpoint, engine)
        self._expose(found, views)
        self._digests = checksums()

    def _measured(
        self, there: Views, views: Views, present: list[Array], dtype: np.dtype, engine: Engine
    ) -> list[Geometry]:
        """The distances of every view, in which batches are aligned; ``there`` is on the engine."""
        if views.batch is None:
            self._batches = None
            return fuse.measure(there, present, self._scalings, dtype, engine)
        self._batches, spaces = fuse.measure_batches(views, present, self._scalings, dtype)
        return spaces

    def _solve(
        self,
        spaces: list[Geometry],
        settings: fuse.Settings,
        dtype: np.dtype,
        rng: np.random.Generator,
        checkpoint: Checkpoint,
        engine: Engine,
        known: Agreement | None = None,
    ) -> Results:
        """The recipe goes on: agreement → embedding → start → parts."""
        threads = Threads(self.n_jobs)
        present = [view.present for view in spaces]
        distinct_spaces, repeats = distinct(spaces, with_weight(spaces, settings.view_weights))
        number: Any = count_communities if self.n_clusters == "communities" else self.n_clusters_
        if known is not None:
            agreement = known
            rng.integers(2**31)  # as `fuse.agree` does
        else:
            agreement = checkpoint.keep(
                "agreement",
                lambda: fuse.agree(distinct_spaces, settings, number, rng, threads),
            )
        anywhere = fuse.counted(present, agreement.alpha)
        groups: Array | None = None
        if self.n_clusters == "communities":
            groups, self.n_clusters_ = fused_communities(
                agreement, anywhere, repeats, self.resolution, rng, checkpoint
            )
        K = self.n_clusters_
        if repeats is not None and repeats.mass is not None:
            tell_unequal_kinds(repeats.mass, K)
        P = checkpoint.keep("embedding", lambda: fuse.embed(agreement, K, rng, threads))
        P = converted(P, dtype)
        self._check_n_clusters(K, int(anywhere.sum()))
        if groups is None:
            labels = checkpoint.keep(
                "start",
                lambda: fuse.start_labels(P, anywhere, K, rng, repeats, agreement.distant),
            )
        else:
            labels = converted(beside(groups, P), namespace(P).int64)
        w = agreement.w
        if repeats is not None:
            P, labels, w = P[repeats.of], labels[repeats.of], w[repeats.of]
        # Copies are alike in the views with weight; in others one may lack what the first has.
        w = beside(np.where(anywhere[:, None] & np.column_stack(present), w, 0), P)
        start = Start(agreement.alpha, w, P, labels, K)
        result, centers, taus = self._parts(spaces, start, threads, checkpoint, engine)
        return Results(spaces, agreement, P, repeats, result, centers, taus, present, anywhere)

    def _at_resolution(self, resolution: float, **loop: Any) -> RobustWMNMF:
        """The fit with other communities of this fit's graph; ``loop`` are parameters such as max_iter."""
        if self.n_clusters != "communities" or self.engine != "numpy":
            raise ValueError(
                "other resolutions go with n_clusters='communities' and engine='numpy', not with "
                f"n_clusters={self.n_clusters!r} and engine={self.engine!r}; fit again"
            )
        new = copy(self).set_params(resolution=resolution, checkpoint=None, **loop)
        new._validate_params()
        names = [str(name) for name in self.view_names_in_[self._kept()]]
        for s, name in enumerate(names):
            refuse_changed(self._data[s], self._digests and self._digests[s], name)
        features = (None,) * len(names)
        given = Views(tuple(self._data), tuple(names), features, batch=self._batch)
        views, present = fuse.only(given, fuse.quiet_presence(given, self.zero_rows_), self._rows)
        dtype, rng = working_dtype(views, self.dtype), generator(self.random_state)
        settings = fuse.Settings.of(new, list(self.view_names_in_), self._kept())
        with new._opened() as engine:
            spaces = new._measured(views, views, present, dtype, engine)
            checkpoint = Checkpoint(None, new, views, rng)
            found = new._solve(spaces, settings, dtype, rng, checkpoint, engine, self._agreement)
            new._expose(found, views)
        return new

    def _parts(
        self,
        spaces: list[Geometry],
        start: Start,
        threads: Threads,
        checkpoint: Checkpoint,
        engine: Engine,
    ) -> tuple[FitResult, Array, list[float]]:
        """The factorization: its result, the cluster centers, and τ of every view."""
        rows = [RobustView(engine.factor_rows(view), view.present, threads) for view in spaces]
        weights = Weights(self.consensus_weight, self.cluster_weight)
        result, centers = checkpoint.keep(
            "fit",
            lambda: run_robust(
                rows, start, weights, self.max_iter, self.tol, self._callback, checkpoint
            ),
        )
        return result, centers, [view.tau for view in rows]

    _reads_files = True
    _takes_relations = True

    # --- new samples ----------------------------------------------------------------------

    def fit_predict(self, X: Any, y: Any = None, **kwargs: Any) -> Array:
        """Fit, and return ``labels_`` (as a tensor, if the views are tensors)."""
        return self._like_input(super().fit_predict(X, y, **kwargs), X)

    def transform(self, X: Any, *, batch: Any = None) -> Array:
        """V* of samples (rows sum to 1), placed by their fitted neighbors and U.

        It corresponds to ``consensus_`` of the fit. `predict_proba` has the confidence of labels.
        """
        views = self._read_new(X, batch)
        V_star = in_dtype(self._place(views).consensus, self._output_dtype(views))
        return self._like_input(self._named_rows(V_star, views), X)

    def predict(self, X: Any, *, batch: Any = None) -> Array:
        """Cluster of each sample; −1 where every view that has weight is missing.

        After a fit with ``batch``, that of the new samples is needed as well: one of the fit, or a new
        one, which is aligned with the fitted samples.
        """
        return self._like_input(self._place(self._read_new(X, batch)).labels, X)

    def predict_proba(self, X: Any, *, batch: Any = None) -> Array:
        """Probability of each cluster, for each sample (rows sum to 1), as in ``confidence_``.

        The probability that a refit on resampled data assigns the sample to it. The largest entry is the
        cluster of `predict`; a sample that no view with weight describes has 1/K everywhere.
        """
        views = self._read_new(X, batch)
        placed = self._place(views)
        sure = in_dtype(
            self._confidence(placed.embedding, placed.labels), self._output_dtype(views)
        )
        return self._like_input(sure, X)

    def score(self, X: Any, y: Any = None, *, batch: Any = None) -> float:
        """Minus the mean reconstruction error of the present rows, in units of each view's spread.

        More clusters reconstruct better: `select_n_clusters` chooses their number, not a grid search.
        """
        views = self._read_new(X, batch)
        self._tell_favored()
        error = self._place(views).error
        if error is None:
            raise ValueError("score needs a sample that some view describes; all are missing")
        return -error

    @property
    def needs_batch(self) -> bool:
        """Whether the fit aligned batches, so that new samples need theirs."""
        return self._batches is not None

    def batch_of(self, views: Views) -> Array | None:
        """The batch of every row of the views of the fit, for refits; None after a fit without batches."""
        fitted, names, known = self.sample_names_in_, views.sample_names, self._batch
        if known is None:
            return None
        if fitted is not None and names is not None:
            at = places(map(str, names), map(str, fitted))
        elif fitted is None and names is None and views.n_samples == len(known):
            at = np.arange(len(known))
        else:
            at = np.array([-1])
        if len(at) != views.n_samples or (at < 0).any():
            raise ValueError(
                "the model was fitted with batch=, and a refit needs the batch of every sample: pass the "
                "views of the fit, with the same names of samples"
            )
        return known[at]

    def _refuse_second_cohort(self) -> None:
        if hasattr(self, "_of_fit"):
            raise ValueError(
                "this model has the results of a second cohort, which predict_cohort found, and no data; "
                "use the model that was fitted"
            )

    def _read_new(self, X: Any, batch: Any) -> Views:
        self._refuse_second_cohort()
        views = self._read(X, reset=False)
        return views if batch is None and self._batches is None else self._with_batch(views, batch)

    def _with_batch(self, views: Views, batch: Any, reset: bool = False) -> Views:
        """The views with the batch of every sample as text."""
        if not reset and (batch is None) != (self._batches is None):
            raise ValueError(
                "the model was fitted with batch=: pass predict(X, batch=...) the batch of every new "
                "sample, one of the fit or a new one"
                if batch is None
                else "the model was fitted without batch=; leave it out, or fit again with it"
            )
        if reset and self.engine != "numpy":
            raise ValueError(
                f"batch= is for engine='numpy'; engine={self.engine!r} aligns no batches. Leave one out"
            )
        names = views.sample_names
        if names is not None and hasattr(batch, "reindex"):
            batch = batch.set_axis(batch.index.astype(str))
            if not batch.index.is_unique:
                raise ValueError("the names of the samples in batch are repeated; make them unique")
            batch = batch.reindex([str(name) for name in names])
        labels = np.asarray(batch, dtype=object)
        if labels.shape != (views.n_samples,):
            raise ValueError(
                f"batch must have one value for each of {views.n_samples} samples, got shape {labels.shape}"
            )
        lacking = np.flatnonzero([is_missing(value) for value in labels])
        if len(lacking):
            first = lacking[0] if names is None else repr(str(names[lacking[0]]))
            raise ValueError(
                f"{len(lacking)} samples have no batch (the first is {first}); give them one, such as "
                "'unknown', or leave them out"
            )
        # A column of whole numbers becomes 1.0, 2.0 where values of other samples are missing.
        whole = (isinstance(v, float | np.floating) and float(v).is_integer() for v in labels)
        labels = np.array([str(int(v) if w else v) for v, w in zip(labels, whole, strict=True)])
        found, sizes = np.unique(labels, return_counts=True)
        if reset and len(found) == 1:
            raise ValueError(f"all samples are of the batch {str(found[0])!r}; leave batch out")
        small = [
            f"{str(name)!r} ({size})"
            for name, size in zip(found, sizes, strict=True)
            if size < FEWEST and (reset or name not in self._batches.names)  # type: ignore[union-attr]
        ]
        if small:
            warn_user(
                f"batches of fewer than {FEWEST} samples: {', '.join(small[:NAMED])}. So few hardly show "
                "how a batch differs, and these samples may be in wrong clusters; join batches that were "
                "processed together"
            )
        return replace(views, batch=labels)

    def _place(self, views: Views) -> Placed:
        """Embedding and w of new samples from fitted neighbors, then V and V* with U kept."""
        spaces, known, factors = self._geometry, self._embedding, self._result
        if self._repeats is not None:
            spaces = [view.distinct(*self._repeats) for view in spaces]
            known = known[self._repeats[0]]
        with threadpool_limits(1):
            present = fuse.quiet_presence(views, self.zero_rows_)
            Zs = fuse.scaled(views, present, self._scalings, working_dtype(views, self.dtype))
            batch: Any = views.batch
            moved = None if batch is None else self._batches.move(Zs, present, batch)  # type: ignore[union-attr]
            observed = [~np.isnan(Z) if has_nan(Z) else None for Z in Zs]
            for view, o, name in zip(spaces, observed, views.names, strict=True):
                if o is not None and not view.takes_holes and moved is None:
                    raise ValueError(
                        f"view {name!r} has unobserved (NaN) entries inside rows; the model measures its "
                        "distances along leading directions (it was too large to hold), which need whole "
                        "rows: fill them in, or leave out the whole row"
                    )
            Zs = Zs if moved is None else moved[1]
            Zs = [Z if o is None else np.where(o, Z, 0) for Z, o in zip(Zs, observed, strict=True)]
            along, holes = Zs, observed
            if moved is not None:
                along, holes = moved[0], [None for _ in Zs]
            P, w = neighborhoods(
                spaces, known, self._agreement, self.n_neighbors, along, holes, present
            )
            rows = [
                RobustView(unit_sums(Z, o), here, tau=tau)
                for Z, o, here, tau in zip(Zs, observed, present, self._taus, strict=True)
            ]
            distances = eq.cluster_distances(P, self._centers)
            V_star = converted(soft_start(distances.argmin(axis=1), len(self._centers)), P.dtype)
            V = [copied(V_star) for _ in rows]
            for _ in range(PLACING_STEPS):
                V = [
                    view.update_V(U, Vs, V_star, w[:, s], self.consensus_weight)
                    for s, (view, U, Vs) in enumerate(zip(rows, factors.U, V, strict=True))
                ]
                V_star = eq.simplex_consensus(
                    V, factors.alpha, w, distances, self.consensus_weight, self.cluster_weight
                )
            errors = [
                (view.residuals(U, Vs) / view.tau)[here].mean()
                for view, U, Vs, here in zip(rows, factors.U, V, present, strict=True)
                if here.any()
            ]
        anywhere = fuse.counted(present, factors.alpha)
        V_star = np.where(anywhere[:, None], V_star, 1 / len(self._centers))
        return Placed(V_star, P, anywhere, float(np.mean(errors)) if errors else None, w)

    def _placed_on(self, views: Views, scalings: list[Any]) -> RobustWMNMF:
        """A copy whose results are those of unseen samples, for tables and reports; it cannot predict."""
        new = copy(self)
        new._scalings, new._of_fit = scalings, self
        placed, dtype = new._place(views), self._output_dtype(views)
        here = np.column_stack(fuse.quiet_presence(views, self.zero_rows_))
        sure = self._confidence(placed.embedding, placed.labels)
        new.labels_, new._embedding = placed.labels, placed.embedding
        new.confidence_, new.consensus_ = in_dtype(sure, dtype), in_dtype(placed.consensus, dtype)
        new.sample_weights_ = self._all_views(in_dtype(placed.weights * here, dtype))
        new.sample_agreement_ = np.full(len(placed.labels), np.nan)
        new.sample_names_in_, new._rows = views.sample_names, None
        new._geometry = [SimpleNamespace(present=own) for own in here.T]  # type: ignore[misc]
        return new

    def _output_dtype(self, views: Views) -> np.dtype:
        return np.dtype(views.dtype if self.dtype is None else self.dtype)

    def impute(self, view: str | int) -> Array:
        """The fitted data of a view with what is absent filled in from its parts: U v*.

        The data are those of the fit, even if the arrays have changed since (views of over 256 MiB in
        all are not copied: if they have changed, that is an error). Rows where the view is missing are
        filled whole, at the size of a typical row; unobserved entries of other rows at the size of
        their own row. Observed entries are kept; a feature that no row has, or so few that it was
        left out, stays NaN elsewhere. Views of counts come back dense, as shares times the row's (or
        the mean) total. After a fit with batches, what is filled in has no effect of a batch.

        Parameters
        ----------
        view : str or int
            Name or position.

        Returns
        -------
        ndarray (N, n_features)
        """
        check_is_fitted(self)
        self._refuse_second_cohort()
        names = list(self.view_names_in_)
        if isinstance(view, Integral) and 0 <= int(view) < len(names) and view not in names:
            given = int(view)
        elif view in names:
            given = names.index(view)
        else:
            raise ValueError(f"view must be one of {names} or its position, got {view!r}")
        width, dtype = self._view_widths[given], self.consensus_.dtype
        columns = np.ones(width, bool) if self._columns is None else self._columns[given]
        whole = np.full((len(self.labels_), width), np.nan, dtype=dtype)
        if columns.any():
            s = self._kept().index(given)
            # What was observed comes back as it was, whatever the precision of the fit.
            whole = whole.astype(np.result_type(self._data[s].dtype, dtype))
            X, name = self._data[s], self.view_names_in_[given]
            if not is_table(X):
                raise ValueError(f"view {name!r} is a {X.kind}, and impute fills in features only")
            if is_streamed(X):
                raise ValueError(
                    f"{X.label} is read from its file by rows and has nothing missing but rows of "
                    "zeros; impute works on views in memory"
                )
            refuse_changed(X, None if self._digests is None else self._digests[s], name)
            parts = self.components_[given][:, columns]
            guess = self.consensus_.astype(float) @ parts.astype(float)
            present = self._all_rows(self._geometry[s].present)
            whole[:, columns] = filled_in(X, present, guess, self._scalings[s])
        if self._left_out is not None:
            i, j, values = self._left_out[given]
            whole[i, j] = values
        return whole

    # --- scikit-learn --------------------------------------------------------------------------

    @property
    def partial_fit(self) -> Any:
        """Not available; `WMNMF` has it."""
        raise AttributeError(
            "RobustWMNMF has no partial_fit: its weights and its graph come from all samples at "
            "once; use WMNMF for a stream, or fit again and place new samples by predict"
        )

    def _leave_to_workers(self, given: Collection) -> None:
        """Large dask arrays stay where they are; of small ones all distances are measured here."""
        for item in given.items:
            if isinstance(item.matrix, DaskMatrix) and item.matrix.nbytes > LOAD_LIMIT:
                item.matrix.keep = True

    def _zero_is_missing(self, name: str, reset: bool) -> bool:
        found = self._of_view("zero_rows", name) if reset else self.zero_rows_[name]
        return found != "observed"

    def _allows_negative(self, name: str = "") -> bool:
        return True

    def _allows_missing(self, name: str = "") -> bool:
        return self._of_view("missing", name) == "allow"

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
        known = ENGINES.get(self.engine)  # tags are also read before parameters are validated
        tags.input_tags.allow_nan = (
            self._allows_missing() and known is not None and known.takes_holes
        )
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    #: Which samples some view has, where not all; the fit is of these.
    _rows: Array | None = None
    #: The data of the fit, and checksums of the user's own arrays where they are too large to be copied.
    _data: list[Matrix]
    _digests: Any = None
    #: Of a copy with the results of unseen samples: the model.
    _of_fit: RobustWMNMF
    #: First rows of distinct samples and how often they count; None where none repeats.
    _repeats: tuple[Array, Array | None] | None = None
    _scalings: list[Scaling]
    #: What aligns unseen samples with those of the fit, after a fit with batches.
    _batches: Batches | None = None
    #: The batch of every sample that was given.
    _batch: Array | None = None
    #: The column of ``obs`` that `tl` found it in.
    _batch_key: str | None = None
    #: What `tl.neighbors` was told and saw: whether variable features alone; checksums of the views.
    _highly_variable: bool | None = None
    _seen: dict[str, str] | None = None
    _geometry: list[Geometry]
    _agreement: ag.Agreement
    _result: Factors
    #: Centers of the clusters in random halves of the samples, and the widths of these.
    _halves: tuple[Array, Array]
    n_clusters_: int

    # --- results -------------------------------------------------------------------------------

    def _expose(self, found: Results, given: Views) -> None:
        """Set the fitted attributes; saving and predicting need no engine."""
        pairs = zip(found.spaces, given.matrices, strict=True)
        self._geometry = [view.for_model(sp.issparse(X)) for view, X in pairs]
        self._embedding = on_host(found.embedding)
        agreement = replace(
            found.agreement,
            view_graphs=[graph_on_host(graph) for graph in found.agreement.view_graphs],
            fused=graph_on_host(found.agreement.fused),
            fused_single=graph_on_host(found.agreement.fused_single),
        )
        self._agreement = agreement
        repeats, anywhere = found.repeats, found.anywhere
        factors = on_host_factors(found.fit.factors)
        labels = np.where(anywhere, factors.consensus.argmax(axis=1), -1)
        order = by_size(labels, self.n_clusters_)
        self._result, self._taus = reordered(factors, order), found.taus
        self._centers = on_host(found.centers)[order]
        self._repeats = None if repeats is None else (repeats.first, repeats.mass)
        self._warn(found.fit, self._all_rows(anywhere))
        self.graph_ = expanded_graph(agreement.fused, repeats)
        if self._rows is not None:  # a graph of all that were given
            edges, place = self.graph_.tocoo(), np.flatnonzero(self._rows)
            i, j = (place[ends] for ends in edges.coords)
            self.graph_ = sp.csr_array((edges.data, (i, j)), shape=(len(self._rows),) * 2)
        dtype = np.dtype(given.dtype if self.dtype is None else self.dtype)
        V_star = np.where(anywhere[:, None], self._result.consensus, 1 / self.n_clusters_)
        labels = np.where(anywhere, V_star.argmax(axis=1), -1)
        self.labels_ = self._all_rows(labels, empty=-1)
        communities = self.n_clusters == "communities"
        remedy = "lower the resolution" if communities else "choose fewer clusters"
        tell_empty_clusters(labels, self.n_clusters_, remedy)
        self._tell_distant(given, found)
        even = 1 / self.n_clusters_
        self._halves = clusters_of_halves(self._embedding, labels, self._repeats, self.n_clusters_)
        sure = self._confidence(self._embedding, labels)
        self.confidence_ = self._all_rows(in_dtype(sure, dtype), even)
        self.consensus_ = self._all_rows(in_dtype(V_star, dtype), even)
        factors = self._result
        self.view_weights_ = self._all_views(agreement.alpha)
        self.sample_weights_ = self._all_rows(self._all_views(in_dtype(factors.w, dtype)))
        self.components_ = self._all_columns([in_dtype(U.T, dtype) for U in factors.U])
        coefficients = {
            s: self._all_rows(in_dtype(np.where(here[:, None], V, V_star), dtype), even)
            for s, V, here in zip(self._kept(), factors.V, found.present, strict=True)
        }
        every = range(len(self._view_widths))
        self.coefficients_ = [coefficients.get(s, self.consensus_) for s in every]
        self.agreement_ = self._all_views(self._all_views(agreement.matrix).T).T
        self.split_half_ = self._all_views(agreement.split_half)
        self.cluster_structure_ = self._all_views(agreement.structure)
        self.cluster_structure_error_ = self._all_views(agreement.structure_error)
        on_samples = agreement.sample_agreement
        if repeats is not None:
            on_samples = on_samples[repeats.of]
        self.sample_agreement_ = self._all_rows(in_dtype(on_samples, dtype), np.nan)
        self.cluster_view_weights_ = self._all_views(
            fuse.cluster_view_weights(found.spaces, labels, agreement, self.n_clusters_)
        )
        self.redundancy_ = self._all_views(self._all_views(agreement.redundancy).T).T
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
        more = "if they are a group of their own, choose more clusters, or for communities"
        limited = (
            "features are limited to their 1st to 99th percentile, which hides a group this small: if it "
            "is one, take it out, or scale the features yourself, and then use scale=None and communities"
        )
        for groups, remedy in ((seen, more), (hidden, limited)):
            if self._rows is not None:
                groups = [np.flatnonzero(self._rows)[group] for group in groups]
            tell_merged(groups, self.labels_, self.n_clusters_, self.sample_names_in_, remedy)

    @property
    def scaling_(self) -> dict[str, str]:
        """How each view was made comparable: "log", "quantile", "sqrt", "embedding" or "none"."""
        found = {str(name): "none" for name in self.view_names_in_}
        for name, scaling in zip(self.view_names_in_[self._kept()], self._scalings, strict=True):
            found[str(name)] = scaling.kind
        return found

    @property
    def log_reasons_(self) -> dict[str, str]:
        """Why ``scale="auto"`` took the logarithm of a view: "counts" or "heavy tails"."""
        pairs = zip(self.view_names_in_[self._kept()], self._scalings, strict=True)
        return {str(name): scaling.because for name, scaling in pairs if scaling.because}

    def _all_rows(self, array: Array, empty: float = 0) -> Array:
        """Rows of the fit as rows of what was given, ``empty`` where no view has the sample."""
        if self._rows is None:
            return array
        whole = np.full((len(self._rows), *array.shape[1:]), empty, dtype=array.dtype)
        whole[self._rows] = array
        return whole

    @property
    def embedding_(self) -> Array:
        """Where the samples are in the embedding of the fused graph; at 0 if no view has them."""
        return self._all_rows(self._embedding)

    @property
    def learned_view_weights_(self) -> Array:
        """α as the data give it; the same as ``view_weights_`` unless others were given."""
        return self._all_views(self._agreement.learned)

    @property
    def reliance_(self) -> Array:
        """Which view each sample relies on: α_s w_is, normalized over views (N×n_views)."""
        described = np.column_stack([view.present for view in self._geometry])
        described = self._all_rows(self._all_views(described))
        return ag.reliance(self.view_weights_, self.sample_weights_, described)

    def _confidence(self, P: Array, labels: Array) -> Array:
        """Probability of each cluster from places in the embedding; even without a label."""
        with threadpool_limits(1):
            shares = eq.cluster_confidence(P, np.maximum(labels, 0), *self._halves)
        return np.where(labels[:, None] >= 0, shares, 1 / self.n_clusters_)

    def _warn(self, result: FitResult, anywhere: Array) -> None:
        if result.stop is Stop.MAX_ITER:
            warn_user(
                f"RobustWMNMF stopped after {result.n_iter} iterations before the objective settled "
                f"to tol={self.tol:g}; raise max_iter",
                ConvergenceWarning,
            )
        if not any(view.comparable.any() for view in self._geometry):
            warn_user(
                "every view is constant, so the clusters "
                "are meaningless; check that the views were read correctly"
            )
        names = self.view_names_in_[self._kept()]
        found: dict[str, list[str]] = {}
        for name, reason in self.log_reasons_.items():
            found.setdefault(reason, []).append(name)
        if found:
            verbs = {COUNTS: "hold counts", HEAVY: "have heavy tails"}
            why = ", ".join(f"views {names} {verbs[reason]}" for reason, names in found.items())
            first = next(iter(self.log_reasons_))
            warn_user(
                f"{why} and were log-transformed; scale={{{first!r}: 'quantile'}} turns this off"
            )
        learned = np.array_equal(self._agreement.alpha, self._agreement.learned)
        repeated = ag.repeated_views(self._agreement.redundancy) if learned else []
        for group in repeated:
            alike = [str(name) for name in names[group]]
            warn_user(
                f"views {alike} are near-duplicates (their distances correlate by "
                f"{ag.REPEATED:g} or more even between neighbors); they share one weight"
            )
        if not anywhere.all():
            warn_user(
                f"{int((~anywhere).sum())} samples are missing in every view that has weight "
                f"(the first is row "
                f"{int(np.flatnonzero(~anywhere)[0])}); they get the label -1"
            )


# --- results of the stages -------------------------------------------------------------------


@dataclass(frozen=True)
class Results:
    """What the stages of a fit and its loop leave behind, where the engine computed it."""

    spaces: list[Geometry]
    agreement: ag.Agreement
    embedding: Array
    repeats: Repeats | None
    fit: FitResult
    centers: Array
    taus: list[float]
    present: list[Array]
    anywhere: Array


# --- the factorization ------------------------------------------------------------------------

SOLVER, NO_PENALTY = SimplexHALS(), NoPenalty()
#: Iterations between two checks of J on a GPU; the value is read at the next check.
CHECK_EVERY = 4
#: From this many samples on, the loop also stops where labels have stayed the same for ``STEADY``
#: iterations (at most 1 in 10,000 samples changed) while J falls by less than ``SLOW`` times ``tol``.
LARGE, STEADY, SLOW, FEW_CHANGES = 10_000, 5, 10, 1e-4
#: Steps on V and V* of unseen rows, with everything else kept.
PLACING_STEPS = 20


class Weights(NamedTuple):
    """λ, how strongly views follow the consensus, and β, how strongly that follows the clusters."""

    consensus: float
    cluster: float


@dataclass(frozen=True)
class Start:
    """What the stages before hand to the loop: weights α and w, the embedding P, first labels."""

    alpha: Array
    w: Array
    P: Array
    labels: Array
    n_clusters: int


@storable
@dataclass(frozen=True)
class RobustState(LoopState):
    """Everything the rest of the loop depends on, after an iteration.

    ``distances`` are those of the embedding to ``centers``, ``errors`` the weighted reconstruction
    errors of the views in units of τ, ``steady`` the iterations since labels last changed.
    """

    centers: Array
    distances: Array
    errors: tuple[Any, ...]
    steady: Any = 0
    iteration: int = 0
    objective: Any = None
    history: dict[str, Array] = field(default_factory=dict)


class RobustView:
    """One view's rows x (L1-normalized), their spread τ, and the steps on them."""

    def __init__(
        self, X: Any, present: Array, threads: Threads | None = None, tau: float | None = None
    ):
        self.masked = X if isinstance(X, MaskedView) else None
        self.rows = rows_of(X.X if isinstance(X, MaskedView) else X, SOLVER, threads)
        self.tau = self._spread(present) if tau is None else tau

    def _spread(self, present: Array) -> float:
        n = max(1, int(present.sum()))
        here = beside(present.astype(self.rows.dtype)[:, None], self.rows.x_sq)
        mean = self._products(here, namespace(here).ones_like(here))[:, 0] / n
        return eq.spread(self.rows.x_sq[present], mean)

    def _products(self, V: Array, w: Array) -> Array:
        """XᵀWV."""
        self.rows.begin(V, V, w, w, NO_PENALTY, basis=True)
        self.rows.sum(V)
        return self.rows.sums.P

    def start_U(self, V: Array, w: Array) -> Array:
        U = self._products(V, w).clip(0)  # count data may be signed; parts are not
        total, xp = U.sum(axis=0), namespace(U)
        U = xp.where(total > 0, U / xp.where(total > 0, total, 1), 1 / len(U))
        return converted(U, V.dtype)

    def step(
        self, U: Array, V: Array, consensus: Array, w: Array, lam: float
    ) -> tuple[Array, Array, Any]:
        """V then U, two sweeps of coordinate descent each, and Σ_i w_i ‖x_i − Uv_i‖².

        α and w cancel row by row in V.
        """
        if self.masked is not None:
            V = self.masked.update_V(U, V, consensus, 1 / self.tau, lam)
            U = self.masked.update_U(U, V, w)
            return U, V, w @ self.residuals(U, V)
        V = self.update_V(U, V, consensus, w, lam, basis=True)
        U = self.rows.step_U(U, 0.0)
        return U, V, self.rows.error(U)

    def update_V(
        self, U: Array, V: Array, consensus: Array, w: Array, lam: float, basis: bool = False
    ) -> Array:
        if self.masked is not None:
            return self.masked.update_V(U, V, consensus, 1 / self.tau, lam)
        precision = constant(1 / self.tau, V)
        self.rows.begin(V, consensus, precision, w, NO_PENALTY, basis)
        return self.rows.collect(self.rows.step_V(U, V, lam, 0.0))

    def residuals(self, U: Array, V: Array) -> Array:
        return (self.masked or self.rows).all_residuals(U, V)


def run_robust(
    views: list[RobustView],
    start: Start,
    weights: Weights,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
    checkpoint: Checkpoint | None = None,
) -> tuple[FitResult, Array]:
    """Minimize J from hard labels; also the centers of the clusters in the embedding.

    ``checkpoint`` is offered the state before every iteration, and a broken-off loop goes on from there.
    """
    progress = Progress(max_iter, callback)

    def recorded(state: RobustState) -> RobustState:
        terms = eq.robust_objective(
            list(state.errors),
            list(state.V),
            state.consensus,
            start.alpha,
            start.w,
            state.distances,
            *weights,
        )
        state = replace(state, objective=terms["objective"])
        progress.record(state.iteration, 0, 1, terms, state)
        return state

    saved: Any = None if checkpoint is None else checkpoint.loop()
    if saved is None:
        state = recorded(first_state(views, start))
    else:
        state = saved
        progress.resume(saved.history)
    on_card = is_tensor(start.P) and start.P.is_cuda  # type: ignore[attr-defined]
    patience, settled, stop = CHECK_EVERY if on_card else 1, DeviceFlag(), Stop.MAX_ITER

    def resumable() -> RobustState:
        return replace(state, history=progress.history())

    while state.iteration < max_iter:
        if checkpoint is not None:
            checkpoint.offer(resumable)
        before = state.objective
        state = recorded(next_state(views, start, weights, state))
        if progress.stopped:
            stop = Stop.CALLBACK
            break
        gain, least = before - state.objective, tol * abs(before)
        # With & and |: on a GPU these are tensors, which are not waited for.
        still = (state.steady >= STEADY) & (gain <= SLOW * least)
        if state.iteration % patience == 0 and settled.latest((gain <= least) | still):
            stop = Stop.CONVERGED if float(gain) <= float(least) else Stop.STEADY
            break
    factors = Factors(state.U, state.V, state.consensus, start.alpha, start.w)
    return FitResult(factors, progress.history(), state.iteration, stop), state.centers


def first_state(views: list[RobustView], start: Start) -> RobustState:
    """V* and all V from the labels, U from the rows."""
    V_star = converted(soft_start(start.labels, start.n_clusters), start.P.dtype)
    V = tuple(copied(V_star) for _ in views)
    U = tuple(view.start_U(V[s], start.w[:, s]) for s, view in enumerate(views))
    errors = tuple(
        start.w[:, s] @ view.residuals(U[s], V[s]) / view.tau for s, view in enumerate(views)
    )
    centers = eq.cluster_centers(start.P, V_star)
    return RobustState(U, V, V_star, centers, eq.cluster_distances(start.P, centers), errors)


def next_state(
    views: list[RobustView], start: Start, weights: Weights, state: RobustState
) -> RobustState:
    """One iteration: V and U of every view, then V*, then the centers."""
    steps = [
        view.step(state.U[s], state.V[s], state.consensus, start.w[:, s], weights.consensus)
        for s, view in enumerate(views)
    ]
    U, V, errors = (tuple(part) for part in zip(*steps, strict=True))
    V_star = eq.simplex_consensus(list(V), start.alpha, start.w, state.distances, *weights)
    centers = eq.cluster_centers(start.P, V_star)
    distances = eq.cluster_distances(start.P, centers)
    errors = tuple(error / view.tau for error, view in zip(errors, views, strict=True))
    steady: Any = 0
    if len(V_star) >= LARGE:
        changed = (V_star.argmax(axis=1) != state.consensus.argmax(axis=1)).sum()
        steady = (state.steady + 1) * (changed <= FEW_CHANGES * len(V_star))
        steady = steady if is_tensor(steady) else int(steady)
    return RobustState(U, V, V_star, centers, distances, errors, steady, state.iteration + 1)


def soft_start(labels: Array, n_clusters: int) -> Array:
    """.8 one-hot + .2/K: columns mean the same cluster in every view."""
    return 0.8 * one_hot(labels, n_clusters) + 0.2 / n_clusters


# --- what is filled in --------------------------------------------------------------------------


def filled_in(X: Matrix, present: Array, guess: Array, scaling: Scaling) -> Array:
    """The data with what is absent taken from ``guess``, the product U v* in scaled units.

    Rows where the view is missing have the size of a typical row, unobserved entries of others the
    size of their row. A feature that no row has stays NaN.
    """
    dense = X.toarray() if sp.issparse(X) else X
    known = ~np.isnan(dense)
    zeros = ~present & ~np.where(known, dense, 0).any(axis=1)
    known &= ~zeros[:, None]  # rows of zeros are treated as missing
    Z = dense if isinstance(scaling, Unscaled) else scaling.apply(dense.astype(float))
    # A row of z is as large, against its U v*, as its observed entries are.
    covered = np.where(known, guess, 0).sum(axis=1)
    size = np.divide(
        np.where(known, Z, 0).sum(axis=1), covered, out=np.zeros(len(Z)), where=covered > 0
    )
    typical = size[present].mean() if present.any() else 1.0
    size = np.where(size > 0, size, typical)[:, None]
    filled = scaling.undo(size * guess)
    if scaling.unit_rows:
        totals = np.nansum(np.abs(dense), axis=1)
        mean_total = totals[present].mean() if present.any() else 1.0
        filled = filled * np.where(totals > 0, totals, mean_total)[:, None]
    filled[:, ~known.any(axis=0)] = np.nan
    return np.where(known, dense, filled)


# --- new samples ------------------------------------------------------------------------------

#: How fast the weight of a neighbor falls with its distance when an unseen row is placed.
SHARPNESS = 4.0
#: Distances held at a time.
HELD = 2**21


@dataclass(frozen=True)
class Placed:
    """Unseen samples: V*, their embedding, and which of them some view with weight describes.

    ``error`` is the mean reconstruction error of the present rows; None if there is none. ``weights`` are
    w of every sample and view.
    """

    consensus: Array
    embedding: Array
    anywhere: Array
    error: float | None
    weights: Array

    @property
    def labels(self) -> Array:
        """−1 where no view with weight has the sample."""
        return np.where(self.anywhere, self.consensus.argmax(axis=1), -1)


def neighborhoods(
    views: list[Geometry],
    P: Array,
    agreement: Agreement,
    n_neighbors: int,
    Zs: list[Matrix],
    observed: list[Array | None],
    present: list[Array],
) -> tuple[Array, Array]:
    """Embedding and weights w of new samples, from their neighbors among the fitted ones (``P``)."""
    weights = agreement.distance_weights
    n_new, dim = len(present[0]), P.shape[1] // 2
    k = ag.in_proportion(n_neighbors, len(P))
    n_nearest = ag.in_proportion(max(ag.SCALES), len(P))
    placed, w = np.empty((n_new, P.shape[1])), np.zeros((n_new, len(views)))
    step = max(1, HELD // views[0].n_samples)
    measured = [view.to_new(Z, o, step) for view, Z, o in zip(views, Zs, observed, strict=True)]
    for rows, *parts in zip(blocks(slice(0, n_new), step), *measured, strict=True):
        here = np.column_stack([p[rows] for p in present])
        ds, slack = (list(part) for part in zip(*parts, strict=True))
        for d, known in zip(ds, here.T, strict=True):
            d[~known] = 1
        F: Array = sum(a * d for a, d in zip(weights, ds, strict=True))
        error: Array = sum(a * e for a, e in zip(weights, slack, strict=True))
        placed[rows] = _neighbor_mean(F, n_nearest, P, error)
        w[rows] = _new_weights(views, ds, slack, here, agreement, k)
    for half in (slice(0, dim), slice(dim, 2 * dim)):
        norms = np.linalg.norm(placed[:, half], axis=1, keepdims=True) * np.sqrt(2)
        placed[:, half] = np.divide(placed[:, half], norms, out=placed[:, half], where=norms > 0)
    return placed, w


def _nearest(d: Array, k: int, slack: Array) -> tuple[Array, Array]:
    """The k nearest rows to unseen ones, ties by row, and their distances."""
    d = d.astype(float)
    return nearest(d, k, None, slack, lambda i, j: d[i, j], equal_share(d.dtype))


def _neighbor_mean(d: Array, k: int, P: Array, slack: Array) -> Array:
    """Mean of P over the k nearest rows, weighted by exp(−4 d/median d): the very near ones count."""
    near_rows, near = _nearest(d, min(k, d.shape[1]), slack)
    scale = np.maximum(np.median(near, axis=1, keepdims=True), np.finfo(float).tiny)
    weights = np.exp(-SHARPNESS * near / scale)
    return np.einsum("ik,ikd->id", weights, P[near_rows]) / weights.sum(axis=1, keepdims=True)


def _new_weights(
    views: list[Geometry],
    ds: list[Array],
    slack: list[Array],
    here: Array,
    agreement: Agreement,
    k: int,
) -> Array:
    """w of unseen rows: do their neighbors in the other views look close in this one?"""
    n_views, n_new = len(views), len(here)
    if n_views == 1:
        return here.astype(float)
    rows, own = np.full((n_views, n_views, n_new), np.nan), np.zeros((n_views, n_new))
    for t, view in enumerate(views):
        count = min(k, int(view.present.sum()))
        if count == 0:
            continue
        candidates = np.where(view.present, ds[t], np.inf)
        near, d = _nearest(candidates, count, slack[t])
        own[t] = 1 - d.mean(axis=1) / agreement.typical[t]
        limit = farthest(d[:, 0], slack[t], equal_share(float))
        crowded = np.flatnonzero(d[:, -1] <= limit)
        crowd = candidates[crowded] <= limit[crowded, None]
        for s in range(n_views):
            if s != t:
                known = (here[:, [s]] & here[:, [t]] & views[s].present[near]).astype(float)
                distance, total = _weighed(np.take_along_axis(ds[s], near, axis=1), known)
                # As near as can be are more than k: all of them are asked.
                known = (crowd & here[crowded][:, [s]] & here[crowded][:, [t]]) * views[s].present
                known = known * (1.0 if view.mass is None else view.mass)
                distance[crowded], total[crowded] = _weighed(ds[s][crowded], known)
                rows[s, t] = ag.contrasts(distance, total, agreement.typical[s])
    w = np.zeros((n_new, n_views))
    for s in range(n_views):
        g = ag.votes(rows[s], rows[:, s], agreement.alpha * (1 - agreement.redundancy[s]))
        w[:, s] = ag.weigh(g, agreement.levels[s])
    if agreement.own_levels is not None:
        both = here.all(axis=1)
        w[both] = ag.blamed(w[both], own[:, both], agreement.own_levels)
    return w * here


def _weighed(values: Array, weight: Array) -> tuple[Array, Array]:
    """Sums of values by their weights, and of these, of every row."""
    return (values * weight).sum(axis=1), weight.sum(axis=1)
