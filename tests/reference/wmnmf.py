"""WM-NMF from scaled views to labels in dense NumPy, in the order of docs/methods/wmnmf.md.

The recipe that reproduces the paper: GNMF start, two rounds of 30 multiplicative iterations per view,
then α, V* and w in closed form, and spectral clustering of V*. The estimator has to match it to
rounding (`test_reference.py`); a change of the method starts here. ``PRINTED`` has the settings of
Algorithm 1 as the paper prints it.

Views ``X`` are nonnegative N × M_s arrays whose rows sum to 1 on average (all entries, as printed).
"""

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans

PRINTED = {
    "rounds": 200,
    "iterations": 200,
    "rescale": False,
    "w0": "1/N",
    "with_Q": True,
    "tol": 9e-8,
}


def fit(X, K, seed, p=5.0, beta=0.01, rounds=2, iterations=30, n_neighbors=5, rescale=True,
        w0="1/n_v", with_Q=False, tol=0.0):  # fmt: skip
    """Factors, weights, consensus, labels, and O after every step; ``tol`` is a difference of O."""
    rng = np.random.default_rng(seed)
    A = [graph(x, n_neighbors) for x in X]
    starts = [gnmf_start(x, a, K, rng) for x, a in zip(X, A, strict=True)]
    U, V = [u for u, _ in starts], [v for _, v in starts]
    alpha = np.full(len(X), 1 / len(X))
    w = np.full((len(X[0]), len(X)), 1 / (len(X[0]) if w0 == "1/N" else len(X)))
    consensus = sum(v * (u.sum(axis=0) if with_Q else 1) for u, v in zip(U, V, strict=True)) / len(
        V
    )
    history = [objective(X, U, V, A, consensus, alpha, w, p, beta)]
    for _ in range(rounds):
        before = history[-1]
        for s, x in enumerate(X):
            for _ in range(iterations):
                w2, a = w[:, [s]] ** 2, alpha[s] ** p
                U[s] = step_U(x, U[s], V[s], consensus, w2, a)
                V[s] = step_V(x, U[s], V[s], consensus, w2, a, A[s], beta)
                history.append(objective(X, U, V, A, consensus, alpha, w, p, beta))
                if tol and abs(history[-1] - history[-2]) <= tol:
                    break
            if rescale:
                q = U[s].sum(axis=0)
                U[s], V[s] = U[s] / q, V[s] * q
        VQ = [v * u.sum(axis=0) for u, v in zip(U, V, strict=True)]
        gaps = np.array([((vq - consensus) ** 2).sum() for vq in VQ])
        alpha = view_weights(gaps, p)
        consensus = sum(a**p * vq for a, vq in zip(alpha, VQ, strict=True)) / (alpha**p).sum()
        errors = np.column_stack([((x - v @ u.T) ** 2).sum(axis=1)
                                  for x, u, v in zip(X, U, V, strict=True)])  # fmt: skip
        w = (1 / errors) / (1 / errors).sum(axis=1, keepdims=True)
        history.append(objective(X, U, V, A, consensus, alpha, w, p, beta))
        if tol and abs(history[-1] - before) <= tol:
            break
    labels = spectral(consensus, K, rng)
    return {"U": U, "V": V, "consensus": consensus, "alpha": alpha, "w": w, "objective": np.array(history),
            "labels": labels}  # fmt: skip


def graph(x, k):
    """Union of the k nearest neighbors, without self loops; ties by index."""
    squared = ((x[:, None] - x) ** 2).sum(axis=2) + np.diag(np.full(len(x), np.inf))
    A = np.zeros((len(x), len(x)))
    np.put_along_axis(A, np.argsort(squared, axis=1, kind="stable")[:, :k], 1, axis=1)
    return np.maximum(A, A.T)


def gnmf_start(x, A, K, rng, weight=10.0, iterations=31):
    """Graph-regularized NMF of one view, V before U, columns of U at unit length at both ends."""
    U = 1 - rng.random((x.shape[1], K))
    V = (1 - rng.random((len(x), K))) * x.sum()
    D = A.sum(axis=1)[:, None]
    U, V = unit_columns(U, V)
    for _ in range(iterations):
        V = V * (x @ U + weight * A @ V) / (V @ (U.T @ U) + weight * D * V)
        U = U * (x.T @ V) / (U @ (V.T @ V))
    return unit_columns(U, V)


def unit_columns(U, V):
    lengths = np.linalg.norm(U, axis=0)
    return U / lengths, V * lengths


def step_U(x, U, V, consensus, w2, a):
    negative = x.T @ (w2 * V) + a * (V * consensus).sum(axis=0)
    positive = U @ (V.T @ (w2 * V)) + a * U.sum(axis=0) * (V * V).sum(axis=0)
    return U * negative / positive


def step_V(x, U, V, consensus, w2, a, A, beta):
    q, D = U.sum(axis=0), A.sum(axis=1)[:, None]
    negative = w2 * (x @ U) + a * consensus * q + beta * A @ V
    positive = w2 * (V @ (U.T @ U)) + a * V * q**2 + beta * D * V
    return V * negative / positive


def view_weights(gaps, p):
    """α_s = 1/Σ_t (A_s/A_t)^{1/(p−1)}."""
    return 1 / ((gaps[:, None] / gaps) ** (1 / (p - 1))).sum(axis=1)


def objective(X, U, V, A, consensus, alpha, w, p, beta):
    """O = Σ_s ‖Diag(w_s)(X_s − V_sU_sᵀ)‖² + α_s^p ‖V_sQ_s − V*‖² + β Tr(V_sᵀL_sV_s)."""
    total = 0
    for s, x in enumerate(X):
        total += ((w[:, [s]] * (x - V[s] @ U[s].T)) ** 2).sum()
        total += alpha[s] ** p * ((V[s] * U[s].sum(axis=0) - consensus) ** 2).sum()
        L = np.diag(A[s].sum(axis=1)) - A[s]
        total += beta * np.trace(V[s].T @ L @ V[s])
    return total


def spectral(consensus, K, rng):
    """Spectral clustering of the rows of V*: ⌈ln N⌉ neighbors, random-walk eigenvectors, k-means."""
    A = graph(consensus, int(np.ceil(np.log(len(consensus)))))
    scale = 1 / np.sqrt(A.sum(axis=1))
    n = len(A)
    _, E = eigh(scale[:, None] * A * scale, subset_by_index=[n - K, n - 1])
    E = E * scale[:, None] * np.sqrt(A.sum() / n)
    labels = KMeans(K, n_init=5, random_state=int(rng.integers(2**31))).fit_predict(E)
    # The largest cluster is 0; of equal ones that of the first sample.
    order = sorted(range(K), key=lambda k: (-(labels == k).sum(), np.argmax(labels == k)))
    return np.argsort(order)[labels]
