"""K for `WMNMF` itself: how well its own fits of rank K tell entries that they have not seen.

The views are scaled as the model scales them, and what is fitted is its own objective: consensus, learned
weights and regulariser included. As all ranks, K need not be the number of clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from manyview._types import Array, Matrix, Views
from manyview.methods.scaling import fit_scaling
from manyview.methods.wmnmf import WMNMF

from .rank import COLUMNS, GROUPS, HIDDEN, positive_parts, solve

#: Of the fall of the error, what may be left at the rank after which it is said to fall no more: the views
#: pull at each other's parts, and further ranks always ease that a little.
SLACK = 0.1
#: Times that hidden entries are told anew before their error counts.
REFILLS = 5
#: Views, model, ranks, randomness → the unexplained share of unseen entries for every rank.
Criterion = Callable[[list[Array], WMNMF, list[int], np.random.Generator], Array]


def own_curves(
    views: Views,
    model: WMNMF,
    ranks: list[int],
    method: str,
    n_runs: int,
    rng: np.random.Generator,
) -> Array:
    """The criterion (lower is better), runs × ranks, mean over the views."""
    criterion = CRITERIA[method]
    Xs = scaled_views(views, model)
    runs = []
    for _ in range(n_runs):
        columns = [np.sort(rng.permutation(X.shape[1])[:COLUMNS]) for X in Xs]
        some = [_dense(X[:, j]) for X, j in zip(Xs, columns, strict=True)]
        runs.append(criterion(some, model, ranks, rng))
    return np.array(runs)


def scaled_views(views: Views, model: WMNMF) -> list[Matrix]:
    """The views as the model scales them."""
    scalings = fit_scaling(views, model.scale)
    Xs = [
        scaling.apply(X.astype(float)) for X, scaling in zip(views.matrices, scalings, strict=True)
    ]
    return [sp.csc_array(X) if sp.issparse(X) else X for X in Xs]


def largest_own_rank(views: Views) -> int:
    """What the fitted block of bi-cross-validation can hold."""
    widths = [min(X.shape[1], COLUMNS) for X in views.matrices]
    return min(views.n_samples, *widths) * (GROUPS - 1) // GROUPS


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
                told = V_left @ solve(X[~i][:, ~j].T, V).T
                errors[r, s] += ((left_out[s] - told) ** 2).sum()
        totals += [_spread(A, X[~i][:, ~j]) for A, X, j in zip(left_out, Xs, kept, strict=True)]
    return _share(errors, totals)


def imputation(Xs: list[Array], model: WMNMF, ranks: list[int], rng: np.random.Generator) -> Array:
    """A tenth of the entries hidden from the fit (``missing="mask"``), and told from its consensus V*."""
    hidden = [rng.random(X.shape) < HIDDEN for X in Xs]
    seen = [np.where(h, np.nan, X) for X, h in zip(Xs, hidden, strict=True)]
    means = [np.nan_to_num(np.nanmean(X, axis=0)) for X in seen]
    errors = np.zeros((len(ranks), len(Xs)))
    for r, fit in enumerate(_path(model, seen, ranks, rng, missing="mask")):
        for s, (X, h) in enumerate(zip(Xs, hidden, strict=True)):
            told = np.broadcast_to(means[s], X.shape)
            for _ in range(REFILLS):
                told = fit.consensus_ @ solve(np.where(h, told, X).T, fit.consensus_).T
            errors[r, s] = ((X - told) ** 2)[h].sum()
    gaps = zip(Xs, means, hidden, strict=True)
    return _share(errors, np.array([((X - mean) ** 2)[h].sum() for X, mean, h in gaps]))


CRITERIA: dict[str, Criterion] = {"bicv": bicv, "imputation": imputation}


def _path(
    model: WMNMF, Xs: list[Array], ranks: list[int], rng: np.random.Generator, **given: str
) -> Iterator[WMNMF]:
    """The model's own fits of growing rank, each from the one before and from what that leaves.

    From a random start two rounds end far from what a rank can do, and more components then only help
    to get on. Labels are not looked at, and read in the cheapest way.
    """
    own = clone(model).set_params(
        assign_labels="argmax", n_init=1, scale=None, views=None, checkpoint=None, verbose=0,
        callback=None, random_state=int(rng.integers(2**31)), **given,
    )  # fmt: skip
    V = [np.zeros((len(X), 0)) for X in Xs]
    U = [np.zeros((X.shape[1], 0)) for X in Xs]
    unit = [1 / max(float(np.nanstd(X)), 1e-300) for X in Xs]
    ends = np.cumsum([X.shape[1] for X in Xs])[:-1]
    for K in ranks:
        gaps = [np.nan_to_num(X - v @ u.T) for X, v, u in zip(Xs, V, U, strict=True)]
        # The same rows for all views: parts that start apart are drawn to each other, not to the data.
        side_by_side = np.hstack([c * gap for c, gap in zip(unit, gaps, strict=True)])
        more_V, more_U = positive_parts(side_by_side, K - V[0].shape[1], rng)
        V = [np.hstack([v, more_V]) for v in V]
        U = [np.hstack([u, m / c]) for u, m, c in zip(U, np.split(more_U, ends), unit, strict=True)]
        init = {"components": [u.T for u in U], "coefficients": V}
        own.set_params(n_clusters=K, n_components=K, init=init)
        with warnings.catch_warnings():
            # Of blocks that nobody but us looks at; a fit of the whole gives its own warnings.
            warnings.simplefilter("ignore")
            own.fit(Xs)
        V, U = list(own.coefficients_), [u.T for u in own.components_]
        yield own


def _spread(left_out: Array, kept: Array) -> float:
    """What the means of the kept rows leave of the left-out ones."""
    return float(((left_out - kept.mean(axis=0)) ** 2).sum())


def _share(errors: Array, totals: Array) -> Array:
    """Errors of ranks × views in units of what means leave; views that means tell wholly say nothing."""
    telling = totals > 0
    if not telling.any():
        return np.full(len(errors), np.nan)
    return (errors[:, telling] / totals[telling]).mean(axis=1)


def _dense(X: Matrix) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
