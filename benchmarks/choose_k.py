"""How many clusters each criterion finds where the answer is known, and how long it takes.

    python benchmarks/choose_k.py [--seed 0] [--reasons]
    python benchmarks/choose_k.py --data DIR [--sets NAME ...] [--methods stability eigengap] [--to 14]
    python benchmarks/choose_k.py [--data DIR [--sets NAME ...]] --per-doubling 0 0.05 0.1 0.2

With DIR (NAME.npz files and `load.py`, as for `quality.py`): what a user of n_clusters="auto" loses on real
data, as the adjusted Rand index at the number chosen against that at the true number. With --per-doubling:
what is chosen if stability's score loses as much for every doubling or halving between its number and that
of the communities.
"""

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

import manyview as mv
from communities import SETS, fitted, scores
from manyview import criteria as selection
from manyview.criteria import combine
from manyview.selection import DEFAULT, METHODS, select_n_clusters
from quality import module


def cases(seed: int) -> dict[str, tuple[dict | list | np.ndarray, str]]:
    """Name → views and the right answer, in words."""
    rng = np.random.default_rng(seed)
    two = np.arange(300) % 2
    centres = [rng.standard_normal((2, m)) for m in (10, 15)]
    shared = rng.standard_normal((300, 3))
    synthetic = mv.datasets.make_synthetic(2000, random_state=seed)
    digits = mv.datasets.load_handwritten("paper")
    # Far from Gaussian, as the clouds that the data are compared with are not. Drawn by a generator
    # of their own.
    bent = np.random.default_rng(seed)
    factor, angle = bent.standard_normal((200, 2)), bent.uniform(0, 2 * np.pi, 200)
    circle = np.c_[np.cos(angle), np.sin(angle)]
    return hard_to_count(seed) | {
        "synthetic, 2000 rows": (synthetic.views, "10"),
        "digits": (digits.views, "8-12"),
        "two blobs": ([rng.normal(2 * c[two], 1) for c in centres], "2"),
        "one round blob": ([rng.standard_normal((300, m)) for m in (10, 15)], "none"),
        "one long blob": (
            [shared @ rng.standard_normal((3, m)) + rng.normal(0, 0.3, (300, m)) for m in (10, 15)],
            "none",
        ),
        "uniform noise": ([rng.random((400, m)) for m in (20, 30)], "none"),
        "digits, features permuted": (
            [rng.permuted(X, axis=0) for X in digits.views.values()],
            "none",
        ),
        "uniform square": (bent.random((200, 2)), "none"),
        "lognormal, shared factor": (
            [
                np.exp(factor @ bent.standard_normal((2, m)) + bent.normal(0, 0.3, (200, m)))
                for m in (8, 10)
            ],
            "none",
        ),
        "ring": ([circle + bent.normal(0, 0.05, (200, 2)) for _ in range(2)], "none"),
    }


def hard_to_count(seed: int) -> dict[str, tuple[list, str]]:
    """Clusters within clusters, clusters of very unequal size, and clouds of which rows are missing."""
    rng = np.random.default_rng(seed)
    nine, sizes = np.arange(360) % 9, [200, 100, 50, 25, 15, 10]
    unequal = np.repeat(np.arange(len(sizes)), sizes)
    line = rng.standard_normal((300, 1))
    found = {"three groups of three": ([], "3 or 9"), "sizes 200 to 10": ([], "6")}
    found |= {"one factor, rows missing": ([], "none"), "round blob, rows missing": ([], "none")}
    for m in (10, 15):
        coarse, fine = rng.standard_normal((3, m)), rng.standard_normal((9, m))
        views = (
            rng.normal(3 * coarse[nine % 3] + 1.2 * fine[nine], 1),
            rng.normal(2 * rng.standard_normal((len(sizes), m))[unequal], 1),
            line @ rng.standard_normal((1, m)) + rng.normal(0, 0.3, (300, m)),
            rng.standard_normal((300, m)),
        )
        for (listed, truth), X in zip(found.values(), views, strict=True):
            listed.append(X)
            if truth == "none":
                X[rng.random(len(X)) < 0.3] = np.nan
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reasons", action="store_true", help="print the sentences as well")
    parser.add_argument("--data", type=Path, help="folder of real data sets")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--methods", nargs="+", default=DEFAULT, help="with --data")
    parser.add_argument("--to", type=int, help="with --data: the largest candidate")
    parser.add_argument("--per-doubling", nargs="+", type=float, help="values to compare")
    args = parser.parse_args()
    if args.per_doubling:
        by_what_a_doubling_costs(args)
    elif args.data:
        lost_on_real_data(args)
    else:
        where_the_answer_is_known(args.seed, args.reasons)


def lost_on_real_data(args: argparse.Namespace) -> None:
    """A row for each set: what was chosen and why, and the ARI there and at the true number."""
    load, both = module(args.data / "load.py").load, []
    candidates = None if args.to is None else range(2, args.to + 1)
    print(
        "| set | true | chosen | votes | ARI chosen | ARI true | s |\n" + "|---" * 7 + "|",
        flush=True,
    )
    for name in args.sets:
        views, truth = load(args.data / f"{name}.npz")
        start, K = time.perf_counter(), len(np.unique(truth))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            chosen = select_n_clusters(views, candidates, args.methods, random_state=args.seed)
        seconds = time.perf_counter() - start
        labels = [fitted(views, 1, n_clusters=k)[1][0] for k in (chosen.n_clusters, K)]
        ari = [scores(truth, found)[0] for found in labels]
        both.append(ari)
        votes = ", ".join("?" if k is None else str(k) for k in chosen.votes.values())
        cells = [name, K, chosen.answer, votes, f"{ari[0]:.3f}", f"{ari[1]:.3f}", f"{seconds:.0f}"]
        print("| " + " | ".join(map(str, cells)) + " |", flush=True)
        if args.reasons:
            print("".join(f"    {reason}\n" for reason in chosen.reasons))
    mean = np.mean(both, axis=0)
    print(f"| mean of {len(both)} | | | | {mean[0]:.3f} | {mean[1]:.3f} | |")


def by_what_a_doubling_costs(args: argparse.Namespace) -> None:
    """A row for each set: the number that each cost leads to, with the ARI there if classes are known."""
    heads = ["set", "true", "communities", *(f"{cost:g}" for cost in args.per_doubling)]
    print("| " + " | ".join(heads) + " |\n" + "|---" * len(heads) + "|", flush=True)
    for name, views, told, truth in known_sets(args):
        votes = kept_votes(views, args.seed)
        numbers = [combine(votes, cost).n_clusters for cost in args.per_doubling]
        found = {K: str(K) if K > 1 else "none" for K in numbers}
        if truth is not None:
            for K in found:
                ari = scores(truth, fitted(views, 1, n_clusters=K)[1][0])[0]
                found[K] += f" ({ari:.3f})"
        groups = next(vote.communities for vote in votes if vote.method == "communities")
        cells = [name, told, str(groups or "?"), *(found[K] for K in numbers)]
        print("| " + " | ".join(cells) + " |", flush=True)


def known_sets(args: argparse.Namespace) -> Iterator[tuple]:
    """Name, views, the right answer in words, and the classes if there are any."""
    if not args.data:
        for name, (views, told) in cases(args.seed).items():
            yield name, views, told, None
        return
    load = module(args.data / "load.py").load
    for name in args.sets:
        views, truth = load(args.data / f"{name}.npz")
        yield name, views, str(len(np.unique(truth))), truth


def kept_votes(views: dict | list | np.ndarray, seed: int) -> list:
    """The votes of the usual criteria, before they are combined."""
    kept: list = []

    def keep(votes: list) -> selection.Verdict:
        kept.extend(votes)
        return combine(votes)

    with mock.patch.object(selection, "combine", keep), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        select_n_clusters(views, random_state=seed)
    return kept


def where_the_answer_is_known(seed: int, tell: bool) -> None:
    shown = (*METHODS, "auto", "all")
    print(f"{'data':27}{'truth':>7}" + "".join(f"{name:>18}" for name in shown), flush=True)
    for name, (views, truth) in cases(seed).items():
        cells, reasons = [], []
        for method in shown:
            start = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "nothing is there" is an answer here
                asked = DEFAULT if method == "auto" else method
                chosen = select_n_clusters(views, method=asked, random_state=seed)
            seconds = time.perf_counter() - start
            answer = str(chosen.n_clusters) if chosen.found else "none"
            if not chosen.found and chosen.votes.get(method, 1) is None:
                answer = "?"
            if any("or more" in reason for reason in chosen.reasons) and method in METHODS:
                answer = f"{answer} or more"
            cells.append(f"{answer} ({seconds:.0f} s)")
            reasons = chosen.reasons
        print(f"{name:27}{truth:>7}" + "".join(f"{cell:>18}" for cell in cells), flush=True)
        if tell:
            print("".join(f"    {reason}\n" for reason in reasons))


if __name__ == "__main__":
    main()
