"""Leading eigenpairs of the parts of a graph on a device, all parts at once.

A graph that falls into parts is a matrix of blocks on the diagonal: one product with it serves the
vectors of every part. What is solved per part is as small as the vectors are few, and comes to the host.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from manyview._arrays import converted, namespace
from manyview._types import Array

#: Small problems of up to so many vectors are solved on the host: a card takes longer to be asked.
HOST_VECTORS = 128
#: Rows whose products are added at a time, in float64.
ROWS = 2**18
#: Smallest share of the largest that a direction of the block may have: below, rounding made it up.
DEPENDENT = 1e-10
#: A block with smaller shares than this loses digits when it is turned: another round comes first.
LOSSY = 1e-5


class Product(Protocol):
    """A matrix that multiplies blocks of vectors."""

    def __matmul__(self, Y: Array) -> Array: ...


class Ritz(NamedTuple):
    """Of every part (first axis) the values in ascending order, how to turn the block, residuals."""

    values: Array
    turn: Array
    residuals: Array
    #: The smallest share of any direction of a block.
    share: float


def filtered_parts(
    S: Product,
    sizes: Sequence[int],
    block: Array,
    n_vectors: int,
    tol: float,
    weigh: Callable[[Array], Array] | None = None,
    degree: int = 10,
    max_rounds: int = 30,
) -> list[tuple[Array, Array]]:
    """The largest eigenvalues (ascending) of every part of S and their vectors, for each part in turn.

    Chebyshev-filtered block iteration as in `spectrum.filtered_subspace`, with a cut of its own for
    every part. S has the parts one after the other, of these sizes; its spectrum lies in [−1, 1].
    ``block`` holds start vectors for all rows, more of them than are wanted. It ends when the residuals
    of all parts, times what ``weigh`` says of their values, are at most ``tol``.
    """
    xp, Y = namespace(block), block
    ends = np.cumsum(sizes)
    parts = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    part_of = xp.repeat_interleave(
        xp.arange(len(sizes), device=Y.device), xp.as_tensor(np.array(sizes), device=Y.device)
    )
    cut = xp.full((len(sizes),), 0.5, dtype=xp.float64)
    for _ in range(max_rounds):
        cuts = xp.as_tensor(cut, dtype=Y.dtype, device=Y.device)[part_of]
        Y = _filtered(S, Y, cuts[:, None], degree)
        SY = S @ Y
        found = _ritz(_products(Y, SY, parts))
        if not found.share > DEPENDENT:
            Y = xp.cat([xp.linalg.qr(Y[part])[0] for part in parts])
            SY = S @ Y
            found = _ritz(_products(Y, SY, parts))
        turn = xp.as_tensor(found.turn, dtype=Y.dtype, device=Y.device)
        Y = xp.cat([Y[part] @ turn[p] for p, part in enumerate(parts)])
        if found.share > LOSSY and _settled(found, n_vectors, weigh) <= tol:
            break
        cut = found.values[:, 0].clip(-0.5, 0.999)
    return [(found.values[p, -n_vectors:], Y[part, -n_vectors:]) for p, part in enumerate(parts)]


def _filtered(S: Product, Y: Array, cut: Array, degree: int) -> Array:
    """A polynomial of S times Y that is small on [−1, cut]; ``cut`` is a column, one for each row."""
    centre, half = (cut - 1) / 2, (cut + 1) / 2
    before, now = Y, (S @ Y - centre * Y) / half
    for _ in range(degree - 1):
        before, now = now, (S @ now - centre * now) * (2 / half) - before
    return now


def _products(Y: Array, SY: Array, parts: list[slice]) -> Array:
    """[Y SY]ᵀ[Y SY] of every part, in float64; on the host where it is small."""
    xp, b = namespace(Y), Y.shape[1]
    found = xp.zeros((len(parts), 2 * b, 2 * b), dtype=xp.float64, device=Y.device)
    for p, part in enumerate(parts):
        for start in range(part.start, part.stop, ROWS):
            rows = slice(start, min(start + ROWS, part.stop))
            both = converted(xp.hstack([Y[rows], SY[rows]]), xp.float64)
            found[p] += both.T @ both
    return found.cpu() if b <= HOST_VECTORS else found


def _ritz(products: Array) -> Ritz:
    """The eigenpairs of S in the span of the block, from its products."""
    xp, b = namespace(products), products.shape[1] // 2
    length = xp.diagonal(products, dim1=1, dim2=2)[:, :b] ** 0.5
    scale = 1 / xp.where(length > 0, length, 1)
    both = xp.hstack([scale, scale])
    products = products * both[:, None] * both[:, :, None]
    own, across, moved = products[:, :b, :b], products[:, :b, b:], products[:, b:, b:]
    shares, basis = xp.linalg.eigh(own)
    whitened = basis / shares.clip(1e-300)[:, None] ** 0.5
    small = whitened.mT @ (across + xp.swapaxes(across, 1, 2)) @ whitened / 2
    values, vectors = xp.linalg.eigh(small)
    turn = whitened @ vectors
    squared = (turn * (moved @ turn)).sum(1) - values**2
    share = float((shares[:, 0] / shares[:, -1]).min())
    return Ritz(values, scale[:, :, None] * turn, squared.clip(0) ** 0.5, share)


def _settled(found: Ritz, n_vectors: int, weigh: Callable[[Array], Array] | None) -> float:
    """The largest residual of a wanted vector, by what the vectors of its part count."""
    residuals = found.residuals[:, -n_vectors:]
    if weigh is not None:
        weight, xp = weigh(found.values[:, -n_vectors:].clip(0)), namespace(residuals)
        most = xp.amax(weight, 1, keepdim=True)
        residuals = residuals * weight / xp.where(most > 0, most, 1)
    return float(residuals.max())
