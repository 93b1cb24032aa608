"""What the methods of a comparison share: agreement, a consensus clustering, and clinical differences.

Without known classes nothing says which clustering is right, and no index of the data such as a silhouette
ranks methods: it rewards those that optimize the same distance. What can be said is how far methods agree,
how sure the consensus is of each sample, and how clusters differ in what no method has seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from manyview._types import Array
from manyview.app.run.meaning import Known, meaning
from manyview.labels import largest_first, shared_ari
from manyview.outcomes.align import frame, pandas
from manyview.outcomes.chance import adjusted

CONSENSUS = "consensus"
#: A consensus counts all pairs of samples.
MOST_SAMPLES = 5000


def typical(runs: Sequence[Array]) -> Array:
    """The run that agrees most with the other runs of its method; the first of equal ones."""
    shared = [sum(shared_ari(a, b) for b in runs) for a in runs]
    return runs[int(np.argmax(np.round(shared, 9)))]


def together(labels: Mapping[str, Sequence[Array]]) -> Array:
    """Share of the methods, and of the runs of each, that put two samples into one cluster.

    Runs in which one of them has no cluster (−1) do not count.
    """
    found: Array = np.zeros((), dtype=np.float32)
    count = found
    for runs in labels.values():
        for a in runs:
            both = np.multiply.outer(a >= 0, a >= 0)
            found = found + (both & (a[:, None] == a)) / np.float32(len(runs))
            count = count + both / np.float32(len(runs))
    return np.asarray(found / np.maximum(count, 1e-9), dtype=float)


def consensus(labels: Mapping[str, Sequence[Array]], n_clusters: int) -> tuple[Array, Array]:
    """Clusters by average linkage of how often samples are together, numbered by size; and the support of
    every sample: how often it is together with the others of its cluster, on average."""
    shared = together(labels)
    n = len(shared)
    away = 1 - shared
    np.fill_diagonal(away, 0)
    tree = linkage(squareform(np.maximum(away, 0), checks=False), "average")
    codes = largest_first(fcluster(tree, n_clusters, "maxclust") - 1)
    np.fill_diagonal(shared, 0)
    own = codes[:, None] == codes
    others = own.sum(axis=1) - 1
    total = (shared * own).sum(axis=1)
    return codes, np.divide(total, others, out=np.full(n, np.nan), where=others > 0)


def agreed(
    labels: Mapping[str, Sequence[Array]],
    fair: Sequence[str],
    n_clusters: int,
    ids: Sequence[Any],
    known: Known,
) -> tuple[dict[str, Any], list[str]]:
    """Tables by file name: agreement, consensus, clinical and clinical_columns; and notes.

    ``fair`` are the methods of the consensus: those that have not seen the classes.
    """
    chosen = {name: typical(runs) for name, runs in labels.items() if runs}
    voters = {name: labels[name] for name in fair if labels.get(name)}
    tables, notes = dict[str, Any](), list[str]()
    if len(voters) > 1 and len(ids) <= MOST_SAMPLES:
        own, support = consensus(voters, n_clusters)
        chosen[CONSENSUS] = own
        columns: dict[str, Any] = {"id": list(ids), "cluster": own, "support": support}
        columns |= {f"cluster:{name}": chosen[name] for name in labels if name in chosen}
        tables["consensus.csv"] = frame(columns)
    elif len(voters) > 1:
        notes.append(
            f"No consensus: with more than {MOST_SAMPLES} samples, counting all pairs takes too long."
        )
    if len(chosen) > 1:
        ari = {f"with:{a}": [shared_ari(x, y) for y in chosen.values()] for a, x in chosen.items()}
        tables["agreement.csv"] = frame({"method": list(chosen), **ari})
    if known.clinical and chosen:
        tables |= _clinical(chosen, ids, known, notes)
    return tables, notes


def _clinical(
    chosen: Mapping[str, Array], ids: Sequence[Any], known: Known, notes: list[str]
) -> dict[str, Any]:
    """Survival and clinical columns by method: the table of a paper, and every test."""
    rows, tests = [], []
    for method, codes in chosen.items():
        found = meaning(codes, [str(i) for i in ids], known)
        survival, clinical = (found.about[part] or {} for part in ("survival", "clinical"))
        notes += [f"{method}: {p['problem']}" for p in (survival, clinical) if "problem" in p]
        sizes = np.sort(np.bincount(codes[codes >= 0]))[::-1]
        row: dict[str, Any] = {"method": method, "clusters": len(sizes)}
        row["sizes"] = ", ".join(map(str, sizes))
        if known.time is not None:
            row["survival_p"] = survival.get("p_value")
            row["survival_p_adjusted"] = (survival.get("cox") or {}).get("p_value")
        columns = found.tables.get("clinical_tests.csv")
        if columns is not None:
            some = columns[columns["q_value"] <= 0.05].sort_values("q_value", kind="stable")
            row["clinical_columns"] = len(some)
            row["enriched"] = ", ".join(some["column"])
            tests.append(columns.assign(method=method))
        rows.append(row)
    table = pandas().DataFrame(rows)
    if known.time is not None:
        # Methods are tested on the same patients: with many, some p-value is small by chance.
        q = adjusted(table["survival_p"].to_numpy(float))
        table.insert(list(table).index("survival_p") + 1, "survival_q", q)
    tables = {"clinical.csv": table}
    if tests:
        wanted = ["method", "column", "kind", "n", "test", "p_value", "q_value", "effect",
                  "most_marked"]  # fmt: skip
        tables["clinical_columns.csv"] = pandas().concat(tests, ignore_index=True)[wanted]
    return tables
