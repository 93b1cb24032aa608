"""RobustWMNMF from scaled views to labels in dense NumPy, in the order of docs/methods/robust.md.

Exact, for complete data whose rows are all distinct: no engine, no block, no missing value. The
estimator has to match it to rounding (`test_reference.py`); a change of the method starts here.

Views ``Z`` are N × M_s arrays. Everything is written for few samples: N × N arrays are made freely.
"""

from itertools import pairwise

import numpy as np
from scipy.linalg import eigh
from scipy.stats import spearmanr
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

LAMBDA, BETA, DELTA = 1.0, 5.0, 0.05  # weights of consensus, clusters and reliability
K_VIEW, K_FUSED, K_SINGLE = 10, (5, 10, 20), 10  # nearest neighbors in the graphs
FEW = 60  # below this many samples neighborhoods shrink in proportion
HALVES, STARTS = 8, 10  # halves of samples, k-means starts in each


def fit(Z, n_clusters, seed, max_iter=200, tol=1e-5):
    """Everything RobustWMNMF learns, by the names of the method page."""
    rng = np.random.default_rng(seed)
    draw = int(rng.integers(2**31))
    d = [distances(z) for z in Z]
    found = compare(Z, d, draw)
    found |= cluster_structure(found["graphs"], n_clusters, draw)
    alpha = view_weights(found)
    own = [closeness(ds) for ds in d] if len(Z) == 2 else None
    w, agreement = sample_weights(found["contrast"], alpha, found["rho"], own)
    S, single = fused_graphs(d, alpha / found["spread"])
    P = embed(S, single, found["graphs"], alpha, n_clusters)
    start = KMeans(n_clusters, n_init=30, random_state=int(rng.integers(2**31))).fit_predict(P)
    result = factorize(Z, alpha, w, P, start, n_clusters, max_iter, tol)
    return found | result | {"alpha": alpha, "w": w, "g": agreement, "S": S, "P": P}


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
    i, j = np.triu_indices(n, 1)
    typical = np.array([ds[i, j].mean() for ds in d])  # of random pairs: 1 but in narrow views
    # 1 − e_it^s/typical: how much closer than a random pair i's neighbors in view t are in view s
    contrast = np.full((len(Z), len(Z), n), np.nan)
    for s in views:
        for t in views:
            if s != t:
                contrast[s, t] = row_contrast(d[s], graphs[t])
    halves = np.array([split_half(z, draw) for z in Z])
    near = [(np.repeat(np.arange(n), lists.shape[1]), lists.ravel()) for lists in
            (neighbors(ds, K_VIEW) for ds in d)]  # fmt: skip
    spread = np.array([pooled_spread(d[s][i, j], d[s][near[s]]) for s in views])
    rho = np.eye(len(Z))
    for s in views:
        for t in range(s):
            both = [np.concatenate([d[v][near[s]], d[v][near[t]]]) for v in (s, t)]
            rho[s, t] = rho[t, s] = max(0, np.corrcoef(*both)[0, 1])
    return {
        "graphs": graphs,
        "contrast": contrast,
        "typical": typical,
        "h": halves,
        "spread": spread,
        "rho": rho,
    }


def row_contrast(d, A):
    """How much closer than a random pair each sample's neighbors in A are under d."""
    typical = d[np.triu_indices(len(d), 1)].mean()
    return 1 - (A * d).sum(axis=1) / A.sum(axis=1) / typical


def split_half(z, draw):
    """h_s: are neighbors under one random half of the features close under the other?"""
    order = np.random.default_rng(draw).permutation(z.shape[1])
    one, two = (distances(z[:, np.sort(part)]) for part in (order[0::2], order[1::2]))
    h = []
    for d, other in ((one, two), (two, one)):
        A = self_tuned(other, K_VIEW)
        h.append(max(0, 1 - (A * d).sum() / A.sum() / d[np.triu_indices(len(d), 1)].mean()))
    return np.sqrt(h[0] * h[1])


def cluster_structure(graphs, K, draw):
    """c_s: are K clusters of view s alone the same when learned from other halves of the samples?"""
    c, error = [], []
    for A in graphs:
        P, rng, labels = diffusion_map(A, min(3 * K, len(A))), np.random.default_rng(draw), []
        for _ in range(HALVES):
            half = np.sort(rng.permutation(len(P))[: len(P) // 2])
            seed = int(rng.integers(2**31))
            model = KMeans(K, n_init=STARTS, random_state=seed).fit(P[half])
            labels.append(model.predict(P))
        ari = [np.mean([adjusted_rand_score(a, b) for b in labels if b is not a]) for a in labels]
        c.append(max(0, np.mean(ari)))
        error.append(np.std(ari, ddof=1))  # halves vary as much as all samples do
    return {"structure": np.array(c), "structure_error": np.array(error)}


def closeness(d):
    """r_is: how much closer than a random pair sample i's neighbors in view s are there."""
    nearest = np.take_along_axis(d, neighbors(d, K_VIEW), axis=1).mean(axis=1)
    return 1 - nearest / d[np.triu_indices(len(d), 1)].mean()


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
    """α from support that no shared data explain, counted twice, times the view's cluster structure."""
    unit = found["spread"] / found["typical"]
    rho, u = found["rho"], found["h"] / unit
    o = np.full(len(u), 1 / np.sqrt(found["contrast"].shape[2]))
    c, error = found["structure"], found["structure_error"]
    if c.var() > 0:  # differences count as far as they exceed the errors
        c = c.mean() + c.var() / (c.var() + 4 * (error**2).mean()) * (c - c.mean())
    q = c * np.sqrt(u / np.sqrt(u**2 + 4 * o**2))
    largest = np.hypot(u, o).max()
    prior = DELTA * (largest * rho * np.outer(q, q) + np.outer(o, o) / (4 * largest))
    B = effects(found["contrast"], unit) * (1 - rho) + prior
    voice = 1 / rho.sum(axis=1)
    a = c * (B @ (voice * (B @ voice)))
    alpha = a**2 / (rho @ a)
    return alpha / alpha.sum()


def sample_weights(contrast, alpha, rho, own):
    """w_is: how close i's neighbors in the other views are in s, and the other way round.

    Two views differ by as much as each of them differs from the other: ``own`` says which is to blame.
    """
    n_views, _, n = contrast.shape
    support = np.zeros((n, n_views))
    for s in range(n_views):
        others = [t for t in range(n_views) if t != s]
        voices = (alpha * (1 - rho[s]))[others]
        both = (contrast[s, others] + contrast[others, s]) / 2
        g = voices @ both / voices.sum()
        support[:, s] = np.clip(g / np.quantile(g, 0.9), 0, 1)
    w = support if own is None else (1 - 2 * (1 - support) * blame(own, g)).clip(0, 1)
    return w, support @ alpha


def blame(own, g):
    """The share of each of two views in a disagreement; half where their own evidence says nothing."""
    evidence = 0
    for r, sign in zip(own, (1, -1), strict=True):
        low, middle, high = np.quantile(r, [0.25, 0.5, 0.75])
        telling = max(0, spearmanr(r, g).statistic)
        evidence = evidence + sign * 2 * telling * (r - middle) / (high - low)
    first = 1 / (1 + np.exp(evidence))
    return np.column_stack([first, 1 - first])


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
