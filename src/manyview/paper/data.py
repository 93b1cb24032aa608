"""The datasets of the experiments, by name."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np

from manyview.datasets import Dataset, load_handwritten, load_lihc, load_nutrimouse, make_synthetic
from manyview.io import checksum

#: Seed of the synthetic data. The replications vary the methods' seeds, not the data.
SYNTHETIC_SEED = 0
#: The user's data; set in every process that needs them, and never written to a file.
GIVEN: Dataset | None = None


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
    if name == "lihc" and GIVEN is not None:
        return GIVEN
    raise ValueError(f"there is no dataset {name!r} here")


def nonnegative(dataset: Dataset) -> Dataset:
    """Views with negative entries shifted, each feature to smallest value 0: factorisations need it."""
    views = {name: X - X.min(axis=0) if X.min() < 0 else X for name, X in dataset.views.items()}
    return replace(dataset, views=views)


def read_given(folder: Path) -> tuple[str, Dataset]:
    """The user's files as the experiments use them, and a fingerprint of these."""
    dataset = nonnegative(load_lihc(folder))
    codes = np.unique(dataset.labels, return_inverse=True)[1]
    used = replace(dataset, labels=codes, sample_names=None)
    return checksum.of_arrays([*used.views.values(), codes], used.views), used


def _first_of_each(dataset: Dataset, n: int) -> Dataset:
    classes = np.unique(dataset.labels)
    rows = np.concatenate([np.flatnonzero(dataset.labels == c)[:n] for c in classes])
    views = {name: X[rows] for name, X in dataset.views.items()}
    return replace(
        dataset, views=views, labels=dataset.labels[rows], sample_names=None, name=f"digits-{n}"
    )
