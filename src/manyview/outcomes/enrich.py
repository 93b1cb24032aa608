"""`enrichment` and `crosstab`: clusters against clinical columns and against known classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import chi2, random_table, rankdata
from scipy.stats.contingency import expected_freq
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from manyview._labels import as_list
from manyview._types import Array, Seed

from .align import (
    NESTED,
    Groups,
    coded,
    counted,
    frame,
    match,
    pandas,
    printed,
    quoted,
    read_single,
    read_table,
    short,
)
from .chance import adjusted, batches, fisher, on_grid, rounds, staged_p
from .columns import (
    Column,
    is_technical,
    may_be_codes,
    read_column,
    read_levels,
    stands_for_missing,
)
from .mark import rank_tests

#: More classes than this are unlikely to be classes.
MANY_CLASSES = 100


# --- tests of one column ---------------------------------------------------------------------------


class Association(NamedTuple):
    """A test of independence.

    Attributes
    ----------
    test : str
        Its name; "–" if none was made.
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

    test: str = "–"
    statistic: float = np.nan
    p_value: float = np.nan
    permutations: int = 0
    effect: float = np.nan
    effect_name: str = "–"
    reason: str = ""


ONE_VALUE, ONE_CLUSTER = "every value is the same", "fewer than two clusters have values"


def of_counts(counts: Array, permutations: int, rng: np.random.Generator) -> Association:
    """Test a table of clusters × levels: Fisher's exact test of 2 × 2, else Pearson's χ², permuted."""
    table = counts[counts.sum(axis=1) > 0][:, counts.sum(axis=0) > 0]
    (r, c), n = table.shape, table.sum()
    if r < 2 or c < 2:
        return Association(reason=ONE_VALUE if c < 2 else ONE_CLUSTER)
    expected = expected_freq(table)

    def chi_square(tables: Array) -> Array:
        return ((tables - expected) ** 2 / expected).sum(axis=(-2, -1))

    statistic = float(chi_square(table))
    # Cramér's V, corrected for bias (Bergsma 2013).
    phi = max(0.0, statistic / n - (r - 1) * (c - 1) / (n - 1))
    least = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    effect = float(min(1.0, np.sqrt(phi / least))) if least > 0 else np.nan
    test, drawn = "χ²", 0
    if table.shape == (2, 2):
        test, (size, marked) = "Fisher's exact", (int(table[0].sum()), int(table[:, 0].sum()))
        p = float(fisher(int(n), marked, size)[table[0, 0]])
    elif permutations:
        test = "χ², permuted"
        p, drawn = _among_tables(table, chi_square, permutations, rng)
    else:
        p = float(chi2.sf(statistic, (r - 1) * (c - 1)))
    return Association(test, statistic, p, drawn, effect, "Cramér's V")


def of_numbers(
    values: Array, codes: Array, permutations: int, rng: np.random.Generator
) -> Association:
    """Test numbers or ordered levels by ranks: Mann–Whitney of two clusters, else Kruskal–Wallis.

    The p-value of two clusters is that of `markers`; of more it comes from permuted labels. Ranks
    are put on the same grid for both, so that one draw is one table of clusters × grid points.
    """
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes)
    n, k = len(values), len(sizes)
    if k < 2 or len(np.unique(values)) < 2:
        return Association(reason=ONE_CLUSTER if len(np.unique(values)) > 1 else ONE_VALUE)
    ranks = rankdata(values)
    own = np.unique(ranks)
    grid = on_grid(ranks, own[0], np.diff(own).max(), n).astype(np.intp)

    def kruskal(sums: Array, spread: float) -> Array:
        return (n - 1) / spread * np.sum(sums**2 / sizes, axis=-1)

    centered = ranks - (n + 1) / 2
    statistic = float(kruskal(np.bincount(codes, centered), np.sum(centered**2)))
    # The share of the ranks' variance between clusters, less what K clusters take by chance.
    effect = max(0.0, (statistic - k + 1) / (n - k)) if n > k else np.nan
    test, drawn = "Kruskal–Wallis", 0
    if k == 2:
        test, p = "Mann–Whitney", float(rank_tests(values[:, None], codes, 2).p_value[0, 0])
    elif permutations:
        points = np.arange(grid.max() + 1.0) - grid.mean()
        table = np.zeros((k, len(points)), dtype=np.int64)
        np.add.at(table, (codes, grid), 1)
        spread = float(table.sum(axis=0) @ points**2)
        test = "Kruskal–Wallis, permuted"
        p, drawn = _among_tables(
            table, lambda tables: kruskal(tables @ points, spread), permutations, rng
        )
    else:
        p = float(chi2.sf(statistic, k - 1))
    return Association(test, statistic, p, drawn, effect, "rank η²")


def _among_tables(
    table: Array, statistic: Callable[[Array], Array], permutations: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Compare a table with those of shuffled labels: random tables of the same margins."""
    margins = random_table(table.sum(axis=1), table.sum(axis=0))

    def draw(total: int) -> Array:
        sizes = batches(total, table.size)
        return np.concatenate([statistic(margins.rvs(b, random_state=rng)) for b in sizes])

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


# --- clinical columns ------------------------------------------------------------------------------

#: Clusters follow a column if the test says so at this level, and Cramér's V is at least so large:
#: Cohen's medium effect for a technical column; for any other, nearly one level to a cluster.
LEVEL, TECHNICAL, ANY = 0.01, 0.3, 0.8


class Followed(NamedTuple):
    """A categorical column that the clusters follow.

    Attributes
    ----------
    column : str
    technical : bool
        Its heading says that it is a batch, a site, a plate, …
    effect : float
        Cramér's V, corrected for bias.
    p_value : float
    marked : str
        The cluster and the level that go together most.
    """

    column: str
    technical: bool
    effect: float
    p_value: float
    marked: str

    @property
    def holds(self) -> bool:
        """Whether the association is there, and large."""
        least = TECHNICAL if self.technical else ANY
        return self.effect >= least and self.p_value <= LEVEL

    def sentence(self, remedy: str, adjusted: bool = False) -> str:
        """What was found, what it means, and what to do; ``adjusted``: its effect was removed before."""
        if not self.technical:
            return (
                f"The clusters nearly coincide with the column “{self.column}” (Cramér's V "
                f"{self.effect:.2f}, where 1 is identical). If it is biological, such as a known subtype, "
                f"the clusters agree with it. If it is technical, such as a batch, remove it. {remedy}"
            )
        found = (
            f"The clusters follow “{self.column}” (Cramér's V {self.effect:.2f}, where 0 is none and 1 is "
            f"complete; p {'=' if self.p_value >= 1e-4 else '<'} {max(self.p_value, 1e-4):.2g}; cluster "
            f"{self.marked}). They may reflect how samples were measured, not how they differ. High "
            "stability does not rule this out: a batch effect returns in every refit. "
        )
        if adjusted:
            return found + (
                f"Its effect was removed before the fit. Perhaps some clusters occur in only one level of "
                f"“{self.column}”, or the effect differs between clusters: cluster each level alone, and "
                "compare."
            )
        return found + remedy


@dataclass(frozen=True, eq=False)
class Enrichment:
    """What `enrichment` found.

    Attributes
    ----------
    clusters : tuple
    sizes : ndarray (K,)
    table : DataFrame
        One row per column: kind, test, p, q, effect size, and where it is most marked.
    summary : DataFrame
        The table of a paper: counts and shares, or median and quartiles, by cluster.
    cells : DataFrame
        One row per column, cluster and level, in numbers, for drawing and for CSV. ``residual`` is a
        count, or for numbers the mean rank, less what is expected, in units of its deviation: beyond
        ±3 is marked.
    notes : tuple of str
    followed : tuple of Followed
        Categories that the clusters follow: technical columns (batch, site, plate) come first. Columns
        of few whole numbers, such as site 1, 2, 3, are compared as levels.
    """

    clusters: tuple[Any, ...]
    sizes: Array
    table: Any
    summary: Any
    cells: Any
    notes: tuple[str, ...]
    followed: tuple[Followed, ...]

    def significant(self, level: float = 0.05) -> tuple[str, ...]:
        """Return the columns with a q-value of at most ``level``: smallest first, then largest effect.

        Parameters
        ----------
        level : float, default=0.05

        Returns
        -------
        tuple of str
        """
        found = self.table[self.table["q_value"] <= level]
        return tuple(found.sort_values(["q_value", "effect"], ascending=[True, False])["column"])

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: columns, summary, cells."""
        return {"columns": self.table, "summary": self.summary, "cells": self.cells}

    def __repr__(self) -> str:
        shown = ["column", "kind", "n", "test", "p_value", "q_value", "effect", "most_marked"]
        remedy = "Fit again with RobustWMNMF(…).fit(views, batch=clinical[{0!r}])."
        notes = zip(self.table["column"], self.table["note"], strict=True)
        return "\n".join(
            [
                *(found.sentence(remedy.format(found.column)) for found in self.followed),
                f"{len(self.table)} clinical columns by {len(self.clusters)} clusters; q over columns "
                "by Benjamini–Hochberg",
                printed(self.table[shown]),
                *(f"{quoted(name)}: {note}" for name, note in notes if note),
                *(f"Note: {note}" for note in self.notes),
            ]
        )


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

    The values of a column decide its kind and its test: categories by Fisher's exact test (2 × 2) or
    Pearson's χ², numbers and ordered levels by ranks (Mann–Whitney for two clusters, Kruskal–Wallis for
    more). The p-values of χ² and Kruskal–Wallis come from permuted labels. If clusters do not depend on a
    column, P(p ≤ a) ≤ a, also with ties. Dates, free text, mixtures and constant columns are not tested,
    and the result says why.

    Parameters
    ----------
    labels : array-like, pandas Series, dict of id → label, or fitted model
        One label per sample; −1, None and NaN are left out.
    clinical : DataFrame (pandas or polars) or dict of columns
        Missing values are left out column by column. Texts such as "NA", "unknown" or
        "[Not Available]" are treated as missing.
    ids : sequence, optional
        Ids of the labels. If labels and table have ids they are matched by id, otherwise by position.
    kinds : dict of column → kind, optional
        "number", "ordered" or "category", or the list of levels in order, to correct the kind that was
        recognized.
    permutations : int, optional
        By default 9,999, or 499 if these already show that p is above 0.05. 0: p-values of the χ²
        distribution, which are too small for small counts.
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
    given = read_table("clinical", clinical)
    names = list(given.columns)
    unknown = [name for name in kinds or {} if name not in names]
    if unknown:
        raise ValueError(
            f"kinds names {quoted(unknown[0])}, which is no column of clinical; the columns are "
            f"{', '.join(map(quoted, names[:20]))}"
        )
    if not names:
        raise ValueError("clinical has no columns; pass a table with one column per variable")
    matched = match(labels, [given], ids)
    here = matched.present[0]
    groups = matched.groups.only(here)
    rng = np.random.default_rng(random_state)
    draws = rounds(permutations, 1)  # tables are drawn as fast for any number of samples
    rows, cells, summary, codes = [], [], [], []
    for name, data in matched.tables[0].items():
        levels = None if name in (kinds or {}) else read_levels(name, data)
        column = (levels or read_column(name, data, (kinds or {}).get(name))).only(here)
        if name not in (kinds or {}) and may_be_codes(column):
            codes.append(_ByCluster(read_column(name, data, "category").only(here), groups))
        described = _ByCluster(column, groups)
        rows.append(described.row(draws, rng))
        cells += described.cells
        summary += described.summary
    # Codes are tested last, so that the permutations of all columns stay the same.
    followed = [
        Followed(
            row["column"],
            is_technical(row["column"]),
            row["effect"],
            row["p_value"],
            row["most_marked"],
        )
        for row in (*rows, *(described.row(draws, rng) for described in codes))
        if row["kind"] == "category"
    ]
    followed.sort(key=lambda f: (not f.technical, -f.effect))
    table = pandas().DataFrame(rows)
    table.insert(7, "q_value", adjusted(table["p_value"].to_numpy()))
    heads = ["column", "cluster", "level", "count", "share", "residual"]
    heads += ["lower_quartile", "median", "upper_quartile"]
    shown = [f"cluster {name}" for name in groups.names]
    if len(set(shown)) < len(shown):  # 1 and "1"
        shown = [f"cluster {name!r}" for name in groups.names]
    whole = pandas().DataFrame(summary, columns=["column", "level", *shown, "all"])
    tested = whole["level"] != "missing"
    for name in ("p_value", "q_value"):
        whole[name] = whole["column"].map(table.set_index("column")[name]).where(tested)
    cells = pandas().DataFrame(cells, columns=heads)
    notes, found = tuple(matched.notes), tuple(f for f in followed if f.holds)
    return Enrichment(groups.names, groups.sizes, table, whole, cells, notes, found)


class _ByCluster:
    """One column, described by cluster and tested."""

    def __init__(self, column: Column, groups: Groups):
        self.column, self.clusters, k = column, groups.names, len(groups.names)
        there = ~np.isnan(column.values)
        self.values, self.codes = column.values[there], groups.codes[there]
        self.missing = np.bincount(groups.codes[column.absent], minlength=k)
        self.cells: list[tuple[Any, ...]] = []
        self.summary: list[list[Any]] = []
        self.marked = "–"  #: where the residual is largest
        if column.levels:
            self._describe_levels(k)
        elif column.kind is not None:
            self._describe_numbers(k, groups.sizes - self.missing)
        if self.missing.any():
            self._add_line("missing", [str(m) for m in (*self.missing, self.missing.sum())])

    def _add_line(self, level: str, texts: list[str]) -> None:
        self.summary.append([self.column.name, level, *texts])

    def _describe_levels(self, k: int) -> None:
        name, levels = self.column.name, self.column.levels
        self.counts = counts = counted_pairs(self.codes, self.values, k, len(levels))
        whole = np.vstack([counts, counts.sum(axis=0)])
        shares = whole / np.maximum(whole.sum(axis=1, keepdims=True), 1)
        residual = residuals(counts)
        for j, level in enumerate(levels):
            texts = [f"{n} ({s:.0%})" for n, s in zip(whole[:, j], shares[:, j], strict=True)]
            self._add_line(str(level), texts)
        for c, cluster in enumerate(self.clusters):
            for j, level in enumerate(levels):
                described = counts[c, j], shares[c, j], residual[c, j]
                self.cells.append((name, cluster, level, *described, *(np.nan,) * 3))
        c, j = divmod(int(np.argmax(residual)), len(levels))
        own, all_ = (f"{shares[row, j]:.0%}" for row in (c, -1))
        self.marked = f"{short(self.clusters[c])}: {short(levels[j])} {own} (all {all_})"

    def _describe_numbers(self, k: int, sizes: Array) -> None:
        parts = [*(self.values[self.codes == c] for c in range(k)), self.values]
        gap = [np.nan] * 3
        quartiles = np.array([np.percentile(v, [25, 50, 75]) if len(v) else gap for v in parts])
        residual = rank_residuals(self.values, self.codes, k)
        texts = ["–" if np.isnan(middle) else f"{middle:.3g} [{low:.3g}, {high:.3g}]"
                 for low, middle, high in quartiles]  # fmt: skip
        self._add_line("median [quartiles]", texts)
        for c, cluster in enumerate(self.clusters):
            described = sizes[c], np.nan, residual[c], *quartiles[c]
            self.cells.append((self.column.name, cluster, None, *described))
        c = int(np.argmax(np.abs(residual)))
        own, all_ = (f"{quartiles[row, 1]:.3g}" for row in (c, -1))
        self.marked = f"{short(self.clusters[c])}: median {own} (all {all_})"

    def row(self, permutations: int, rng: np.random.Generator) -> dict[str, Any]:
        """Test the column; its row of the table."""
        column = self.column
        if column.kind is None:
            found = Association(reason=column.reason)
        elif column.kind == "category":
            found = of_counts(self.counts, permutations, rng)
        else:
            found = of_numbers(self.values, self.codes, permutations, rng)
        reason = f"not tested: {found.reason}" if found.reason else ""
        return {
            "column": column.name,
            "kind": column.kind or "–",
            "n": int((~column.absent).sum()),
            "missing": int(self.missing.sum()),
            "test": found.test,
            "statistic": found.statistic,
            "p_value": found.p_value,
            "effect": found.effect,
            "effect_name": found.effect_name,
            "permutations": found.permutations,
            "most_marked": "–" if np.isnan(found.p_value) else self.marked,
            "note": " ".join(filter(None, (reason, column.note))),
        }


def counted_pairs(rows: Array, columns: Array, k: int, m: int) -> Array:
    """Count pairs of codes in a table of k × m."""
    flat = rows * m + columns.astype(np.intp)
    return np.bincount(flat, minlength=k * m).reshape(k, m)


# --- known classes ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Crosstab:
    """What `crosstab` found.

    Attributes
    ----------
    clusters, classes : tuple
    counts : ndarray (clusters, classes)
    ari, nmi : float
        Adjusted Rand index and normalized mutual information of the two partitions.
    table : DataFrame
        One row per cluster, one column per class, then the size of the cluster, its commonest class
        (of several equally common ones the first) and the share of that.
    notes : tuple of str
    """

    clusters: tuple[Any, ...]
    classes: tuple[Any, ...]
    counts: Array
    ari: float
    nmi: float
    table: Any
    notes: tuple[str, ...]

    @property
    def n(self) -> int:
        """Samples with a cluster and a class."""
        return int(self.counts.sum())

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: crosstab."""
        return {"crosstab": self.table}

    def __repr__(self) -> str:
        head = (
            f"{len(self.clusters)} clusters by {len(self.classes)} classes of {self.n} samples: "
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
        One label per sample; −1, None and NaN are left out.
    classes : array-like or Series
        The known class of each sample; missing ones are ignored.
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
    2 clusters by 2 classes of 5 samples: ARI 0.167, NMI 0.433
     cluster  Basal  LumA  n majority  majority_share
           0      1     2  3     LumA           0.667
           1      2     0  2    Basal               1
    """
    matched = match(labels, [read_single("classes", classes)], ids)
    notes = matched.notes
    values = [v.strip() if isinstance(v, str) else v for v in as_list(matched.tables[0].iloc[:, 0])]
    for v in values:
        if isinstance(v, NESTED):
            raise ValueError(f"classes must hold one class per sample, but holds {quoted(v)}")
    known = np.array([not stands_for_missing(v) for v in values], dtype=bool)
    there = [v for v, here in zip(values, known.tolist(), strict=True) if here]
    if not there:
        raise ValueError("no sample has both a cluster and a class; nothing can be counted")
    if len(there) < len(values):
        missing = counted(len(values) - len(there), "sample")
        words = sorted({v for v in values if isinstance(v, str) and stands_for_missing(v)})
        such = f" (also {', '.join(map(quoted, words))})" if words else ""
        notes.append(f"Left out: {missing} without a class{such}.")
    codes, names = coded(there)
    if len(names) > MANY_CLASSES:
        notes.append(f"There are {len(names)} classes for {len(there)} samples; they may be ids.")
    groups = matched.groups.only(known).without_empty()
    counts = counted_pairs(groups.codes, codes, len(groups.names), len(names))
    most, sizes = counts.max(axis=1), counts.sum(axis=1)
    tied = (counts == most[:, None]).sum(axis=1) > 1
    if tied.any():
        which = ", ".join(quoted(groups.names[k]) for k in np.flatnonzero(tied))
        notes.append(f"Two or more classes are equally common in: {which}.")
    majority = [names[j] for j in counts.argmax(axis=1)]
    own = {"n": sizes, "majority": majority, "majority_share": most / sizes}
    heads = [str(name) for name in names]
    if len(set(heads)) < len(heads) or {"cluster", *own} & set(heads):
        heads = [f"class {name!r}" for name in names]
    columns = dict(zip(heads, counts.T, strict=True))
    table = frame({"cluster": groups.names, **columns, **own})
    ari = float(adjusted_rand_score(codes, groups.codes))
    nmi = float(normalized_mutual_info_score(codes, groups.codes))
    return Crosstab(groups.names, names, counts, ari, nmi, table, tuple(notes))
