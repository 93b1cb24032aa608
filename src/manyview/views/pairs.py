"""Matrices of pairs of observations inside annotated data (``obsp``) → relations."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.engines.numpy.relations import DistanceView, GraphView, Relation


def pairwise(matrix: Any, name: str) -> Relation:
    """A matrix of obsp: distances by their name, everything else is a graph."""
    if not name.endswith("distances"):
        return GraphView(matrix)
    if sp.issparse(matrix):
        raise ValueError(
            f"{name!r} holds the distances of neighbours only; take the graph made of them (scanpy and "
            f"squidpy: {name.removesuffix('distances')}connectivities), or pass a DistanceView of all"
        )
    return DistanceView(matrix)


def pairs_by_name(data: Any) -> dict[str, Callable[[], tuple[Relation, Array]]]:
    """The relations of a MuData and of its modalities, with the ids of their observations."""
    parts = {"": data} | {f"{name}:": part for name, part in data.mod.items()}
    return {
        f"{name}obsp:{key}": partial(_with_ids, part, key, f"{name}obsp:{key}")
        for name, part in parts.items()
        for key in part.obsp
    }


def _with_ids(data: Any, key: str, name: str) -> tuple[Relation, Array]:
    return pairwise(data.obsp[key], name), np.array(data.obs_names)
