"""RobustWMNMF from scaled views to labels in dense NumPy, in the order of docs/methods/robust.md.

Exact, for complete data whose rows are all distinct: no engine, no block, no missing value. The
estimator has to match it to rounding (`test_reference.py`); a change of the method starts here.

Views ``Z`` are N × M_s arrays. Everything is written for few samples: N × N arrays are made freely.
"""

from itertools import pairwise

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans

LAMBDA, BETA, DELTA = 1.0, 5.0, 0.05  # weights of consensus, clusters and reliability
K_VIEW, K_FUSED, K_SINGLE = 10, (5, 10, 20), 10  # nearest neighbors in the graphs
FEW = 60  # below this many samples neighborhoods shrink in proportion


def fit(Z, n_clusters, seed, max_iter=200, tol=1e-5):
    """Everything RobustWMNMF learns, by the names of the method page."""
    rng = np.random.default_rng(seed)
    draw = int(rng.integers(2**31))
    d = [distances(z) for z in Z]
    found = compare(Z, d, draw)
    alpha = view_weights(found)
    w = sample_weights(found["contrast"], alpha, found["rho"])
    S, single = fused_graphs(d, alpha / found["spread"])
    P = embed(S, single, found["graphs"], alpha, n_clusters)
    start = KMeans(n_clusters, n_init=30, random_state=int(rng.integers(2**31))).fit_predict(P)
    result = factorize(Z, alpha, w, P, start, n_clusters, max_iter, tol)
    return found | result | {"alpha": alpha, "w": w, "S": S, "P": P}


# --- distances and graphs ----------------------------------------------------------------------


def distances(z):
    """d_ij = ‖z_i − z_j‖²/√(μ_i μ_j), μ_i the mean squared distance of i to all others."""
    squared = ((z[:, None] - z) ** 2).sum(axis=2)
    mu = squared.sum(axis=1) / (len(z) - 1)
    return squared / np.sqrt(np.outer(mu, mu))


def in_proportion(k, n):
    return max(2, min(k, round(k * n / FEW)))


def neighbors(d, k):
    """The k nearest samples of each, ties by index."""
    others = d + np.diag(np.full(len(d), np.inf))
    return np.argsort(others, axis=1, kind="stable")[:, : in_proportion(k, len(d))]


def self_tuned(d, k):
    """(A + Aᵀ)/2, A_ij = exp(−d_ij/(σ_i σ_j)) for the neighbors j of i, σ_i² the distance to the last."""
    near = neighbors(d, k)
    rows = np.arange(len(d))[:, None]
    sigma = np.sqrt(d[rows, near].max(axis=1))
    A = np.zeros_like(d)
    A[rows, near] = np.exp(-d[rows, near] / (sigma[:, None] * sigma[near]))
    return (A + A.T) / 2


def normalized(A):
    """D^{−1/2} A D^{−1/2}."""
    scale = 1 / np.sqrt(A.sum(axis=1))
    return scale[:, None] * A * scale


# --- what the views say about each other -------------------------------------------------------


def compare(Z, d, draw):
    """Agreement, reliability, spread of the distances, and redundancy."""
    views, n = range(len(Z)), len(Z[0])
    graphs = [self_tuned(ds, K_VIEW) for ds in d]
    # 1 − e_it^s: how much closer than a random pair i's neighbors in view t are in view s
    contrast = np.full((len(Z), len(Z), n), np.nan)
    for s in views:
        for t in views:
            if s != t:
                contrast[s, t] = 1 - (graphs[t] * d[s]).sum(axis=1) / graphs[t].sum(axis=1)
    halves = np.array([split_half(z, draw) for z in Z])
    i, j = np.triu_indices(n, 1)
    near = [(np.repeat(np.arange(n), lists.shape[1]), lists.ravel()) for lists in
            (neighbors(ds, K_VIEW) for ds in d)]  # fmt: skip
    spread = np.array([pooled_spread(d[s][i, j], d[s][near[s]]) for s in views])
    rho = np.eye(len(Z))
    for s in views:
        for t in range(s):
            both = [np.concatenate([d[v][near[s]], d[v][near[t]]]) for v in (s, t)]
            rho[s, t] = rho[t, s] = max(0, np.corrcoef(*both)[0, 1])
    return {"graphs": graphs, "contrast": contrast, "h": halves, "spread": spread, "rho": rho}


def split_half(z, draw):
    """h_s: are neighbors under one random half of the features close under the other?"""
    order = np.random.default_rng(draw).permutation(z.shape[1])
    one, two = (distances(z[:, np.sort(part)]) for part in (order[0::2], order[1::2]))
    G, H = self_tuned(one, K_VIEW), self_tuned(two, K_VIEW)
    return np.sqrt(max(0, 1 - (H * one).sum() / H.sum()) * max(0, 1 - (G * two).sum() / G.sum()))


def pooled_spread(random, near):
    """ς_s: the standard deviation of d over as many neighbors as random pairs."""
    return np.sqrt(random.var() / 2 + near.var() / 2 + (random.mean() - near.mean()) ** 2 / 4)


# --- weights -----------------------------------------------------------------------------------


def effects(contrast, spread):
    """E_st: mean contrasts, discounted by t²/(t² + 4), in units of the spread of the distances."""
    E = np.zeros(contrast.shape[:2])
    for s, t in np.ndindex(*E.shape):
        if s != t:
            mean = max(0, contrast[s, t].mean())
            error = contrast[s, t].std() / np.sqrt(contrast.shape[2])
            E[s, t] = mean**3 / (mean**2 + 4 * error**2) / spread[s] if mean > 0 else 0
    return np.sqrt(E * E.T)


def view_weights(found):
    """α from support that no shared data explain, counted twice."""
    rho, u = found["rho"], found["h"] / found["spread"]
    o = np.full(len(u), 1 / np.sqrt(found["contrast"].shape[2]))
    prior = DELTA * (np.outer(u, u) + np.outer(o, o)) / np.hypot(u, o).max()
    B = effects(found["contrast"], found["spread"]) * (1 - rho) + prior
    voice = 1 / rho.sum(axis=1)
    a = B @ (voice * (B @ voice))
    alpha = a**2 / (rho @ a)
    return alpha / alpha.sum()


def sample_weights(contrast, alpha, rho):
    """w_is: how close i's neighbors in the other views are in s, and the other way round."""
    n_views, _, n = contrast.shape
    w = np.zeros((n, n_views))
    for s in range(n_views):
        others = [t for t in range(n_views) if t != s]
        voices = (alpha * (1 - rho[s]))[others]
        both = (contrast[s, others] + contrast[others, s]) / 2
        g = voices @ both / voices.sum()
        w[:, s] = np.clip(g / np.quantile(g, 0.9), 0, 1)
    return w


# --- fused graph and embedding -----------------------------------------------------------------


def fused_graphs(d, weights):
    """S, the mean of the normalized graphs of three sizes under F = Σ_s (α_s/ς_s) d^s; and one of them."""
    F = sum(a * ds for a, ds in zip(weights / weights.sum(), d, strict=True))
    graphs = [normalized(self_tuned(F, k)) for k in K_FUSED]
    return sum(graphs) / len(graphs), normalized(self_tuned(F, K_SINGLE))


def embed(S, single, graphs, alpha, n_clusters):
    """P: two diffusion maps side by side, of S and of one fused graph plus the view graphs."""
    mixed = single + sum(a * normalized(A) for a, A in zip(alpha, graphs, strict=True))
    n_vectors = min(3 * n_clusters, len(S))
    return np.hstack([diffusion_map(A, n_vectors) for A in (S, mixed)]) / np.sqrt(2)


def diffusion_map(A, n_vectors):
    values, vectors = eigh(normalized(A), subset_by_index=[len(A) - n_vectors, len(A) - 1])
    values = values.clip(0)
    Y = vectors * (values**2 + values**5 + values**10 + values**20)
    return Y / np.linalg.norm(Y, axis=1, keepdims=True)


# --- factorization -----------------------------------------------------------------------------


def factorize(Z, alpha, w, P, labels, K, max_iter, tol):
    """Minimize J by exact steps on V, U, V* and the centers."""
    X = [z / np.abs(z).sum(axis=1, keepdims=True) for z in Z]
    tau = [(x**2).sum(axis=1).mean() - (x.mean(axis=0) ** 2).sum() for x in X]
    consensus = 0.8 * np.eye(K)[labels] + 0.2 / K
    V = [consensus.copy() for _ in X]
    U = [(x.T @ (w[:, [s]] * consensus)).clip(0) for s, x in enumerate(X)]
    U = [u / u.sum(axis=0) for u in U]
    J = []
    while True:
        centers = consensus.T @ P / consensus.sum(axis=0)[:, None]
        gaps = ((P[:, None] - centers) ** 2).sum(axis=2)
        J.append(objective(X, U, V, consensus, alpha, w, tau, gaps))
        if len(J) > max_iter or any(a - b <= tol * abs(a) for a, b in pairwise(J[-2:])):
            break
        for s, x in enumerate(X):
            V[s] = step_V(x, U[s], V[s], consensus, tau[s])
            U[s] = step_U(x, U[s], V[s], w[:, s])
        mass = (w @ alpha)[:, None]
        silent = mass[:, 0] < 1e-6  # no view speaks for them: they go to the nearest center
        mass[silent] = 1
        mean = sum(a * w[:, [s]] * V[s] for s, a in enumerate(alpha)) / mass
        consensus = simplex(mean - BETA / (2 * LAMBDA * mass) * gaps)
        consensus[silent] = np.eye(K)[gaps[silent].argmin(axis=1)]
    order = by_size(consensus.argmax(axis=1), K)
    U, V, consensus = [u[:, order] for u in U], [v[:, order] for v in V], consensus[:, order]
    labels = consensus.argmax(axis=1)
    return {"U": U, "V": V, "consensus": consensus, "labels": labels, "J": np.array(J)}


def by_size(labels, K):
    """The largest cluster first; of equal ones that of the first sample."""
    return sorted(range(K), key=lambda k: (-(labels == k).sum(), np.argmax(labels == k)))


def objective(X, U, V, consensus, alpha, w, tau, gaps):
    J = BETA * (consensus * gaps).sum()
    for s, x in enumerate(X):
        error = ((x - V[s] @ U[s].T) ** 2).sum(axis=1) / tau[s]
        J += alpha[s] * w[:, s] @ (error + LAMBDA * ((V[s] - consensus) ** 2).sum(axis=1))
    return J


def step_V(x, U, V, consensus, tau):
    """Two sweeps of exact coordinate steps; α and w cancel row by row."""
    V, XU, H = V.copy(), x @ U, U.T @ U
    for k in [*range(V.shape[1])] * 2:
        others = V @ H[:, k] - V[:, k] * H[k, k]
        best = ((XU[:, k] - others) / tau + LAMBDA * consensus[:, k]) / (H[k, k] / tau + LAMBDA)
        V[:, k] = best.clip(0)
    return V


def step_U(x, U, V, w):
    """Two sweeps: each column goes to the best point of the simplex."""
    U, Q, G = U.copy(), x.T @ (w[:, None] * V), V.T @ (w[:, None] * V)
    for k in [*range(U.shape[1])] * 2:
        U[:, k] = simplex((U[:, k] + (Q[:, k] - U @ G[:, k]) / G[k, k])[None])[0]
    return U


def simplex(Y):
    """The nearest point of {y ≥ 0, Σ y = 1} to each row."""
    ordered = -np.sort(-Y, axis=1)
    excess = (ordered.cumsum(axis=1) - 1) / np.arange(1, Y.shape[1] + 1)
    active = (ordered > excess).sum(axis=1)
    return (Y - excess[np.arange(len(Y)), active - 1][:, None]).clip(0)
