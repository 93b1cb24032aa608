"""The result of `survival`: curves, tests and tables, ready to print, draw and write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from manyview._types import Array

from .chance import adjusted
from .cox import Cox
from .kaplan_meier import Curve
from .logrank import LogRank
from .table import Table


@dataclass(frozen=True, eq=False)
class Survival:
    """What `survival` found.

    Attributes
    ----------
    curves : tuple of Curve
        Kaplan–Meier curve of every cluster, in the order of the clusters.
    test : LogRank
        All clusters together.
    pairs : dict of (cluster, cluster) → LogRank
    horizon : float
        Time up to which mean survival is taken; the same for all clusters.
    restricted_mean, restricted_mean_error : ndarray
        Mean survival up to the horizon and its standard error, per cluster; NaN where unknown.
    cox : Cox or None
        The clusters adjusted for covariates, if some were given.
    notes : tuple of str
        What was left out, and what must not be read into the numbers.
    """

    curves: tuple[Curve, ...]
    test: LogRank
    pairs: dict[tuple[Any, Any], LogRank]
    horizon: float
    restricted_mean: Array
    restricted_mean_error: Array
    cox: Cox | None
    notes: tuple[str, ...]

    @property
    def clusters(self) -> tuple[Any, ...]:
        """The clusters as the user calls them."""
        return tuple(curve.cluster for curve in self.curves)

    @property
    def p_value(self) -> float:
        """Of all clusters together; NaN where no test can be made."""
        return self.test.p_value

    @property
    def table(self) -> Table:
        """One row per cluster: sizes, events, median, restricted mean, each with its interval."""
        z = norm.ppf((1 + self.curves[0].level) / 2)
        mean, error = self.restricted_mean, self.restricted_mean_error
        return Table(
            {
                "cluster": self.clusters,
                "n": tuple(c.n for c in self.curves),
                "events": tuple(c.n_events for c in self.curves),
                "last_time": tuple(c.last for c in self.curves),
                "median": tuple(c.median for c in self.curves),
                "median_lower": tuple(c.median_lower for c in self.curves),
                "median_upper": tuple(c.median_upper for c in self.curves),
                "horizon": (self.horizon,) * len(self.curves),
                "at_risk_at_horizon": tuple(int(c.at_risk_at(self.horizon)) for c in self.curves),
                "restricted_mean": tuple(mean.tolist()),
                "restricted_mean_lower": tuple(np.maximum(mean - z * error, 0).tolist()),
                "restricted_mean_upper": tuple(np.minimum(mean + z * error, self.horizon).tolist()),
            },
            {"median": "not reached", "median_upper": "not reached"},
        )

    @property
    def pair_table(self) -> Table:
        """One row per pair: log-rank tests, adjusted by Benjamini–Hochberg, difference of means."""
        tests = list(self.pairs.values())
        place = {cluster: k for k, cluster in enumerate(self.clusters)}
        first = np.array([place[a] for a, _ in self.pairs], dtype=np.intp)
        second = np.array([place[b] for _, b in self.pairs], dtype=np.intp)
        gap = self.restricted_mean[first] - self.restricted_mean[second]
        error = np.hypot(self.restricted_mean_error[first], self.restricted_mean_error[second])
        z = norm.ppf((1 + self.curves[0].level) / 2)
        return Table(
            {
                "cluster": tuple(a for a, _ in self.pairs),
                "other": tuple(b for _, b in self.pairs),
                "statistic": tuple(t.statistic for t in tests),
                "p_value": tuple(t.p_value for t in tests),
                "q_value": tuple(adjusted(np.array([t.p_value for t in tests])).tolist()),
                "permutations": tuple(t.permutations for t in tests),
                "mean_difference": tuple(gap.tolist()),
                "mean_difference_lower": tuple((gap - z * error).tolist()),
                "mean_difference_upper": tuple((gap + z * error).tolist()),
            }
        )

    @property
    def curve_table(self) -> Table:
        """All curves in one long table: one row per cluster and time."""
        repeated = [c.cluster for c in self.curves for _ in c.time]
        parts = ("time", "survival", "lower", "upper", "at_risk", "events", "censored")
        return Table(
            {
                "cluster": repeated,
                **{p: np.concatenate([vars(c)[p] for c in self.curves]) for p in parts},
            }
        )

    def at_risk(self, times: Any = None) -> Table:
        """Return how many members of every cluster are still observed at given times.

        Parameters
        ----------
        times : sequence of float, optional
            By default about six round numbers from 0 on.

        Returns
        -------
        Table
        """
        times = round_times(max(c.last for c in self.curves)) if times is None else times
        times = np.atleast_1d(np.asarray(times, dtype=float))
        counts = [curve.at_risk_at(times) for curve in self.curves]
        columns = {f"{t:g}": [int(row[j]) for row in counts] for j, t in enumerate(times)}
        return Table({"cluster": self.clusters, **columns})

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by name: clusters, pairs, curves, at_risk and, if asked for, cox."""
        tables = {
            "clusters": self.table,
            "pairs": self.pair_table,
            "curves": self.curve_table,
            "at_risk": self.at_risk(),
        }
        return tables if self.cox is None else tables | {"cox": self.cox.table}

    def to_frame(self) -> Any:
        """Return `table` as a pandas DataFrame.

        Returns
        -------
        DataFrame
        """
        return self.table.to_frame()

    def __repr__(self) -> str:
        test = self.test
        shown = ("cluster", "n", "events", "median", "restricted_mean")
        table = Table({name: self.table[name] for name in shown}, self.table.absent)
        if np.isnan(test.p_value):
            told = "no log-rank test"
        else:
            how = f"{test.permutations} permutations" if test.permutations else "asymptotic"
            told = f"log-rank χ² = {test.statistic:.2f}, p = {test.p_value:.2g} ({how})"
        lines = [f"Survival of {len(self.curves)} clusters: {told}", str(table)]
        left = ", ".join(f"{c.at_risk_at(self.horizon)} of {c.n}" for c in self.curves)
        lines.append(
            f"restricted_mean is the mean survival up to time {self.horizon:.4g}, when {left} are at risk."
        )
        if self.cox is not None:
            lines.append(repr(self.cox))
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def round_times(last: float, about: int = 6) -> Array:
    """Return about so many round times from 0 to ``last``."""
    if not last > 0:
        return np.zeros(1)
    rough = last / about
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s for s in (1, 2, 2.5, 5, 10) if s * power >= rough * (1 - 1e-9)) * power
    return np.arange(0, last * (1 + 1e-9), step)
