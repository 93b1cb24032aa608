"""The Kaplan–Meier curve of one cluster: steps, band, numbers at risk, median, restricted mean."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from manyview._types import Array

#: Sums of rounding errors: S = 0.5 may be stored as 0.5000000000000001.
ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Curve:
    """The survival curve of one cluster.

    S(t) = Π over event times s ≤ t of (1 − d_s/n_s). The band is Greenwood's on the log(−log S)
    scale; it is NaN where it is not defined (S = 0), and 1 before the first event.

    Attributes
    ----------
    cluster : label
    time : ndarray
        0, then every time at which the cluster has an event or a censoring, ascending.
    survival, lower, upper : ndarray
        S and its band, from that time on until the next.
    at_risk : ndarray
        Members still observed just before that time.
    events, censored : ndarray
        Events and censorings at that time.
    variance : ndarray
        Greenwood's sum Σ d/(n(n−d)) up to that time.
    median, median_lower, median_upper : float
        First time with S ≤ ½, and the same of the band; NaN: not reached.
    level : float
        Confidence level of the band.
    """

    cluster: Any
    time: Array
    survival: Array
    lower: Array
    upper: Array
    at_risk: Array
    events: Array
    censored: Array
    variance: Array
    median: float
    median_lower: float
    median_upper: float
    level: float

    @property
    def n(self) -> int:
        """Number of members."""
        return int(self.at_risk[0])

    @property
    def n_events(self) -> int:
        """Number of events."""
        return int(self.events.sum())

    @property
    def last(self) -> float:
        """Last time at which a member was observed."""
        return float(self.time[-1])

    def at(self, times: Any) -> Array:
        """Return S at ``times``; NaN after the last observation unless the curve is at 0 by then.

        Parameters
        ----------
        times : float or sequence of float

        Returns
        -------
        ndarray of float
        """
        times = np.asarray(times, dtype=float)
        values = self.survival[np.searchsorted(self.time, times, side="right") - 1]
        beyond = (times > self.last) & (self.survival[-1] > 0)
        return np.where(beyond, np.nan, values)

    def at_risk_at(self, times: Any) -> Array:
        """Return how many members were still observed just before each of ``times``.

        Parameters
        ----------
        times : float or sequence of float

        Returns
        -------
        ndarray of int
        """
        gone = np.r_[0, np.cumsum(self.events + self.censored)]
        return self.n - gone[np.searchsorted(self.time, np.asarray(times, float), side="left")]

    def steps(self) -> dict[str, Array]:
        """Return corners to draw: time, survival, lower, upper; lines between them make steps.

        Returns
        -------
        dict of str to ndarray
        """
        keep = self.events > 0
        keep[0] = True
        time = np.r_[np.repeat(self.time[keep], 2)[1:], self.last]
        corners = {
            name: np.repeat(values[keep], 2)
            for name, values in (
                ("survival", self.survival),
                ("lower", self.lower),
                ("upper", self.upper),
            )
        }
        return {"time": time, **corners}

    def censor_marks(self) -> tuple[Array, Array]:
        """Return where to draw the marks of censored members: times and heights.

        Returns
        -------
        times : ndarray of float
        heights : ndarray of float
        """
        keep = self.censored > 0
        return self.time[keep], self.survival[keep]

    def restricted_mean(self, horizon: float) -> tuple[float, float]:
        """Return the area under the curve up to ``horizon``, and its standard error.

        Both are NaN if the cluster was not observed for so long (and had not died out), the error also
        without an event before the horizon: no variance can be estimated then.

        Parameters
        ----------
        horizon : float

        Returns
        -------
        area : float
        error : float
        """
        if horizon > self.last and self.survival[-1] > 0:
            return np.nan, np.nan
        start = np.minimum(self.time, horizon)
        area = self.survival * np.diff(np.r_[start, horizon])
        rest = np.cumsum(area[::-1])[::-1]  # from this time on to the horizon
        inside = (self.events > 0) & (self.time <= horizon)
        if not inside.any():
            return float(rest[0]), np.nan
        n, d = self.at_risk[inside], self.events[inside]
        # Where all at risk die (n = d) nothing is left under the curve, and the term is 0.
        share = np.divide(d, n * (n - d), out=np.zeros(len(n)), where=n > d)
        return float(rest[0]), float(np.sqrt(np.sum(rest[inside] ** 2 * share)))


def kaplan_meier(time: Array, event: Array, cluster: Any, level: float = 0.95) -> Curve:
    """Estimate the curve of one cluster from times and events (0 or 1) of its members."""
    times, place = np.unique(time, return_inverse=True)
    events = np.bincount(place, weights=event, minlength=len(times)).astype(np.int64)
    leaving = np.bincount(place, minlength=len(times))
    if not len(times) or times[0] > 0:
        times, events, leaving = np.r_[0.0, times], np.r_[0, events], np.r_[0, leaving]
    at_risk = len(time) - np.r_[0, np.cumsum(leaving)[:-1]]
    survival = np.cumprod(1 - events / at_risk)
    # d/(n(n−d)) is infinite where everybody at risk dies.
    with np.errstate(divide="ignore"):
        variance = np.cumsum(events / (at_risk * (at_risk - events).astype(float)))
    lower, upper = _band(survival, variance, level)
    return Curve(
        cluster,
        times,
        survival,
        lower,
        upper,
        at_risk,
        events,
        leaving - events,
        variance,
        _first_below_half(times, survival),
        _first_below_half(times, lower),
        _first_below_half(times, upper),
        level,
    )


def _band(survival: Array, variance: Array, level: float) -> tuple[Array, Array]:
    """exp(−exp(log(−log S) ± z √variance / log S)), 1 while S is 1, NaN once it is 0."""
    lower, upper = np.ones_like(survival), np.ones_like(survival)
    lower[survival <= 0] = upper[survival <= 0] = np.nan
    inner = (survival > 0) & (survival < 1)
    log = np.log(survival[inner])
    width = norm.ppf((1 + level) / 2) * np.sqrt(variance[inner]) / log
    lower[inner] = np.exp(log * np.exp(-width))
    upper[inner] = np.exp(log * np.exp(width))
    return lower, upper


def _first_below_half(times: Array, values: Array) -> float:
    below = values <= 0.5 + ROUNDING
    return float(times[np.argmax(below)]) if below.any() else np.nan
