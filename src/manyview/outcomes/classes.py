"""`crosstab`: clusters against known classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from manyview._labels import as_list
from manyview._types import Array

from .columns import stands_for_missing
from .groups import match, order_of
from .held import hold_column
from .table import Table, counted, quoted

#: More classes than this are unlikely to be classes.
MANY_CLASSES = 100


@dataclass(frozen=True, eq=False)
class Crosstab:
    """What `crosstab` found.

    Attributes
    ----------
    clusters, classes : tuple
    counts : ndarray (clusters, classes)
    ari, nmi : float
        Adjusted Rand index and normalised mutual information of the two partitions.
    majority : tuple
        The commonest class of every cluster; of several equally common ones the first.
    majority_share : ndarray
        Its share of the cluster.
    notes : tuple of str
    """

    clusters: tuple[Any, ...]
    classes: tuple[Any, ...]
    counts: Array
    ari: float
    nmi: float
    majority: tuple[Any, ...]
    majority_share: Array
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """Observations with a cluster and a class."""
        return int(self.counts.sum())

    @property
    def table(self) -> Table:
        """One row per cluster, one column per class, then size, majority and its share."""
        names = [str(name) for name in self.classes]
        own = {"cluster", "n", "majority", "majority_share"}
        if len(set(names)) < len(names) or own & set(names):
            names = [f"class {name!r}" for name in self.classes]
        return Table(
            {
                "cluster": self.clusters,
                **{name: self.counts[:, j].tolist() for j, name in enumerate(names)},
                "n": self.counts.sum(axis=1).tolist(),
                "majority": self.majority,
                "majority_share": self.majority_share.tolist(),
            }
        )

    @property
    def tables(self) -> dict[str, Table]:
        """Every table by name: crosstab."""
        return {"crosstab": self.table}

    def to_frame(self) -> Any:
        """Return `table` as a pandas DataFrame.

        Returns
        -------
        DataFrame
        """
        return self.table.to_frame()

    def __repr__(self) -> str:
        head = (
            f"{len(self.clusters)} clusters by {len(self.classes)} classes of {self.n} observations: "
            f"ARI {self.ari:.3f}, NMI {self.nmi:.3f}"
        )
        if len(self.classes) <= 12:
            shown = self.table
        else:
            names = ("cluster", "n", "majority", "majority_share")
            shown = Table({name: self.table[name] for name in names})
        return "\n".join([head, str(shown), *(f"Note: {note}" for note in self.notes)])


def crosstab(labels: Any, classes: Any, *, ids: Any = None) -> Crosstab:
    """Count the known classes in every cluster.

    Parameters
    ----------
    labels : array-like, pandas Series, dict of id → label, or fitted model
        One label per observation; −1, None and NaN are left out.
    classes : array-like or Series
        The known class of every observation; missing ones are left out.
    ids : sequence, optional
        Ids of the labels. Where labels and classes have ids they are matched by them, otherwise by
        position.

    Returns
    -------
    Crosstab

    Examples
    --------
    >>> from manyview.outcomes import crosstab
    >>> crosstab([0, 0, 0, 1, 1], ["LumA", "LumA", "Basal", "Basal", "Basal"])
    2 clusters by 2 classes of 5 observations: ARI 0.167, NMI 0.433
    cluster  Basal  LumA  n  majority  majority_share
          0      1     2  3  LumA               0.667
          1      2     0  2  Basal                  1
    """
    matched = match(labels, [hold_column("classes", classes)], ids)
    notes = matched.notes
    names, read = _coded(next(iter(matched.columns[0].values())), notes)
    keep = read >= 0
    if not keep.any():
        raise ValueError("no observation has both a cluster and a class; nothing can be counted")
    groups, codes = matched.groups.only(keep).without_empty(), read[keep]
    shape = (len(groups.names), len(names))
    counts = np.bincount(groups.codes * shape[1] + codes, minlength=shape[0] * shape[1])
    counts = counts.reshape(shape)
    tied = (counts == counts.max(axis=1)[:, None]).sum(axis=1) > 1
    if tied.any():
        which = ", ".join(quoted(groups.names[k]) for k in np.flatnonzero(tied))
        notes.append(f"Two or more classes are equally common in: {which}.")
    return Crosstab(
        groups.names,
        names,
        counts,
        float(adjusted_rand_score(codes, groups.codes)),
        float(normalized_mutual_info_score(codes, groups.codes)),
        tuple(names[j] for j in counts.argmax(axis=1)),
        counts.max(axis=1) / counts.sum(axis=1),
        tuple(notes),
    )


def _coded(data: Any, notes: list[str]) -> tuple[tuple[Any, ...], Array]:
    """Number the classes, −1 where missing."""
    values = [v.strip() if isinstance(v, str) else v for v in as_list(data)]
    odd = next((v for v in values if isinstance(v, list | tuple | dict | set | np.ndarray)), None)
    if odd is not None:
        raise ValueError(f"classes must hold one class per observation, but holds {quoted(odd)}")
    there = [v for v in values if not stands_for_missing(v)]
    if len(there) < len(values):
        missing = counted(len(values) - len(there), "observation")
        words = sorted({v for v in values if isinstance(v, str) and stands_for_missing(v)})
        such = f" (also {', '.join(map(quoted, words))})" if words else ""
        notes.append(f"Left out: {missing} without a class{such}.")
    names = sorted(dict.fromkeys(there), key=order_of)
    if len(names) > MANY_CLASSES:
        notes.append(
            f"There are {len(names)} classes of {len(there)} observations: or are they ids?"
        )
    code = {name: j for j, name in enumerate(names)}
    codes = [-1 if stands_for_missing(v) else code[v] for v in values]
    return tuple(names), np.array(codes, dtype=np.intp)
