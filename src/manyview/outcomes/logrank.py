"""The log-rank test of two or more groups, with its distribution under permuted labels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2

from manyview._types import Array

from .chance import batches, permuted_p


@dataclass(frozen=True)
class LogRank:
    """A log-rank test.

    Attributes
    ----------
    statistic : float
        (O − E)ᵀ V⁻¹ (O − E); NaN where no test can be made.
    degrees : int
        Groups that have members at risk when an event happens, less one.
    p_value : float
        From permuted labels; the asymptotic one if no permutation was asked for.
    p_asymptotic : float
        From the χ² distribution. Wrong for small groups.
    permutations : int
    """

    statistic: float
    degrees: int
    p_value: float
    p_asymptotic: float
    permutations: int


@dataclass(frozen=True, eq=False)
class _Events:
    """What of times and events stays the same however labels are permuted.

    Observations are ordered by falling time, so that those at risk at an event time come first.
    """

    order: Array  #: observations by falling time
    event: Array  #: positions of the events in that order
    at_risk: Array  #: Y, those at risk at every distinct event time
    deaths: Array  #: d
    spread: Array  #: d (Y − d) / (Y − 1), 0 where Y = 1
    risk: (
        Array | None
    )  #: hazard of every observation in that order, in any unit; None: all the same

    @classmethod
    def of(cls, time: Array, event: Array, risk: Array | None = None) -> _Events:
        order = np.argsort(-time, kind="stable")
        times, deaths = (part[::-1] for part in np.unique(time[event > 0], return_counts=True))
        rising = time[order[::-1]]
        at_risk = len(time) - np.searchsorted(rising, times, side="left")
        spread = deaths * (at_risk - deaths) / np.maximum(at_risk - 1, 1)
        positions = np.flatnonzero(event[order])
        risk = None if risk is None else risk[order]
        return cls(order, positions, at_risk, deaths.astype(float), spread, risk)

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
        # A group nobody of which is at risk at an event has an empty row: hence no plain inverse.
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
        Hazards by covariates: every member counts as so many at risk (score test of the groups in a Cox
        model whose covariates have these hazards).
    """
    codes = np.unique(codes, return_inverse=True)[1]
    k = int(codes.max()) + 1 if len(codes) else 0
    nothing = LogRank(np.nan, 0, np.nan, np.nan, 0)
    if k < 2 or not event.any():
        return nothing
    table = _Events.of(time, event, risk)
    ordered = codes[table.order]
    informed = len(np.unique(ordered[: table.at_risk.max()]))
    if informed < 2 or not table.spread.any():
        return nothing
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
