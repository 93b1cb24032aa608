"""Are the p-values right? Random labels, tested by every test that `manyview.outcomes` offers.

    python benchmarks/calibration.py [--scale 10] [--only markers]

Labels are drawn without a look at the tested data, over designs of size, cluster share, zeros, ties,
missing values, censoring and covariates. Then P(p ≤ a) must be at most a; exact tests of few possible
outcomes stay below. The table has the shares of p ≤ .05, .01 and .001, and a "!" where one lies more
than four standard errors above. --scale draws that many times as much; the test suite runs a small
part (`tests/outcomes/test_calibration.py`). The exit status is 1 if a "!" was printed.
"""

import argparse
import os
from itertools import product

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.cluster import KMeans

from manyview.baselines import ConcatViews
from manyview.outcomes import enrichment, gene_sets, markers, survival

LEVELS = (0.05, 0.01, 0.001)


def labels_of(rng, n, share, k=3):
    """A cluster of the given share (three members at least), and the rest in equal parts."""
    small = max(3, round(share * n))
    return rng.permutation(np.r_[np.zeros(small, int), 1 + np.arange(n - small) % (k - 1)])


def features(rng, n, width, zeros, ties):
    """Columns with a share of ``zeros``; the other values are all different, counts, or signs."""
    X = rng.gamma(1.0, size=(n, width)) + 0.01
    if ties == "counts":
        X = 1 + rng.poisson(1.0, X.shape)
    elif ties == "signs":
        X = rng.choice([-1.0, 1.0], X.shape)
    return np.where(rng.random(X.shape) < zeros, 0.0, X).astype(float)


# --- one function per test: (rng, design, draws) → p-values, columns × dependent ones ----------------


def of_markers(rng, n, share, zeros, ties, missing, draws, kind="continuous", sparse=False):
    found = []
    for _ in range(draws):
        X = features(rng, n, 200, zeros, ties)
        if kind == "binary":
            X = (X > 0).astype(float)
        if missing:
            X[rng.random(X.shape) < missing] = np.nan
        view = sp.csr_array(X) if sparse else X
        given = markers(labels_of(rng, n, share), {"x": view}, kinds={"x": kind}).views[0]
        found.append(given.p_value.T)
    return np.concatenate(found)


def of_markers_without_view(rng, n, share, zeros, ties, missing, draws):
    found = []
    for _ in range(draws):
        own = labels_of(rng, n, share)
        views = {
            "clusters": rng.normal(size=(n, 5)) + 8 * np.eye(3, 5)[own],
            "x": features(rng, n, 200, zeros, ties),
        }
        # Clusters of the first view: the second is not in the fit that it is tested on.
        model = ConcatViews(KMeans(3, n_init=1, random_state=0)).fit(views)
        kinds = dict.fromkeys(views, "continuous")
        found.append(markers(model, views, kinds=kinds, leave_view_out=True).views[1].p_value.T)
    return np.concatenate(found)


def of_enrichment(rng, n, share, zeros, ties, missing, draws, k=3, kind="number"):
    found = []
    for _ in range(draws):
        if kind == "category":
            levels = rng.choice(4, (n, 20), p=[0.7, 0.2, 0.08, 0.02])
            X = np.array(list("abcd"), dtype=object)[levels]
        else:
            X = features(rng, n, 20, zeros, ties).astype(object)
        X[rng.random(X.shape) < missing] = None
        table = {f"c{j}": X[:, j].tolist() for j in range(X.shape[1])}
        kinds = dict.fromkeys(table, kind)
        tested = enrichment(labels_of(rng, n, share, k), table, kinds=kinds, random_state=rng)
        found.append(np.array(tested.table["p_value"])[:, None])
    return np.concatenate(found)


def cohort(rng, n, censored, ties):
    death = rng.exponential(1.0, n)
    end = rng.exponential((1 - censored) / censored, n)
    time = np.minimum(death, end)
    return np.ceil(6 * time) if ties else time, death <= end


def of_survival(rng, n, share, censored, ties, draws, covariates=False):
    found = []
    for _ in range(draws):
        time, event = cohort(rng, n, censored, ties)
        given = {
            "age": (rng.normal(size=n) - time).tolist(),
            "sex": rng.choice(["f", "m"], n).tolist(),
        }
        tested = survival(
            labels_of(rng, n, share),
            time,
            event,
            covariates=given if covariates else None,
            permutations=199,
            random_state=rng,
        )
        if covariates:
            found.append([tested.cox.test.p_value, *tested.cox.table["p_value"]])
        else:
            found.append([tested.p_value, *(test.p_value for test in tested.pairs.values())])
    return np.array(found)


def of_gene_sets(rng, n, share, correlation, differ, missing, draws, width=1000, size=20):
    """Sets of correlated features, and as many of any; with ``differ`` 40% of the features differ between
    clusters, whatever their sets, and all share a factor."""
    found, names = [], [f"g{j}" for j in range(width)]
    sets = {f"block {j}": names[j * size : (j + 1) * size] for j in range(20)}
    block = np.arange(width) // size
    for _ in range(draws):
        codes = labels_of(rng, n, share)
        X = rng.normal(size=(n, width)) + 0.3 * rng.normal(size=(n, 1))
        X = np.sqrt(1 - correlation) * X
        X += np.sqrt(correlation) * rng.normal(size=(n, block.max() + 1))[:, block]
        if differ:
            X += (rng.normal(size=(3, width)) * (rng.random(width) < 0.4))[codes]
        X[rng.random(X.shape) < missing] = np.nan
        any_ = {f"any {j}": rng.choice(names, size, replace=False).tolist() for j in range(20)}
        table = pd.DataFrame(np.exp(X), columns=names)
        tested = gene_sets(codes, {"x": table}, sets | any_).full_table
        found.append(tested["p_descriptive"].to_numpy().reshape(3, -1).T)
    return np.concatenate(found)


# --- the grid ----------------------------------------------------------------------------------------


def designs():
    """Name, design in words, function, arguments, draws at scale 1."""
    for n, share, zeros, ties, missing in product(
        (40, 200, 1000),
        (0.02, 0.1, 0.4),
        (0, 0.5, 0.9, 0.99),
        ("none", "counts", "signs"),
        (0, 0.3),
    ):
        text = f"N {n}, cluster {share:.0%}, zeros {zeros:.0%}, ties {ties}, missing {missing:.0%}"
        given = {"n": n, "share": share, "zeros": zeros, "ties": ties, "missing": missing}
        yield "markers", text, of_markers, given, 2
        if ties == "none" and zeros:
            yield "markers, binary", text, of_markers, given | {"kind": "binary"}, 2
        if not missing and ties == "counts":
            more = {"kind": "counts", "sparse": True}
            yield "markers, sparse counts", text, of_markers, given | more, 2
            if n == 200:
                yield "markers, leave_view_out", text, of_markers_without_view, given, 2
        if n < 1000 or share == 0.02:
            for k in (2, 3):
                yield f"enrichment, {k} clusters", text, of_enrichment, given | {"k": k}, 4
    for n, share, missing, k in product((40, 200, 1000), (0.02, 0.1, 0.4), (0, 0.3), (2, 3)):
        text = f"N {n}, cluster {share:.0%}, missing {missing:.0%}"
        given = {"n": n, "share": share, "zeros": 0, "ties": "none", "missing": missing}
        given |= {"k": k, "kind": "category"}
        yield f"enrichment, categories, {k} clusters", text, of_enrichment, given, 10
    for n, share, censored, ties in product(
        (40, 200, 1000), (0.02, 0.1, 0.4), (0.2, 0.7, 0.95), (False, True)
    ):
        text = f"N {n}, cluster {share:.0%}, censored {censored:.0%}, times {'tied' if ties else 'differ'}"
        given = {"n": n, "share": share, "censored": censored, "ties": ties}
        yield "survival, all and pairs", text, of_survival, given, 100
        if n < 1000 and not ties:
            yield "survival, Cox", text, of_survival, given | {"covariates": True}, 25
    for n, share, correlation, differ in product(
        (40, 200, 1000), (0.1, 0.4), (0, 0.1, 0.4), (False, True)
    ):
        missing = 0.1 if n == 200 and correlation == 0.1 else 0
        text = f"N {n}, cluster {share:.0%}, correlation {correlation:g}, missing {missing:.0%}"
        given = {"n": n, "share": share, "correlation": correlation, "missing": missing}
        name = "gene sets" + ", features differ" * differ
        yield name, text, of_gene_sets, given | {"differ": differ}, 4 if n < 1000 else 2


def judged(p):
    """Share of p-values at or below each level, and whether it is too large; NaN is no p-value.

    Those of one row depend on each other (clusters of one feature), so the error counts rows.
    """
    p = p[~np.isnan(p).all(axis=1)]
    tested = p[~np.isnan(p)]
    shares = [
        float((tested <= level * (1 + 1e-12)).mean()) if tested.size else 0.0 for level in LEVELS
    ]
    errors = [np.sqrt(level * (1 - level) / max(len(p), 1)) for level in LEVELS]
    bad = [
        s > a + 4 * e + 1 / max(len(p), 1) for s, a, e in zip(shares, LEVELS, errors, strict=True)
    ]
    return tested.size, shares, any(bad)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=1, help="times as many draws")
    parser.add_argument("--only", default="", help="tests whose names begin so")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(
        "| test | design | p-values | p ≤ .05 | p ≤ .01 | p ≤ .001 | |\n|---|---|---|---|---|---|---|"
    )
    pooled, wrong = {}, 0
    for j, (name, text, function, given, draws) in enumerate(designs()):
        if not name.startswith(args.only):
            continue
        p = function(np.random.default_rng([args.seed, j]), **given, draws=draws * args.scale)
        n, shares, bad = judged(p)
        wrong += bad
        pooled.setdefault(name, []).append(p)
        cells = " | ".join(f"{share:.4f}" for share in shares)
        print(f"| {name} | {text} | {n} | {cells} | {'!' if bad else ''} |", flush=True)
    print(
        "\n| test, all designs | p-values | p ≤ .05 | p ≤ .01 | p ≤ .001 | |\n|---|---|---|---|---|---|"
    )
    for name, parts in pooled.items():
        width = max(part.shape[1] for part in parts)
        full = [np.pad(q, ((0, 0), (0, width - q.shape[1])), constant_values=np.nan) for q in parts]
        n, shares, bad = judged(np.concatenate(full))
        wrong += bad
        cells = " | ".join(f"{share:.4f}" for share in shares)
        print(f"| {name} | {n} | {cells} | {'!' if bad else ''} |")
    raise SystemExit(1 if wrong else 0)


if __name__ == "__main__":
    main()
