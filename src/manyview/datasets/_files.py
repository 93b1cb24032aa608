"""A dataset as the files somebody would hand over."""

from __future__ import annotations

from manyview.io.writing import csv_bytes

from ._dataset import Dataset


def tables_of(data: Dataset) -> dict[str, bytes]:
    """File name → content: a table for each view, the classes, what is known besides, a description."""
    ids = data.sample_names or [f"s{i + 1:04d}" for i in range(data.n_samples)]
    known = data.feature_names or {}
    found = {
        "labels.csv": csv_bytes(("id", "label"), zip(ids, data.labels.tolist(), strict=True)),
        "README.txt": (data.description + "\n").encode(),
    }
    for view, X in data.views.items():
        names = known.get(view) or [f"{view}_{j}" for j in range(X.shape[1])]
        rows = ((i, *row) for i, row in zip(ids, X.tolist(), strict=True))
        found[f"{view}.csv"] = csv_bytes(("id", *names), rows)
    if data.clinical is not None:
        table = zip(ids, *data.clinical.values(), strict=True)
        found["clinical.csv"] = csv_bytes(("id", *data.clinical), table)
    return found
