"""`survival`: do clusters differ in how long their members live?"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import CensoredData, chi2, ecdf, norm

from manyview._types import Array, Seed

from .align import Groups, counted, frame, match, pandas, printed, quoted, read_single, read_table
from .chance import adjusted, batches, permuted_p, rounds
from .columns import Column, design_of, read_column, read_numbers
from .endpoints import read_events

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
        """Return S at ``times``; NaN after the last sample unless the curve is at 0 by then."""
        times = np.asarray(times, dtype=float)
        values = self.survival[np.searchsorted(self.time, times, side="right") - 1]
        return np.where((times > self.last) & (self.survival[-1] > 0), np.nan, values)

    def at_risk_at(self, times: Any) -> Array:
        """Return how many members were still observed just before each of ``times``."""
        gone = np.r_[0, np.cumsum(self.events + self.censored)]
        return self.n - gone[np.searchsorted(self.time, np.asarray(times, float), side="left")]

    def steps(self) -> dict[str, Array]:
        """Return corners to draw: time, survival, lower, upper; lines between them make steps."""
        keep = np.r_[True, self.events[1:] > 0]
        time = np.r_[np.repeat(self.time[keep], 2)[1:], self.last]
        names = ("survival", "lower", "upper")
        return {"time": time} | {n: np.repeat(vars(self)[n][keep], 2) for n in names}

    def censor_marks(self) -> tuple[Array, Array]:
        """Return times and heights of the marks of censored members."""
        keep = self.censored > 0
        return self.time[keep], self.survival[keep]

    def restricted_mean(self, horizon: float) -> tuple[float, float]:
        """Return the area under the curve up to ``horizon``, and its standard error.

        Both are NaN if the cluster was not observed that long (and had not died out), the error also
        without an event before the horizon: no variance can be estimated then.
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
    happened = event > 0
    found = ecdf(CensoredData(time[happened], right=time[~happened])).sf
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # of bounds that are not defined
        band = found.confidence_interval(level, method="log-log")
    times, survival = found.quantiles, found.probabilities
    bounds = [np.where(survival > 0, part.probabilities, np.nan) for part in band]
    lower, upper = (np.where(survival == 1, 1.0, bound) for bound in bounds)
    if not len(times) or times[0] > 0:
        times = np.r_[0.0, times]
        survival, lower, upper = (np.r_[1.0, part] for part in (survival, lower, upper))

    def counts(of: Array) -> Array:
        return np.diff(np.searchsorted(np.sort(of), np.r_[times, np.inf]))

    events, censored = counts(time[happened]), counts(time[~happened])
    at_risk = np.cumsum((events + censored)[::-1])[::-1]

    def median(values: Array) -> float:
        below = values <= 0.5 + ROUNDING
        return float(times[np.argmax(below)]) if below.any() else np.nan

    medians = median(survival), median(lower), median(upper)
    parts = survival, lower, upper, at_risk, events, censored
    return Curve(cluster, times, *parts, *medians, level)


class LogRank(NamedTuple):
    """A log-rank test.

    Attributes
    ----------
    statistic : float
        (O − E)ᵀ V⁻¹ (O − E); NaN where no test can be made.
    degrees : int
        Groups that have members at risk when an event happens, less one.
    p_value : float
        From permuted labels; the asymptotic one with ``permutations=0``.
    p_asymptotic : float
        From the χ² distribution. Wrong for small groups.
    permutations : int
    """

    statistic: float = np.nan
    degrees: int = 0
    p_value: float = np.nan
    p_asymptotic: float = np.nan
    permutations: int = 0


class _Events:
    """What of times and events stays the same however labels are permuted.

    Samples are ordered by falling time, so that those at risk at an event time come first.
    ``risk`` is the hazard of every sample, in any unit; None: all the same.
    """

    def __init__(self, time: Array, event: Array, risk: Array | None = None):
        self.order = np.argsort(-time, kind="stable")
        self.event = np.flatnonzero(event[self.order])  #: positions of events in that order
        times, deaths = (part[::-1] for part in np.unique(time[event > 0], return_counts=True))
        # Y, those at risk at every distinct event time; d (Y − d) / (Y − 1), 0 where Y = 1.
        self.at_risk = len(time) - np.searchsorted(time[self.order[::-1]], times, side="left")
        self.spread = deaths * (self.at_risk - deaths) / np.maximum(self.at_risk - 1, 1)
        self.deaths = deaths.astype(float)
        self.risk = None if risk is None else risk[self.order]

    def parts(self, codes: Array, k: int) -> tuple[Array, Array]:
        """Return O − E and V of the first k − 1 groups, for rows of codes (b, n) in this order."""
        b, groups = len(codes), k - 1
        one = codes[:, None, :] == np.arange(groups, dtype=codes.dtype)[:, None]
        last = self.at_risk - 1
        if self.risk is None:
            share = np.cumsum(one, axis=2, dtype=np.int32).take(last, axis=2) / self.at_risk
        else:
            share = np.cumsum(one * self.risk, axis=2).take(last, axis=2)
            share /= np.cumsum(self.risk)[last]
        expected = (share.reshape(b * groups, -1) @ self.deaths).reshape(b, groups)
        weighted = share * self.spread
        V = np.zeros((b, groups, groups))
        for j in range(groups):
            V[:, j, j] = weighted[:, j].sum(axis=1)
            for m in range(j + 1):
                V[:, j, m] -= np.einsum("bt,bt->b", weighted[:, j], share[:, m])
                V[:, m, j] = V[:, j, m]
        # The events are few ones among zeros: counted where they are.
        gap = np.count_nonzero(one[:, :, self.event], axis=2) - expected
        return gap, V

    def statistics(self, codes: Array, k: int) -> Array:
        """Return the χ² statistic for every row of codes."""
        gap, V = self.parts(codes, k)
        if k == 2:
            v = V[:, 0, 0]
            fine = v > 1e-12
            return np.divide(gap[:, 0] ** 2, v, out=np.zeros(len(v)), where=fine)
        # A group without a member at risk at any event has an empty row: hence no plain inverse.
        inverse = np.linalg.pinv(V, rcond=1e-10, hermitian=True)
        return np.einsum("bi,bij,bj->b", gap, inverse, gap)


def logrank(
    time: Array,
    event: Array,
    codes: Array,
    permutations: int,
    rng: np.random.Generator,
    risk: Array | None = None,
) -> LogRank:
    """Test whether groups have the same hazard at all times.

    With Y_j of Y at risk in group j at an event time with d events, O_j − E_j = O_j − Σ d Y_j/Y,
    V_jl = Σ d (Y − d)/(Y − 1) · Y_j/Y (1{j=l} − Y_l/Y).

    Parameters
    ----------
    time, event, codes : ndarray (n,)
        ``codes`` are integers from 0; groups without a member are passed over.
    permutations : int
        Labels are shuffled so often; 0 gives the asymptotic p-value.
    rng : Generator
    risk : ndarray (n,), optional
        Hazards by covariates: every member is weighted by its hazard (score test of the groups in a Cox
        model whose covariates have these hazards).
    """
    codes = np.unique(codes, return_inverse=True)[1]
    k = int(codes.max()) + 1 if len(codes) else 0
    if k < 2 or not event.any():
        return LogRank()
    table = _Events(time, event, risk)
    ordered = codes[table.order]
    informed = len(np.unique(ordered[: table.at_risk.max()]))
    if informed < 2 or not table.spread.any():
        return LogRank()
    small = ordered.astype(np.min_scalar_type(k))[None]
    observed = float(table.statistics(small, k)[0])
    asymptotic = float(chi2.sf(observed, informed - 1))
    if not permutations:
        return LogRank(observed, informed - 1, asymptotic, asymptotic, 0)
    drawn = [
        table.statistics(rng.permuted(np.repeat(small, b, axis=0), axis=1), k)
        for b in batches(permutations, len(codes) * k)
    ]
    p = permuted_p(observed, np.concatenate(drawn))
    return LogRank(observed, informed - 1, p, asymptotic, permutations)


#: Fewer events than this per coefficient make a Cox model unsteady.
EVENTS_PER_COEFFICIENT = 10
#: A standard error of a log hazard ratio beyond this means that the ratio is 0 or infinite.
DIVERGED = 50.0
#: Columns of hazard ratios.
RATIOS = ("hazard_ratio", "lower", "upper", "wald_p", "proportional_p")
#: Level at which a hazard ratio that changes over time gives a note.
NOT_PROPORTIONAL = 0.01


@dataclass(frozen=True, eq=False)
class Cox:
    """Clusters in a Cox model with covariates.

    Attributes
    ----------
    table : DataFrame
        One row per cluster but the largest, the reference of the others: hazard ratio, its interval and
        Wald p-value, NaN where they cannot be estimated; ``proportional_p``, whether it is the same at
        all times; and ``p_value`` of the log-rank test against the
        reference, every member weighted by the hazard of its covariates (score test), from permuted labels.
    covariate_table : DataFrame
        One row per covariate (per unit, or per level of an ordered one) or level of a category, the
        commonest level being the reference: hazard ratio, interval, Wald p-value.
    test : LogRank
        The score test of all clusters together.
    covariates : tuple of str
        Terms of the model in addition to the clusters.
    n, n_events : int
        Samples complete in the covariates, and their events.
    """

    table: Any
    covariate_table: Any
    test: LogRank
    covariates: tuple[str, ...]
    n: int
    n_events: int

    @property
    def model(self) -> str:
        return f"adjusted for {', '.join(self.covariates)}" if self.covariates else "not adjusted"

    def __repr__(self) -> str:
        return (
            f"Cox model {self.model} (n={self.n}, {self.n_events} events): clusters together p = "
            f"{self.test.p_value:.2g}\n{printed(self.table)}"
            + (f"\n{printed(self.covariate_table)}" if self.covariates else "")
        )


def cox(
    seen: Observed,
    columns: Sequence[Column],
    level: float,
    permutations: int,
    rng: np.random.Generator,
) -> Cox:
    """Fit the model and test the clusters; notes say what could not be used."""
    notes, clusters = seen.notes, seen.groups.names
    usable = []
    for c in columns:
        if c.kind is None:
            notes.append(f"Covariate {quoted(c.name)} is not used: {c.reason}.")
        elif len(np.unique(c.values[~np.isnan(c.values)])) < 2:
            notes.append(f"Covariate {quoted(c.name)} has one value only and is not used.")
        else:
            usable.append(c)
    complete = np.ones(len(seen.time), dtype=bool)
    for c in usable:
        complete &= ~np.isnan(c.values)
    if not complete.all():
        lacking = counted(int((~complete).sum()), "sample")
        notes.append(f"Not in the Cox model: {lacking} without a covariate.")
    terms, design = design_of([c.only(complete) for c in usable], int(complete.sum()))
    time, event, codes = seen.time[complete], seen.event[complete], seen.groups.codes[complete]
    reference = int(np.argmax(np.bincount(codes, minlength=len(clusters))))
    others = [k for k in range(len(clusters)) if k != reference]
    dummies = (codes[:, None] == others).astype(float)
    happened = np.bincount(codes, event, len(clusters))
    n_events = int(event.sum())
    ratios = np.full((len(others) + len(terms), len(RATIOS)), np.nan)
    p, whole = np.full(len(others), np.nan), LogRank()
    problem = _problem(dummies[:, dummies.any(axis=0)], design, n_events)
    if not problem:
        try:
            beta, *_ = _fitted(time, event, design)
        except ArithmeticError as failure:
            problem = f"the model of the covariates did not converge ({failure})"
    if problem:
        notes.append(f"No Cox model was fitted: {problem}.")
    else:
        # Tested whether or not a hazard ratio can be found: that depends on the clusters.
        hazard = design @ beta
        risk = np.exp(hazard - hazard.max())
        test = partial(logrank, permutations=permutations, rng=rng)
        whole = test(time, event, codes, risk=risk)
        for j, k in enumerate(others):
            own = (codes == k) | (codes == reference)
            p[j] = test(time[own], event[own], codes[own], risk=risk[own]).p_value
        silent = np.flatnonzero(happened == 0)
        if len(silent):
            notes.append(
                "Clusters without an event in the Cox model "
                f"({', '.join(quoted(clusters[k]) for k in silent)}) have no hazard ratio."
            )
        place, rows = np.flatnonzero(happened[others] > 0), happened[codes] > 0
        coefficients = len(place) + design.shape[1]
        try:
            if not happened[reference]:
                raise ArithmeticError("the largest cluster has no event")
            X = np.column_stack([dummies[:, place], design])[rows]
            units = np.r_[np.ones(len(place)), [term.unit for term in terms]]
            place = np.r_[place, len(others) + np.arange(len(terms))]
            ratios[place] = hazard_ratios(time[rows], event[rows], X, level, units)
            lost = [
                clusters[others[j]] for j in place if j < len(others) and np.isnan(ratios[j, 0])
            ]
            if lost:
                notes.append(
                    f"{_clusters(lost)} without a hazard ratio: there are too few events to estimate it."
                )
        except ArithmeticError as failure:
            notes.append(f"No hazard ratios were found: {failure}.")
        if n_events < EVENTS_PER_COEFFICIENT * coefficients:
            notes.append(
                f"The Cox model has {coefficients} coefficients for {n_events} events; "
                "fewer than ten events per coefficient make it unstable."
            )
    own, rest = (dict(zip(RATIOS, part.T, strict=True)) for part in np.split(ratios, [len(others)]))
    table: dict[str, Any] = {"cluster": [clusters[k] for k in others]}
    table |= {"reference": [clusters[reference]] * len(others), **own, "p_value": p}
    covariates = {
        "term": [t.name for t in terms],
        "reference": [t.reference for t in terms],
        **rest,
    }
    names = tuple(t.name for t in terms)
    return Cox(frame(table), frame(covariates), whole, names, len(codes), n_events)


def hazard_ratios(
    time: Array, event: Array, X: Array, level: float, units: Array | float = 1.0
) -> Array:
    """Return a row of `RATIOS` for every column of X, which is in ``units``, from one Cox model.

    NaN for a column whose ratio is 0 or infinite: too few events. ``proportional_p`` tests whether the
    ratio is the same at all times (Schoenfeld residuals by ranked time, of lifelines).
    """
    beta, error, proportional = _fitted(time, event, X)
    found = np.isfinite(error) & (error < DIVERGED)
    constant = np.full(len(beta), np.nan)
    if found.all():
        constant = np.atleast_1d(proportional())
    beta, error = (np.where(found, part / units, np.nan) for part in (beta, error))
    width = norm.ppf((1 + level) / 2) * error
    p = 2 * norm.sf(np.abs(beta / error))
    ends = np.exp(beta - width), np.exp(beta + width)
    return np.column_stack([np.exp(beta), *ends, p, constant])


def _problem(dummies: Array, design: Array, n_events: int) -> str:
    if not dummies.shape[1]:
        return "fewer than two clusters have members in it"
    X = np.column_stack([np.ones(len(dummies)), dummies, design])
    if n_events <= X.shape[1] - 1:
        return f"{n_events} events are too few for {X.shape[1] - 1} coefficients"
    if np.linalg.matrix_rank(X) < X.shape[1]:
        return "clusters and covariates repeat each other (one follows from the others)"
    return ""


def _fitted(time: Array, event: Array, X: Array) -> tuple[Array, Array, Callable[[], Array]]:
    """Return the coefficients of a Cox model, their errors, and the test that they are constant."""
    try:
        from lifelines import CoxPHFitter
        from lifelines.exceptions import ConvergenceError, ConvergenceWarning
        from lifelines.statistics import proportional_hazard_test
    except ImportError as error:
        raise ImportError(
            "adjustment for covariates needs lifelines: pip install 'manyview[outcomes]'"
        ) from error
    if not X.shape[1]:
        return np.empty(0), np.empty(0), lambda: np.empty(0)
    table = pandas().DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    table["T"], table["E"] = time, event
    try:
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            # A remark about low variance is no failure, nor an overflow on the way; a search that does
            # not end is.
            warnings.simplefilter("ignore", RuntimeWarning)
            warnings.filterwarnings("error", "(?s).*failed to converge", ConvergenceWarning)
            found = CoxPHFitter().fit(table, "T", "E")
    except (ConvergenceError, ConvergenceWarning, np.linalg.LinAlgError) as error:
        raise ArithmeticError(str(error).split("\n")[0].split(". ")[0][:100]) from error
    beta = found.params_.to_numpy()
    if not np.isfinite(beta).all():
        raise ArithmeticError("a coefficient grows without bound")

    def proportional() -> Array:
        with warnings.catch_warnings(action="ignore"):  # of overflow in terms that do not count
            return np.asarray(proportional_hazard_test(found, table, "rank").p_value, dtype=float)

    return beta, found.standard_errors_.to_numpy(), proportional


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
    rest : tuple of LogRank
        Every cluster against all others.
    ratios : DataFrame or None
        With ``covariates``: hazard ratios of every cluster against all others and against the largest,
        and adjusted ones with those of the covariates, each with its interval: what a forest plot shows.
    """

    curves: tuple[Curve, ...]
    test: LogRank
    pairs: dict[tuple[Any, Any], LogRank]
    horizon: float
    restricted_mean: Array
    restricted_mean_error: Array
    cox: Cox | None
    notes: tuple[str, ...]
    rest: tuple[LogRank, ...] = ()
    ratios: Any = None

    @property
    def clusters(self) -> tuple[Any, ...]:
        """The clusters as the user calls them."""
        return tuple(curve.cluster for curve in self.curves)

    @property
    def p_value(self) -> float:
        """Of all clusters together; NaN where no test can be made."""
        return self.test.p_value

    @property
    def table(self) -> Any:
        """One row per cluster: sizes, events, median, restricted mean, each with its interval."""
        names = {"cluster": "cluster", "n": "n", "events": "n_events", "last_time": "last"}
        names |= {name: name for name in ("median", "median_lower", "median_upper")}
        own = {name: [getattr(c, part) for c in self.curves] for name, part in names.items()}
        mean, width = self.restricted_mean, self._z * self.restricted_mean_error
        return frame(
            {
                **own,
                "horizon": [self.horizon] * len(self.curves),
                "at_risk_at_horizon": [int(c.at_risk_at(self.horizon)) for c in self.curves],
                "restricted_mean": mean,
                "restricted_mean_lower": np.maximum(mean - width, 0),
                "restricted_mean_upper": np.minimum(mean + width, self.horizon),
                "p_value_against_others": (p := np.array([test.p_value for test in self.rest])),
                "q_value_against_others": adjusted(p),
            }
        )

    @property
    def pair_table(self) -> Any:
        """One row per pair: log-rank tests, adjusted by Benjamini–Hochberg, difference of means."""
        place = {cluster: k for k, cluster in enumerate(self.clusters)}
        one, other = np.array([[place[a], place[b]] for a, b in self.pairs], int).reshape(-1, 2).T
        gap = self.restricted_mean[one] - self.restricted_mean[other]
        errors = self.restricted_mean_error
        width = self._z * np.hypot(errors[one], errors[other])
        tests = pandas().DataFrame(list(self.pairs.values()), columns=LogRank._fields)
        return frame(
            {
                "cluster": [a for a, _ in self.pairs],
                "other": [b for _, b in self.pairs],
                "statistic": tests["statistic"],
                "p_value": tests["p_value"],
                "q_value": adjusted(tests["p_value"].to_numpy(float)),
                "permutations": tests["permutations"],
                "mean_difference": gap,
                "mean_difference_lower": gap - width,
                "mean_difference_upper": gap + width,
            }
        )

    @property
    def curve_table(self) -> Any:
        """All curves in one long table: one row per cluster and time."""
        parts = ("time", "survival", "lower", "upper", "at_risk", "events", "censored")
        columns = {p: np.concatenate([vars(c)[p] for c in self.curves]) for p in parts}
        return frame({"cluster": [c.cluster for c in self.curves for _ in c.time], **columns})

    def at_risk(self, times: Any = None) -> Any:
        """Return how many members of every cluster are still observed at ``times``.

        By default these are about six round numbers from 0 on.
        """
        times = round_times(max(c.last for c in self.curves)) if times is None else times
        times = np.atleast_1d(np.asarray(times, dtype=float))
        counts = np.array([curve.at_risk_at(times) for curve in self.curves])
        return frame(
            {"cluster": self.clusters, **{f"{t:g}": counts[:, j] for j, t in enumerate(times)}}
        )

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: clusters, pairs, curves, at_risk and, if requested, cox."""
        tables = {"clusters": self.table, "pairs": self.pair_table, "curves": self.curve_table}
        tables["at_risk"] = self.at_risk()
        return tables if self.ratios is None else tables | {"cox": self.ratios}

    @property
    def _z(self) -> float:
        return float(norm.ppf((1 + self.curves[0].level) / 2))

    def __repr__(self) -> str:
        test = self.test
        table = self.table[["cluster", "n", "events", "median", "restricted_mean"]]
        medians = [
            f"{c.median:.3g}" if c.median == c.median else "not reached" for c in self.curves
        ]
        if np.isnan(test.p_value):
            verdict = "no log-rank test"
        else:
            how = f"{test.permutations} permutations" if test.permutations else "asymptotic"
            verdict = f"log-rank χ² = {test.statistic:.2f}, p = {test.p_value:.2g} ({how})"
        left = ", ".join(f"{c.at_risk_at(self.horizon)} of {c.n}" for c in self.curves)
        lines = [
            f"Survival of {len(self.curves)} clusters: {verdict}",
            printed(table.assign(median=medians)),
            f"restricted_mean is the mean survival up to time {self.horizon:.4g}, when {left} are at risk.",
            *([] if self.cox is None else [repr(self.cox)]),
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def round_times(last: float) -> Array:
    """Return about six round times from 0 to ``last``."""
    if not last > 0:
        return np.zeros(1)
    rough = last / 6
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(s for s in (1, 2, 2.5, 5, 10) if s * power >= rough * (1 - 1e-9)) * power
    return np.arange(0, last * (1 + 1e-9), step)


#: Clusters with fewer members or fewer events are called small.
FEW_MEMBERS, FEW_EVENTS = 10, 5
#: Restricted means are taken up to a time at which this many members of a cluster are at risk.
MEMBERS_AT_RISK = 5


def survival(
    labels: Any,
    time: Any,
    event: Any,
    *,
    ids: Any = None,
    covariates: Any = None,
    horizon: float | None = None,
    min_at_risk: float = 0.1,
    level: float = 0.95,
    pairwise: bool = True,
    min_size: int = 1,
    permutations: int | None = None,
    random_state: Seed = 0,
) -> Survival:
    """Compare the survival of clusters: Kaplan–Meier curves and log-rank tests.

    P-values come from permuted labels, ``(1 + draws at least as large) / (1 + draws)``, because the usual
    χ² approximation is wrong for small clusters. The test assumes that the length of follow-up
    (censoring) does not depend on the cluster.

    Parameters
    ----------
    labels : array-like, pandas Series, dict of id → label, or fitted model
        One label per sample; −1, None and NaN are left out.
    time : array-like or Series
        Time until the event or the end of follow-up, 0 or more. NaN is left out.
    event : array-like or Series
        1 if the event happened, 0 if follow-up ended before (censored). True and False, and words such as
        "dead" and "alive", are accepted, too. The name of a Series matters: in "alive", 1 means no event;
        0 and 1 named "censored" or "vital_status" are refused, because both codings are common.
    ids : sequence, optional
        Ids of the labels. Where labels and the other columns have ids they are matched by them,
        otherwise by position.
    covariates : DataFrame or dict of columns, optional
        Hazard ratios by Cox regression as well (extra ``outcomes``), without and with adjustment for
        these; an empty dict: without adjustment only.
    horizon : float, optional
        Time up to which the restricted mean is taken. By default the last at which ``min_at_risk`` of
        every cluster, and 5 members, are still at risk (clusters below 5 members are not considered).
    min_at_risk : float, default=0.1
        Share of a cluster that must be at risk at the horizon, between 0 and 1. Restricted means of
        clusters with fewer at risk rest on one or two patients, and a note names them.
    level : float, default=0.95
        Confidence level of bands and intervals.
    pairwise : bool, default=True
        Also test every pair of clusters.
    min_size : int, default=1
        Clusters with fewer members get a curve and no test. Tiny clusters do not invalidate the test of
        all clusters, but reduce its power.
    permutations : int, optional
        By default 9,999, fewer (at least 499) for more than 5,000 samples; 0: asymptotic
        p-values only.
    random_state : int, Generator or None, default=0

    Returns
    -------
    Survival

    Examples
    --------
    >>> from manyview.outcomes import survival
    >>> found = survival([0, 0, 0, 0, 1, 1, 1, 1], [5, 8, 9, 9, 1, 2, 2, 3], [1, 1, 0, 0, 1, 1, 1, 1])
    >>> [curve.median for curve in found.curves]
    [8.0, 2.0]
    >>> round(found.test.statistic, 2), found.p_value < 0.05
    (7.29, True)
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1 (0.95 for 95% bands), got {level}")
    if not 0 <= min_at_risk <= 1:
        raise ValueError(f"min_at_risk must be a share between 0 and 1, got {min_at_risk}")
    seen = observed(labels, time, event, covariates, ids)
    groups, names = seen.groups, seen.groups.names
    curves = tuple(
        kaplan_meier(seen.time[groups.codes == k], seen.event[groups.codes == k], name, level)
        for k, name in enumerate(names)
    )
    rng = np.random.default_rng(random_state)
    draws = rounds(permutations, len(seen.time))
    large = np.flatnonzero(groups.sizes >= min_size).tolist()
    if small := [name for k, name in enumerate(names) if k not in large]:
        seen.notes.append(f"{_clusters(small)} not tested: fewer than {min_size} members.")
    test = seen.logrank(large, draws, rng)
    each = combinations(large if pairwise else [], 2)
    pairs = {(names[a], names[b]): seen.logrank((a, b), draws, rng) for a, b in each}
    apart = [seen.against_others(k, draws if k in large else None, rng) for k in range(len(names))]
    horizon = _horizon(curves, horizon, min_at_risk)
    means, errors = np.array([curve.restricted_mean(horizon) for curve in curves]).T
    adjustment = ratios = None
    if covariates is not None:
        plain = cox(seen, (), level, 0, rng)
        # Without covariates the score tests are the log-rank tests of the pairs, made already.
        tests = [pairs.get(pair) or pairs.get(pair[::-1]) for pair in plain.table[
            ["cluster", "reference"]].itertuples(index=False, name=None)]  # fmt: skip
        p = [np.nan if t is None else t.p_value for t in tests]
        plain = replace(plain, table=plain.table.assign(p_value=p), test=test)
        adjustment = cox(seen, seen.covariates, level, draws, rng) if seen.covariates else plain
        models = [plain, *([adjustment] if adjustment.covariates else [])]
        ratios = _ratios(seen, apart, models, level)
    found = Survival(
        curves, test, pairs, horizon, means, errors, adjustment, (), tuple(apart), ratios
    )
    remarks = [*_remarks(found, len(large)), *_remarks_on_means(found, min_at_risk)]
    remarks += [] if ratios is None else _remarks_on_ratios(ratios)
    return replace(found, notes=tuple(dict.fromkeys((*seen.notes, *remarks))))


@dataclass(eq=False)
class Observed:
    """The samples that have a label, a time and an event."""

    groups: Groups
    time: Array
    event: Array
    covariates: list[Column]
    notes: list[str]

    def logrank(self, clusters: Sequence[int], draws: int, rng: np.random.Generator) -> LogRank:
        """Test some of the clusters."""
        own = np.isin(self.groups.codes, clusters)
        return logrank(self.time[own], self.event[own], self.groups.codes[own], draws, rng)

    def against_others(self, k: int, draws: int | None, rng: np.random.Generator) -> LogRank:
        """Test one cluster against all others; no test if ``draws`` is None."""
        if draws is None:
            return LogRank()
        return logrank(self.time, self.event, (self.groups.codes == k).astype(int), draws, rng)


def observed(labels: Any, time: Any, event: Any, covariates: Any, ids: Any) -> Observed:
    """Read and match all columns; leave out samples without a time or an event."""
    others = [read_single("time", time), read_single("event", event)]
    if covariates is not None and len(covariates):
        others.append(read_table("covariates", covariates))
    matched = match(labels, others, ids)
    notes = matched.notes
    times = read_numbers("time", matched.tables[0].iloc[:, 0])
    if (times < 0).any():
        raise ValueError(
            f"time must be 0 or more, but {int((times < 0).sum())} entries are negative (the first is "
            f"{times[times < 0][0]:g}); check the dates they come from"
        )
    ((heading, column),) = matched.tables[1].items()
    named = getattr(event, "name", None)  # of a Series
    events, words = read_events(column, named if named and isinstance(named, str) else heading)
    notes += [words] if words else []
    keep = ~(np.isnan(times) | np.isnan(events))
    if not keep.any():
        raise ValueError("no sample has a label, a time and an event; nothing can be compared")
    if not keep.all():
        without = counted(int((~keep).sum()), "sample")
        notes.append(f"Left out: {without} without time or event.")
    pairs = matched.tables[2].items() if len(others) > 2 else []
    columns = [read_column(name, values).only(keep) for name, values in pairs]
    notes += [f"Covariate {quoted(c.name)}: {c.note}" for c in columns if c.note]
    groups = matched.groups.only(keep)
    if empty := [n for n, size in zip(groups.names, groups.sizes, strict=True) if not size]:
        notes.append(f"{_clusters(empty)} left out: no member has a time and an event.")
    return Observed(groups.without_empty(), times[keep], events[keep], columns, notes)


def _ratios(seen: Observed, rest: Sequence[LogRank], models: Sequence[Cox], level: float) -> Any:
    """Hazard ratios of every cluster against all others, and those of the models, in one table."""
    rows, event = [], seen.event
    for k, (name, test) in enumerate(zip(seen.groups.names, rest, strict=True)):
        own, ratio = seen.groups.codes == k, np.full(len(RATIOS), np.nan)
        if event[own].any() and event[~own].any():
            with suppress(ArithmeticError):
                (ratio,) = hazard_ratios(seen.time, event, own[:, None].astype(float), level)
        rows.append(("against all others", name, "all others", *ratio, test.p_value))
    columns = ["model", "term", "reference", *RATIOS, "p_value"]
    parts = [pandas().DataFrame(rows, columns=columns)]
    for model in models:
        renamed = model.table.rename(columns={"cluster": "term"})
        tables = [table for table in (renamed, model.covariate_table) if len(table)]
        parts += [table.assign(model=model.model) for table in tables]
    return pandas().concat(parts, ignore_index=True).reindex(columns=columns)


def _horizon(curves: tuple[Curve, ...], horizon: float | None, share: float) -> float:
    if horizon is not None:
        if not (np.isfinite(horizon) and horizon > 0):
            raise ValueError(f"horizon must be a time above 0, got {horizon}")
        return float(horizon)
    large = [c for c in curves if c.n >= MEMBERS_AT_RISK] or curves
    return min(float(c.time[c.at_risk >= min(_needed(c, share), c.n)][-1]) for c in large)


def _needed(curve: Curve, share: float) -> int:
    """Return how many members must be at risk at the horizon."""
    return max(MEMBERS_AT_RISK, int(np.ceil(share * curve.n - 1e-9)))


def _clusters(names: Sequence[Any]) -> str:
    texts = ", ".join(quoted(name) for name in names)
    return f"Cluster {texts} is" if len(names) == 1 else f"Clusters {texts} are"


def _remarks(found: Survival, n_tested: int) -> list[str]:
    curves, test, remarks = found.curves, found.test, []
    events = sum(c.n_events for c in curves)
    if n_tested < 2:
        remarks.append("Fewer than two clusters can be tested; nothing is compared.")
    elif not events:
        remarks.append(f"None of the {sum(c.n for c in curves)} samples has an event; no test.")
    elif np.isnan(test.p_value):
        remarks.append(
            "No test: no event happens while at least two clusters are observed, or all events "
            "happen at the same time."
        )
    elif events < FEW_EVENTS:
        remarks.append(f"A test of {counted(events, 'event')} in all has little power.")
    small = [c for c in curves if c.n < FEW_MEMBERS or c.n_events < FEW_EVENTS]
    if small:
        sizes = ", ".join(
            f"{quoted(c.cluster)} ({counted(c.n, 'member')}, {counted(c.n_events, 'event')})"
            for c in small
        )
        remarks.append(f"Small clusters, whose curves and medians are uncertain: {sizes}.")
    if test.degrees and test.degrees < n_tested - 1:
        remarks.append(
            "Some clusters have no member at risk at any event and do not enter the test."
        )
    untested = [pair for pair, own in found.pairs.items() if np.isnan(own.p_value)]
    if untested and not np.isnan(test.p_value):
        texts = ", ".join(f"{quoted(a)} and {quoted(b)}" for a, b in untested)
        remarks.append(f"No test of {texts}: no event while both are observed.")
    if (
        test.permutations
        and test.p_value > 10 * test.p_asymptotic
        and test.p_value > 2 / test.permutations
    ):
        remarks.append(
            f"The χ² approximation gives p = {test.p_asymptotic:.2g}, but is not valid here."
        )
    return remarks


def _remarks_on_ratios(ratios: Any) -> list[str]:
    remarks = []
    rows = ratios[ratios["model"] == "against all others"]
    for row in rows[rows["proportional_p"] * len(rows) <= NOT_PROPORTIONAL].to_dict("records"):
        remarks.append(
            f"The hazard ratio of cluster {quoted(row['term'])} changes over time (p = "
            f"{row['proportional_p']:.2g}), so that {row['hazard_ratio']:.3g} is an average over the time "
            "observed: read the curves and the restricted means."
        )
    return remarks


def _remarks_on_means(found: Survival, share: float) -> list[str]:
    remarks, horizon = [], found.horizon
    means, errors = found.restricted_mean, found.restricted_mean_error
    pairs = list(zip(found.curves, means, errors, strict=True))
    few = [
        f"{quoted(c.cluster)} ({int(at_risk)} of {c.n})"
        for c, mean, _ in pairs
        if (at_risk := c.at_risk_at(horizon)) < _needed(c, share) and not np.isnan(mean)
    ]
    if few:
        remarks.append(
            f"Few members are still at risk at the horizon, time {horizon:.4g}, in cluster "
            f"{', '.join(few)}, so its restricted mean and differences from it are uncertain. "
            "Choose a smaller horizon, or ignore them."
        )
    if short := [c.cluster for c, mean, _ in pairs if np.isnan(mean)]:
        remarks.append(
            f"{_clusters(short)} not observed up to time {horizon:.4g}, so without a restricted mean; "
            "choose a smaller horizon."
        )
    if unsure := [c.cluster for c, mean, error in pairs if np.isnan(error) and not np.isnan(mean)]:
        remarks.append(
            f"{_clusters(unsure)} without an event up to time {horizon:.4g}: the restricted mean has no "
            "interval."
        )
    return remarks
