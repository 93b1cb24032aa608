"""How many clusters there are: `select_n_clusters`, and the rank of `WMNMF` by its own fits."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.utils.extmath import randomized_svd
from threadpoolctl import threadpool_limits

from manyview._types import Array, Seed, Views
from manyview.base import (
    check_by_view,
    generator,
    kept_views,
    observed_columns,
    observed_part,
    of_view,
)
from manyview.criteria import (
    MAX_SAMPLES,
    NoClustersWarning,
    Selection,
    choose,
    usual_candidates,
    warn_of,
)
from manyview.fuse import Settings, fit_scalings, quiet_presence
from manyview.maths.equations import nonnegative_half
from manyview.maths.solvers import coordinate_sweep
from manyview.nonnegative import fit_nonnegative
from manyview.robust import RobustWMNMF
from manyview.views.views import as_views
from manyview.wmnmf import WMNMF

__all__ = ["NoClustersWarning", "Selection", "select_n_clusters", "usual_candidates"]


def select_n_clusters(
    views: Any,
    candidates: Iterable[int] | None = None,
    *,
    model: Any = None,
    max_samples: int = MAX_SAMPLES,
    batch: Any = None,
    random_state: Seed = None,
) -> Selection:
    """Recommend a number of clusters.

    The views are scaled, weighted and fused as `RobustWMNMF` does. The score of K clusters of the fused
    graph is Q_K + √K (λ_K − λ_{K+1}): Q_K is Newman's modularity of k-means in the first 3K columns
    of the diffusion embedding, and λ are the eigenvalues of the normalized graph. Modularity rewards
    clusters with many links inside, but it merges small clusters; the eigengap prevents this. The gaps
    are smaller for larger K, hence the factor √K.

    First a test decides if there are clusters. Twelve data sets without clusters are drawn from a
    Gaussian with the joint covariance of the views. The statistic is the largest difference over K
    between the score of the data and the mean score of these data sets. There are clusters if it
    exceeds the mean statistic of these data sets by five standard deviations.

    Parameters
    ----------
    views : list, dict, DataFrames, or one 2-D array
        As for `RobustWMNMF`; negative and missing values are allowed.
    candidates : iterable of int, optional
        By default 2 to 14 and, if there are ten samples per cluster, 16, 18, 20, 23, 26, 30, 35, 40, 50,
        60, 80 and 100. 1 is not a candidate: it is the result if no clusters are found.
    model : RobustWMNMF or WMNMF, optional
        Its settings (neighbors, scale, views, …) are used; it is not changed. For a `WMNMF` the rank of
        its own fits is chosen by bi-cross-validation, on its own scaled views and with its own objective:
        the share of the variation of left-out blocks that its consensus of rank K does not explain, in 4
        runs on up to 150 features of each view. The result is the smallest rank after which at most a tenth
        of the decrease is left. Complete views only.
    max_samples : int, default=1000
        If there are more samples, a random part of this size is used.
    batch : sequence or Series, optional
        The batch of every sample, as for `RobustWMNMF.fit`.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Selection
        With ``n_clusters``, ``found``, ``runner_up``, ``doubtful``, ``reasons``, ``table`` and
        ``figure()``.

    Examples
    --------
    >>> import manyview as mv
    >>> data = mv.datasets.make_synthetic(150, n_clusters=3, noisy_views=(), random_state=0)
    >>> mv.select_n_clusters(data.views, range(2, 6), random_state=0)
    <Selection: 3 clusters>
    """
    rng = generator(random_state)
    if not isinstance(max_samples, Integral) or max_samples < 10:
        raise ValueError(f"max_samples must be an integer of at least 10, got {max_samples!r}")
    if isinstance(model, WMNMF):
        if batch is not None:
            raise ValueError(
                "batch is for RobustWMNMF; leave it out, or choose by model=RobustWMNMF()"
            )
        return _rank_of_wmnmf(views, candidates, model, max_samples, rng)
    model = RobustWMNMF() if model is None else model
    if not isinstance(model, RobustWMNMF):
        raise TypeError(
            f"model must be a RobustWMNMF (by its fused graph) or a WMNMF, got "
            f"{type(model).__name__}; for another estimator compare "
            "stability(model, views).score between numbers of clusters"
        )
    given = as_views(
        views,
        model.views,
        allow_negative=True,
        allow_files=True,
        allow_missing=True,
        allow_relations=True,
        zero_is_missing=lambda name: of_view(model.zero_rows, name, "auto") != "observed",
        caller="select_n_clusters",
    )
    for parameter, allowed in model._by_view.items():
        check_by_view(parameter, getattr(model, parameter), given.names, allowed)
    given = given if batch is None else model._with_batch(given, batch, reset=True)
    asked = None if candidates is None else _candidates(candidates, given.n_samples)
    columns, kept, names = observed_columns(given), None, given.names
    if columns is not None and any(mask.any() for mask in columns):
        given, kept = observed_part(given, columns), kept_views(columns)
    with threadpool_limits(1):  # as the estimators: sums differ between thread counts
        present = quiet_presence(given, model.zero_rows)  # fitting the model will give the warnings
        return choose(
            given,
            present,
            fit_scalings(given, present, model.scale),
            Settings.of(model, names, kept),
            rng,
            asked,
            dtype=model.dtype,
            max_samples=max_samples,
        )


def _candidates(candidates: Any, n_samples: int) -> list[int]:
    rule = "candidates must be numbers of clusters such as range(2, 15)"
    if isinstance(candidates, Integral | str) or not isinstance(candidates, Iterable):
        raise ValueError(f"{rule}; got {candidates!r}")
    listed = list(candidates)
    if not listed:
        raise ValueError(f"{rule}; got none")
    for K in listed:
        if isinstance(K, bool) or not isinstance(K, Integral) or K < 1:
            raise ValueError(f"{rule}, integers of at least 1; got {K!r}")
    if max(listed) > n_samples:
        raise ValueError(
            f"candidates go up to {max(listed)}, more than the {n_samples} samples "
            f"(n_samples={n_samples}); choose fewer"
        )
    asked = sorted({int(K) for K in listed} - {1})
    if not asked:
        raise ValueError(f"{rule}; 1 alone leaves nothing to choose from, add a candidate above it")
    return asked


# --- the rank of WMNMF --------------------------------------------------------------------------

#: Columns of a view that are fitted, groups of rows and of columns, and random runs.
COLUMNS, GROUPS, RUNS = 150, 3, 4
#: Share of the decrease of the error that may be left at the chosen rank: the views pull at each other's
#: parts, and further ranks always ease that a little.
SLACK = 0.1


def _rank_of_wmnmf(
    views: Any,
    candidates: Iterable[int] | None,
    model: WMNMF,
    max_samples: int,
    rng: np.random.Generator,
) -> Selection:
    """The smallest rank with about the best error on left-out blocks.

    A rank is as good as the best where it is within one standard error, or where at most `SLACK` of the
    decrease from rank 1 is left; a decrease by less than that share of the error is none.
    """
    given = as_views(
        views, model.views, allow_negative=model._allows_negative, caller="select_n_clusters"
    )
    n, notes = min(max_samples, given.n_samples), []
    asked = usual_candidates(n) if candidates is None else _candidates(candidates, n)
    if given.n_samples > n:
        notes.append(f"A random {n} of the {given.n_samples} samples were used.")
        rows = np.sort(rng.permutation(given.n_samples)[:n])
        given = given.with_matrices([X[rows] for X in given.matrices])
    # What the fitted block of bi-cross-validation can hold.
    widths = [min(X.shape[1], COLUMNS) for X in given.matrices]
    limit = min(n, *widths) * (GROUPS - 1) // GROUPS
    possible = [K for K in asked if limit >= K]
    if not possible:
        raise ValueError(
            f"the fitted blocks allow a rank of at most {limit}, less than every "
            "candidate; use more samples or features, or lower the candidates"
        )
    if len(possible) < len(asked):
        notes.append(
            f"The fitted blocks allow a rank of at most {limit}; larger ranks were not tried."
        )
    with threadpool_limits(1):
        ranks = [1, *possible]
        runs = own_curves(given, model, ranks, RUNS, rng)
    mean, error = runs.mean(axis=0), runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    best = int(np.nan_to_num(mean, nan=np.inf).argmin())
    # Paired: the runs' common level cancels, what is left is the error of the difference.
    gap = runs - runs[:, [best]]
    close = gap.mean(axis=0) <= gap.std(axis=0, ddof=1) / np.sqrt(len(runs))
    close |= mean - mean[best] <= SLACK * (mean[0] - mean[best])
    close[0] |= mean[0] - mean[best] <= SLACK * mean[0]
    known = not np.isnan(mean).any()
    pick = int(np.flatnonzero(close).min()) if known else 0
    K = ranks[pick]
    if not known:
        reason = "The views do not vary, so no rank can be chosen."
    elif pick == 0:
        reason = f"No candidate predicts left-out blocks better than rank 1 (error {mean[0]:.3f})."
    else:
        reason = (
            f"A consensus of rank {K} leaves {mean[pick]:.3f} of the variation of left-out blocks "
            f"unexplained; rank 1 leaves {mean[0]:.3f}, and the best rank, {ranks[best]}, {mean[best]:.3f}."
        )
    table = {
        "n_clusters": np.array(possible), "score": mean[1:], "error": error[1:],
        "chosen": np.equal(possible, K),
    }  # fmt: skip
    return warn_of(Selection(K, pick > 0, [*notes, reason], table), limit)


def own_curves(
    views: Views,
    model: WMNMF,
    ranks: list[int],
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    """The criterion (lower is better), runs × ranks, mean over the views."""
    scalings = fit_nonnegative(views, model.scale)
    pairs = zip(views.matrices, scalings, strict=True)
    Xs = [scaling.apply(X.astype(float)) for X, scaling in pairs]
    Xs = [sp.csc_array(X) if sp.issparse(X) else X for X in Xs]
    runs = []
    for _ in range(n_runs):
        columns = [np.sort(rng.permutation(X.shape[1])[:COLUMNS]) for X in Xs]
        some = [X[:, j] for X, j in zip(Xs, columns, strict=True)]
        some = [X.toarray() if sp.issparse(X) else np.asarray(X) for X in some]
        runs.append(bicv(some, model, ranks, rng))
    return np.array(runs)


def bicv(Xs: list[Array], model: WMNMF, ranks: list[int], rng: np.random.Generator) -> Array:
    """Bi-cross-validation: rows and columns dealt into 3 groups each, the diagonal blocks left out.

    WM-NMF is fitted to the other rows and columns of all views. Its consensus V* tells the parts of all
    columns, and the kept columns of all views then tell V* of the left-out rows, by nonnegative least
    squares: the objective itself draws U away from them, and every rank would seem too low.
    """
    rows = rng.permutation(len(Xs[0])) % GROUPS
    groups = [rng.permutation(X.shape[1]) % GROUPS for X in Xs]
    errors, totals = np.zeros((len(ranks), len(Xs))), np.zeros(len(Xs))
    for g in range(GROUPS):
        i = rows == g
        kept = [columns != g for columns in groups]
        left_out = [X[i][:, ~j] for X, j in zip(Xs, kept, strict=True)]
        fitted = [X[~i][:, j] for X, j in zip(Xs, kept, strict=True)]
        # Views count alike, as in the consensus: each in units of its own spread.
        unit = [1 / max(float(X.std()), 1e-300) for X in fitted]
        seen = np.hstack([u * X[i][:, j] for u, X, j in zip(unit, Xs, kept, strict=True)])
        for r, fit in enumerate(_path(model, fitted, ranks, rng)):
            V = fit.consensus_
            parts = [u * solve(X.T, V) for u, X in zip(unit, fitted, strict=True)]
            V_left = solve(seen, np.vstack(parts))
            for s, (X, j) in enumerate(zip(Xs, kept, strict=True)):
                predicted = V_left @ solve(X[~i][:, ~j].T, V).T
                errors[r, s] += ((left_out[s] - predicted) ** 2).sum()
        means = [X[~i][:, ~j].mean(axis=0) for X, j in zip(Xs, kept, strict=True)]
        totals += [((A - mean) ** 2).sum() for A, mean in zip(left_out, means, strict=True)]
    # In units of what means leave; views that means tell wholly say nothing.
    telling = totals > 0
    if not telling.any():
        return np.full(len(errors), np.nan)
    return (errors[:, telling] / totals[telling]).mean(axis=1)


def _path(
    model: WMNMF, Xs: list[Array], ranks: list[int], rng: np.random.Generator
) -> Iterator[WMNMF]:
    """The model's own fits of growing rank, each from the one before and from what that leaves.

    From a random start two rounds end far from what a rank can do, and more components then only help
    to get on. Labels are not looked at, and read in the cheapest way.
    """
    own = clone(model).set_params(
        assign_labels="argmax", n_init=1, scale=None, views=None, checkpoint=None, verbose=0,
        callback=None, random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    V = [np.zeros((len(X), 0)) for X in Xs]
    U = [np.zeros((X.shape[1], 0)) for X in Xs]
    unit = [1 / max(float(X.std()), 1e-300) for X in Xs]
    ends = np.cumsum([X.shape[1] for X in Xs])[:-1]
    for K in ranks:
        gaps = [X - v @ u.T for X, v, u in zip(Xs, V, U, strict=True)]
        # The same rows for all views: parts that start apart are drawn to each other, not to the data.
        side_by_side = np.hstack([c * gap for c, gap in zip(unit, gaps, strict=True)])
        # As in NNDSVD: the larger nonnegative half of the leading singular pairs, never quite 0.
        count, seed = K - V[0].shape[1], int(rng.integers(2**31))
        left, values, right = randomized_svd(side_by_side, count, random_state=seed)
        halves = [nonnegative_half(v, u) for v, u in zip(left.T, right, strict=True)]
        more_V, more_U = (
            np.sqrt(values) * (np.column_stack(side) + 1e-3) for side in zip(*halves, strict=True)
        )
        V = [np.hstack([v, more_V]) for v in V]
        U = [np.hstack([u, m / c]) for u, m, c in zip(U, np.split(more_U, ends), unit, strict=True)]
        init = {"components": [u.T for u in U], "coefficients": V}
        own.set_params(n_clusters=K, n_components=K, init=init)
        with warnings.catch_warnings(action="ignore"):
            # Of internal blocks; a fit of the whole gives its own warnings.
            own.fit(Xs)
        V, U = list(own.coefficients_), [u.T for u in own.components_]
        yield own


def solve(X: Array, U: Array, sweeps: int = 25) -> Array:
    """V ≥ 0 with X ≈ VUᵀ for given U."""
    V = np.full((X.shape[0], U.shape[1]), X.mean() / max(U.sum(axis=1).mean(), 1e-12))
    XU, H = X @ U, U.T @ U
    for _ in range(sweeps):
        coordinate_sweep(V, XU, H)
    return V
