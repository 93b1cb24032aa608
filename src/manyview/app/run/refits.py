"""Refits of a report: which clusters come back on parts of the data, and which without a view."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from manyview._types import Array, Views
from manyview.base import fitted_input, generator
from manyview.baselines.wrappers import side_by_side
from manyview.labels import resamples
from manyview.models import Estimator
from manyview.outcomes.mark import Without, fitted_without
from manyview.reliability import Refits, Stability, stability, summarize
from manyview.robust import RobustWMNMF

from .evidence import PART, no_refits

#: Up to so many observations a refit is a whole fit: it is quick, and weights vary between parts.
FITTED_WHOLE = 1000


def shares_measurements(model: Estimator, n: int) -> bool:
    """Whether refits take from the model what it has measured."""
    return n > FITTED_WHOLE and Refits.possible(model)


def refitted(
    model: Estimator, views: Views, n_runs: int, seed: int, tell: Callable[[str], Any]
) -> Stability | None:
    """Stability over refits of parts of the data; ``None`` where there is a reason against."""
    if no_refits(model, views.n_samples, n_runs):
        return None
    if isinstance(model, RobustWMNMF) and shares_measurements(model, views.n_samples):
        return _on_parts(model, n_runs, seed, tell)
    data: Any = dict(zip(views.names, views.matrices, strict=True))
    if fitted_input(model).single:
        data = side_by_side(list(views.matrices))
    return stability(model, data, n_runs, fraction=PART, random_state=seed)


def _on_parts(model: RobustWMNMF, n_runs: int, seed: int, tell: Callable[[str], Any]) -> Stability:
    """Every observation that has a cluster is left out equally often, as by `stability`."""
    labels, rng, refits = np.asarray(model.labels_), generator(seed), Refits(model)
    known = np.flatnonzero(labels >= 0)
    runs = np.full((n_runs, len(labels)), -1)
    for run, part in enumerate(resamples(len(known), PART, n_runs, rng)):
        tell(f"refitting parts of the data, {run + 1} of {n_runs}")
        rows = known[part]
        runs[run, rows] = refits.part(rows, generator(int(rng.integers(2**31))))
    return summarize(labels, runs)


def clusters_without(model: Estimator, n: int) -> Without:
    """How to find the clusters without a view: from what the model measured, or by a whole fit."""
    if not (isinstance(model, RobustWMNMF) and shares_measurements(model, n)):
        return fitted_without
    refits = Refits(model)

    def found(model: Any, views: Views, s: int, n_clusters: int) -> Array:
        labels = refits.without(s, n_clusters)
        return fitted_without(model, views, s, n_clusters) if labels is None else labels

    return found
