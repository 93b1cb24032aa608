"""Compiled loops of the search for neighbours (numba, extra "fast")."""

from __future__ import annotations

from manyview._types import Array

from .jit import fast


@fast
def take(
    products: Array, places: Array, own: Array, first: int, near: Array, values: Array
) -> None:
    """Put columns with small products into lists, which are in order.

    Column c is row ``first`` + c; row a of the products has the list at ``places[a]`` and is itself
    row ``own[a]``.
    """
    k = near.shape[1]
    for a in range(len(places)):
        i, me = places[a], own[a] - first
        far = values[i, k - 1]
        for c in range(products.shape[1]):
            x = products[a, c]
            if x >= far or c == me:
                continue
            place = k - 1
            while place > 0 and values[i, place - 1] > x:
                values[i, place] = values[i, place - 1]
                near[i, place] = near[i, place - 1]
                place -= 1
            values[i, place] = x
            near[i, place] = first + c
            far = values[i, k - 1]


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
