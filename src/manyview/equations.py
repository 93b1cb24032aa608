"""The mathematics of weighted multi-view NMF: every formula, and nothing else.

Observations are rows. For view s: X (N×M) ≈ V Uᵀ with U (M×K) and V (N×K) nonnegative, Q = Diag(q),
q = column sums of U, consensus V* (N×K), view weights α (sum 1), observation weights w (rows sum 1)::

    O = Σ_s ‖Diag(w_s)(X_s − V_s U_sᵀ)‖²  +  Σ_s α_s^p ‖V_s Q_s − V*‖²  +  β Σ_s g(V_s)

Below, ``a`` is α_s^p, ``w2`` is the column w_s² (N×1), and gradients come as (negative, positive)
parts of **half** the gradient, both nonnegative: the ratio of the two is the multiplicative rule.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ._types import Array, Split, Sums

# --- objective terms ---------------------------------------------------------------------------


def squared_residuals(x_sq: Array, XU: Array, V: Array, H: Array) -> Array:
    """Row residuals without forming X − VUᵀ: r_i = ‖x_i‖² − 2 x_i·Uv_i + v_iᵀ H v_i.

    x_sq (N,) squared row norms of X; XU = X @ U (N×K); H = UᵀU (K×K). Returns (N,), at least 0.
    """
    return np.maximum(x_sq + np.einsum("ik,ik->i", V @ H - 2 * XU, V), 0)


def reconstruction(r: Array, w: Array) -> float:
    """‖Diag(w)(X − VUᵀ)‖² = Σ_i w_i² r_i, from the squared row residuals r."""
    return float(np.dot(w * w, r))


def reconstruction_from(sums: Sums, weighted_sq: float, U: Array) -> float:
    """The same from the sums over rows: Σ w_i²‖x_i‖² − 2⟨P, U⟩ + ⟨G, UᵀU⟩, at least 0."""
    fitted = 2 * np.vdot(sums.P, U) - np.vdot(sums.G, U.T @ U)
    return max(0.0, float(weighted_sq - fitted))


def consensus_gap(V: Array, q: Array, consensus: Array) -> float:
    """A_s = ‖VQ − V*‖²."""
    gap = V * q - consensus
    return float(np.vdot(gap, gap))


def gap_from(sums: Sums, q: Array, consensus_sq: float) -> float:
    """The same from the sums over rows: Σ_k q_k² (Σv∘v)_k − 2 q_k (Σv∘v*)_k + ‖V*‖²."""
    return max(0.0, float(np.dot(q * q, sums.vv) - 2 * np.dot(q, sums.vc) + consensus_sq))


def objective(
    errors: Array, gaps: Array, alpha: Array, p: float, penalties: Array, beta: float
) -> dict[str, float]:
    """The three terms of O and their sum, from the reconstruction error, gap and g of each view."""
    terms = {
        "reconstruction": float(np.sum(errors)),
        "consensus": float(np.dot(alpha**p, gaps)),
        "regularizer": beta * float(np.sum(penalties)),
    }
    return terms | {"objective": sum(terms.values())}


# --- gradient parts ----------------------------------------------------------------------------


def sums_over_rows(X: Array, V: Array, consensus: Array, w2: Array) -> Sums:
    """P = XᵀW²V (M×K), G = VᵀW²V (K×K), Σ_i v_i∘v*_i and Σ_i v_i∘v_i (K), of some or all rows."""
    WV = w2 * V
    vc, vv = np.einsum("ik,ik->k", V, consensus), np.einsum("ik,ik->k", V, V)
    # (WᵀX)ᵀ rather than XᵀW: the same numbers, and the long side of X stays in order.
    return Sums((WV.T @ X).T, V.T @ WV, vc, vv)


def split_U(U: Array, sums: Sums, a: float, fitted: Array | None = None) -> tuple[Array, Array]:
    """Half-gradient of O in U: positive − negative, each M×K.

    negative = P + a·1·Σv∘v*,  positive = U G + a·1·(q∘Σv∘v).
    ``fitted`` replaces U G where entries are unobserved.
    """
    fitted = U @ sums.G if fitted is None else fitted
    return sums.P + a * sums.vc, fitted + a * U.sum(axis=0) * sums.vv


def split_V(
    V: Array,
    XU: Array,
    H: Array | None,
    q: Array,
    consensus: Array,
    w2: Array,
    a: float,
    beta: float,
    g: Split | tuple[Any, Any],
    fitted: Array | None = None,
) -> tuple[Array, Array]:
    """Half-gradient of O in V: positive − negative, each N×K.

    negative = W²XU + a V*Q + β neg_g(V),  positive = W²V H + a VQ² + β pos_g(V), H = UᵀU.
    ``fitted`` replaces V H where entries are unobserved.
    """
    fitted = V @ H if fitted is None else fitted
    negative = w2 * XU + a * (consensus * q) + beta * g[0]
    positive = w2 * fitted + a * (V * (q * q)) + beta * g[1]
    return negative, positive


# --- closed forms ------------------------------------------------------------------------------


def view_weights(gaps: Array, p: float) -> Array:
    """α minimising Σ α_s^p A_s on the simplex: α_s ∝ A_s^{−1/(p−1)}.

    p = 1 puts all weight on the smallest A_s; ties, and several A_s = 0, share it equally.
    """
    gaps = np.asarray(gaps, dtype=float)
    smallest = gaps.min()
    if p == 1 or smallest == 0:
        winners = gaps == smallest
        return winners / winners.sum()
    # Ratios to the smallest lie in (0, 1]: no overflow for any p or scale.
    alpha = (smallest / gaps) ** (1 / (p - 1))
    return alpha / alpha.sum()


def sample_weights(residuals: Array) -> Array:
    """w minimising Σ_s w_is² r_is with Σ_s w_is = 1: w_is ∝ 1/r_is (N×n_v).

    Where some r_is = 0, those views share the observation equally.
    """
    smallest = residuals.min(axis=1, keepdims=True)
    safe = np.where(residuals > 0, residuals, 1)
    w = np.where(smallest > 0, smallest / safe, residuals == smallest)
    return w / w.sum(axis=1, keepdims=True)


def consensus(V: list[Array], q: list[Array], alpha: Array, p: float) -> Array:
    """V* = Σ_s α_s^p V_s Q_s / Σ_s α_s^p. The powers are of α/max α: α^p underflows for large p."""
    powers = (np.asarray(alpha) / np.max(alpha)) ** p
    powers = powers / powers.sum()
    return sum(c * (Vs * qs) for c, Vs, qs in zip(powers.astype(V[0].dtype), V, q, strict=True))


def rescale(U: Array, V: Array) -> tuple[Array, Array]:
    """Unit L1 columns of U, absorbed by V: VUᵀ and VQ stay as they are, O's graph term does not."""
    q = U.sum(axis=0)
    q = np.where(q > 0, q, 1)
    return U / q, V * q


def unit_columns(U: Array, V: Array) -> tuple[Array, Array]:
    """Unit L2 columns of U, absorbed by V (the scaling of a GNMF start)."""
    norms = np.sqrt(np.einsum("mk,mk->k", U, U))
    norms = np.where(norms > 0, norms, 1)
    return U / norms, V * norms


def ratio_step(factor: Array, negative: Array, positive: Array) -> Array:
    """Multiplicative rule: factor ∘ negative / positive, the factor itself where positive vanishes.

    "Vanishes" means below the smallest normal number: a fixed 1e-10 would zero whole factors at
    small scale.
    """
    usable = positive > np.finfo(positive.dtype).tiny
    return factor * np.divide(negative, positive, out=np.ones_like(positive), where=usable)


def simplex_rows(Y: Array) -> Array:
    """Nearest point of the simplex {y ≥ 0, Σy = 1} to every row of Y."""
    ordered = -np.sort(-Y, axis=1)
    excess = np.cumsum(ordered, axis=1) - 1
    count = np.arange(1, Y.shape[1] + 1)
    active = np.count_nonzero(ordered * count > excess, axis=1)
    threshold = np.take_along_axis(excess, active[:, None] - 1, axis=1) / active[:, None]
    return np.maximum(Y - threshold, 0)


# --- the well-posed form (RobustWMNMF) ---------------------------------------------------------
#
#     J = Σ_s α_s Σ_i w_is [ ‖x_i − U v_i‖²/τ_s + λ‖v_i − v*_i‖² ] + β Σ_ik v*_ik ‖p_i − c_k‖²
#
# U ≥ 0 with unit column sums (so Q = I), V ≥ 0, rows of V* on the simplex; α, w and the embedding P
# are given. τ_s is the spread of view s.


def spread(x_sq: Array, mean: Array) -> float:
    """τ = mean over rows of ‖x_i − mean row‖², from squared norms; 1 for a view without spread."""
    tau = float(np.mean(x_sq) - mean @ mean) if len(x_sq) else 0.0
    return tau if tau > 1e-12 * max(1e-300, float(np.max(x_sq, initial=0))) else 1.0


def cluster_distances(P: Array, centres: Array) -> Array:
    """‖p_i − c_k‖² (N×K)."""
    squared = (P * P).sum(axis=1)[:, None] - 2 * (P @ centres.T) + (centres * centres).sum(axis=1)
    return np.maximum(squared, 0)


def cluster_confidence(distances: Array, width: float) -> Array:
    """exp(−2‖p_i − c_k‖²/σ²) normalised over clusters (N×K), σ² the mean distance to the own centre."""
    nearest = distances.min(axis=1, keepdims=True)
    shares = np.exp(-2 * (distances - nearest) / width)
    return shares / shares.sum(axis=1, keepdims=True)


def cluster_centres(P: Array, consensus: Array) -> Array:
    """c_k = V*-weighted mean of the rows of P (K×dim)."""
    total = consensus.sum(axis=0)
    return (consensus.T @ P) / np.where(total > 1e-12, total, 1)[:, None]


def simplex_consensus(
    V: list[Array], alpha: Array, w: Array, distances: Array, lam: float, beta: float
) -> Array:
    """v*_i = simplex projection of B_i/c̄_i − β/(2λc̄_i)·‖p_i − c_k‖², B_i = Σ_s α_s w_is v_i^s.

    c̄_i = Σ_s α_s w_is; an observation no view speaks for goes to its nearest centre.
    """
    B = sum(alpha[s] * w[:, [s]] * V[s] for s in range(len(V)))
    c = w @ alpha
    silent = c < 1e-6
    c = np.where(silent, 1, c)[:, None]
    V_star = simplex_rows(B / c - beta / (2 * lam * c) * distances)
    V_star[silent] = np.eye(V_star.shape[1])[distances[silent].argmin(axis=1)]
    return V_star


def robust_objective(
    errors: list[float],
    V: list[Array],
    consensus: Array,
    alpha: Array,
    w: Array,
    distances: Array,
    lam: float,
    beta: float,
) -> dict[str, float]:
    """The terms of J; ``errors[s]`` is Σ_i w_is ‖x_i − Uv_i‖²/τ_s."""
    gaps = [((Vs - consensus) ** 2).sum(axis=1) for Vs in V]
    terms = {
        "reconstruction": float(np.dot(alpha, errors)),
        "consensus": lam * sum(a * float(w[:, s] @ gaps[s]) for s, a in enumerate(alpha)),
        "regularizer": beta * float(np.vdot(consensus, distances)),
    }
    return terms | {"objective": sum(terms.values())}


def weighted_simplex(target: Array, weights: Array) -> Array:
    """argmin Σ_m g_m u_m² − 2 r_m u_m over the simplex: u_m = max(0, (r_m − t)/g_m), Σu = 1.

    ``target`` is r, ``weights`` is g ≥ 0; where g_m = 0 nothing is known and u_m = 0.
    """
    known = weights > 0
    r, g = target[known], weights[known]
    order = np.argsort(-r)
    r, inverse = r[order], 1 / g[order]
    # With the first j coordinates active, Σ(r − t)/g = 1 gives t; the last valid j is the answer.
    t = (np.cumsum(r * inverse) - 1) / np.cumsum(inverse)
    t = t[np.flatnonzero(r > t)[-1]]
    u = np.zeros_like(target)
    u[known] = np.maximum(0, (target[known] - t) / weights[known])
    return u
