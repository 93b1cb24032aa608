"""The mathematics of weighted multi-view NMF: every formula, and nothing else.

Samples are rows. For view s: X (N×M) ≈ V Uᵀ with U (M×K) and V (N×K) nonnegative, Q = Diag(q),
q = column sums of U, consensus V* (N×K), view weights α (sum 1), sample weights w (rows sum 1)::

    O = Σ_s ‖Diag(w_s)(X_s − V_s U_sᵀ)‖²  +  Σ_s α_s^p ‖V_s Q_s − V*‖²  +  β Σ_s g(V_s)

Below, ``a`` is α_s^p, ``w2`` is the column w_s² (N×1), and gradients come as (negative, positive)
parts of **half** the gradient, both nonnegative: the ratio of the two is the multiplicative rule.

Arrays may be NumPy's, Dask's or tensors; sums over rows stay numbers of that library, so that nothing
waits for a GPU here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyview._arrays import (
    as_numbers,
    column_dots,
    converted,
    namespace,
    one_hot,
    pick,
    row_sums,
    sorted_rows,
)
from manyview._types import Array, Number, Split, Sums

# --- objective terms ---------------------------------------------------------------------------


def squared_residuals(x_sq: Array, XU: Array, V: Array, H: Array) -> Array:
    """Row residuals without forming X − VUᵀ: r_i = ‖x_i‖² − 2 x_i·Uv_i + v_iᵀ H v_i.

    x_sq (N,) squared row norms of X; XU = X @ U (N×K); H = UᵀU (K×K). Returns (N,), at least 0.
    """
    return (x_sq + namespace(V).einsum("ik,ik->i", V @ H - 2 * XU, V)).clip(0)


def reconstruction(r: Array, w: Array) -> Number:
    """‖Diag(w)(X − VUᵀ)‖² = Σ_i w_i² r_i, from the squared row residuals r."""
    return (w * w) @ r


def reconstruction_from(sums: Sums, weighted_sq: float, U: Array) -> float:
    """The same from the sums over rows: Σ w_i²‖x_i‖² − 2⟨P, U⟩ + ⟨G, UᵀU⟩, at least 0."""
    fitted = 2 * (sums.P * U).sum() - (sums.G * (U.T @ U)).sum()
    return (weighted_sq - fitted).clip(0)


def consensus_gap(V: Array, q: Array, consensus: Array) -> float:
    """A_s = ‖VQ − V*‖²."""
    gap = V * q - consensus
    return (gap * gap).sum()


def gap_from(sums: Sums, q: Array, consensus_sq: float) -> float:
    """The same from the sums over rows: Σ_k q_k² (Σv∘v)_k − 2 q_k (Σv∘v*)_k + ‖V*‖²."""
    return ((q * q * sums.vv).sum() - 2 * (q * sums.vc).sum() + consensus_sq).clip(0)


def objective(
    errors: Sequence[Number] | Array,
    gaps: Sequence[Number] | Array,
    alpha: Array,
    p: float,
    penalties: Sequence[Number] | Array,
    beta: float,
) -> dict[str, float]:
    """The three terms of O and their sum, from the reconstruction error, gap and g of each view."""
    terms = {
        "reconstruction": sum(errors),
        "consensus": sum(float(a) ** p * gap for a, gap in zip(alpha, gaps, strict=True)),
        "regularizer": beta * sum(penalties),
    }
    return terms | {"objective": sum(terms.values())}


# --- gradient parts ----------------------------------------------------------------------------


def sums_over_rows(
    X: Array, V: Array, consensus: Array, w2: Array, XWV: Array | None = None
) -> Sums:
    """P = XᵀW²V (M×K), G = VᵀW²V (K×K), Σ_i v_i∘v*_i and Σ_i v_i∘v_i (K), of some or all rows.

    ``XWV`` is P where an engine has another way to it.
    """
    WV = w2 * V
    vc, vv = column_dots(V, consensus), column_dots(V, V)
    # (WᵀX)ᵀ rather than XᵀW: the same numbers, and the long side of X stays in order.
    return Sums((WV.T @ X).T if XWV is None else XWV, V.T @ WV, vc, vv)


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
    g: Split | tuple[Number, Number],
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


def weights_of_gaps(gaps: Array, p: float, reach: Array | None = None) -> Array:
    """α minimizing Σ α_s^p A_s on the simplex: α_s ∝ A_s^{−1/(p−1)}.

    p = 1 puts all weight on the smallest A_s; ties, and several A_s = 0, share it equally. A view whose
    ``reach`` is below 1 cannot lead: its gap is treated as at least the largest of those with reach 1, and
    its weight is multiplied by the reach.
    """
    gaps = np.asarray(gaps, dtype=float)
    if reach is not None and (reach < 1).any() and (reach >= 1).any():
        full = reach >= 1
        alpha = np.zeros(len(gaps))
        alpha[full] = weights_of_gaps(gaps[full], p)
        largest = gaps[full].max()
        ratio = np.divide(largest, gaps, out=np.ones_like(gaps), where=gaps > largest)
        # p = 1 gives all weight to the best view: to one that cannot lead, none.
        share = 0.0 if p == 1 else ratio ** (1 / (p - 1)) * reach
        alpha = np.where(full, alpha, share * alpha[full].min())
        return alpha / alpha.sum()
    smallest = gaps.min()
    if p == 1 or smallest == 0:
        winners = gaps == smallest
        return winners / winners.sum()
    # Ratios to the smallest lie in (0, 1]: no overflow for any p or scale.
    alpha = (smallest / gaps) ** (1 / (p - 1))
    return alpha / alpha.sum()


def weights_of_residuals(residuals: Array) -> Array:
    """w minimizing Σ_s w_is² r_is with Σ_s w_is = 1: w_is ∝ 1/r_is (N×n_v).

    Where some r_is = 0, those views share the sample equally.
    """
    xp = namespace(residuals)
    smallest = xp.amin(residuals, axis=1, keepdims=True)
    safe = xp.where(residuals > 0, residuals, 1)
    w = xp.where(smallest > 0, smallest / safe, as_numbers(residuals == smallest, residuals))
    return w / w.sum(axis=1, keepdims=True)


def consensus(V: list[Array], q: Sequence[Number], alpha: Array, p: float) -> Array:
    """V* = Σ_s α_s^p V_s Q_s / Σ_s α_s^p. The powers are of α/max α: α^p underflows for large p."""
    powers = (np.asarray(alpha) / np.max(alpha)) ** p
    powers = powers / powers.sum()
    first, *others = (float(c) * (Vs * qs) for c, Vs, qs in zip(powers, V, q, strict=True))
    return sum(others, first)


def rescale(U: Array, V: Array) -> tuple[Array, Array]:
    """Unit L1 columns of U, absorbed by V: VUᵀ and VQ stay as they are, O's graph term does not."""
    q = U.sum(axis=0)
    q = namespace(q).where(q > 0, q, 1)
    return U / q, V * q


def unit_columns(U: Array, V: Array) -> tuple[Array, Array]:
    """Unit L2 columns of U, absorbed by V (the scaling of a GNMF start)."""
    norms = (U * U).sum(axis=0) ** 0.5
    norms = namespace(U).where(norms > 0, norms, 1)
    return U / norms, V * norms


def nonnegative_half(left: Array, right: Array) -> tuple[Array, Array]:
    """The larger nonnegative half of a pair of singular vectors (NNDSVD, Boutsidis & Gallopoulos)."""
    halves = [(np.maximum(sign * left, 0), np.maximum(sign * right, 0)) for sign in (1, -1)]
    sizes = [np.linalg.norm(v) * np.linalg.norm(u) for v, u in halves]
    return halves[int(np.argmax(sizes))]


def ratio_step(factor: Array, negative: Array, positive: Array) -> Array:
    """Multiplicative rule: factor ∘ negative / positive, the factor itself where positive vanishes.

    "Vanishes" means below the smallest normal number: a fixed 1e-10 would zero whole factors at
    small scale.
    """
    xp = namespace(positive)
    usable = positive > xp.finfo(positive.dtype).tiny
    return factor * xp.where(usable, negative / xp.where(usable, positive, 1), 1)


def simplex_rows(Y: Array) -> Array:
    """Nearest point of the simplex {y ≥ 0, Σy = 1} to every row of Y."""
    if not isinstance(Y, np.ndarray):
        return (Y - _simplex_thresholds(Y)).clip(0)
    # Nothing is left of what is 1 or more below the largest: most often of all others.
    threshold = Y.max(axis=1, keepdims=True) - 1
    several = (threshold < Y).sum(axis=1) > 1
    threshold[several] = _simplex_thresholds(Y[several])
    return (Y - threshold).clip(0)


def _simplex_thresholds(Y: Array) -> Array:
    """What all entries of a row lose when it is projected to the simplex (N×1)."""
    ordered = -sorted_rows(-Y)
    excess = ordered.cumsum(axis=1) - 1
    count = namespace(Y).ones_like(Y).cumsum(axis=1)
    active = (ordered * count > excess).sum(axis=1)
    return pick(excess / count, active - 1)


# --- the well-posed form (RobustWMNMF) ---------------------------------------------------------
#
#     J = Σ_s α_s Σ_i w_is [ ‖x_i − U v_i‖²/τ_s + λ‖v_i − v*_i‖² ] + β Σ_ik v*_ik ‖p_i − c_k‖²
#
# U ≥ 0 with unit column sums (so Q = I), V ≥ 0, rows of V* on the simplex; α, w and the embedding P
# are given. τ_s is the spread of view s.


def spread(x_sq: Array, mean: Array) -> float:
    """τ = mean over rows of ‖x_i − mean row‖², from squared norms; 1 for a view without spread."""
    tau = float(x_sq.mean() - mean @ mean) if len(x_sq) else 0.0
    return tau if tau > 1e-12 * max(1e-300, float(x_sq.max()) if len(x_sq) else 0.0) else 1.0


def cluster_distances(P: Array, centers: Array) -> Array:
    """‖p_i − c_k‖² (N×K)."""
    own, theirs = (namespace(rows).einsum("ik,ik->i", rows, rows) for rows in (P, centers))
    squared = P @ centers.T
    squared *= -2
    squared += own[:, None]
    squared += theirs
    return squared.clip(0)


#: How fast confidence falls with distance. `benchmarks/confidence.py` estimates it, leaving each data
#: set out; between 3.5 and 10 it changes little.
SHARPNESS = 5.0


def cluster_confidence(
    P: Array, labels: Array, centers: Array, widths: Array, sharpness: float = SHARPNESS
) -> Array:
    """Probability of each cluster (N×K): the mean over halves b of the data of

        exp(−κ‖p_i − c_k^b‖²/σ_b²), κ the sharpness, normalized over clusters k,

    with the centers c^b (K×dim) of the clusters in the half and σ_b² its mean distance to the own center.
    The row is then moved to the nearest one in which the label has the largest entry.
    """
    sure = np.zeros((len(P), centers.shape[1]))
    for c, width in zip(centers, widths, strict=True):
        d = cluster_distances(P, c)
        shares = np.exp(-sharpness * (d - d.min(axis=1, keepdims=True)) / width)
        sure = sure + shares / (len(centers) * shares.sum(axis=1, keepdims=True))
    rows, K = np.arange(len(P)), sure.shape[1]
    own = sure[rows, labels]
    sure[rows, labels] = np.inf
    # The label and the larger entries get their mean: the largest of the means of the first few.
    ordered = -np.sort(-sure, axis=1)
    ordered[:, 0] = own
    level = (ordered.cumsum(axis=1) / np.arange(1, K + 1)).max(axis=1)
    # Ties are the label's, also in single precision.
    sure = np.minimum(sure, (1 - 1e-6) * level[:, None])
    sure[rows, labels] = level
    return sure / sure.sum(axis=1, keepdims=True)


def cluster_centers(P: Array, consensus: Array) -> Array:
    """c_k = V*-weighted mean of the rows of P (K×dim)."""
    total = consensus.sum(axis=0)
    return row_sums(consensus, P) / namespace(total).where(total > 1e-12, total, 1)[:, None]


def simplex_consensus(
    V: list[Array], alpha: Array, w: Array, distances: Array, lam: float, beta: float
) -> Array:
    """v*_i = simplex projection of B_i/c̄_i − β/(2λc̄_i)·‖p_i − c_k‖², B_i = Σ_s α_s w_is v_i^s.

    c̄_i = Σ_s α_s w_is; a sample no view speaks for goes to its nearest center.
    """
    xp = namespace(distances)
    c = sum(float(a) * w[:, s : s + 1] for s, a in enumerate(alpha))
    silent = c < 1e-6
    c = xp.where(silent, 1, c)
    B = sum(float(a) * w[:, s : s + 1] * V[s] for s, a in enumerate(alpha))
    B /= c
    B -= beta / (2 * lam * c) * distances
    V_star = simplex_rows(B)
    if isinstance(silent, np.ndarray) and not silent.any():
        return V_star
    return xp.where(silent, nearest_corner(distances), V_star)


def nearest_corner(distances: Array) -> Array:
    """1 for the nearest center (the first of several), 0 for the others."""
    corners = one_hot(distances.argmin(axis=1), distances.shape[1])
    return converted(corners, distances.dtype)


def robust_objective(
    errors: Sequence[Number],
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
        "reconstruction": sum(float(a) * error for a, error in zip(alpha, errors, strict=True)),
        "consensus": lam * sum(float(a) * (w[:, s] @ gaps[s]) for s, a in enumerate(alpha)),
        "regularizer": beta * (consensus * distances).sum(),
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
    # With the first j coordinates active, Σ(r − t)/g = 1 gives t; the last valid j is used.
    t = (np.cumsum(r * inverse) - 1) / np.cumsum(inverse)
    t = t[np.flatnonzero(r > t)[-1]]
    u = np.zeros_like(target)
    u[known] = np.maximum(0, (target[known] - t) / weights[known])
    return u
