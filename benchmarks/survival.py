"""Do clusters of tumours differ in survival? Five cancers, five ways to cluster, honest p-values.

    python benchmarks/survival.py --data DIR [--sets NAME ...] [--random 400] [--jobs 1] [--out FILE]

DIR holds tcga_NAME_survival.npz files (view_<name> arrays, time in months, event, age, female, oncotree)
and `load.py`. Every method clusters with K = 3, 4, 5 and K chosen by itself; survival is tested by
9,999 permutations. Random labels of the sizes that our method found are tested as well: 5% of them
must reach p ≤ .05. Rows already in the output file are not run again. --jobs runs so many of the
hundred fits at once, each in a process of one thread; the numbers do not depend on it. It needs
numpy, scipy and scikit-learn alone.
"""

import argparse
import csv
import importlib.util
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import SpectralClustering
from sklearn.preprocessing import StandardScaler

import manyview as mv
from manyview.outcomes import enrichment, survival

SETS = ("gbmlgg", "kirc", "lihc", "paad", "skcm")
SIZES = (3, 4, 5, "auto")
OURS = "RobustWMNMF"
FIELDS = ("set", "n", "events", "method", "clusters", "found", "smallest", "p", "p_asymptotic")
FIELDS += ("enriched", "random_05", "random_asymptotic_05", "seconds")


def load(data, name):
    spec = importlib.util.spec_from_file_location("load", data / "load.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path = data / f"tcga_{name}_survival.npz"
    views, _ = module.load(path)
    return {view: np.asarray(X, float) for view, X in views.items()}, module.outcomes(path)


# --- methods: views, K → labels ------------------------------------------------------------------


def robust(views, k, seed, **settings):
    return mv.RobustWMNMF(k, random_state=seed, **settings).fit(views).labels_


def equal_weights(views, k, seed):
    return robust(views, k, seed, view_weights="equal", learn_sample_weights=False)


def expression_alone(views, k, seed):
    return robust({"rna": views["rna"]}, k, seed)


def concatenation(views, k, seed):
    X = np.hstack([StandardScaler().fit_transform(X) for X in views.values()])
    model = SpectralClustering(k, affinity="nearest_neighbors", n_neighbors=10, random_state=seed)
    return model.fit_predict(X)


def fusion(views, k, seed, neighbors=20, rounds=20, width=0.5):
    """Similarity network fusion (Wang et al. 2014): each network is spread over the others' mean."""
    whole, local = [], []
    for X in views.values():
        distance = cdist(*[StandardScaler().fit_transform(X)] * 2)
        near = np.sort(distance, axis=1)[:, 1 : neighbors + 1].mean(axis=1)
        scale = width * (near[:, None] + near + distance) / 3 + 1e-12
        W = np.exp(-(distance**2) / (2 * scale**2))
        whole.append(stochastic(W))
        cut = np.sort(W, axis=1)[:, [-neighbors]]
        S = np.where(cut <= W, W, 0)
        local.append(S / S.sum(axis=1, keepdims=True))
    for _ in range(rounds):
        total = sum(whole)
        rest = [(total - P) / max(len(whole) - 1, 1) for P in whole]
        whole = [stochastic(S @ P @ S.T) for S, P in zip(local, rest, strict=True)]
    fused = sum(whole) / len(whole)
    model = SpectralClustering(k, affinity="precomputed", random_state=seed)
    return model.fit_predict((fused + fused.T) / 2)


def stochastic(W):
    """Half of every row on the diagonal, half on the others."""
    W = W - np.diag(np.diag(W))
    W = W / (2 * np.maximum(W.sum(axis=1, keepdims=True), 1e-300))
    W = W + np.eye(len(W)) / 2
    return (W + W.T) / 2


METHODS = {
    OURS: robust,
    "equal weights": equal_weights,
    "expression alone": expression_alone,
    "concatenation": concatenation,
    "SNF": fusion,
}
#: They choose no K themselves and get the one our method chose.
NO_AUTO = ("concatenation", "SNF")


# --- one row -------------------------------------------------------------------------------------


def judge(labels, known):
    """What survival and clinical columns say of some labels."""
    found = survival(labels, known["time"], known["event"], pairwise=False)
    clinical = {name: known[name] for name in ("age", "female", "oncotree")}
    return {
        "found": len(found.curves),
        "smallest": min(curve.n for curve in found.curves),
        "p": found.p_value,
        "p_asymptotic": found.test.p_asymptotic,
        "enriched": " ".join(enrichment(labels, clinical).significant(0.05)),
    }


def calibration(labels, known, repeats, seed):
    """Share of random labels of the same sizes with p ≤ .05, permuted and asymptotic."""
    rng, p, asymptotic = np.random.default_rng(seed), [], []
    for _ in range(repeats):
        drawn = survival(
            rng.permutation(labels),
            known["time"],
            known["event"],
            pairwise=False,
            permutations=199,
            random_state=rng,
        )
        p.append(drawn.p_value)
        asymptotic.append(drawn.test.p_asymptotic)
    return {
        "random_05": np.mean(np.array(p) <= 0.05 + 1e-12),
        "random_asymptotic_05": np.mean(np.array(asymptotic) <= 0.05),
    }


def one_row(data, name, method, k, wanted, repeats, seed):
    """Fit, test, and for our method calibrate; ``wanted`` is the number of clusters to ask for."""
    warnings.simplefilter("ignore")
    views, known = load(data, name)
    start = time.process_time()
    alone = np.zeros(len(known["time"]), dtype=int)
    labels = alone if wanted == 1 else METHODS[method](views, wanted, seed)
    row = dict.fromkeys(FIELDS, "") | {
        "set": name,
        "n": len(known["time"]),
        "events": int(known["event"].sum()),
        "method": method,
        "clusters": k,
        "seconds": round(time.process_time() - start, 1),
    }
    row |= judge(labels, known)
    if method == OURS and row["found"] > 1:
        row |= calibration(labels, known, repeats, seed)
    return row


def run(args):
    out, data = Path(args.out), Path(args.data)
    rows = list(csv.DictReader(out.open())) if out.exists() else []
    done = {(r["set"], r["method"], r["clusters"]) for r in rows}
    cells = [(s, m, k) for k in reversed(SIZES) for s in args.sets for m in METHODS]
    cells = [(s, m, k) for s, m, k in cells if (s, m, str(k)) not in done]
    # Those that choose no K wait for the K that ours chose.
    waiting = [(s, m, k) for s, m, k in cells if k == "auto" and m in NO_AUTO]
    first = [(*cell, cell[2]) for cell in cells if cell not in waiting]
    with out.open("a", newline="") as file, ProcessPoolExecutor(args.jobs) as pool:
        writer = csv.DictWriter(file, FIELDS)
        if not rows:
            writer.writeheader()

        def work(tasks):
            running = [pool.submit(one_row, data, *t, args.random, args.seed) for t in tasks]
            for future in as_completed(running):
                row = future.result()
                writer.writerow(row)
                file.flush()
                rows.append({field: str(value) for field, value in row.items()})
                told = f"p={row['p']:.4g} {row['seconds']} s"
                print(row["set"], row["clusters"], row["method"], told, file=sys.stderr, flush=True)

        work(first)
        work([(s, m, k, chosen(rows, s)) for s, m, k in waiting])
    return rows


def chosen(rows, name):
    return next(
        int(r["found"])
        for r in rows
        if (r["set"], r["method"], r["clusters"]) == (name, OURS, "auto")
    )


# --- the tables of the docs ----------------------------------------------------------------------


def cell(row):
    p = float(row["p"])
    text = "no test" if np.isnan(p) else f"{p:.4f}"
    text = f"**{text}**" if p <= 0.05 else text
    notes = [f"K={row['found']}"] if row["clusters"] == "auto" else []
    notes += [f"smallest {row['smallest']}"] if int(row["smallest"]) < 10 else []
    return f"{text} ({', '.join(notes)})" if notes else text


def report(rows):
    at = {(r["set"], r["method"], r["clusters"]): r for r in rows}
    sets = [s for s in SETS if any(r["set"] == s for r in rows)]
    heads = [f"K={k}" if k != "auto" else "K auto" for k in SIZES]
    print("| cancer | method | " + " | ".join(heads) + " | enriched, K auto |")
    print("|" + "---|" * (len(heads) + 3))
    for s in sets:
        for m in METHODS:
            found = [at[s, m, str(k)] for k in SIZES]
            head = f"{s} ({found[0]['n']}, {found[0]['events']} deaths)" if m == OURS else ""
            told = ", ".join(found[-1]["enriched"].split()) or "none"
            print(f"| {head} | {m} | {' | '.join(map(cell, found))} | {told} |")
    print("\n| method | " + " | ".join(heads) + " |\n|" + "---|" * (len(heads) + 1))
    for m in METHODS:
        counts = [sum(float(at[s, m, str(k)]["p"]) <= 0.05 for s in sets) for k in SIZES]
        print(f"| {m} | " + " | ".join(f"{c} of {len(sets)}" for c in counts) + " |")
    drawn = [r for r in rows if r["random_05"] != ""]
    for field, kind in (("random_05", "permuted"), ("random_asymptotic_05", "asymptotic")):
        shares = [float(r[field]) for r in drawn]
        print(
            f"\nRandom labels with p ≤ .05, {kind}: {np.mean(shares):.1%} over {len(shares)} settings "
            f"(lowest {min(shares):.1%}, highest {max(shares):.1%})"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--sets", nargs="*", default=SETS, choices=SETS)
    parser.add_argument("--random", type=int, default=400, help="random labelings per setting")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--out", default="survival.csv")
    report(run(parser.parse_args()))


if __name__ == "__main__":
    main()
