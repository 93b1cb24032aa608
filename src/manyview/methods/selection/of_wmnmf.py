"""K for `WMNMF` itself: how well its own fits of rank K tell entries that they have not seen.

The views are scaled as the model scales them, and what is fitted is its own objective: consensus, learned
weights and regulariser included. As all ranks, K need not be the number of clusters.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from manyview._types import Array, Views
from manyview.methods.scaling import fit_scaling
from manyview.methods.wmnmf import WMNMF

from .rank import COLUMNS, GROUPS, HIDDEN, solve

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


def scaled_views(views: Views, model: WMNMF) -> list[Array]:
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

    WM-NMF is fitted to the other rows and columns of all views; left-out rows get V from the columns
    that were kept, and left-out columns U from the rows, both by nonnegative least squares.
    """
    rows = rng.permutation(len(Xs[0])) % GROUPS
    groups = [rng.permutation(X.shape[1]) % GROUPS for X in Xs]
    errors, totals = np.zeros((len(ranks), len(Xs))), np.zeros(len(Xs))
    for g in range(GROUPS):
        i = rows == g
        kept = [columns != g for columns in groups]
        for r, K in enumerate(ranks):
            inner = [X[~i][:, j] for X, j in zip(Xs, kept, strict=True)]
            fit = _fitted(model, inner, K, rng)
            for s, (X, j) in enumerate(zip(Xs, kept, strict=True)):
                U, V = fit.components_[s].T, fit.coefficients_[s]
                told = solve(X[i][:, j], U) @ solve(X[~i][:, ~j].T, V).T
                errors[r, s] += ((X[i][:, ~j] - told) ** 2).sum()
        totals += [_spread(X[i][:, ~j], X[~i][:, ~j]) for X, j in zip(Xs, kept, strict=True)]
    return _share(errors, totals)


def imputation(Xs: list[Array], model: WMNMF, ranks: list[int], rng: np.random.Generator) -> Array:
    """A tenth of the entries hidden from the fit (``missing="mask"``), and told by it."""
    hidden = [rng.random(X.shape) < HIDDEN for X in Xs]
    seen = [np.where(h, np.nan, X) for X, h in zip(Xs, hidden, strict=True)]
    errors = np.zeros((len(ranks), len(Xs)))
    for r, K in enumerate(ranks):
        fit = _fitted(model, seen, K, rng, missing="mask")
        for s, (X, h) in enumerate(zip(Xs, hidden, strict=True)):
            told = fit.coefficients_[s] @ fit.components_[s]
            errors[r, s] = ((X - told) ** 2)[h].sum()
    means = [np.nan_to_num(np.nanmean(X, axis=0)) for X in seen]
    gaps = zip(Xs, means, hidden, strict=True)
    return _share(errors, np.array([((X - mean) ** 2)[h].sum() for X, mean, h in gaps]))


CRITERIA: dict[str, Criterion] = {"bicv": bicv, "imputation": imputation}


def _fitted(model: WMNMF, Xs: list[Array], K: int, rng: np.random.Generator, **given: str) -> WMNMF:
    """The model's own fit of rank K; its labels are not looked at, and read in the cheapest way."""
    asked = {"n_clusters": K, "n_components": K, "assign_labels": "argmax", "n_init": 1, **given}
    own = clone(model).set_params(
        **asked, scale=None, views=None, checkpoint=None, verbose=0, callback=None,
        random_state=int(rng.integers(2**31)),
    )  # fmt: skip
    with warnings.catch_warnings():
        # Of blocks that nobody but us looks at; a fit of the whole gives its own warnings.
        warnings.simplefilter("ignore")
        return own.fit(Xs)


def _spread(left_out: Array, kept: Array) -> float:
    """What the means of the kept rows leave of the left-out ones."""
    return float(((left_out - kept.mean(axis=0)) ** 2).sum())


def _share(errors: Array, totals: Array) -> Array:
    """Errors of ranks × views in units of what means leave; views that means tell wholly say nothing."""
    telling = totals > 0
    if not telling.any():
        return np.full(len(errors), np.nan)
    return (errors[:, telling] / totals[telling]).mean(axis=1)


def _dense(X: Array) -> Array:
    return X.toarray() if sp.issparse(X) else np.asarray(X)
