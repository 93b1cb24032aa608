"""Compiled loops of the search for neighbours (numba, extra "fast")."""

from __future__ import annotations

import numpy as np

from manyview._types import Array

from .jit import fast, inlined

#: Products that are compared with the last of a list at a time: as many as processors' widest registers
#: take in a few steps. Most groups hold nothing that is near enough.
GROUP = 64


@fast
def take(
    products: Array, places: Array, own: Array, first: int, near: Array, values: Array
) -> None:
    """Put columns with small products into lists, which are in order.

    Column c is row ``first`` + c; row a of the products has the list at ``places[a]`` and is itself
    row ``own[a]``.
    """
    for a in range(len(places)):
        i, me = places[a], own[a] - first
        for start in range(0, products.shape[1], GROUP):
            group = products[a, start : start + GROUP]
            if len(group) == GROUP and not _any_below(group, values[i, -1]):
                continue
            for c in range(len(group)):
                if group[c] < values[i, -1] and start + c != me:
                    _insert(group[c], first + start + c, values[i], near[i])


@inlined
def _any_below(group: Array, limit: float) -> bool:
    """Whether there is a smaller number: no branches, so that many are compared at a time."""
    found = np.float32(0)
    for c in range(GROUP):
        found += np.float32(1) if group[c] < limit else np.float32(0)
    return bool(found > 0)


@inlined
def _insert(x: float, who: int, values: Array, near: Array) -> None:
    """Put a number into a list, the last one of which goes."""
    place = len(values) - 1
    while place > 0 and values[place - 1] > x:
        values[place], near[place] = values[place - 1], near[place - 1]
        place -= 1
    values[place], near[place] = x, who


@fast
def add_shared(
    products: Array,
    asking: Array,
    ends: Array,
    features: Array,
    values: Array,
    posts: Array,
    posted: Array,
    posted_values: Array,
) -> None:
    """Add −2 u_i·u_j of rows ``asking`` and the rows of a block, feature by feature.

    ``features`` and ``values`` hold each row's entries, rows ending at ``ends``; ``posted`` and its
    values the rows of the block that have a feature, features ending at ``posts``.
    """
    for a in range(len(asking)):
        for e in range(ends[asking[a]], ends[asking[a] + 1]):
            feature, value = features[e], -2 * values[e]
            for t in range(posts[feature], posts[feature + 1]):
                products[a, posted[t]] += value * posted_values[t]
