"""Compiled loops of the neighbour descent (numba, extra "fast"); `descent` calls them on ranges of rows.

Lists hold the k smallest pairs (distance, index) a row was ever shown, so that neither the order of what
is shown nor the number of threads changes them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyview._types import Array

from .jit import fast, inlined

#: Odd numbers with well-spread bits, as signed integers of 64 bits.
FIRST, SECOND, THIRD = -0x61C8864680B583EB, -0x40A7B892E31B1A47, -0x6B2FB644ECCEEE15
#: Below this depth parts of a tree are halved, whatever the plane says: no tree becomes a list.
DEEP = 60
#: A plane that leaves a smaller share of the rows on one side tells nothing.
LEAST_SHARE = 0.05


@inlined
def hashed(a: int, b: int, c: int) -> Any:
    """A number of 62 random bits for three numbers."""
    x = (np.int64(a) * FIRST + np.int64(b)) * SECOND + np.int64(c) * THIRD
    x = (x ^ (x >> 31)) * FIRST
    x = (x ^ (x >> 29)) * SECOND
    return (x ^ (x >> 32)) & 0x3FFFFFFFFFFFFFFF


@inlined
def gap_of(x: Array, y: Array) -> float:
    """Squared distance of two rows."""
    total = x[0] * 0
    for m in range(len(x)):
        gap = x[m] - y[m]
        total += gap * gap
    return total


@fast
def grow(data: Array, seed: int, leaf: int, order: Array, starts: Array) -> int:
    """A tree of random planes: rows in ``order``, leaf by leaf, and where leaves begin; how many."""
    n, M = data.shape
    normal, stack, depth = (
        np.empty(M, data.dtype),
        np.empty((256, 2), np.int64),
        np.empty(256, np.int64),
    )
    stack[0, 0], stack[0, 1], depth[0] = 0, n, 0
    held, leaves = 1, 0
    while held:
        held -= 1
        lo, hi, deep = stack[held, 0], stack[held, 1], depth[held]
        size = hi - lo
        if size <= leaf:
            starts[leaves] = lo
            leaves += 1
            continue
        a = order[lo + hashed(seed, lo, 2 * hi) % size]
        b = order[lo + hashed(seed, lo, 2 * hi + 1) % size]
        offset = data[a, 0] * 0
        for m in range(M):
            normal[m] = data[a, m] - data[b, m]
            offset += normal[m] * (data[a, m] + data[b, m]) / 2
        left, right = lo, hi
        while left < right:
            row = order[left]
            side = -offset
            for m in range(M):
                side += data[row, m] * normal[m]
            if side < 0:
                left += 1
            else:
                right -= 1
                order[left], order[right] = order[right], row
        if deep > DEEP or min(left - lo, hi - left) < LEAST_SHARE * size:
            left = lo + size // 2
        stack[held, 0], stack[held, 1], depth[held] = left, hi, deep + 1
        stack[held + 1, 0], stack[held + 1, 1], depth[held + 1] = lo, left, deep + 1
        held += 2
    starts[leaves] = n
    return leaves


@fast
def join_leaves(
    data: Array,
    order: Array,
    starts: Array,
    first: int,
    last: int,
    far: Array,
    pairs: Array,
    d: Array,
) -> int:
    """All pairs within some leaves that are near enough for one of their lists; how many."""
    count, size = 0, 0
    for leaf in range(first, last):
        size = max(size, starts[leaf + 1] - starts[leaf])
    rows = np.empty((size, data.shape[1]), data.dtype)
    for leaf in range(first, last):
        lo, hi = starts[leaf], starts[leaf + 1]
        for a in range(lo, hi):
            rows[a - lo] = data[order[a]]
        for a in range(lo, hi):
            for b in range(a + 1, hi):
                gap = gap_of(rows[a - lo], rows[b - lo])
                if gap < far[order[a]] or gap < far[order[b]]:
                    pairs[count, 0], pairs[count, 1], d[count] = order[a], order[b], gap
                    count += 1
    return count


@fast
def join_neighbors(
    data: Array,
    fresh: Array,
    known: Array,
    first: int,
    last: int,
    far: Array,
    pairs: Array,
    d: Array,
) -> int:
    """Likewise the pairs of a row's candidates of which one at least is fresh."""
    count, C, M = 0, fresh.shape[1], data.shape[1]
    rows, who = np.empty((2 * C, M), data.dtype), np.empty(2 * C, np.int64)
    for i in range(first, last):
        n_fresh = 0
        while n_fresh < C and fresh[i, n_fresh] >= 0:
            who[n_fresh] = fresh[i, n_fresh]
            n_fresh += 1
        n_all = n_fresh
        while n_fresh and n_all < n_fresh + C and known[i, n_all - n_fresh] >= 0:
            who[n_all] = known[i, n_all - n_fresh]
            n_all += 1
        for a in range(n_all):
            rows[a] = data[who[a]]
        for a in range(n_fresh):
            for b in range(a + 1, n_all):
                if who[a] == who[b]:
                    continue
                gap = gap_of(rows[a], rows[b])
                if gap < far[who[a]] or gap < far[who[b]]:
                    pairs[count, 0], pairs[count, 1], d[count] = who[a], who[b], gap
                    count += 1
    return count


@inlined
def push(i: int, j: int, gap: float, indices: Array, d: Array, new: Array) -> int:
    """Show j to the list of i; 1 if it goes in."""
    k = d.shape[1]
    for s in range(k):
        if indices[i, s] == j:
            return 0
    place = k
    while place > 0 and (
        d[i, place - 1] > gap or (d[i, place - 1] == gap and indices[i, place - 1] > j)
    ):
        place -= 1
    if place == k:
        return 0
    for s in range(k - 1, place, -1):
        d[i, s], indices[i, s], new[i, s] = d[i, s - 1], indices[i, s - 1], new[i, s - 1]
    d[i, place], indices[i, place], new[i, place] = gap, j, True
    return 1


@fast
def show(pairs: Array, gaps: Array, lo: int, hi: int, indices: Array, d: Array, new: Array) -> int:
    """Pairs to the lists of their members among rows lo to hi; how many went in."""
    taken = 0
    for e in range(len(gaps)):
        i, j, gap = pairs[e, 0], pairs[e, 1], gaps[e]
        if lo <= i < hi and gap <= d[i, d.shape[1] - 1]:
            taken += push(i, j, gap, indices, d, new)
        if lo <= j < hi and gap <= d[j, d.shape[1] - 1]:
            taken += push(j, i, gap, indices, d, new)
    return taken


@inlined
def keep(i: int, j: int, rank: int, who: Array, ranks: Array) -> None:
    """j among the candidates of i, those with the lowest ranks, which pairs have in common."""
    place = who.shape[1]
    while place > 0 and (who[i, place - 1] < 0 or ranks[i, place - 1] > rank):
        place -= 1
    if place == who.shape[1] or (place > 0 and who[i, place - 1] == j):
        return
    for s in range(who.shape[1] - 1, place, -1):
        who[i, s], ranks[i, s] = who[i, s - 1], ranks[i, s - 1]
    who[i, place], ranks[i, place] = j, rank


@fast
def candidates(
    indices: Array,
    new: Array,
    turn: int,
    lo: int,
    hi: int,
    fresh: Array,
    fresh_ranks: Array,
    known: Array,
    known_ranks: Array,
) -> None:
    """A random few of the neighbours of rows lo to hi and of those that list them: new ones, others."""
    for i in range(indices.shape[0]):
        for s in range(indices.shape[1]):
            j = indices[i, s]
            mine, theirs = lo <= i < hi, lo <= j < hi
            if j < 0 or not (mine or theirs):
                continue
            rank = hashed(min(i, j), max(i, j), turn)
            if new[i, s]:
                if mine:
                    keep(i, j, rank, fresh, fresh_ranks)
                if theirs:
                    keep(j, i, rank, fresh, fresh_ranks)
            else:
                if mine:
                    keep(i, j, rank, known, known_ranks)
                if theirs:
                    keep(j, i, rank, known, known_ranks)


@fast
def no_longer_new(indices: Array, new: Array, lo: int, hi: int, fresh: Array) -> None:
    """Neighbours that were chosen as fresh candidates are not new any more."""
    for i in range(lo, hi):
        for s in range(indices.shape[1]):
            if new[i, s]:
                for c in range(fresh.shape[1]):
                    if fresh[i, c] == indices[i, s]:
                        new[i, s] = False


@fast
def sharing(
    words: Array,
    values: Array,
    ends: Array,
    posted: Array,
    posted_values: Array,
    posts: Array,
    budget: int,
    first: int,
    last: int,
    found: Array,
) -> None:
    """Rows with the largest products over the rarest features of rows first to last.

    ``words`` and ``values`` hold each row's features from the rarest on, rows ending at ``ends``;
    ``posted`` the rows that have a feature, features ending at ``posts``. Features are looked at until
    ``budget`` rows were met.
    """
    n, k = found.shape
    total, met = np.zeros(n, values.dtype), np.empty(budget + n, np.int64)
    best = np.empty(k, values.dtype)
    for i in range(first, last):
        count, left = 0, budget
        for e in range(ends[i], ends[i + 1]):
            word, value = words[e], values[e]
            left -= posts[word + 1] - posts[word]
            if left < 0:
                break
            for t in range(posts[word], posts[word + 1]):
                j = posted[t]
                if total[j] == 0:
                    met[count] = j
                    count += 1
                total[j] += value * posted_values[t]
        held = 0
        for c in range(count):
            j = met[c]
            x = total[j]
            total[j] = 0
            if j == i or x == 0 or (held == k and x <= best[k - 1]):
                continue
            place = held if held < k else k - 1
            held = min(held + 1, k)
            while place > 0 and best[place - 1] < x:
                best[place], found[i, place] = best[place - 1], found[i, place - 1]
                place -= 1
            best[place], found[i, place] = x, j
        for s in range(held, k):  # too few share anything: the rows that follow
            found[i, s] = (i + 1 + s) % n
