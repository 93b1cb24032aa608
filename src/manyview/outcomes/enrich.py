"""`enrichment` and `crosstab`: clusters against clinical columns and against known classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2, random_table, rankdata
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from manyview._labels import as_list
from manyview._types import Array, Seed

from .batch import Followed, is_technical, read_levels
from .chance import adjusted, batches, fisher, on_grid, rounds, staged_p
from .columns import Column, read_column, stands_for_missing
from .held import (
    Groups,
    counted,
    frame,
    hold,
    hold_column,
    match,
    order_of,
    pandas,
    printed,
    quoted,
    short,
)
from .mark import rank_tests


@dataclass(frozen=True)
class Association:
    """A test of independence.

    Attributes
    ----------
    test : str
        Its name, empty if none was made.
    statistic, p_value : float
        NaN if none was made.
    permutations : int
        0 where the p-value is exact or asymptotic.
    effect : float
        From 0 (none) to 1, corrected for what chance alone gives.
    effect_name : str
    reason : str
        Why no test was made, or empty.
    """

    test: str
    statistic: float
    p_value: float
    permutations: int
    effect: float
    effect_name: str
    reason: str = ""


def untested(reason: str) -> Association:
    """Return the association of a column that cannot be tested."""
    return Association("", np.nan, np.nan, 0, np.nan, "", reason)


def of_counts(counts: Array, permutations: int, rng: np.random.Generator) -> Association:
    """Test a table of clusters × levels: Fisher's exact test of 2 × 2, else Pearson's χ², permuted."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    if reason := _too_little(*table.shape):
        return untested(reason)
    expected = table.sum(axis=1)[:, None] * table.sum(axis=0) / table.sum()

    def chi_square(tables: Array) -> Array:
        return ((tables - expected) ** 2 / expected).sum(axis=(-2, -1))

    statistic = float(chi_square(table))
    effect = _cramer(statistic, table)
    name = "Cramér's V"
    if table.shape == (2, 2):
        size, marked = int(table[0].sum()), int(table[:, 0].sum())
        p = float(fisher(int(table.sum()), marked, size)[table[0, 0]])
        return Association("Fisher's exact", statistic, p, 0, effect, name)
    if not permutations:
        degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
        p = float(chi2.sf(statistic, degrees))
        return Association("χ²", statistic, p, 0, effect, name)
    p, drawn = _among_tables(table, chi_square, permutations, rng)
    return Association("χ², permuted", statistic, p, drawn, effect, name)


def of_numbers(
    values: Array, codes: Array, permutations: int, rng: np.random.Generator
) -> Association:
    """Test numbers or ordered levels by ranks: Mann–Whitney of two clusters, else Kruskal–Wallis.

    The p-value of two clusters is that of `markers`; of more it comes from permuted labels. Ranks
    are put on the same grid for both, so that one draw is one table of clusters × grid points.
    """
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes)
    if reason := _too_little(len(sizes), len(np.unique(values))):
        return untested(reason)
    n, k = len(values), len(sizes)
    ranks = rankdata(values)
    own = np.unique(ranks)
    grid = on_grid(ranks, own[0], np.diff(own).max(), n).astype(np.intp)

    def kruskal(sums: Array, spread: float) -> Array:
        return (n - 1) / spread * np.sum(sums**2 / sizes, axis=-1)

    centered = ranks - (n + 1) / 2
    statistic = float(kruskal(np.bincount(codes, centered), np.sum(centered**2)))
    # The share of the ranks' variance between clusters, less what K clusters take by chance.
    effect = max(0.0, (statistic - k + 1) / (n - k)) if n > k else np.nan
    name = "rank η²"
    if k == 2:
        p = float(rank_tests(values[:, None], codes, 2).p_value[0, 0])
        return Association("Mann–Whitney", statistic, p, 0, effect, name)
    if not permutations:
        p = float(chi2.sf(statistic, k - 1))
        return Association("Kruskal–Wallis", statistic, p, 0, effect, name)
    points = np.arange(grid.max() + 1.0) - grid.mean()
    table = np.zeros((k, len(points)), dtype=np.int64)
    np.add.at(table, (codes, grid), 1)
    spread = float(table.sum(axis=0) @ points**2)
    p, drawn = _among_tables(
        table, lambda tables: kruskal(tables @ points, spread), permutations, rng
    )
    return Association("Kruskal–Wallis, permuted", statistic, p, drawn, effect, name)


def _among_tables(
    table: Array, statistic: Callable[[Array], Array], permutations: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Compare a table with those of shuffled labels: random tables of the same margins."""
    margins = random_table(table.sum(axis=1), table.sum(axis=0))

    def draw(total: int) -> Array:
        parts = [
            statistic(margins.rvs(size=b, random_state=rng)) for b in batches(total, table.size)
        ]
        return np.concatenate(parts)

    return staged_p(float(statistic(table)), draw, permutations)


def residuals(counts: Array) -> Array:
    """Return (observed − expected) in units of their deviation under independence (Haberman)."""
    total = counts.sum()
    rows, columns = counts.sum(axis=1)[:, None], counts.sum(axis=0)[None]
    expected = rows * columns / total
    spread = np.sqrt(expected * (1 - rows / total) * (1 - columns / total))
    return np.divide(counts - expected, spread, out=np.zeros(counts.shape), where=spread > 0)


def rank_residuals(values: Array, codes: Array, k: int) -> Array:
    """Return the mean rank of every cluster less that of all, in units of its deviation."""
    n, sizes = len(values), np.bincount(codes, minlength=k)
    ranks = rankdata(values) - (n + 1) / 2
    sums = np.bincount(codes, ranks, minlength=k)
    spread = np.sqrt(np.sum(ranks**2) / max(n - 1, 1) * sizes * (1 - sizes / max(n, 1)))
    return np.divide(sums, spread, out=np.zeros(k), where=spread > 0)


def _too_little(n_clusters: int, n_values: int) -> str:
    if n_values < 2:
        return "not tested: every value is the same"
    return "not tested: fewer than two clusters have values" if n_clusters < 2 else ""


def _cramer(statistic: float, table: Array) -> float:
    """Cramér's V, corrected for bias (Bergsma 2013)."""
    n = table.sum()
    r, c = table.shape
    phi = max(0.0, statistic / n - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(phi / least))) if least > 0 else np.nan


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
    def table(self) -> Any:
        """One row per cluster, one column per class, then size, majority and its share."""
        names = [str(name) for name in self.classes]
        own = {"cluster", "n", "majority", "majority_share"}
        if len(set(names)) < len(names) or own & set(names):
            names = [f"class {name!r}" for name in self.classes]
        return frame(
            {
                "cluster": self.clusters,
                **dict(zip(names, self.counts.T, strict=True)),
                "n": self.counts.sum(axis=1),
                "majority": self.majority,
                "majority_share": self.majority_share,
            }
        )

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: crosstab."""
        return {"crosstab": self.table}

    def __repr__(self) -> str:
        head = (
            f"{len(self.clusters)} clusters by {len(self.classes)} classes of {self.n} observations: "
            f"ARI {self.ari:.3f}, NMI {self.nmi:.3f}"
        )
        few = ["cluster", "n", "majority", "majority_share"]
        table = self.table if len(self.classes) <= 12 else self.table[few]
        return "\n".join([head, printed(table), *(f"Note: {note}" for note in self.notes)])


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
     cluster  Basal  LumA  n majority  majority_share
           0      1     2  3     LumA           0.667
           1      2     0  2    Basal               1
    """
    matched = match(labels, [hold_column("classes", classes)], ids)
    notes = matched.notes
    (column,) = matched.columns[0].values()
    values = [v.strip() if isinstance(v, str) else v for v in as_list(column)]
    for v in values:
        if isinstance(v, list | tuple | dict | set | np.ndarray):
            raise ValueError(f"classes must hold one class per observation, but holds {quoted(v)}")
    known = np.array([not stands_for_missing(v) for v in values], dtype=bool)
    there = [v for v, here in zip(values, known.tolist(), strict=True) if here]
    if not there:
        raise ValueError("no observation has both a cluster and a class; nothing can be counted")
    if len(there) < len(values):
        missing = counted(len(values) - len(there), "observation")
        words = sorted({v for v in values if isinstance(v, str) and stands_for_missing(v)})
        such = f" (also {', '.join(map(quoted, words))})" if words else ""
        notes.append(f"Left out: {missing} without a class{such}.")
    names = tuple(sorted(dict.fromkeys(there), key=order_of))
    if len(names) > MANY_CLASSES:
        notes.append(
            f"There are {len(names)} classes of {len(there)} observations: or are they ids?"
        )
    number = {name: j for j, name in enumerate(names)}
    codes = np.array([number[v] for v in there], dtype=np.intp)
    groups = matched.groups.only(known).without_empty()
    counts = _counts(codes, groups.codes, len(groups.names), len(names))
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


@dataclass(frozen=True, eq=False)
class ClinicalColumn:
    """One clinical column by cluster.

    Attributes
    ----------
    name : str
    kind : {"number", "ordered", "category"} or None
    n, missing : int
        Observations with a value, and without.
    missing_by_cluster : ndarray (K,)
    levels : tuple
        Of ordered columns and categories.
    counts : ndarray (K, levels) or None
    quartiles : ndarray (K + 1, 3) or None
        Of numbers: lower quartile, median, upper quartile of every cluster, and of all.
    residual : ndarray (K, levels) or (K,) or None
        Counts, or for numbers mean ranks, less what is expected, in units of their deviation.
    association : Association
    note : str
    """

    name: str
    kind: str | None
    n: int
    missing: int
    missing_by_cluster: Array
    levels: tuple[Any, ...]
    counts: Array | None
    quartiles: Array | None
    residual: Array | None
    association: Association
    note: str


@dataclass(frozen=True, eq=False)
class Enrichment:
    """What `enrichment` found.

    Attributes
    ----------
    clusters : tuple
    sizes : ndarray (K,)
    columns : tuple of ClinicalColumn
    q_value : ndarray
        P-values of the columns adjusted by Benjamini–Hochberg; NaN where not tested.
    notes : tuple of str
    """

    clusters: tuple[Any, ...]
    sizes: Array
    columns: tuple[ClinicalColumn, ...]
    q_value: Array
    notes: tuple[str, ...]

    def significant(self, level: float = 0.05) -> tuple[str, ...]:
        """Return the columns with a q-value of at most ``level``: smallest first, then largest effect.

        Parameters
        ----------
        level : float, default=0.05

        Returns
        -------
        tuple of str
        """
        effect = np.array([column.association.effect for column in self.columns])
        order = np.lexsort((-effect, self.q_value)).tolist()
        found = [j for j in order if self.q_value[j] <= level]
        return tuple(self.columns[j].name for j in found)

    @property
    def followed(self) -> tuple[Followed, ...]:
        """Categories that the clusters follow: technical columns (batch, site, plate) come first."""
        found = []
        for c in self.columns:
            if c.kind == "category":
                effect, p = float(c.association.effect), float(c.association.p_value)
                marked = self._most_marked(c)
                found.append(Followed(c.name, is_technical(c.name), effect, p, marked))
        found = [f for f in found if f.holds]
        return tuple(sorted(found, key=lambda f: (not f.technical, -f.effect)))

    @property
    def table(self) -> Any:
        """One row per column: kind, test, p, q, effect size, and where it is most marked."""
        return pandas().DataFrame(
            {
                "column": c.name,
                "kind": c.kind or "–",
                "n": c.n,
                "missing": c.missing,
                "test": c.association.test or "–",
                "statistic": c.association.statistic,
                "p_value": c.association.p_value,
                "q_value": q,
                "effect": c.association.effect,
                "effect_name": c.association.effect_name or "–",
                "permutations": c.association.permutations,
                "most_marked": self._most_marked(c),
                "note": " ".join(filter(None, (c.association.reason, c.note))),
            }
            for c, q in zip(self.columns, self.q_value.tolist(), strict=True)
        )

    @property
    def summary(self) -> Any:
        """The table of a paper: counts and shares, or median and quartiles, by cluster."""
        rows: list[list[Any]] = []
        for column, q in zip(self.columns, self.q_value.tolist(), strict=True):
            tail = [column.association.p_value, q]
            if column.counts is not None:
                table = np.vstack([column.counts, column.counts.sum(axis=0)])
                shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
                for j, level in enumerate(column.levels):
                    cells = [
                        f"{c} ({s:.0%})" for c, s in zip(table[:, j], shares[:, j], strict=True)
                    ]
                    rows.append([column.name, str(level), *cells, *tail])
            elif column.quartiles is not None:
                cells = [
                    "–" if np.isnan(middle) else f"{middle:.3g} [{low:.3g}, {high:.3g}]"
                    for low, middle, high in column.quartiles
                ]
                rows.append([column.name, "median [quartiles]", *cells, *tail])
            if column.missing:
                cells = [str(m) for m in (*column.missing_by_cluster, column.missing)]
                rows.append([column.name, "missing", *cells, np.nan, np.nan])
        names = [f"cluster {name}" for name in self.clusters]
        if len(set(names)) < len(names):  # 1 and "1"
            names = [f"cluster {name!r}" for name in self.clusters]
        heads = ["column", "level", *names, "all", "p_value", "q_value"]
        return pandas().DataFrame(rows, columns=heads)

    @property
    def cells(self) -> Any:
        """One row per column, cluster and level, in numbers, for drawing and for CSV.

        ``residual`` is a count, or for numbers the mean rank, less what is expected, in units of its
        deviation: beyond ±3 is marked.
        """
        heads = ["column", "cluster", "level", "count", "share", "residual"]
        heads += ["lower_quartile", "median", "upper_quartile"]
        rows: list[tuple[Any, ...]] = []
        for column in self.columns:
            for k, cluster in enumerate(self.clusters):
                if column.counts is not None and column.residual is not None:
                    own, z = column.counts[k], column.residual[k]
                    shares = own / max(own.sum(), 1)
                    for j, level in enumerate(column.levels):
                        rows.append(
                            (column.name, cluster, level, own[j], shares[j], z[j], *(np.nan,) * 3)
                        )
                elif column.quartiles is not None and column.residual is not None:
                    count = self.sizes[k] - column.missing_by_cluster[k]
                    z, three = column.residual[k], column.quartiles[k]
                    rows.append((column.name, cluster, None, count, np.nan, z, *three))
        return pandas().DataFrame(rows, columns=heads)

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: columns, summary, cells."""
        return {"columns": self.table, "summary": self.summary, "cells": self.cells}

    def __repr__(self) -> str:
        shown = ["column", "kind", "n", "test", "p_value", "q_value", "effect", "most_marked"]
        table = self.table
        remedy = "Fit again on mv.adjust(views, {{{0!r}: clinical[{0!r}]}}).views."
        notes = zip(table["column"], table["note"], strict=True)
        return "\n".join(
            [
                *(found.sentence(remedy.format(found.column)) for found in self.followed),
                f"{len(self.columns)} clinical columns by {len(self.clusters)} clusters; q over columns "
                "by Benjamini–Hochberg",
                printed(table[shown]),
                *(f"{quoted(name)}: {note}" for name, note in notes if note),
                *(f"Note: {note}" for note in self.notes),
            ]
        )

    def _most_marked(self, column: ClinicalColumn) -> str:
        if np.isnan(column.association.p_value) or column.residual is None:
            return "–"
        if column.counts is not None:
            k, j = divmod(int(np.argmax(column.residual)), len(column.levels))
            own, all_ = column.counts[k], column.counts.sum(axis=0)
            return (
                f"{short(self.clusters[k])}: {short(column.levels[j])} {own[j] / own.sum():.0%} "
                f"(all {all_[j] / all_.sum():.0%})"
            )
        assert column.quartiles is not None
        medians, whole = column.quartiles[:-1, 1], column.quartiles[-1, 1]
        k = int(np.argmax(np.abs(column.residual)))
        return f"{short(self.clusters[k])}: median {medians[k]:.3g} (all {whole:.3g})"


def enrichment(
    labels: Any,
    clinical: Any,
    *,
    ids: Any = None,
    kinds: Mapping[str, Any] | None = None,
    permutations: int | None = None,
    random_state: Seed = 0,
) -> Enrichment:
    """Test which clinical columns differ between clusters.

    Every column is typed by its values and tested by what suits it: categories by Fisher's exact
    test (2 × 2) or Pearson's χ², numbers and ordered levels by ranks (Mann–Whitney of two clusters,
    Kruskal–Wallis of more). The p-values of χ² and Kruskal–Wallis come from permuted labels. For
    clusters that have nothing to do with a column, P(p ≤ a) ≤ a, whatever its ties. Dates, free text,
    mixtures and constant columns are not tested, and the result says why.

    Parameters
    ----------
    labels : array-like, pandas Series, dict of id → label, or fitted model
        One label per observation; −1, None and NaN are left out.
    clinical : DataFrame (pandas or polars) or dict of columns
        Missing values are left out column by column. Texts such as "NA", "unknown" or
        "[Not Available]" count as missing.
    ids : sequence, optional
        Ids of the labels. Where labels and table have ids they are matched by them, otherwise by
        position.
    kinds : dict of column → kind, optional
        "number", "ordered" or "category", or the list of levels in order, where the kind found by
        itself is not the one meant.
    permutations : int, optional
        By default 9,999; 499 where they already show that p is above 0.05. 0: p-values of the χ²
        distribution, which are too small where counts are small.
    random_state : int, Generator or None, default=0

    Returns
    -------
    Enrichment

    Examples
    --------
    >>> from manyview.outcomes import enrichment
    >>> clinical = {"sex": ["m", "f"] * 10, "stage": ["I", "II"] * 5 + ["III", "IV"] * 5}
    >>> found = enrichment([0] * 10 + [1] * 10, clinical)
    >>> found.significant()
    ('stage',)
    """
    held = hold("clinical", clinical)
    unknown = [name for name in kinds or {} if name not in held.columns]
    if unknown:
        raise ValueError(
            f"kinds names {quoted(unknown[0])}, which is no column of clinical; the columns are "
            f"{', '.join(map(quoted, list(held.columns)[:20]))}"
        )
    if not held.columns:
        raise ValueError("clinical has no columns; pass a table with one column per variable")
    matched = match(labels, [held], ids)
    here = matched.present[0]
    groups = matched.groups.only(here)
    rng = np.random.default_rng(random_state)
    draws = rounds(permutations, 1)  # tables are drawn as fast for any number of observations
    columns = []
    for name, data in matched.columns[0].items():
        levels = None if name in (kinds or {}) else read_levels(name, data)
        column = levels or read_column(name, data, (kinds or {}).get(name))
        column = column.only(here)
        columns.append(_by_cluster(column, groups, draws, rng))
    p = np.array([column.association.p_value for column in columns])
    return Enrichment(groups.names, groups.sizes, tuple(columns), adjusted(p), tuple(matched.notes))


def _by_cluster(
    column: Column, groups: Groups, permutations: int, rng: np.random.Generator
) -> ClinicalColumn:
    """Describe and test one column."""
    there = ~np.isnan(column.values)
    values, codes, k = column.values[there], groups.codes[there], len(groups.names)
    lacking = np.bincount(groups.codes[column.absent], minlength=k)
    counts = quartiles = residual = None
    if column.levels:
        counts = _counts(values, codes, k, len(column.levels))
        residual = residuals(counts)
    elif column.kind is not None:
        parts = [*(values[codes == c] for c in range(k)), values]
        gap = [np.nan] * 3
        quartiles = np.array([np.percentile(v, [25, 50, 75]) if len(v) else gap for v in parts])
        residual = rank_residuals(values, codes, k)
    if column.kind is None:
        association = untested(column.reason)
    elif column.kind == "category" and counts is not None:
        association = of_counts(counts, permutations, rng)
    else:
        association = of_numbers(values, codes, permutations, rng)
    n, missing = int((~column.absent).sum()), int(lacking.sum())
    described = (counts, quartiles, residual, association, column.note)
    return ClinicalColumn(column.name, column.kind, n, missing, lacking, column.levels, *described)


def _counts(values: Array, codes: Array, k: int, levels: int) -> Array:
    flat = codes * levels + values.astype(np.intp)
    return np.bincount(flat, minlength=k * levels).reshape(k, levels)
