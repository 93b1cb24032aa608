"""The result of `markers`: effects and tests of all features, and the leading ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyview._types import Array

from .table import Table

#: Effects that are counted when markers are printed: a member exceeds an outsider 3 times of 4.
LARGE = 0.5


@dataclass(frozen=True, eq=False)
class ViewMarkers:
    """Every cluster of every feature of one view; the arrays are clusters × features.

    Attributes
    ----------
    view : str
    kind : {"binary", "counts", "continuous"}
    features : tuple of str
    effect : ndarray in [−1, 1]
        Rank-biserial correlation: positive where the members have the higher values. Of binary
        features the share among members less that among others.
    p_value, q_value : ndarray
        NaN where not tested. Without ``leave_view_out`` they are descriptive, and tables call
        them ``p_descriptive`` and ``q_descriptive``.
    inside, outside : ndarray
        Means of the members and of all others (shares of binary features; of counts after
        scaling to the median total).
    agreement : float
        With ``leave_view_out``: adjusted Rand index between the clusters and those found without
        this view. NaN otherwise.
    """

    view: str
    kind: str
    features: tuple[str, ...]
    effect: Array
    p_value: Array
    q_value: Array
    inside: Array
    outside: Array
    agreement: float


@dataclass(frozen=True, eq=False)
class Markers:
    """What `markers` found.

    Attributes
    ----------
    clusters : tuple
    sizes : ndarray
    views : tuple of ViewMarkers
    left_view_out : bool
        Whether every view was tested on clusters found without it.
    notes : tuple of str
        What was left out, and how far the p-values may be trusted.
    """

    clusters: tuple[Any, ...]
    sizes: Array
    views: tuple[ViewMarkers, ...]
    left_view_out: bool
    notes: tuple[str, ...]

    def top(
        self,
        n: int = 10,
        *,
        direction: str | None = None,
        max_q: float | None = 0.05,
    ) -> Table:
        """Return the n features with the largest effects for every cluster and view.

        Parameters
        ----------
        n : int, default=10
        direction : {"up", "down"}, optional
            Only features that are higher, or lower, in the cluster.
        max_q : float or None, default=0.05
            Only features with a q-value of at most this; None: all.

        Returns
        -------
        Table
        """
        if direction not in (None, "up", "down"):
            raise ValueError(f'direction must be "up", "down" or None, got {direction!r}')
        picked = []
        for k in range(len(self.clusters)):
            for view in self.views:
                effect = np.nan_to_num(view.effect[k])
                effect = -effect if direction == "down" else effect
                size = np.abs(effect) if direction is None else effect
                fine = size > 0
                if max_q is not None:
                    fine &= view.q_value[k] <= max_q
                best = np.argsort(-size, kind="stable")
                best = best[fine[best]][:n]
                picked += [(k, view, j) for j in best.tolist()]
        named = self._named

        def of(name: str) -> list[float]:
            return [float(vars(view)[name][k, j]) for k, view, j in picked]

        effect = of("effect")
        return Table(
            {
                "cluster": [self.clusters[k] for k, _, _ in picked],
                "view": [view.view for _, view, _ in picked],
                "feature": [view.features[j] for _, view, j in picked],
                "direction": ["down" if e < 0 else "up" for e in effect],
                "effect": effect,
                "inside": of("inside"),
                "outside": of("outside"),
                named["p_value"]: of("p_value"),
                named["q_value"]: of("q_value"),
            }
        )

    @property
    def _named(self) -> dict[str, str]:
        """What tables call the p-values: descriptive where the same data made the clusters."""
        end = "value" if self.left_view_out else "descriptive"
        return {"p_value": f"p_{end}", "q_value": f"q_{end}"}

    @property
    def table(self) -> Table:
        """The ten leading features of every cluster and view with q ≤ 0.05."""
        return self.top(10)

    @property
    def full_table(self) -> Table:
        """Every feature of every view and cluster."""
        parts: dict[str, list[Any]] = {}
        for view in self.views:
            k, m = view.effect.shape
            long: dict[str, Any] = {
                "cluster": np.repeat(np.array(self.clusters, dtype=object), m),
                "view": np.full(k * m, view.view, dtype=object),
                "feature": np.tile(np.array(view.features, dtype=object), k),
                "direction": np.where(view.effect.ravel() < 0, "down", "up").astype(object),
            }
            for name in ("effect", "inside", "outside", "p_value", "q_value"):
                long[self._named.get(name, name)] = vars(view)[name].ravel()
            for name, values in long.items():
                parts.setdefault(name, []).append(values)
        return Table({name: np.concatenate(values) for name, values in parts.items()})

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by name: top and markers (all features)."""
        return {"top": self.table, "markers": self.full_table}

    def to_frame(self) -> Any:
        """Return every feature of every view and cluster as a pandas DataFrame.

        Returns
        -------
        DataFrame
        """
        return self.full_table.to_frame()

    def __repr__(self) -> str:
        counts = []
        for view in self.views:
            large = int((np.abs(np.nan_to_num(view.effect)) >= LARGE).any(axis=0).sum())
            text = f"{view.view} ({view.kind}): {large} of {len(view.features)}"
            if self.left_view_out:
                text += f", {int((view.q_value <= 0.05).any(axis=0).sum())} with q ≤ 0.05"
            counts.append(text)
        lines = [
            f"Markers of {len(self.clusters)} clusters; features with an effect of {LARGE} or more, up or "
            f"down: {'; '.join(counts)}",
            str(self.top(3)),
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])
