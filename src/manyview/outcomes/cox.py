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
    """Fit the model; clusters without an event and covariates of one value are left out and told."""
    usable = [c for c in covariates if _is_usable(c, notes)]
    complete = np.ones(len(time), dtype=bool)
    for column in usable:
        complete &= ~np.isnan(column.values)
    if not complete.all():
        notes.append(
            f"Not in the Cox model: {counted(int((~complete).sum()), 'observation')} without a covariate."
        )
    happened = np.bincount(groups.codes[complete], event[complete], len(groups.names))
    fit_for = np.flatnonzero(happened > 0)
    silent = [groups.names[k] for k in np.flatnonzero(happened == 0)]
    if silent:
        notes.append(
            f"Clusters without an event in the Cox model ({', '.join(map(quoted, silent))}) have no "
            "hazard ratio and are not in it; the test of all clusters has them."
        )
    groups = groups.only(complete)
    names, design = _design(usable, complete)
    time, event, codes = time[complete], event[complete], groups.codes
    # The tests are on all clusters: to leave out those without an event would favor the others.
    rows = np.isin(codes, fit_for)
    sizes = np.bincount(codes[rows], minlength=len(groups.names))
    reference = int(np.argmax(sizes))
    others = [k for k in range(len(groups.names)) if k != reference]
    fitted = [k for k in others if k in fit_for]
    dummies = (codes[:, None] == fitted).astype(float)
    n_events = int(event.sum())
    ratio, lower, upper, p = np.full((4, len(others)), np.nan)
    statistic, degrees, overall = np.nan, 0, np.nan
    problem = _problem(dummies[rows], design[rows], n_events)
    if not problem:
        try:
            beta, error, risk = _fitted(time, event, dummies, design, rows)
        except ArithmeticError as failure:
            problem = f"the model did not converge ({failure})"
    if problem:
        notes.append(f"No Cox model was fitted: {problem}.")
    else:
        place = [others.index(k) for k in fitted]
        z = norm.ppf((1 + level) / 2)
        ratio[place] = np.exp(beta)
        lower[place], upper[place] = np.exp(beta - z * error), np.exp(beta + z * error)

        def tested(own: Array) -> LogRank:
            return logrank(time[own], event[own], codes[own], permutations, rng, risk[own])

        whole = tested(np.ones(len(codes), dtype=bool))
        statistic, degrees, overall = whole.statistic, whole.degrees, whole.p_value
        p[place] = [tested((codes == k) | (codes == reference)).p_value for k in fitted]
        if n_events < EVENTS_PER_COEFFICIENT * (len(fitted) + design.shape[1]):
            notes.append(
                f"The Cox model has {len(fitted) + design.shape[1]} coefficients for {n_events} events; "
                "fewer than ten events per coefficient make it unsteady."
            )
    return Cox(
        groups.names[reference],
        tuple(groups.names[k] for k in others),
        ratio,
        lower,
        upper,
        p,
        statistic,
        degrees,
        overall,
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
        return "fewer than two clusters have events"
    X = np.column_stack([np.ones(len(dummies)), dummies, design])
    if n_events <= X.shape[1] - 1:
        return f"{n_events} events are too few for {X.shape[1] - 1} coefficients"
    if np.linalg.matrix_rank(X) < X.shape[1]:
        return "clusters and covariates repeat each other (one follows from the others)"
    return ""


def _fitted(
    time: Array, event: Array, dummies: Array, design: Array, rows: Array
) -> tuple[Array, Array, Array]:
    """Return log hazard ratios of the clusters and their errors, from ``rows``, and the hazards of all
    by covariates alone.
    """
    try:
        import pandas
        from lifelines import CoxPHFitter
        from lifelines.exceptions import ConvergenceError, ConvergenceWarning
    except ImportError as error:
        raise ImportError(
            "adjustment for covariates needs lifelines: pip install 'manyview[outcomes]'"
        ) from error

    def fit(X: Array, rows: Array) -> Any:
        frame = pandas.DataFrame(X[rows], columns=[f"x{j}" for j in range(X.shape[1])])
        frame["T"], frame["E"] = time[rows], event[rows]
        with warnings.catch_warnings():
            # A remark about low variance is no failure; a search that does not end is.
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.filterwarnings("error", "(?s).*failed to converge", ConvergenceWarning)
            return CoxPHFitter().fit(frame, "T", "E")

    try:
        full = fit(np.column_stack([dummies, design]), rows)
        alone = np.zeros(len(time))
        if design.shape[1]:
            alone = design @ fit(design, np.ones_like(rows)).params_.to_numpy()
    except (ConvergenceError, ConvergenceWarning, np.linalg.LinAlgError) as error:
        raise ArithmeticError(str(error).split("\n")[0].split(". ")[0][:100]) from error
    k = dummies.shape[1]
    beta, se = full.params_.to_numpy()[:k], full.standard_errors_.to_numpy()[:k]
    if not (np.isfinite(se).all() and (se < DIVERGED).all()):
        raise ArithmeticError("a hazard ratio grows without bound: too few events in a cluster")
    return beta, se, np.exp(alone - alone.max())
