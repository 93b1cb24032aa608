"""`survival`: do clusters differ in how long their members live?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from manyview._types import Array, Seed

from .chance import check_level, rounds
from .columns import Column, read_column, read_numbers
from .cox import cox
from .endpoints import read_events
from .groups import Groups, match
from .held import hold, hold_column
from .kaplan_meier import Curve, kaplan_meier
from .logrank import LogRank, logrank
from .survival_result import Survival
from .table import counted, quoted

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

    P-values come from permuted labels, ``(1 + draws at least as large) / (1 + draws)``: the usual χ²
    approximation is badly wrong for small clusters. Permuting assumes that clusters do not differ
    in how long members *could* be observed (their censoring).

    Parameters
    ----------
    labels : array-like, pandas Series, dict of id → label, or fitted model
        One label per observation; −1, None and NaN are left out.
    time : array-like or Series
        Time until the event or the end of observation, 0 or more. NaN is left out.
    event : array-like or Series
        1 where the event happened, 0 where observation ended before (censored). True and False, and
        words such as "dead" and "alive", are read too. The name of a Series matters: "alive" is read
        the other way round, and 0 and 1 named "censored" or "vital_status" are refused, since both
        codings are common.
    ids : sequence, optional
        Ids of the labels. Where labels and the other columns have ids they are matched by them,
        otherwise by position.
    covariates : DataFrame or dict of columns, optional
        Adjust for these by Cox regression as well (extra ``outcomes``).
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
        Clusters with fewer members get a curve and no test. A test of all clusters remains right
        with tiny ones among them, but sees less.
    permutations : int, optional
        By default 9,999, fewer (at least 499) for more than 5,000 observations; 0: asymptotic
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
    check_level(level)
    seen = _observe(labels, time, event, covariates, ids)
    groups, notes = seen.groups, seen.notes
    curves = tuple(
        kaplan_meier(seen.time[groups.codes == k], seen.event[groups.codes == k], name, level)
        for k, name in enumerate(groups.names)
    )
    rng = np.random.default_rng(random_state)
    draws = rounds(permutations, len(seen.time))
    tested = _tested(seen, min_size)
    test = logrank(seen.time[tested], seen.event[tested], groups.codes[tested], draws, rng)
    pairs = _pairs(seen, tested, draws, rng) if pairwise else {}
    if not 0 <= min_at_risk <= 1:
        raise ValueError(f"min_at_risk must be a share between 0 and 1, got {min_at_risk}")
    horizon = _horizon(curves, horizon, min_at_risk)
    means = np.array([curve.restricted_mean(horizon) for curve in curves])
    notes += _remarks(curves, test, pairs, len(np.unique(groups.codes[tested])))
    notes += _remarks_on_means(curves, means, horizon, min_at_risk)
    adjustment = None
    if covariates is not None:
        adjustment = cox(seen.time, seen.event, groups, seen.covariates, level, notes, draws, rng)
    return Survival(
        curves, test, pairs, horizon, means[:, 0], means[:, 1], adjustment, tuple(notes)
    )


@dataclass(eq=False)
class _Observed:
    """The observations that have a label, a time and an event."""

    groups: Groups
    time: Array
    event: Array
    covariates: list[Column]
    notes: list[str]


def _observe(labels: Any, time: Any, event: Any, covariates: Any, ids: Any) -> _Observed:
    others = [hold_column("time", time), hold_column("event", event)]
    if covariates is not None:
        others.append(hold("covariates", covariates))
    matched = match(labels, others, ids)
    notes = matched.notes
    times = _read_times(next(iter(matched.columns[0].values())))
    heading, column = next(iter(matched.columns[1].items()))
    named = getattr(event, "name", None)  # of a Series
    events, words = read_events(column, named if named and isinstance(named, str) else heading)
    notes += [words] if words else []
    keep = ~(np.isnan(times) | np.isnan(events))
    if not keep.any():
        raise ValueError("no observation has a label, a time and an event; nothing can be compared")
    if not keep.all():
        without = counted(int((~keep).sum()), "observation")
        notes.append(f"Left out: {without} without time or event.")
    columns = (
        [read_column(n, c).only(keep) for n, c in matched.columns[2].items()]
        if covariates is not None
        else []
    )
    notes += [f"Covariate {quoted(c.name)}: {c.note}" for c in columns if c.note]
    groups = matched.groups.only(keep)
    empty = [name for name, size in zip(groups.names, groups.sizes, strict=True) if not size]
    if empty:
        notes.append(f"{_clusters(empty)} left out: no member has a time and an event.")
    return _Observed(groups.without_empty(), times[keep], events[keep], columns, notes)


def _read_times(column: Any) -> Array:
    times = read_numbers("time", column)
    if (times < 0).any():
        raise ValueError(
            f"time must be 0 or more, but {int((times < 0).sum())} entries are negative (the first is "
            f"{times[times < 0][0]:g}); check the dates they come from"
        )
    return times


def _tested(seen: _Observed, min_size: int) -> Array:
    """Mark the members of clusters that are large enough to be tested."""
    sizes = seen.groups.sizes
    small = [name for name, n in zip(seen.groups.names, sizes, strict=True) if n < min_size]
    if small:
        seen.notes.append(f"{_clusters(small)} not tested: fewer than {min_size} members.")
    return (sizes >= min_size)[seen.groups.codes]


def _pairs(
    seen: _Observed, tested: Array, draws: int, rng: np.random.Generator
) -> dict[tuple[Any, Any], LogRank]:
    tests, codes = {}, seen.groups.codes
    for a, b in combinations(np.unique(codes[tested]).tolist(), 2):
        both = (codes == a) | (codes == b)
        names = (seen.groups.names[a], seen.groups.names[b])
        tests[names] = logrank(seen.time[both], seen.event[both], codes[both], draws, rng)
    return tests


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


def _remarks(
    curves: tuple[Curve, ...],
    test: LogRank,
    pairs: dict[tuple[Any, Any], LogRank],
    n_tested: int,
) -> list[str]:
    remarks = []
    events = sum(c.n_events for c in curves)
    if n_tested < 2:
        remarks.append("Fewer than two clusters can be tested; nothing is compared.")
    elif not events:
        remarks.append(
            f"None of the {sum(c.n for c in curves)} observations has an event; no test."
        )
    elif np.isnan(test.p_value):
        remarks.append(
            "No event happens while members of two clusters are observed, or all of them have it at "
            "once; no test."
        )
    elif events < FEW_EVENTS:
        remarks.append(f"A test of {counted(events, 'event')} in all cannot say much.")
    small = [c for c in curves if c.n < FEW_MEMBERS or c.n_events < FEW_EVENTS]
    if small:
        sizes = ", ".join(
            f"{quoted(c.cluster)} ({counted(c.n, 'member')}, {counted(c.n_events, 'event')})"
            for c in small
        )
        remarks.append(f"Small clusters, whose curves and medians say little: {sizes}.")
    if test.degrees and test.degrees < n_tested - 1:
        remarks.append(
            "Some clusters have no member at risk at any event and do not enter the test."
        )
    untested = [pair for pair, found in pairs.items() if np.isnan(found.p_value)]
    if untested and not np.isnan(test.p_value):
        texts = ", ".join(f"{quoted(a)} and {quoted(b)}" for a, b in untested)
        remarks.append(f"No test of {texts}: no event while both are observed.")
    if (
        test.permutations
        and test.p_value > 10 * test.p_asymptotic
        and test.p_value > 2 / test.permutations
    ):
        remarks.append(
            f"The χ² approximation would claim p = {test.p_asymptotic:.2g}; it does not hold here."
        )
    return remarks


def _remarks_on_means(
    curves: tuple[Curve, ...], means: Array, horizon: float, share: float
) -> list[str]:
    remarks = []
    few = [
        f"{quoted(c.cluster)} ({int(at_risk)} of {c.n})"
        for c, (mean, _) in zip(curves, means, strict=True)
        if (at_risk := c.at_risk_at(horizon)) < _needed(c, share) and mean == mean
    ]
    if few:
        remarks.append(
            f"Few members are still at risk at the horizon, time {horizon:.4g}, in cluster "
            f"{', '.join(few)}: its restricted mean and differences from it rest on them. Choose a smaller "
            "horizon, or do not read them."
        )
    short = [c.cluster for c, (mean, _) in zip(curves, means, strict=True) if np.isnan(mean)]
    if short:
        remarks.append(
            f"{_clusters(short)} not observed up to time {horizon:.4g} and without a restricted mean; "
            "a smaller horizon would give one."
        )
    unsure = [
        c.cluster
        for c, (mean, error) in zip(curves, means, strict=True)
        if error != error and mean == mean
    ]
    if unsure:
        remarks.append(
            f"{_clusters(unsure)} without an event up to time {horizon:.4g}: the restricted mean has no "
            "interval."
        )
    return remarks
