"""The paper's synthetic data: Gaussian mixtures in several views, and noisy copies of some."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from ._dataset import Dataset


@dataclass(frozen=True)
class NoisyView:
    """A copy of a clean view with extra noise on some rows.

    Attributes
    ----------
    source : str or int
        The clean view: its name ("view1") or its position from 0.
    noise : float
        Standard deviation or variance of the noise, see `noise_unit` of `make_synthetic`.
    rows : int, float or sequence
        An integer: this number of rows, the first ones. A float in [0, 1]: this share of the rows, the
        first ones. A sequence of integers: these rows. A sequence of booleans, one per row: the rows with
        True.
    """

    source: str | int
    noise: float
    rows: int | float | Sequence[int] | Sequence[bool] | np.ndarray


PAPER_NOISY_VIEWS = (NoisyView("view1", 5.0, 0.06), NoisyView("view3", 10.0, 0.2))

# First entry of a random stream's key. Every part of the data has a stream of its own, so that
# adding a view, clean or noisy, changes no other.
_LABELS, _CLEAN, _NOISY = 0, 1, 2


def make_synthetic(
    n_samples: int = 5000,
    n_clusters: int = 10,
    n_features: int | Sequence[int] = (100, 150, 50, 200),
    noisy_views: str | Sequence[NoisyView | tuple[Any, ...]] = "paper",
    *,
    n_views: int | None = None,
    starts: Sequence[float] | None = None,
    width: float = 10.0,
    center_variance: float = 1.0,
    mean_per: str = "element",
    decay_range: tuple[float, float] = (0.1, 1.0),
    noise_unit: str = "sd",
    nonnegative: str | None = "clip",
    balanced: bool = False,
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    """Draw Gaussian mixtures in several views, as in the paper's synthetic experiment.

    In view s the center of cluster k is m + N(0, center_variance) in each element, with
    m ~ U[a_s, a_s + width]. A sample is its cluster's center plus normal noise with
    covariance b^|i-j| between features i and j, and b ~ U[decay_range], one b per view.

    Parameters
    ----------
    n_samples, n_clusters : int
    n_features : int or sequence of int
        Features of each clean view; an integer gives all `n_views` the same number.
    noisy_views : "paper" or sequence of NoisyView or of (source, noise, rows)
        "paper" adds view1 with noise 5 on the first 6 % of the rows and view3 with noise 10 on
        the first 20 %: at 5000 samples the paper's 300 and 1000 rows. `()` adds none.
    n_views : int, optional
        Number of clean views, by default 4 or the length of `n_features`.
    starts : sequence of float, optional
        a_s for each clean view, by default 10, 20, 30, ...
    width, center_variance : float
    mean_per : "element" or "view"
        One m for each feature (common to the clusters), or a single m for the whole view.
    decay_range : (float, float)
        Range of b, within [0, 1].
    noise_unit : "sd" or "variance"
        What the noise of a noisy view is: the paper writes N(0, 5) without saying which.
    nonnegative : "clip", "shift" or None
        Negative entries become 0; or a view with negative entries is raised by a constant to
        minimum 0; or they stay. Clipping leaves all other entries as drawn.
    balanced : bool
        Clusters of equal size (to within one) instead of labels drawn with equal probability.
    random_state : int, Generator, RandomState or None
        The same integer gives the same data. Views do not depend on which others are requested.

    Returns
    -------
    Dataset
        Views view1, view2, ..., the noisy ones last; labels 0 .. n_clusters - 1.

    Examples
    --------
    >>> make_synthetic(n_samples=200, n_clusters=3, random_state=0)  # doctest: +ELLIPSIS
    <Dataset synthetic: 200 samples, 3 classes, 6 views (view1 100, view2 150, view3 50, ...)>
    """
    check_count("n_samples", n_samples)
    check_count("n_clusters", n_clusters)
    if n_clusters > n_samples:
        raise ValueError(
            f"n_clusters is {n_clusters} but there are only {n_samples} samples; "
            "choose more samples or fewer clusters"
        )
    sizes = view_sizes(n_features, n_views)
    a = view_starts(starts, len(sizes))
    low, high = decay_bounds(decay_range)
    check_nonnegative("width", width)
    check_nonnegative("center_variance", center_variance)
    check_choice("mean_per", mean_per, ("element", "view"))
    check_choice("noise_unit", noise_unit, ("sd", "variance"))
    check_choice("nonnegative", nonnegative, ("clip", "shift", None))
    plans = noise_plans(noisy_views, len(sizes), n_samples)

    entropy = _entropy(random_state)
    labels = _draw_labels(_stream(entropy, _LABELS, 0), n_samples, n_clusters, balanced)
    views: dict[str, np.ndarray] = {}
    decays = []
    for s, size in enumerate(sizes):
        rng = _stream(entropy, _CLEAN, s)
        decay = rng.uniform(low, high)
        mean = rng.uniform(a[s], a[s] + width, size=size if mean_per == "element" else 1)
        centers = mean + np.sqrt(center_variance) * rng.standard_normal((n_clusters, size))
        views[f"view{s + 1}"] = centers[labels] + _correlated_noise(rng, n_samples, size, decay)
        decays.append(f"{decay:.3f}")
    for j, (source, noise, rows) in enumerate(plans):
        rng = _stream(entropy, _NOISY, j)
        noisy = views[f"view{source + 1}"].copy()
        sd = noise if noise_unit == "sd" else np.sqrt(noise)
        noisy[rows] += sd * rng.standard_normal((rows.size, noisy.shape[1]))
        views[f"view{len(sizes) + j + 1}"] = noisy

    copies = "".join(
        f" view{len(sizes) + j + 1} is view{source + 1} with noise of {noise_unit} {noise:g} on "
        f"{rows.size} rows."
        for j, (source, noise, rows) in enumerate(plans)
    )
    return Dataset(
        name="synthetic",
        views={name: _without_negatives(matrix, nonnegative) for name, matrix in views.items()},
        labels=labels,
        description=(
            f"{n_clusters} Gaussian clusters in {len(sizes)} views; correlation between "
            f"neighboring features {', '.join(decays)}.{copies} Generated by manyview."
        ),
    )


# --- the checks of every value ---------------------------------------------------------------------


def check_count(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or int(value) < 1:
        raise ValueError(f"{name} must be a positive integer, not {value!r}")


def check_nonnegative(name: str, value: Any) -> None:
    if not isinstance(value, Real) or not np.isfinite(float(value)) or float(value) < 0:
        raise ValueError(f"{name} must be a finite number of at least 0, not {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str | None, ...]) -> None:
    if value not in choices:
        listed = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {listed}, not {value!r}")


def view_sizes(n_features: Any, n_views: int | None) -> list[int]:
    if n_views is not None:
        check_count("n_views", n_views)
    if isinstance(n_features, Integral):
        sizes = [n_features] * (4 if n_views is None else n_views)
    else:
        sizes = list(n_features)
        if n_views is not None and n_views != len(sizes):
            raise ValueError(
                f"n_views is {n_views} but n_features has {len(sizes)} entries; "
                "give one number of features for each view, or a single integer"
            )
    if not sizes:
        raise ValueError("n_features is empty; at least one view is needed")
    for size in sizes:
        check_count("each entry of n_features", size)
    return [int(size) for size in sizes]


def view_starts(starts: Sequence[float] | None, n_views: int) -> list[float]:
    if starts is None:
        return [10.0 * (s + 1) for s in range(n_views)]
    values = [float(start) for start in starts]
    if len(values) != n_views or not np.all(np.isfinite(values)):
        raise ValueError(
            f"starts must hold one finite number for each of the {n_views} clean views, "
            f"not {values}"
        )
    return values


def decay_bounds(decay_range: Any) -> tuple[float, float]:
    values = [float(b) for b in decay_range]
    if len(values) != 2 or not 0 <= values[0] <= values[1] <= 1:
        raise ValueError(
            f"decay_range must be two numbers with 0 <= low <= high <= 1, not {decay_range!r}"
        )
    return values[0], values[1]


def noise_plans(noisy_views: Any, n_views: int, n: int) -> list[tuple[int, float, np.ndarray]]:
    """Position of the source, noise and row indices of each noisy view."""
    if isinstance(noisy_views, str):
        check_choice("noisy_views as a string", noisy_views, ("paper",))
        if n_views < 3:
            raise ValueError(
                f"noisy_views='paper' copies view1 and view3, but there are {n_views} clean views; "
                "pass noisy_views=() or your own list"
            )
        noisy_views = PAPER_NOISY_VIEWS
    plans = []
    for spec in noisy_views:
        if not isinstance(spec, NoisyView):
            if not isinstance(spec, Sequence) or len(spec) != 3:
                raise ValueError(
                    f"each noisy view is a NoisyView or (source, noise, rows), not {spec!r}"
                )
            spec = NoisyView(*spec)
        check_nonnegative("the noise of a noisy view", spec.noise)
        plans.append((_source(spec.source, n_views), float(spec.noise), _rows(spec.rows, n)))
    return plans


def _source(source: str | int, n_views: int) -> int:
    names = [f"view{s + 1}" for s in range(n_views)]
    if isinstance(source, str) and source in names:
        return names.index(source)
    if isinstance(source, Integral) and 0 <= int(source) < n_views:
        return int(source)
    raise ValueError(
        f"a noisy view copies {source!r}, which is not a clean view; "
        f"use one of {', '.join(names)} or a position from 0 to {n_views - 1}"
    )


def _rows(rows: Any, n: int) -> np.ndarray:
    if isinstance(rows, Integral) and not isinstance(rows, bool) and 0 <= int(rows) <= n:
        return np.arange(int(rows))
    if isinstance(rows, float) and 0 <= rows <= 1:
        return np.arange(round(rows * n))
    chosen = np.asarray(rows)
    if chosen.ndim == 1 and chosen.dtype == bool and chosen.size == n:
        return np.flatnonzero(chosen)
    if chosen.ndim == 1 and chosen.size == 0:
        return np.arange(0)
    if chosen.ndim == 1 and chosen.dtype.kind in "iu" and 0 <= chosen.min() <= chosen.max() < n:
        return np.unique(chosen)
    shown = repr(rows) if chosen.ndim == 0 else f"{chosen.dtype} of shape {chosen.shape}"
    raise ValueError(
        f"rows of a noisy view must be a number from 0 to {n}, a share from 0.0 to 1.0, row "
        f"indices below {n} or {n} booleans, not {shown}"
    )


# --- drawing --------------------------------------------------------------------------------------


def _entropy(random_state: Any) -> int | list[int]:
    if isinstance(random_state, np.random.Generator):
        return random_state.integers(2**32, size=4).tolist()
    if isinstance(random_state, np.random.RandomState):
        return random_state.randint(2**32, size=4, dtype=np.uint64).tolist()
    if random_state is None:
        return np.random.SeedSequence().generate_state(4).tolist()
    if isinstance(random_state, Integral) and int(random_state) >= 0:
        return int(random_state)
    raise ValueError(
        "random_state must be a nonnegative integer, a numpy Generator or RandomState, or None, "
        f"not {random_state!r}"
    )


def _stream(entropy: int | list[int], part: int, index: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(part, index)))


def _draw_labels(rng: np.random.Generator, n: int, k: int, balanced: bool) -> np.ndarray:
    if balanced:
        return rng.permutation(np.arange(n, dtype=np.int64) % k)
    return rng.integers(k, size=n, dtype=np.int64)


def _correlated_noise(rng: np.random.Generator, n: int, size: int, decay: float) -> np.ndarray:
    """Rows of N(0, C) with C_ij = decay^|i-j|.

    This C is that of a first-order autoregression along the features: x_0 = e_0 and
    x_j = decay x_{j-1} + sqrt(1 - decay^2) e_j, which needs no size x size factorization.
    """
    x = rng.standard_normal((size, n))  # feature-major: the recursion runs over whole rows
    fresh = np.sqrt(1.0 - decay**2)
    for j in range(1, size):
        x[j] *= fresh
        x[j] += decay * x[j - 1]
    return np.ascontiguousarray(x.T)


def _without_negatives(matrix: np.ndarray, how: str | None) -> np.ndarray:
    lowest = matrix.min()
    if how is None or lowest >= 0:
        return matrix
    return np.maximum(matrix, 0.0) if how == "clip" else matrix - lowest
