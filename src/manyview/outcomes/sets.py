"""`gene_sets`: sets of features (pathways) that are higher or lower in a cluster as a whole.

Every cluster is compared with all other samples by the standardized difference z of mean ranks of each
feature, and a set by how far the mean z of its features lies from that of all others (a competitive test
as CAMERA is, Wu & Smyth 2012). The variance of this mean has two parts. First, features of a set are
correlated: with shuffled labels, the variance is u, that of the mean residual of the set (residuals
within clusters, standardized, minus their mean over all features of each sample). Second, clusters
differ in many features of all sets: the variance of z over all features, minus the variance v of a
single residual, is divided by the number of features in the set. With both parts, p ≤ .05 in 5% of
random cases (`benchmarks/calibration.py --only "gene sets"`); with one part it is not.
"""

from __future__ import annotations

import gzip
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata, t
from sklearn.base import BaseEstimator

from manyview._types import Array, Matrix
from manyview.views.views import as_views

from .align import counted, pandas, printed, quoted
from .chance import adjusted
from .mark import (
    LEAST_MEMBERS,
    fitted_without,
    groups_of_views,
    matched_clusters,
    per_total,
    view_kind,
)

#: What ids look like, the most special first.
ID_KINDS = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("Ensembl genes", r"ENS[A-Z]*G\d{6,}(\.\d+)?"),
        ("Ensembl transcripts or proteins", r"ENS[A-Z]*[TP]\d{6,}(\.\d+)?"),
        ("RefSeq ids", r"[NX][MRP]_\d+(\.\d+)?"),
        ("methylation probes", r"c[gh][.\d]\w+"),
        ("array probes", r"\d+(_[a-z]+)*_at|ILMN_\d+|A_\d+_P\d+"),
        ("Entrez ids", r"\d+"),
        ("symbol|Entrez id", r"[^|]+\|\d+"),
        ("gene symbols", r"[A-Za-z][\w.\-]*"),
    )
)
#: How ids may be written differently: a note, and what to compare instead.
SPELLINGS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("", str),
    ("without the version of Ensembl ids", lambda name: re.sub(r"^(ENS\w+)\.\d+$", r"\1", name)),
    ("by the part before “|”", lambda name: name.split("|")[0]),
    ("by the part after “|”", lambda name: name.split("|")[-1]),
    ("in capital letters, which also joins the symbols of mouse and man", str.upper),
)
#: Entries ranked at a time, and samples by which correlation is measured.
BLOCK, MOST_RESIDUALS = 2_000_000, 2000
#: Features named for each set.
LEADING = 8


def read_gmt(path: str | os.PathLike[str]) -> dict[str, list[str]]:
    """Read gene sets: a line per set of name, description and genes, with tabs between."""
    file, sets = Path(path), dict[str, list[str]]()
    opened = gzip.open if file.suffix == ".gz" else open
    try:
        with opened(file, "rt", encoding="utf-8-sig") as lines:
            for i, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                name, *rest = (cell.strip() for cell in line.rstrip("\r\n").split("\t"))
                if len(rest) < 2:
                    raise ValueError(
                        f"line {i} of {file.name} has {counted(len(rest), 'tab')}: a GMT file has the name "
                        "of a set, its description and its genes, with tabs between"
                    )
                if name in sets:
                    raise ValueError(f"{file.name} has two sets named {quoted(name)}; rename one")
                sets[name] = list(dict.fromkeys(filter(None, rest[1:])))
    except UnicodeDecodeError:
        raise ValueError(
            f"{file.name} is no text file; gene sets are read from GMT files"
        ) from None
    if not sets:
        raise ValueError(f"{file.name} holds no gene set")
    return sets


@dataclass(frozen=True, eq=False)
class SetMembers:
    """Which features of a view are in which sets, of those sets that have enough of them."""

    names: tuple[str, ...]
    sizes: Array  #: genes of each set in the file
    members: Any  #: features × sets, sparse, 0 and 1
    note: str


def id_kind(names: Iterable[Any]) -> str:
    """Say what ids are, with an example: "gene symbols such as 'TP53'"."""
    texts = [str(name) for name in names][:1000]
    found = [next((kind for kind, p in ID_KINDS if p.fullmatch(x)), "names") for x in texts]
    common = Counter(found).most_common(1)[0][0]
    return f"{common} such as {quoted(texts[found.index(common)])}"


def match_sets(
    sets: Any, features: Mapping[str, Any], min_size: int = 10, max_size: int = 500
) -> dict[str, SetMembers]:
    """Find the features of every view that are in the sets; a ValueError if no view has any.

    ``sets`` is the path of a GMT file, or a dict of name → genes. Views of other ids are left out.
    """
    if not isinstance(sets, Mapping):
        sets = read_gmt(sets)
    if not 1 <= min_size <= max_size:
        raise ValueError(f"min_size must lie between 1 and max_size={max_size}, got {min_size}")
    listed = {str(name): list(dict.fromkeys(map(str, genes))) for name, genes in sets.items()}
    genes = list(dict.fromkeys(gene for own in listed.values() for gene in own))
    if not genes:
        raise ValueError("the gene sets are empty; pass a GMT file or a dict of name → genes")
    found, seen = {}, []
    for view, names in features.items():
        texts = [str(name) for name in names]
        shared = [len({write(x) for x in texts} & {*map(write, genes)}) for _, write in SPELLINGS]
        best = int(np.argmax(shared))
        how, write = SPELLINGS[best]
        if not shared[best]:
            seen.append(f"{quoted(view)} has {id_kind(texts)}" if texts else "")
            continue
        rows: dict[str, list[int]] = {}
        for j, name in enumerate(texts):
            rows.setdefault(write(name), []).append(j)
        own = [{j for gene in part for j in rows.get(write(gene), ())} for part in listed.values()]
        fits = [s for s, places in enumerate(own) if min_size <= len(places) <= max_size]
        note = (
            f"View {quoted(view)}: {shared[best]} of {len(genes)} genes of the sets are among its "
            f"{len(texts)} features{f' ({how})' if how else ''}; {len(fits)} of {len(listed)} sets have "
            f"{min_size} to {max_size} of them and are tested."
        )
        if not fits:
            seen.append(note)
            continue
        entries = [(j, c) for c, s in enumerate(fits) for j in sorted(own[s])]
        at = tuple(np.array(entries).T)
        members = sp.csr_array((np.ones(len(entries)), at), shape=(len(texts), len(fits)))
        chosen = [list(listed)[s] for s in fits]
        sizes = np.array([len(listed[name]) for name in chosen])
        found[view] = SetMembers(tuple(chosen), sizes, members, note)
    if not found:
        raise ValueError(
            f"no gene set can be tested: the sets hold {id_kind(genes)}; "
            f"{'; '.join(filter(None, seen)).rstrip('.')}. Use a GMT file of the same kind of ids, or "
            f"rename the features; min_size is {min_size} features per set"
        )
    return found


@dataclass(frozen=True, eq=False)
class GeneSets:
    """What `gene_sets` found.

    Attributes
    ----------
    clusters : tuple
    full_table : DataFrame
        One row per view, cluster and set: genes in the file (``size``) and in the view (``n_features``),
        direction, effect (mean rank-biserial correlation of its features less that of all others), p and q
        (Benjamini–Hochberg over the sets and clusters of the view), and the leading features.
    left_view_out : bool
        Whether every view was tested on clusters found without it.
    notes : tuple of str
    """

    clusters: tuple[Any, ...]
    full_table: Any
    left_view_out: bool
    notes: tuple[str, ...]

    @property
    def q_name(self) -> str:
        return "q_value" if self.left_view_out else "q_descriptive"

    def top(self, n: int = 10, *, max_q: float | None = 0.05) -> Any:
        """Return the ``n`` sets of smallest q of every cluster and view."""
        table = self.full_table
        table = table if max_q is None else table[table[self.q_name] <= max_q]
        order = table.assign(size_of_effect=-table["effect"].abs())
        order = order.sort_values([self.q_name, "size_of_effect"], kind="stable")
        first = order.groupby(["view", "cluster"], sort=False).head(n).index
        return table.loc[sorted(first)].reset_index(drop=True)

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name: gene_sets."""
        return {"gene_sets": self.full_table}

    def __repr__(self) -> str:
        n = int((self.full_table[self.q_name] <= 0.05).sum())
        shown = ["cluster", "view", "set", "n_features", "direction", "effect", self.q_name]
        lines = [
            f"Gene sets of {len(self.clusters)} clusters: {n} of {len(self.full_table)} pairs of set and "
            "cluster with q ≤ 0.05",
            printed(self.top(3)[shown]),
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


DESCRIPTIVE = (
    "The same data found the clusters, so p- and q-values are descriptive. leave_view_out=True tests every "
    "view on clusters found without it."
)
COMPETITIVE = (
    "A set is compared with all other features of its view: where the view holds a choice of features, "
    "such as the most variable ones, enrichment is relative to these."
)


def gene_sets(
    labels: Any,
    views: Any,
    sets: Any,
    *,
    ids: Any = None,
    kinds: Mapping[str, str] | None = None,
    leave_view_out: bool = False,
    min_size: int = 10,
    max_size: int = 500,
) -> GeneSets:
    """Find the gene sets (pathways) that are higher or lower in a cluster.

    Each cluster is compared with all others, and a set with all other features of its view (as in
    CAMERA). The correlation of the features within clusters is taken into account: if clusters are
    random, p ≤ 0.05 in 5% of the cases, also for correlated features (``benchmarks/calibration.py``).
    Only ranks are used, so units and monotone transformations do not matter.

    Parameters
    ----------
    labels : fitted model, array-like, pandas Series, or dict of id → label
        −1, None and NaN are left out.
    views : as `markers` takes them
        Views with features named like the genes are tested; the others are ignored.
    sets : path of a GMT file (also .gz), or dict of name → genes
        Ids may differ in the version of Ensembl ids, in “|”, or in capital letters.
    ids, kinds : as `markers` takes them
    leave_view_out : bool, default=False
        Test each view on clusters found without it, so that p-values are valid. Needs a fitted model.
    min_size, max_size : int, default=10 and 500
        Sets with fewer or more features in the view are left out.

    Returns
    -------
    GeneSets

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from manyview.outcomes import gene_sets
    >>> X = np.random.default_rng(0).normal(size=(60, 200))
    >>> X[:20, :15] += 1
    >>> rna = pd.DataFrame(X, columns=[f"G{j}" for j in range(200)])
    >>> sets = {"up": rna.columns[:15], "other": rna.columns[100:120]}
    >>> found = gene_sets([0] * 20 + [1] * 40, {"rna": rna}, sets)
    >>> found.top(1)[["cluster", "set", "direction"]].values.tolist()
    [[0, 'up', 'up'], [1, 'up', 'down']]
    """
    split = labels.get_params().get("views") if isinstance(labels, BaseEstimator) else None
    given = as_views(views, split, allow_negative=True, allow_missing=True, caller="gene_sets")
    named = {
        name: range(m) if own is None else own
        for name, m, own in zip(given.names, given.n_features, given.feature_names, strict=True)
    }
    found = match_sets(sets, named, min_size, max_size)
    notes: list[str] = []
    groups, rows = groups_of_views(labels, given, ids, notes)
    if len(groups.names) < 2:
        raise ValueError("there is one cluster only; testing gene sets needs two or more")
    parts = []
    for name, chosen in found.items():
        own, here, s = groups, rows, given.names.index(name)
        if leave_view_out:
            new = fitted_without(labels, given, s, len(groups.names))
            own, here, agreement = matched_clusters(new, groups, rows)
            notes.append(
                f"Clusters found without view {quoted(name)} agree with those of all views by an adjusted "
                f"Rand index of {agreement:.2f}."
            )
        X = given.matrices[s][here]
        if not sp.issparse(X):  # samples that lack the view
            lacks = np.isnan(X).all(axis=1)
            X, own = X[~lacks], own.only(~lacks)
        X = per_total(X) if view_kind(X, name, (kinds or {}).get(name)) == "counts" else X
        tests = set_tests(X, own.codes, len(groups.names), chosen.members)
        notes.append(chosen.note)
        features = np.array(list(map(str, named[name])), dtype=object)
        part = _table(tests, chosen, groups.names, features)
        part.insert(1, "view", name)
        part.insert(8, "q_value", adjusted(part["p_value"].to_numpy(float)))
        parts.append(part)
    table = pandas().concat(parts, ignore_index=True)
    if not leave_view_out:
        table = table.rename(columns={"p_value": "p_descriptive", "q_value": "q_descriptive"})
        notes.append(DESCRIPTIVE)
    return GeneSets(groups.names, table, leave_view_out, (*notes, COMPETITIVE))


def set_tests(X: Matrix, codes: Array, k: int, members: Any) -> tuple[Array, Array, Array, Array]:
    """Test sets (features × sets) of the columns of X in every cluster.

    Returns p-values and effects (clusters × sets), features of each set that vary, and z (clusters ×
    features).
    """
    n, m = X.shape
    # Members of clusters that are not tested (−1) are a group of their own.
    groups = (codes[:, None] == np.arange(-1, k)).astype(float)
    groups = groups[:, groups.any(axis=0) | (np.arange(-1, k) >= 0)]
    size, own = groups.sum(axis=0)[-k:], groups[:, -k:]
    freedom = n - int((groups.sum(axis=0) > 0).sum())
    # Correlation needs no more than some samples, drawn from all clusters alike.
    some = np.random.default_rng(0).permutation(n)[:MOST_RESIDUALS]
    z, biserial, spread = np.zeros((k, m)), np.zeros((k, m)), np.zeros(m)
    scores, middle = np.zeros((len(some), members.shape[1])), np.zeros(len(some))
    squares = 0.0
    width = max(1, BLOCK // max(n, 1))
    for start in range(0, m, width):
        part = slice(start, start + width)
        block = X[:, part]
        block = np.asarray(block.toarray() if sp.issparse(block) else block, dtype=float)
        there = ~np.isnan(block)
        ranks = rankdata(block, axis=0, nan_policy="omit" if not there.all() else "propagate")
        count = there.sum(axis=0)
        ranks = np.where(there, ranks - (count + 1) / 2, 0.0)
        each = groups.T @ there
        means = (groups.T @ ranks) / np.maximum(each, 1)
        residual = np.where(there, ranks - groups @ means, 0.0)
        left = np.maximum(count - (each > 0).sum(axis=0), 1)
        sd = np.sqrt((residual**2).sum(axis=0) / left)
        varies = sd > 1e-9 * np.maximum(count, 1)
        inside, others = each[-k:], count - each[-k:]
        with np.errstate(divide="ignore", invalid="ignore"):
            total = own.T @ ranks  # the ranks of all sum to zero
            gap = total / inside + total / others
            value = gap / sd / np.sqrt(1 / inside + 1 / others)
        fine = varies & (inside > 0) & (others > 0)
        z[:, part], biserial[:, part] = np.where(fine, value, 0), np.where(fine, 2 * gap / count, 0)
        spread[part] = varies
        residual = np.divide(residual, sd, out=np.zeros_like(residual), where=varies)[some]
        scores += residual @ members[part]
        middle += residual.sum(axis=1)
        squares += float((residual**2).sum())
    informative = spread > 0
    total, inside = informative.sum(), informative @ members
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = scores / inside - (middle / total)[:, None]
        # Of the variance 1 of a residual, this much is seen where values are missing.
        seen = squares / total / len(some)
        u = (scores**2).mean(axis=0) / seen
        v = 1 - ((middle / total) ** 2).mean() / seen
        middle_z = z.sum(axis=1, keepdims=True) / total  # z is 0 where a feature does not vary
        centered = np.where(informative, z - middle_z, 0)
        mean = (centered @ members) / inside
        # The variance of all z around the means of the set and of all others; beyond v, features differ.
        away = mean**2 * inside * total / (total - inside)
        pooled = ((centered**2).sum(axis=1, keepdims=True) - away) / (total - 2)
        differ = np.maximum(pooled - v, 0) * (1 / inside - 1 / total)
        statistic = mean / np.sqrt(u + differ)
        p = 2 * t.sf(np.abs(statistic), max(freedom, 1))
        effect = (biserial @ members) / inside
        others = (biserial.sum(axis=1, keepdims=True) - biserial @ members) / (total - inside)
    tested = (size >= LEAST_MEMBERS)[:, None] & (inside > 1) & (inside < total) & (freedom > 0)
    return np.where(tested, p, np.nan), effect - others, inside, z


def _table(tests: Any, chosen: SetMembers, clusters: Sequence[Any], features: Array) -> Any:
    p, effect, inside, z = tests
    columns = chosen.members.tocsc()
    own = [columns.indices[a:b] for a, b in zip(columns.indptr, columns.indptr[1:], strict=False)]
    rows = []
    for k, cluster in enumerate(clusters):
        for s, name in enumerate(chosen.names):
            sign = -1 if effect[k, s] < 0 else 1
            first = own[s][np.argsort(-sign * z[k, own[s]], kind="stable")][:LEADING]
            leading = ", ".join(features[j] for j in first if sign * z[k, j] > 0)
            direction = "down" if sign < 0 else "up"
            rows.append(
                (cluster, name, int(chosen.sizes[s]), int(inside[s]), direction, effect[k, s], p[k, s],
                 leading)
            )  # fmt: skip
    heads = ["cluster", "set", "size", "n_features", "direction", "effect", "p_value", "leading"]
    return pandas().DataFrame(rows, columns=heads)
