"""The leading eigenvectors of a large graph by block iteration, as exactly as they are needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from manyview._arrays import converted, is_tensor, like, namespace, on_host
from manyview._types import Array

#: Rows of a block of vectors that are in double precision at a time, on the host and on a device.
BLOCK_ROWS, DEVICE_ROWS = 2**13, 2**18
#: Most vectors a block has beyond those wanted.
MOST_MORE = 64
#: Times columns are made orthonormal from their products, before QR does it.
MOST_TURNS = 4
#: Directions with a smaller share of the length of the longest are hardly known in double precision.
HARDLY_THERE = 1e-10
#: One step of a block iteration: p·S now + q·now + r·before.
Step = Callable[[Array, Array, float, float, float], Array]


@dataclass(frozen=True)
class Sketch:
    """How eigenvectors are found that only have to place points: as exactly as they count.

    ``step_of`` makes the step of a graph, ``weigh`` says what a vector counts by its eigenvalue.
    ``start`` are vectors nearby, such as those of a graph that is nearly the same.
    """

    step_of: Callable[[Any], Step] | None = None
    weigh: Callable[[Array], Array] | None = None
    tol: float = 1e-4
    start: Array | None = None

    def part(self, rows: Array) -> Sketch:
        """For some of the vertices."""
        if self.start is None:
            return self
        near = self.start[rows]
        return replace(self, start=near[:, (near != 0).any(axis=0)])


EXACT = Sketch()


def filtered_subspace(
    S: Any,
    n_vectors: int,
    rng: np.random.Generator,
    degree: int = 10,
    max_rounds: int = 30,
    sketch: Sketch = EXACT,
) -> tuple[Array, Array]:
    """Leading eigenpairs of S (spectrum in [−1, 1]) by Chebyshev-filtered block iteration.

    Each round multiplies a block of vectors by a polynomial that is small on the unwanted part of
    the spectrum, [−1, cut], and large above it, then solves the small problem in their span. A
    block finds repeated eigenvalues, and reads the graph once for all vectors. S may be on a device: there
    are the vectors, too, and here the values.
    """
    rounds = (n_vectors, degree, max_rounds, sketch)
    if not sp.issparse(S):
        return _iterated(
            partial(_plain_step, S), _first_block(S, rng, sketch.start, n_vectors), *rounds
        )
    # With neighbors near each other in memory, too, a product takes half the time.
    order = reverse_cuthill_mckee(S, symmetric_mode=True)
    ordered = _in_order(S, order)
    step = partial(_plain_step, ordered) if sketch.step_of is None else sketch.step_of(ordered)
    del ordered  # the step has what it needs
    # No name for the first block, which would be kept all the time.
    start = sketch.part(order).start
    values, Y = _iterated(step, _first_block(S, rng, start, n_vectors), *rounds)
    return values, Y[np.argsort(order)]


def _in_order(S: sp.csr_array, order: Array) -> sp.csr_array:
    """The same graph of vertices in another order, with one copy of it."""
    place = np.empty(len(order), dtype=S.indices.dtype)
    place[order] = np.arange(len(order))
    rows = sp.csr_array(S[order])
    ordered = sp.csr_array((rows.data, place[rows.indices], rows.indptr), shape=S.shape)
    ordered.sort_indices()
    return ordered


def _iterated(
    step: Step, Y: Array, n_vectors: int, degree: int, max_rounds: int, sketch: Sketch
) -> tuple[Array, Array]:
    cut = 0.5
    for _ in range(max_rounds):
        centre, half = (cut - 1) / 2, (cut + 1) / 2
        before, now = Y, step(Y, Y, 1 / half, -centre / half, 0)
        for _ in range(degree - 1):
            before, now = now, step(now, before, 2 / half, -2 * centre / half, -1)
        Y = _orthonormal(now)
        SY = step(Y, Y, 1, 0, 0)
        values, turn = np.linalg.eigh(on_host(Y.T @ SY).astype(float, copy=False))
        turn = like(turn, Y)
        Y, SY = Y @ turn, SY @ turn
        gaps = SY[:, -n_vectors:] - Y[:, -n_vectors:] * like(values[-n_vectors:], Y)
        if _settled(values[-n_vectors:], gaps, sketch):
            break
        cut = float(np.clip(float(values[0]), -0.5, 0.999))
    return values[-n_vectors:], Y[:, -n_vectors:]


def _first_block(S: Any, rng: np.random.Generator, near: Array | None, n_vectors: int) -> Array:
    """Random vectors, more than are wanted, and those nearby where there are any."""
    n, size = S.shape[0], block_size(n_vectors)
    near = None if near is None else near[:, :size]
    missing = size if near is None else size - near.shape[1]
    if sp.issparse(S):
        random = rng.standard_normal((n, missing))
    else:
        random = S.random_block(missing, int(rng.integers(2**31)))
    if near is None:
        return random
    dtype = random.dtype if is_tensor(random) else near.dtype
    return namespace(near).hstack([converted(part, dtype) for part in (near, random / n**0.5)])


def block_size(n_vectors: int) -> int:
    """Vectors of a block, more than are wanted."""
    return n_vectors + min(max(8, n_vectors // 2), MOST_MORE)


def _plain_step(S: Any, now: Array, before: Array, p: float, q: float, r: float) -> Array:
    product = p * (S @ now)
    if q:
        product += q * now
    return product + r * before if r else product


def _orthonormal(Y: Array) -> Array:
    """An orthonormal basis of the columns, from their products: a tenth of the time of QR.

    Products are those of double precision, of some rows at a time.
    """
    xp, rows = namespace(Y), DEVICE_ROWS if is_tensor(Y) else BLOCK_ROWS
    parts = [slice(start, start + rows) for start in range(0, len(Y), rows)]
    for _ in range(MOST_TURNS):
        products = np.zeros((Y.shape[1],) * 2)
        for part in parts:
            block = converted(Y[part], xp.float64)
            products += on_host(block.T @ block)
        lengths = np.sqrt(np.diagonal(products))
        lengths = np.where(lengths > 0, lengths, 1)
        sizes, turn = np.linalg.eigh(products / np.outer(lengths, lengths))
        # Directions that are hardly there grow a little each time, without the rounding errors of all.
        turn /= np.sqrt(np.maximum(sizes, HARDLY_THERE * sizes[-1]))
        turned, turn = xp.empty_like(Y), turn / lengths[:, None]
        for part in parts:
            block = converted(Y[part], xp.float64)
            turned[part] = block @ like(turn, block)
        Y = turned
        if sizes[0] > 1e-4:
            return Y
    return xp.linalg.qr(Y)[0]


def _settled(values: Array, gaps: Array, sketch: Sketch) -> bool:
    """Whether S y = ρ y is true as far as it matters: gaps by what the vectors count."""
    residuals = on_host((gaps**2).sum(axis=0) ** 0.5)
    if sketch.weigh is not None:
        weight = sketch.weigh(values.clip(0))
        residuals = residuals * weight / (float(weight.max()) or 1)
    return float(residuals.max()) <= sketch.tol
