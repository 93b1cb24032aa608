"""A synthetic cancer cohort with known subtypes, survival, batches, and patients who lack a view."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._dataset import Dataset
from ._synthetic import check_count, check_nonnegative

VIEWS = ("expression", "methylation", "mutation")
PREFIX = {"expression": "GENE", "methylation": "CPG", "mutation": "MUT"}
SUBTYPES = ("A", "B", "C", "D")
#: Share of the patients, deaths per month, and share of late stages of every subtype.
SHARES = (0.35, 0.30, 0.20, 0.15)
HAZARDS = (1 / 90, 1 / 60, 1 / 45, 1 / 14)
LATE = (0.25, 0.30, 0.35, 0.60)
STAGES = ("Stage I", "Stage II", "Stage III", "Stage IV")
#: Features of a view that mark each subtype.
MARKERS = 20
#: Months over which patients were recruited and followed.
FOLLOWED = (12.0, 96.0)

DESCRIPTION = (
    "A synthetic cohort, drawn by manyview.datasets.make_cohort: it describes no real patient and has no "
    "license conditions. {n} patients of four subtypes are measured by expression (logarithms), "
    "methylation (shares between 0 and 1) and mutations (0 or 1). Expression separates all subtypes, "
    "methylation C and D from the others, mutations mostly D. Subtype D has the shortest survival. "
    "Three batches shift expression and methylation and have nothing to do with the subtypes. "
    "Some patients lack a view. The clinical table has age, sex, stage, batch, months of follow-up, "
    "and who died."
)


def make_cohort(
    n_samples: int = 240,
    *,
    n_features: tuple[int, int, int] = (300, 200, 60),
    batch_effect: float = 1.0,
    missing: float = 0.1,
    random_state: int | np.random.Generator | None = 0,
) -> Dataset:
    """Draw a cancer cohort with four subtypes, survival and clinical columns; the true subtypes are known.

    Parameters
    ----------
    n_samples : int, default=240
        Patients, at least 40.
    n_features : tuple of int, default=(300, 200, 60)
        Features of expression, methylation and mutation, at least 80 each for the first two and 40
        for the last.
    batch_effect : float, default=1.0
        How far batches shift half of the features of expression and methylation, in standard
        deviations; 0: not at all.
    missing : float, default=0.1
        Share of the patients without methylation, and of those without mutations.
    random_state : int, Generator or None, default=0

    Returns
    -------
    Dataset
        ``labels`` are the subtypes, and ``clinical`` is the table of the patients.

    Examples
    --------
    >>> from manyview.datasets import make_cohort
    >>> cohort = make_cohort()
    >>> cohort
    <Dataset cohort: 240 samples, 4 classes, 3 views (expression 300, methylation 200, mutation 60)>
    >>> sorted(cohort.clinical)
    ['age', 'batch', 'dead', 'os_months', 'sex', 'stage', 'subtype']
    """
    sizes = {"n_samples": n_samples, **dict(zip(VIEWS, n_features, strict=True))}
    for (name, size), least in zip(sizes.items(), (40, 4 * MARKERS, 4 * MARKERS, 40), strict=True):
        check_count(name, size)
        if size < least:
            raise ValueError(f"{name} must be at least {least}, got {size}")
    check_nonnegative("batch_effect", batch_effect)
    if not 0 <= missing < 0.5:
        raise ValueError(f"missing must be a share from 0 to below 0.5, got {missing!r}")
    rng = np.random.default_rng(random_state)
    subtype = rng.permutation(np.repeat(np.arange(4), _sizes(n_samples)))
    batch = rng.integers(0, 3, n_samples)
    views = {
        "expression": _expression(n_features[0], subtype, batch, batch_effect, rng),
        "methylation": _methylation(n_features[1], subtype, batch, batch_effect, rng),
        "mutation": _mutation(n_features[2], subtype, rng),
    }
    lacking = rng.permutation(n_samples)
    share = int(missing * n_samples)
    views["methylation"][lacking[:share]] = np.nan
    views["mutation"][lacking[share : 2 * share]] = np.nan
    return Dataset(
        "cohort",
        views,
        np.array(SUBTYPES)[subtype],
        DESCRIPTION.format(n=n_samples),
        {view: _names(view, X.shape[1]) for view, X in views.items()},
        [f"P{i + 1:04d}" for i in range(n_samples)],
        _clinical(subtype, batch, rng),
    )


def _sizes(n: int) -> list[int]:
    sizes = [int(share * n) for share in SHARES]
    return [n - sum(sizes[1:]), *sizes[1:]]


def _names(view: str, n: int) -> list[str]:
    """The first features mark the subtypes, and their names say which."""
    each = MARKERS if view != "mutation" else 8
    marked = [f"{PREFIX[view]}_{s}{j + 1:02d}" for s in SUBTYPES for j in range(each)]
    return [*marked, *(f"{PREFIX[view]}{j + 1:03d}" for j in range(n - len(marked)))]


def _shift(n: int, batch: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """What the batches add to half of the features."""
    shifts = size * rng.normal(size=(3, n)) * (rng.random(n) < 0.5)
    return shifts[batch]


def _expression(
    n: int, subtype: np.ndarray, batch: np.ndarray, size: float, rng: np.random.Generator
) -> np.ndarray:
    X = rng.normal(size=(len(subtype), n)) + _shift(n, batch, size, rng)
    for k in range(4):
        X[np.ix_(subtype == k, range(k * MARKERS, (k + 1) * MARKERS))] += 1.3
    return np.round(7 + 1.2 * X, 3).clip(0)


def _methylation(
    n: int, subtype: np.ndarray, batch: np.ndarray, size: float, rng: np.random.Generator
) -> np.ndarray:
    X = rng.normal(size=(len(subtype), n)) + 0.7 * _shift(n, batch, size, rng)
    for k, strength in enumerate((0.4, 0.4, 2.0, 2.0)):
        X[np.ix_(subtype == k, range(k * MARKERS, (k + 1) * MARKERS))] += strength
    return np.round(1 / (1 + np.exp(-(X - 0.8))), 4)


def _mutation(n: int, subtype: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    rate = np.full((len(subtype), n), 0.05)
    for k, share in enumerate((0.15, 0.15, 0.30, 0.60)):
        rate[np.ix_(subtype == k, range(8 * k, 8 * (k + 1)))] = share
    X = (rng.random(rate.shape) < rate).astype(float)
    silent = np.flatnonzero(~X.any(axis=1))  # every tumour has some mutation
    X[silent, rng.integers(32, n, len(silent))] = 1
    return X


def _clinical(
    subtype: np.ndarray, batch: np.ndarray, rng: np.random.Generator
) -> dict[str, list[Any]]:
    n = len(subtype)
    age = np.round(rng.normal(62, 10, n) + 3 * (subtype == 3)).clip(25, 92)
    hazard = np.array(HAZARDS)[subtype] * np.exp(0.02 * (age - 62))
    death, end = rng.exponential(1 / hazard), rng.uniform(*FOLLOWED, n)
    late = rng.random(n) < np.array(LATE)[subtype]
    stage = np.where(late, 2, 0) + (rng.random(n) < 0.5)
    listed = np.array([*STAGES, "unknown"])[np.where(rng.random(n) < 0.04, 4, stage)]
    return {
        "age": [int(a) for a in age],
        "sex": rng.choice(["female", "male"], n).tolist(),
        "stage": listed.tolist(),
        "batch": [f"batch{b + 1}" for b in batch],
        "os_months": np.round(np.minimum(death, end), 1).tolist(),
        "dead": [int(d) for d in death <= end],
        "subtype": np.array(SUBTYPES)[subtype].tolist(),
    }
