"""Starting factors: GNMF (the paper's), random, NNDSVD, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.extmath import randomized_svd

from manyview._arrays import on_host
from manyview._types import Array, Factors, Matrix
from manyview._warn import warn_user
from manyview.base import kept_views
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.masked import Fill, MaskedView, least_entries, reaches, views_that_tell
from manyview.engines.numpy.presence import has_nan
from manyview.engines.numpy.rows import rows_of
from manyview.engines.numpy.sources import is_streamed, whole
from manyview.engines.protocols import DeviceView
from manyview.engines.threads import Threads
from manyview.maths.equations import consensus, nonnegative_half, rescale, unit_columns
from manyview.maths.solvers import Multiplicative, Solver
from manyview.regularizers import Term

#: Weight of the graph and number of iterations of the GNMF start in the recipe that reproduces the paper.
GNMF_WEIGHT, GNMF_ITERATIONS = 10.0, 31
GNMF_SOLVER = Multiplicative()
INITS = ("gnmf", "random", "nndsvd")


def starting_factors(
    Xs: list[Matrix],
    init: Any,
    n_components: int,
    terms: list[Term],
    solver: Solver,
    p: float,
    rng: np.random.Generator,
    unit: float = 1.0,
    fill: Fill | None = None,
    threads: Threads | None = None,
    keep: Callable[[str, Callable[[], Any]], Any] = lambda name, compute: compute(),
    gnmf_weight: float = GNMF_WEIGHT,
    init_consensus: str = "mean",
    init_sample_weights: str = "views",
) -> Factors:
    """U and V of every view by ``init``, equal weights, and V* (by default their mean *without* Q).

    A view of too few rows starts with less, and a row has no weight where it is not observed.
    ``keep(name, compute)`` may remember the pair of a view. ``gnmf_weight`` is λ of the GNMF start.
    """
    if isinstance(init, str):
        makers: dict[str, Callable[..., tuple[Array, Array]]] = {
            "gnmf": partial(_gnmf_start, weight=gnmf_weight),
            "random": _random_start,
            "nndsvd": _nndsvd_start,
        }
        make = makers[init]
        pairs = [
            keep(f"view {s}", partial(make, X, n_components, g, rng, threads))
            for s, (X, g) in enumerate(zip(Xs, terms, strict=True))
        ]
    else:
        pairs = given_factors(init, Xs, n_components, unit)
        if isinstance(solver, Multiplicative):
            _tell_zeros(pairs)
    if fill is not None:
        pairs = [(U, fill(s, V)) for s, (U, V) in enumerate(pairs)]
    n_views = len(Xs)
    reach = reaches(Xs, n_components)
    alpha = reach / reach.sum() if reach.any() else np.full(n_views, 1 / n_views)
    w = starting_weights(Xs)
    if init_sample_weights == "samples":
        w = (w > 0) / w.dtype.type(len(w))
    w = _placed(Xs[0], w)
    # Before the solver's own scaling: with Q in it, V* starts far worse.
    q = [U.sum(axis=0) if init_consensus == "scaled" else 1.0 for U, _ in pairs]
    V_star = consensus([V for _, V in pairs], q, alpha, p)
    pairs = [solver.start(U, V) for U, V in pairs]
    return Factors(tuple(U for U, _ in pairs), tuple(V for _, V in pairs), V_star, alpha, w)


def starting_weights(Xs: list[Any]) -> Array:
    """Sample weights that are equal among the views that observe a row (N×n_v)."""
    observed = views_that_tell(Xs)
    if observed is None:
        return np.full((Xs[0].shape[0], len(Xs)), 1 / len(Xs))
    return observed / observed.sum(axis=1, keepdims=True)


def gnmf(
    X: Matrix,
    U: Array,
    V: Array,
    g: Term,
    weight: float,
    n_iter: int = GNMF_ITERATIONS,
    threads: Threads | None = None,
) -> tuple[Array, Array]:
    """Graph-regularized NMF, min ‖X − VUᵀ‖² + weight·g(V): V then U, unit L2 columns before and after."""
    U, V = unit_columns(U, V)
    view = rows_of(X, GNMF_SOLVER, threads)
    one = np.ones(len(V))
    view.begin(V, 0 * V, one, one, g, basis=True)
    for _ in range(n_iter):
        V = view.step_V(U, V, 0.0, weight)
        U = view.step_U(U, 0.0)
    return unit_columns(U, view.collect(V))


def given_factors(
    init: Any, Xs: list[Matrix], n_components: int, unit: float
) -> list[tuple[Array, Array]]:
    """The user's own start: {"components": [K×M_s, …], "coefficients": [N×K, …]}.

    Coefficients are in the units a fitted model reports, ``unit`` times those of the loop.
    """
    if not (isinstance(init, dict) and {"components", "coefficients"} <= set(init)):
        raise ValueError(
            f"init must be one of {INITS} or a dict with 'components' and 'coefficients' "
            f"(one array per view, as a fitted model has them); got {type(init).__name__}"
        )
    pairs = []
    check_lengths(init, len(Xs))
    for s, X in enumerate(Xs):
        factors = {}
        for name, shape in (
            ("components", (n_components, X.shape[1])),
            ("coefficients", (X.shape[0], n_components)),
        ):
            array = np.array(on_host(init[name][s]), dtype=X.dtype)
            if array.shape != shape or not np.isfinite(array).all() or (array < 0).any():
                raise ValueError(
                    f"init[{name!r}][{s}] must be finite, nonnegative and of shape {shape}; "
                    f"got shape {array.shape}, smallest value {array.min() if array.size else 'none'}"
                )
            factors[name] = array
        U = np.ascontiguousarray(factors["components"].T)
        pairs.append((_placed(X, U), _placed(X, factors["coefficients"] / X.dtype.type(unit))))
    return pairs


def _tell_zeros(pairs: list[tuple[Array, Array]]) -> None:
    """Say that zeros of a given start stay zero under the multiplicative rule."""
    for s, pair in enumerate(pairs):
        for name, array in zip(("components", "coefficients"), pair, strict=True):
            if n := int((array == 0).sum()):
                warn_user(
                    f"init[{name!r}][{s}] has {n} entries that are 0, which stay 0 under the "
                    "multiplicative rule; add a small number to them, or use solver='hals'"
                )
                return


def observed_init(
    init: Any, columns: list[Array] | None, widths: tuple[int, ...], anywhere: Array
) -> Any:
    """The user's own start without the columns, views and rows that have no value."""
    whole = columns is None and anywhere.all()
    if whole or not isinstance(init, dict) or not {"components", "coefficients"} <= set(init):
        return init
    masks = columns or [np.ones(m, dtype=bool) for m in widths]
    check_lengths(init, len(masks))
    kept = kept_views(masks)
    return {
        "components": [np.asarray(init["components"][s])[:, masks[s]] for s in kept],
        "coefficients": [np.asarray(init["coefficients"][s])[anywhere] for s in kept],
    }


def check_lengths(init: dict[str, Any], n_views: int) -> None:
    for name in ("components", "coefficients"):
        if len(init[name]) != n_views:
            raise ValueError(
                f"init[{name!r}] has {len(init[name])} arrays for {n_views} views; give one per view"
            )


def _uniform(X: Any, rng: np.random.Generator, shape: tuple[int, int]) -> Array:
    # Drawn in float64 and never exactly 0: a zero would stay zero under the multiplicative rule.
    return _placed(X, (1 - rng.random(shape)).astype(X.dtype))


def _placed(X: Any, array: Array) -> Array:
    """``array`` where the view is."""
    return X.placed(array) if isinstance(X, DeviceView) else array


def _total(X: Matrix) -> float:
    return float(X.total() if isinstance(X, MaskedView) else X.sum()) or 1.0


def _gnmf_start(
    X: Any,
    n_components: int,
    g: Term,
    rng: np.random.Generator,
    threads: Threads | None,
    weight: float = GNMF_WEIGHT,
) -> tuple[Array, Array]:
    n, m = X.shape
    U = _uniform(X, rng, (m, n_components))
    # The paper starts V at uniform(0, 1) against views whose entries sum to 1: keep that ratio.
    V = _uniform(X, rng, (n, n_components)) * _total(X)
    return gnmf(X, U, V, g, weight, threads=threads)


def _random_start(
    X: Any, n_components: int, g: Term, rng: np.random.Generator, threads: Threads | None
) -> tuple[Array, Array]:
    n, m = X.shape
    U, V = rescale(_uniform(X, rng, (m, n_components)), _uniform(X, rng, (n, n_components)))
    return U, V * (_total(X) / float(V.sum()))


def _nndsvd_start(
    X: Any, n_components: int, g: Term, rng: np.random.Generator, threads: Threads | None
) -> tuple[Array, Array]:
    """Nonnegative double SVD (Boutsidis & Gallopoulos), zeros filled with a little of the mean."""
    if is_streamed(X):
        raise ValueError(
            "init='nndsvd' needs views in memory; use init='gnmf' or init='random' for views in files "
            "or on a cluster"
        )
    rank = min(n_components, *X.shape)
    seed = int(rng.integers(2**31))
    if isinstance(X, DeviceView):
        left, values, right = X.leading_svd(rank, seed)
    else:
        known = X.X if isinstance(X, MaskedView) else whole(X)
        left, values, right = randomized_svd(known, rank, random_state=seed)
    # Beyond the rank of X, columns stay random.
    U, V = (on_host(factor) for factor in _random_start(X, n_components, g, rng, threads))
    for k in range(rank):
        v, u = nonnegative_half(left[:, k], right[k])
        size = np.linalg.norm(v) * np.linalg.norm(u)
        if size > 0:
            root = np.sqrt(values[k] * size)
            V[:, k], U[:, k] = root * v / np.linalg.norm(v), root * u / np.linalg.norm(u)
    for factor in (U, V):
        factor += factor.mean() / 100
    return _placed(X, U), _placed(X, V)


# --- rows that a view hardly observes -----------------------------------------------------------

#: About how many rows replace one that nothing links to the view.
STRANGERS = 100


def filling(
    Xs: Sequence[Any],
    fitted: Sequence[Any],
    n_neighbors: int,
    n_components: int,
    known: Sequence[Array] | None = None,
) -> Fill | None:
    """How rows a view does not observe get coefficients: from their neighbors in other views.

    ``known`` holds the coefficients of the fitted rows when ``Xs`` are unseen ones.
    """
    if not any(has_nan(X) for X in Xs):
        return None
    stands = stand_ins(list(Xs), list(fitted), n_neighbors, n_components)

    def fill(s: int, V: Array) -> Array:
        B = stands[s]
        if B is None:
            return V
        rows = np.diff(B.indptr) > 0
        return np.where(rows[:, None], B @ (V if known is None else known[s]), V)

    return fill


def stand_ins(
    Xs: list[Any], fitted: list[Any], k: int, n_components: int
) -> list[sp.csr_array | None]:
    """Rows that replace one that a view hardly observes: B_s, rows × fitted rows, or None.

    The row's k nearest fitted rows in each view that has it, among those the lacking view observes;
    their mean coefficients there are the row's. Where no view links the row to such rows, rows from all
    over the lacking view have the same weight.
    """
    absent = [~_rows_with_enough(X, n_components) for X in Xs]
    seen = [_rows_with_enough(X, n_components) for X in fitted]
    stands: list[sp.csr_array | None] = []
    for s, lacking in enumerate(absent):
        if not lacking.any():
            stands.append(None)
            continue
        shape, entries = (len(lacking), len(seen[s])), []
        for t, X in enumerate(Xs):
            rows = np.flatnonzero(lacking & ~absent[t])
            among = np.flatnonzero(seen[s] & seen[t])
            if t == s or len(rows) == 0 or len(among) == 0:
                continue
            near, _ = nearest_neighbors(fitted[t][among], k, X[rows])
            entries.append((np.repeat(rows, near.shape[1]), among[near].ravel()))
        i, j = np.hstack(entries) if entries else np.empty((2, 0), dtype=int)
        alone = np.setdiff1d(np.flatnonzero(lacking & np.isnan(Xs[s]).all(axis=1)), i)
        everybody = np.flatnonzero(seen[s])
        everybody = everybody[:: max(1, len(everybody) // STRANGERS)]
        i = np.concatenate([i, np.repeat(alone, len(everybody))])
        j = np.concatenate([j, np.tile(everybody, len(alone))])
        B = sp.csr_array((np.ones(len(i)), (i, j)), shape=shape)
        total = np.maximum(B.sum(axis=1), 1)
        stands.append(sp.csr_array(B.multiply(1 / total[:, None])))
    return stands


def _rows_with_enough(X: Any, n_components: int) -> Array:
    """Rows of which enough is observed to tell where they are."""
    if isinstance(X, np.ndarray):
        return np.count_nonzero(~np.isnan(X), axis=1) >= least_entries(X.shape[1], n_components)
    return np.ones(X.shape[0], dtype=bool)
