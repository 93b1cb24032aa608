"""How far `partial_fit` on batches is from a fit of all samples, on the shipped digits.

    python benchmarks/stream.py [--runs 3]

The objective (without regularizer, per sample) is that of all digits placed with the final U and
view weights of either model; "first" is a model that saw the first batch only. NMI of labels against the
digits' classes, each sample labeled when its batch came. "ordered": after a first batch of digits
of all classes the others come class by class.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from threadpoolctl import threadpool_limits

import manyview as mv
from manyview.engines.numpy.rows import rows_of
from manyview.stream import batch_history


def objective(model: mv.WMNMF, views: dict) -> float:
    """O on all samples, placed with what the model has learned."""
    given = model._read(views, reset=False)
    with threadpool_limits(1):
        Xs = model._scaled(given)
        factors = model._placed(Xs, model._neighbor_coefficients(Xs))[0]
        rows = [rows_of(X, model._solver) for X in Xs]
        return float(batch_history(rows, factors, model.p, 1)["objective"][0])


def one_run(
    views: dict, y: np.ndarray, n_batches: int, solver: str, seed: int, ordered: bool = False
) -> tuple:
    order = np.random.default_rng(seed).permutation(len(y))
    if ordered:
        first = len(y) // n_batches
        order[first:] = order[first:][np.argsort(y[order[first:]], kind="stable")]
    views = {name: X[order] for name, X in views.items()}
    full = mv.WMNMF(10, solver=solver, random_state=seed).fit(views)
    model, labels = mv.WMNMF(10, solver=solver, random_state=seed), []
    first = np.nan
    for rows in np.array_split(np.arange(len(y)), n_batches):
        model.partial_fit({name: X[rows] for name, X in views.items()})
        labels.append(model.labels_)
        if len(labels) == 1:
            first = objective(model, views)
    nmi = [
        mv.metrics.scores(y[order], found)["nmi"]
        for found in (full.labels_, np.concatenate(labels))
    ]
    whole = objective(full, views)
    return first / whole, objective(model, views) / whole, *nmi


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=3)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    data = mv.datasets.load_handwritten(views="paper")
    views = {name: np.asarray(X) for name, X in data.views.items()}
    print("| solver | batches | objective, first only | objective, all | NMI full | NMI stream |")
    print("|---|---|---|---|---|---|")
    for solver in ("multiplicative", "hals"):
        for n_batches, ordered in ((2, False), (4, False), (8, False), (8, True)):
            settings = (data.labels, n_batches, solver)
            found = [one_run(views, *settings, s, ordered) for s in range(asked.runs)]
            numbers = " | ".join(f"{value:.3f}" for value in np.mean(found, axis=0))
            name = f"{n_batches}, ordered" if ordered else n_batches
            print(f"| {solver} | {name} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
