"""The datasets of the experiments, by name."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from ..comparison.methods import fingerprint
from ..datasets import Dataset, load_handwritten, load_lihc, load_nutrimouse, make_synthetic

#: Seed of the synthetic data. The replications vary the methods' seeds, not the data.
SYNTHETIC_SEED = 0
#: Where the parent has put the user's data; set in every process that needs it.
FOLDER: Path | None = None


@lru_cache(maxsize=2)
def load(name: str) -> Dataset:
    """digits, digits-50 (the first 50 of each class), synthetic, nutrimouse or lihc, nonnegative."""
    if name == "digits":
        return load_handwritten(views="paper")
    if name.startswith("digits-"):
        return _first_of_each(load_handwritten(views="paper"), int(name.split("-")[1]))
    if name == "synthetic":
        return make_synthetic(random_state=SYNTHETIC_SEED)
    if name == "nutrimouse":
        return nonnegative(load_nutrimouse())
    if name == "lihc" and FOLDER is not None:
        return _stored(FOLDER)
    raise ValueError(f"there is no dataset {name!r} here")


def nonnegative(dataset: Dataset) -> Dataset:
    """Views with negative entries shifted, each feature to smallest value 0: factorisations need it."""
    views = {name: X - X.min(axis=0) if X.min() < 0 else X for name, X in dataset.views.items()}
    return replace(dataset, views=views)


def hand_over(folder: Path, into: Path) -> tuple[str, Dataset]:
    """Read the user's files once and put what is used where every process finds it; its fingerprint."""
    dataset = nonnegative(load_lihc(folder))
    matrices = {f"X{s}": X for s, X in enumerate(dataset.views.values())}
    codes = np.unique(dataset.labels, return_inverse=True)[1]
    np.savez(into / "lihc.npz", labels=codes, **matrices)  # type: ignore[arg-type]
    (into / "lihc.json").write_text(json.dumps(list(dataset.views)), encoding="utf-8")
    return fingerprint([*dataset.views.values(), codes], dataset.views), dataset


def _stored(folder: Path) -> Dataset:
    names = json.loads((folder / "lihc.json").read_text(encoding="utf-8"))
    with np.load(folder / "lihc.npz") as file:
        views = {name: file[f"X{s}"] for s, name in enumerate(names)}
        return Dataset("lihc", views, file["labels"], "the user's own files")


def _first_of_each(dataset: Dataset, n: int) -> Dataset:
    classes = np.unique(dataset.labels)
    rows = np.concatenate([np.flatnonzero(dataset.labels == c)[:n] for c in classes])
    views = {name: X[rows] for name, X in dataset.views.items()}
    return replace(
        dataset, views=views, labels=dataset.labels[rows], sample_names=None, name=f"digits-{n}"
    )
