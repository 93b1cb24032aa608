"""k-means on a device: many starts at once, convergence checked now and then."""

from __future__ import annotations

import numpy as np
import torch


def kmeans(
    X: torch.Tensor,
    n_clusters: int,
    rng: np.random.Generator,
    n_init: int,
    sample: int,
    max_iter: int = 300,
) -> torch.Tensor:
    """Lloyd's iterations from ``n_init`` k-means++ starts at once, tried on a sample of many rows."""
    tried = X
    if len(X) > sample:
        chosen = np.sort(rng.choice(len(X), sample, replace=False))
        tried = X[torch.as_tensor(chosen, device=X.device)]
    centers = _plus_plus(tried, n_clusters, rng, n_init)
    centers, inertia = _lloyd(tried, centers, max_iter)
    best = centers[inertia.argmin()][None]
    if tried is not X:
        best, _ = _lloyd(X, best, max_iter)
    return _squared(X, best)[0].argmin(1)


def _squared(X: torch.Tensor, centers: torch.Tensor) -> torch.Tensor:
    """Squared distances, starts × rows × clusters, without ‖x‖², which changes no choice."""
    starts, K, dim = centers.shape
    products = X @ centers.reshape(starts * K, dim).T
    squares = (centers**2).sum(2).reshape(-1)
    return (squares - 2 * products).reshape(len(X), starts, K).movedim(1, 0)


def _plus_plus(
    X: torch.Tensor, n_clusters: int, rng: np.random.Generator, n_init: int
) -> torch.Tensor:
    """Starts whose centers are rows drawn far from those drawn before (n_init × K × dim).

    Of a few rows drawn for every center the best is taken, as scikit-learn does: single draws
    often put two centers into one cluster.
    """
    trials, norms = 2 + int(np.log(n_clusters)), (X**2).sum(1)
    starts = torch.arange(n_init, device=X.device)
    centers = X[torch.as_tensor(rng.integers(len(X), size=n_init), device=X.device)][:, None]
    nearest = (_squared(X, centers)[:, :, 0] + norms).clip(0).double()  # n_init × rows
    while centers.shape[1] < n_clusters:
        total = nearest.cumsum(1)
        draw = torch.as_tensor(rng.random((n_init, trials)), device=X.device) * total[:, -1:]
        drawn = torch.searchsorted(total, draw).clip(max=len(X) - 1)
        tried = (_squared(X, X[drawn]) + norms[:, None]).clip(0).double()
        left = torch.minimum(nearest[:, :, None], tried)  # n_init × rows × trials
        best = left.sum(1).argmin(1)
        nearest = left[starts, :, best]
        centers = torch.cat([centers, X[drawn[starts, best]][:, None]], dim=1)
    return centers


def _lloyd(
    X: torch.Tensor, centers: torch.Tensor, max_iter: int
) -> tuple[torch.Tensor, torch.Tensor]:
    n_clusters = centers.shape[1]
    spread, norms = float(X.var(0).mean()), (X**2).sum(1)
    for done in range(max_iter):
        nearest, own = _squared(X, centers).min(2)
        members = torch.nn.functional.one_hot(own, n_clusters).to(X.dtype)
        sizes = members.sum(1)[:, :, None]
        means = members.transpose(1, 2) @ X / sizes.clip(1)
        moved = torch.where(sizes > 0, means, _far_rows(X, nearest + norms, sizes[:, :, 0] == 0))
        shift = ((moved - centers) ** 2).sum((1, 2)).amax()
        centers = moved
        # Checked now and then only: the value has to come from the device.
        if done % 8 == 7 and float(shift) <= 1e-4 * spread:
            break
    return centers, (_squared(X, centers).amin(2) + norms).double().sum(1)


def _far_rows(X: torch.Tensor, distances: torch.Tensor, empty: torch.Tensor) -> torch.Tensor:
    """For the empty clusters of every start, the rows farthest from their centers, one each."""
    farthest = distances.topk(min(empty.shape[1], len(X)), dim=1).indices
    turn = (empty.cumsum(1) - 1).clip(0, farthest.shape[1] - 1)
    return X[farthest.gather(1, turn)]
