"""The class of data sets that all loaders return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manyview.io.safe_csv import csv_bytes


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Views of the same samples, and the known classes.

    Attributes
    ----------
    name : str
    views : dict of str to ndarray (n_samples, n_features of the view)
    labels : ndarray (n_samples,)
        The known classes, for scoring only.
    description : str
        Source, processing and license of the data.
    feature_names : dict of str to list of str, or None
    sample_names : list of str, or None
    clinical : dict of column to list, or None
        Clinical columns, with a value for each sample.
    """

    name: str
    views: dict[str, np.ndarray]
    labels: np.ndarray
    description: str
    feature_names: dict[str, list[str]] | None = None
    sample_names: list[str] | None = None
    clinical: dict[str, list[Any]] | None = None

    def __post_init__(self) -> None:
        if not self.views:
            raise ValueError(f"dataset {self.name!r} has no views; at least one is needed")
        for view, matrix in self.views.items():
            if matrix.ndim != 2 or matrix.shape[0] != self.n_samples:
                raise ValueError(
                    f"view {view!r} of dataset {self.name!r} has shape {matrix.shape}; expected "
                    f"two dimensions and {self.n_samples} rows, one for each label"
                )
            names = (self.feature_names or {}).get(view)
            if names is not None and len(names) != matrix.shape[1]:
                raise ValueError(
                    f"view {view!r} of dataset {self.name!r} has {matrix.shape[1]} features "
                    f"but {len(names)} feature names"
                )
        for column, values in (self.clinical or {}).items():
            if len(values) != self.n_samples:
                raise ValueError(
                    f"the clinical column {column!r} of dataset {self.name!r} has {len(values)} "
                    f"values for {self.n_samples} samples"
                )
        if self.sample_names is not None and len(self.sample_names) != self.n_samples:
            raise ValueError(
                f"dataset {self.name!r} has {self.n_samples} labels "
                f"but {len(self.sample_names)} sample names"
            )

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return len(self.labels)

    @property
    def n_clusters(self) -> int:
        """Number of distinct labels."""
        return len(np.unique(self.labels))

    def frames(self) -> dict[str, Any]:
        """The views as pandas DataFrames, samples in rows; needs pandas.

        Features without known names are called after their view: `fac_0`, `fac_1`, ...

        Returns
        -------
        dict of str to DataFrame
        """
        pandas = import_pandas("Dataset.frames()")
        known = self.feature_names or {}
        return {
            view: pandas.DataFrame(
                matrix,
                index=self.sample_names,
                columns=known.get(view) or [f"{view}_{j}" for j in range(matrix.shape[1])],
            )
            for view, matrix in self.views.items()
        }

    def clinical_frame(self) -> Any:
        """The clinical table as a pandas DataFrame indexed by sample; needs pandas.

        Returns
        -------
        DataFrame
        """
        if self.clinical is None:
            raise ValueError(f"dataset {self.name!r} has no clinical table")
        pandas = import_pandas("Dataset.clinical_frame()")
        return pandas.DataFrame(self.clinical, index=self.sample_names)

    def __repr__(self) -> str:
        views = ", ".join(f"{view} {matrix.shape[1]}" for view, matrix in self.views.items())
        return (
            f"<Dataset {self.name}: {self.n_samples} samples, {self.n_clusters} classes, "
            f"{len(self.views)} views ({views})>"
        )


def import_pandas(purpose: str) -> Any:
    """Import pandas where it is needed, so that the core works without it."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs pandas; install it with: pip install 'manyview[app]'"
        ) from error
    return pandas


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
