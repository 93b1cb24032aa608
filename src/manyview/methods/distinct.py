"""Which observations are identical: they cannot be told apart, and belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview._warn import warn_user
from manyview.engines.numpy.presence import read_rows
from manyview.engines.threads import blocks

#: Entries of a view looked at together: most often the first few rows already differ.
ENTRIES = 2**16
#: With fewer distinct observations than this, of which one is so many times as frequent as another,
#: one fit in six has rare ones in a wrong cluster.
FEW_KINDS, UNEQUAL = 12, 10


def row_kinds(
    matrices: Sequence[Matrix], fewer_than: int, here: Array | None = None
) -> Array | None:
    """The number of the kind of every row, if there are fewer kinds than that; otherwise None.

    Two rows are of one kind if all views have the same numbers for them. Rows that are not ``here`` do
    not count (kind 0). Of usual data only the first rows are read.
    """
    kinds: dict[tuple[bytes, ...], int] = {}
    found: list[int] = []
    size = max(1, ENTRIES // max(X.shape[1] for X in matrices))
    for rows in blocks(slice(0, matrices[0].shape[0]), size):
        parts = [_marks(read_rows(X, rows)) for X in matrices]
        for i, marks in enumerate(zip(*parts, strict=True), rows.start):
            counts = here is None or here[i]
            found.append(kinds.setdefault(marks, len(kinds)) if counts else 0)
            if len(kinds) >= fewer_than:
                return None
    return np.array(found)


def _marks(part: Matrix) -> Iterator[bytes]:
    """What is the same for identical rows and differs for others."""
    if not sp.issparse(part):
        part = np.ascontiguousarray(part) + 0.0  # −0 is 0
        part[np.isnan(part)] = np.nan  # there are many NaNs
        yield from (row.tobytes() for row in part)
        return
    part = sp.csr_array(part, copy=True)
    part.eliminate_zeros()
    part.sort_indices()
    for start, stop in zip(part.indptr[:-1], part.indptr[1:], strict=True):
        yield part.indices[start:stop].astype(np.int64).tobytes() + part.data[start:stop].tobytes()


def tell_few_kinds(n_kinds: int, n_clusters: int) -> None:
    warn_user(
        f"only {n_kinds} distinct observations for n_clusters={n_clusters}: identical observations "
        f"stay together, so that there are {n_kinds} clusters; ask for fewer clusters"
    )


def tell_unequal_kinds(mass: Array, n_clusters: int) -> None:
    """Say so where a few distinct observations are very unequally frequent."""
    if n_clusters < len(mass) < FEW_KINDS and mass.max() >= UNEQUAL:
        warn_user(
            f"only {len(mass)} observations are distinct after scaling, the most frequent "
            f"{mass.max():g} times as frequent as the rarest: clusters follow the frequent ones, and a "
            "rare one may be in the wrong cluster; fit the distinct observations once each and predict "
            "the others, or ask for more clusters"
        )


def tell_empty_clusters(labels: Any, n_clusters: int) -> None:
    """Say so where fewer clusters have members than were asked for."""
    n_found = len(np.unique(labels[labels >= 0]))
    if n_found < n_clusters:
        warn_user(
            f"only {n_found} of {n_clusters} clusters have members: the observations do not fall into "
            "more; ask for fewer clusters"
        )
