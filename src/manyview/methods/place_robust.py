"""Unseen observations: where they are in the embedding, how much each view counts for them, their V*."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manyview._types import Array, Factors, Matrix, Views
from manyview.engines.numpy.engine import unit_sums
from manyview.engines.numpy.neighbors import equal_share, farthest, nearest
from manyview.engines.numpy.presence import has_nan
from manyview.engines.protocols import Distances, Scaling
from manyview.engines.threads import blocks
from manyview.maths import agreement as ag
from manyview.maths.agreement import Agreement

from .given import ZeroRows
from .robust_fit import RobustView, Weights, place_robust
from .stages import counted, quiet_presence, scaled

#: How fast the weight of a neighbour falls with its distance when an unseen row is placed.
SHARPNESS = 4.0
#: Distances held at a time.
HELD = 2**21


@dataclass(frozen=True)
class Fitted:
    """What placing needs of a fit; ``distances`` and ``embedding`` are those of distinct observations."""

    distances: list[Distances]
    embedding: Array
    agreement: Agreement
    scalings: list[Scaling | None]
    factors: Factors
    centres: Array
    taus: list[float]
    n_neighbors: int
    weights: Weights
    zero_rows: ZeroRows = "auto"


@dataclass(frozen=True)
class Placed:
    """Unseen observations: V*, their embedding, and which of them some view with weight describes.

    ``error`` is the mean reconstruction error of the present rows; None if there is none.
    """

    consensus: Array
    embedding: Array
    anywhere: Array
    error: float | None

    @property
    def labels(self) -> Array:
        """−1 where no view with weight has the observation."""
        return np.where(self.anywhere, self.consensus.argmax(axis=1), -1)


def place(fitted: Fitted, views: Views, dtype: np.dtype) -> Placed:
    """Place the observations of ``views`` among the fitted ones.

    Parameters
    ----------
    fitted : Fitted
    views : Views
        The views of the fit, in its order.
    dtype : dtype
        Precision of the computation.

    Returns
    -------
    Placed
    """
    present = quiet_presence(views, fitted.zero_rows)
    Zs = scaled(views, present, fitted.scalings, dtype)
    observed = [~np.isnan(Z) if has_nan(Z) else None for Z in Zs]
    Zs = [Z if o is None else np.where(o, Z, 0) for Z, o in zip(Zs, observed, strict=True)]
    _refuse_holes(fitted.distances, observed, views.names)
    P, w = neighbourhoods(fitted, Zs, observed, present)
    rows = [
        RobustView(unit_sums(Z, o), here, tau=tau)
        for Z, o, here, tau in zip(Zs, observed, present, fitted.taus, strict=True)
    ]
    V, V_star = place_robust(rows, fitted.factors, fitted.centres, w, P, fitted.weights)
    anywhere = counted(present, fitted.agreement.alpha)
    errors = [
        (view.residuals(U, Vs) / view.tau)[here].mean()
        for view, U, Vs, here in zip(rows, fitted.factors.U, V, present, strict=True)
        if here.any()
    ]
    V_star = np.where(anywhere[:, None], V_star, 1 / len(fitted.centres))
    return Placed(V_star, P, anywhere, float(np.mean(errors)) if errors else None)


def _refuse_holes(
    spaces: list[Distances], observed: list[Array | None], names: tuple[str, ...]
) -> None:
    for view, o, name in zip(spaces, observed, names, strict=True):
        if o is not None and not view.takes_holes:
            raise ValueError(
                f"view {name!r} has unobserved (NaN) entries inside rows; the model measures its "
                "distances along leading directions (it was too large to hold), which need whole "
                "rows: fill them in, or leave out the whole row"
            )


def neighbourhoods(
    fitted: Fitted, Zs: list[Matrix], observed: list[Array | None], present: list[Array]
) -> tuple[Array, Array]:
    """Embedding and observation weights of unseen rows, from their neighbours among the fitted rows."""
    views, P, weights = fitted.distances, fitted.embedding, fitted.agreement.distance_weights
    n_new, dim = len(present[0]), P.shape[1] // 2
    k = ag.in_proportion(fitted.n_neighbors, len(P))
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
        placed[rows] = _neighbour_mean(F, n_nearest, P, error)
        w[rows] = _new_weights(views, ds, slack, here, fitted.agreement, k)
    for half in (slice(0, dim), slice(dim, 2 * dim)):
        norms = np.linalg.norm(placed[:, half], axis=1, keepdims=True) * np.sqrt(2)
        placed[:, half] = np.divide(placed[:, half], norms, out=placed[:, half], where=norms > 0)
    return placed, w


def _nearest(d: Array, k: int, slack: Array) -> tuple[Array, Array]:
    """The k nearest rows to unseen ones, ties by row, and their distances."""
    d = d.astype(float)
    return nearest(d, k, None, slack, lambda i, j: d[i, j], equal_share(d.dtype))


def _neighbour_mean(d: Array, k: int, P: Array, slack: Array) -> Array:
    """Mean of P over the k nearest rows, weighted by exp(−4 d/median d): the very near ones count."""
    near_rows, near = _nearest(d, min(k, d.shape[1]), slack)
    scale = np.maximum(np.median(near, axis=1, keepdims=True), np.finfo(float).tiny)
    weights = np.exp(-SHARPNESS * near / scale)
    return np.einsum("ik,ikd->id", weights, P[near_rows]) / weights.sum(axis=1, keepdims=True)


def _new_weights(
    views: list[Distances],
    ds: list[Array],
    slack: list[Array],
    here: Array,
    agreement: Agreement,
    k: int,
) -> Array:
    """w of unseen rows: do their neighbours in the other views look close in this one?"""
    n_views, n_new = len(views), len(here)
    if n_views == 1:
        return here.astype(float)
    rows = np.full((n_views, n_views, n_new), np.nan)
    for t, view in enumerate(views):
        count = min(k, int(view.present.sum()))
        if count == 0:
            continue
        candidates = np.where(view.present, ds[t], np.inf)
        near, d = _nearest(candidates, count, slack[t])
        limit = farthest(d[:, 0], slack[t], equal_share(float))
        crowded = np.flatnonzero(d[:, -1] <= limit)
        crowd = candidates[crowded] <= limit[crowded, None]
        for s in range(n_views):
            if s != t:
                known = (here[:, [s]] & here[:, [t]] & views[s].present[near]).astype(float)
                mean, total = _mean(np.take_along_axis(ds[s], near, axis=1), known)
                # As near as can be are more than k: all of them are asked.
                known = (crowd & here[crowded][:, [s]] & here[crowded][:, [t]]) * views[s].present
                known = known * (1.0 if view.mass is None else view.mass)
                mean[crowded], total[crowded] = _mean(ds[s][crowded], known)
                rows[s, t] = np.where(total > 0, 1 - mean, np.nan)
    w = np.zeros((n_new, n_views))
    for s in range(n_views):
        g = ag.votes(rows[s], rows[:, s], agreement.alpha * (1 - agreement.redundancy[s]))
        w[:, s] = ag.weigh(g, agreement.levels[s])
    return w * here


def _mean(values: Array, weight: Array) -> tuple[Array, Array]:
    """Weighted means of rows, 1 where nothing has weight; and the weights' sums."""
    total = weight.sum(axis=1)
    mean = np.ones(len(values))
    return np.divide((values * weight).sum(axis=1), total, out=mean, where=total > 0), total
