"""Hazard ratios of clusters, adjusted for covariates, by Cox regression (lifelines)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from manyview._types import Array

from .columns import Column
from .groups import Groups
from .logrank import LogRank, logrank
from .table import Table, counted, quoted

#: Fewer events than this per coefficient make a Cox model unsteady.
EVENTS_PER_COEFFICIENT = 10
#: A standard error of a log hazard ratio beyond this means that the ratio is 0 or infinite.
DIVERGED = 50.0


@dataclass(frozen=True, eq=False)
class Cox:
    """Clusters in a Cox model beside covariates.

    Attributes
    ----------
    reference : label
        The cluster the others are compared with: the largest.
    clusters : tuple
        The others.
    hazard_ratio, lower, upper : ndarray
        One per cluster; NaN where it cannot be estimated.
    p_value : ndarray
        Log-rank test against the reference, every member weighted by the hazard of its covariates (score
        test), from permuted labels.
    statistic, degrees, p_overall : float, int, float
        The same test of all clusters together.
    covariates : tuple of str
        Columns of the design beside the clusters.
    n, n_events : int
        Observations complete in the covariates, and their events.
    """

    reference: Any
    clusters: tuple[Any, ...]
    hazard_ratio: Array
    lower: Array
    upper: Array
    p_value: Array
    statistic: float
    degrees: int
    p_overall: float
    covariates: tuple[str, ...]
    n: int
    n_events: int

    @property
    def table(self) -> Table:
        """One row per cluster but the reference."""
        return Table(
            {
                "cluster": self.clusters,
                "reference": (self.reference,) * len(self.clusters),
                "hazard_ratio": self.hazard_ratio,
                "lower": self.lower,
                "upper": self.upper,
                "p_value": self.p_value,
            }
        )

    def to_frame(self) -> Any:
        """Return `table` as a pandas DataFrame.

        Returns
        -------
        DataFrame
        """
        return self.table.to_frame()

    def __repr__(self) -> str:
        return (
            f"Cox model adjusted for {', '.join(self.covariates) or 'nothing'} (n={self.n}, "
            f"{self.n_events} events): clusters together p = {self.p_overall:.2g}\n{self.table}"
        )


def cox(
    time: Array,
    event: Array,
    groups: Groups,
    covariates: list[Column],
    level: float,
    notes: list[str],
    permutations: int,
    rng: np.random.Generator,
) -> Cox:
    """Fit the model and test the clusters; ``notes`` say what could not be used."""
    usable = [c for c in covariates if _is_usable(c, notes)]
    complete = np.ones(len(time), dtype=bool)
    for column in usable:
        complete &= ~np.isnan(column.values)
    if not complete.all():
        notes.append(
            f"Not in the Cox model: {counted(int((~complete).sum()), 'observation')} without a covariate."
        )
    names, design = _design(usable, complete)
    time, event, codes = time[complete], event[complete], groups.codes[complete]
    reference = int(np.argmax(np.bincount(codes, minlength=len(groups.names))))
    others = [k for k in range(len(groups.names)) if k != reference]
    dummies = (codes[:, None] == others).astype(float)
    n_events = int(event.sum())
    ratio, lower, upper, p = np.full((4, len(others)), np.nan)
    whole = LogRank(np.nan, 0, np.nan, np.nan, 0)
    problem = _problem(dummies[:, dummies.any(axis=0)], design, n_events)
    if not problem:
        try:
            beta, _ = _fitted(time, event, design)
        except ArithmeticError as failure:
            problem = f"the model of the covariates did not converge ({failure})"
    if problem:
        notes.append(f"No Cox model was fitted: {problem}.")
    else:
        # Tested whether or not a hazard ratio can be found: that depends on the clusters.
        hazard = design @ beta
        risk = np.exp(hazard - hazard.max())
        whole = logrank(time, event, codes, permutations, rng, risk)
        for j, k in enumerate(others):
            own = (codes == k) | (codes == reference)
            p[j] = logrank(time[own], event[own], codes[own], permutations, rng, risk[own]).p_value
        happened = np.bincount(codes, event, len(groups.names))
        silent = np.flatnonzero(happened == 0)
        if len(silent):
            notes.append(
                "Clusters without an event in the Cox model "
                f"({', '.join(quoted(groups.names[k]) for k in silent)}) have no hazard ratio."
            )
        place = np.flatnonzero(happened[others] > 0)
        rows = happened[codes] > 0
        try:
            if not happened[reference]:
                raise ArithmeticError("the largest cluster has no event")
            beta, error = _fitted(
                time[rows], event[rows], np.column_stack([dummies[:, place], design])[rows]
            )
            beta, error = beta[: len(place)], error[: len(place)]
            if not (np.isfinite(error).all() and (error < DIVERGED).all()):
                raise ArithmeticError("one grows without bound: too few events in a cluster")
            z = norm.ppf((1 + level) / 2)
            ratio[place] = np.exp(beta)
            lower[place], upper[place] = np.exp(beta - z * error), np.exp(beta + z * error)
        except ArithmeticError as failure:
            notes.append(f"No hazard ratios were found: {failure}.")
        if n_events < EVENTS_PER_COEFFICIENT * (len(place) + design.shape[1]):
            notes.append(
                f"The Cox model has {len(place) + design.shape[1]} coefficients for {n_events} events; "
                "fewer than ten events per coefficient make it unsteady."
            )
    return Cox(
        groups.names[reference],
        tuple(groups.names[k] for k in others),
        ratio,
        lower,
        upper,
        p,
        whole.statistic,
        whole.degrees,
        whole.p_value,
        tuple(names),
        len(codes),
        n_events,
    )


def _is_usable(column: Column, notes: list[str]) -> bool:
    if column.kind is None:
        notes.append(
            f"Covariate {quoted(column.name)} is {column.reason.replace('tested', 'used', 1)}."
        )
    elif len(np.unique(column.values[~np.isnan(column.values)])) < 2:
        notes.append(f"Covariate {quoted(column.name)} has one value only and is not used.")
    else:
        return True
    return False


def _design(columns: list[Column], rows: Array) -> tuple[list[str], Array]:
    """Numbers and ordered levels in units of their deviation; a category as one column per level."""
    names, parts = [], []
    for column in columns:
        values = column.values[rows]
        if column.kind in ("number", "ordered"):
            spread = values.std()
            if spread > 0:
                names.append(column.name)
                parts.append((values - values.mean()) / spread)
            continue
        counts = np.bincount(values.astype(np.intp), minlength=len(column.levels))
        usual = int(np.argmax(counts)) if len(counts) else 0
        for k, level in enumerate(column.levels):
            if k != usual and counts[k]:
                names.append(f"{column.name}={level}")
                parts.append((values == k).astype(float))
    return names, np.column_stack(parts) if parts else np.empty((int(rows.sum()), 0))


def _problem(dummies: Array, design: Array, n_events: int) -> str:
    if not dummies.shape[1]:
        return "fewer than two clusters have members in it"
    X = np.column_stack([np.ones(len(dummies)), dummies, design])
    if n_events <= X.shape[1] - 1:
        return f"{n_events} events are too few for {X.shape[1] - 1} coefficients"
    if np.linalg.matrix_rank(X) < X.shape[1]:
        return "clusters and covariates repeat each other (one follows from the others)"
    return ""


def _fitted(time: Array, event: Array, X: Array) -> tuple[Array, Array]:
    """Return the coefficients of a Cox model and their standard errors."""
    try:
        import pandas
        from lifelines import CoxPHFitter
        from lifelines.exceptions import ConvergenceError, ConvergenceWarning
    except ImportError as error:
        raise ImportError(
            "adjustment for covariates needs lifelines: pip install 'manyview[outcomes]'"
        ) from error
    if not X.shape[1]:
        return np.empty(0), np.empty(0)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["T"], frame["E"] = time, event
    try:
        with warnings.catch_warnings():
            # A remark about low variance is no failure, nor an overflow on the way; a search that does
            # not end is.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("error", "(?s).*failed to converge", ConvergenceWarning)
            found = CoxPHFitter().fit(frame, "T", "E")
    except (ConvergenceError, ConvergenceWarning, np.linalg.LinAlgError) as error:
        raise ArithmeticError(str(error).split("\n")[0].split(". ")[0][:100]) from error
    beta = found.params_.to_numpy()
    if not np.isfinite(beta).all():
        raise ArithmeticError("a coefficient grows without bound")
    return beta, found.standard_errors_.to_numpy()
