"""The parameters of the synthetic data: what a noisy view is, and the checks of every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np


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
        An integer: that many first rows. A float in [0, 1]: that share of the rows, the first
        ones. A sequence of integers: those rows; of booleans, one per row: the true ones.
    """

    source: str | int
    noise: float
    rows: int | float | Sequence[int] | Sequence[bool] | np.ndarray


PAPER_NOISY_VIEWS = (NoisyView("view1", 5.0, 0.06), NoisyView("view3", 10.0, 0.2))


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
