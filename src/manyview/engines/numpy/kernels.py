"""Compiled inner loops (numba, extra "fast"): the formulas of `maths.equations`, row by row.

Nothing here is new mathematics; tests compare every kernel with its NumPy form. They release the
interpreter's lock: `engines.threads` runs them on row blocks side by side.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, njit, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .compiled import keeps_code


def _nothing() -> None:
    pass


#: Sums may be regrouped and fused; NaN and infinity keep their meaning.
FAST = {"reassoc", "contract", "nsz"}
#: Division by zero gives infinity, as in NumPy: no test in the inner loops, which can then use vectors.
SETTINGS: Any = {"nogil": True, "fastmath": FAST, "error_model": "numpy"}
SETTINGS["cache"] = keeps_code(_nothing)
fast = njit(**SETTINGS)
#: For what other kernels call, too. As a call it may be the copy of either, depending on what was
#: compiled and what loaded from the cache: a first run would then round otherwise than all later ones.
inlined = njit(inline="always", **SETTINGS)


@intrinsic
def _ask_for(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Have an entry of a matrix fetched, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        matrix = make_array(kind)(context, builder, args[0])
        entry = get_item_pointer(context, builder, kind, matrix, args[1:])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        to_read, everywhere, data = number(0), number(3), number(1)
        builder.call(prefetch, [builder.bitcast(entry, byte), to_read, everywhere, data])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


#: Without a compiler (NUMBA_DISABLE_JIT) there is no prefetch.
ask_for: Any = (lambda array, row, column: None) if config.DISABLE_JIT else _ask_for  # type: ignore[attr-defined]


# --- the pass over rows ------------------------------------------------------------------------
#
# ``split`` holds the parts of the regularizer (negative, positive, curvature) as whole arrays, and
# ``sums`` those of `Sums`, with P transposed.


@inlined
def _add_sums(X, scale, V, consensus, weight, WV, XWV, sums):
    """`equations.sums_over_rows` of a block, added to the sums so far.

    The rows are ``scale`` times X. WV and XWV are room for intermediate results.
    """
    P, G, vc, vv = sums
    n, K = V.shape
    for i in range(n):
        for k in range(K):
            v = V[i, k]
            WV[i, k] = weight[i, 0] * v
            vc[k] += v * consensus[i, k]
            vv[k] += v * v
    VWV = np.dot(V.T, WV)
    for i in range(n):
        for k in range(K):
            WV[i, k] *= scale[i, 0]
    np.dot(WV.T, X, XWV)
    for k in range(K):
        for m in range(X.shape[1]):
            P[k, m] += XWV[k, m]
        for m in range(K):
            G[k, m] += VWV[k, m]


@inlined
def simplex_threshold(y):
    """What all entries lose when y is projected to the simplex.

    Entries below the threshold of all that are left drop out until none does: a few passes where
    sorting takes seventeen.
    """
    left, threshold = -1, y[0] * 0
    while True:
        total, count = y[0] * 0, 0
        for j in range(len(y)):
            if left < 0 or y[j] > threshold:
                total += y[j]
                count += 1
        # Rounding may let one that has dropped out back in: fewer are left each time, or it ends.
        if count == 0 or 0 <= left <= count:
            return threshold
        left, threshold = count, (total - 1) / count


@fast
def hals_columns(columns, P, G, floor):
    """`SimplexHALS.update_U` in place, ``columns`` being Uᵀ: two sweeps of simplex projections."""
    K, M = columns.shape
    for _ in range(2):
        for k in range(K):
            if G[k, k] <= floor:
                continue
            y = P[:, k].copy()
            for m in range(K):
                for j in range(M):
                    y[j] -= G[k, m] * columns[m, j]
            for j in range(M):
                y[j] = columns[k, j] + y[j] / G[k, k]
            threshold = simplex_threshold(y)
            for j in range(M):
                columns[k, j] = max(y[j] - threshold, 0.0)


#: From this many components on most coefficients of a row are 0 and stay so: these are skipped.
MANY = 100
#: Products with coefficients of which at most one in ``SPARSE`` is not 0 take less time without the others.
SPARSE = 8


@inlined
def _mostly_zero(V):
    """Whether so few coefficients are not 0 that products are quicker without the others."""
    count = 0
    for i in range(V.shape[0]):
        for k in range(V.shape[1]):
            count += V[i, k] != 0
    return SPARSE * count <= V.size


@inlined
def _hals_row_by_row(V, XU, H, consensus, w2, a, beta, split, out):
    """`hals_rows` of many components: HV is touched only where a coordinate changes."""
    negative, positive, curvature = split
    n, K = V.shape
    linear, quadratic = np.empty(K, dtype=V.dtype), np.empty(K, dtype=V.dtype)
    fitted = np.zeros((n, K), dtype=V.dtype)
    if _mostly_zero(V):
        for i in range(n):
            for k in range(K):
                v = V[i, k]
                if v != 0:
                    for m in range(K):
                        fitted[i, m] += v * H[k, m]
    else:
        np.dot(V, H, fitted)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            pull = negative[i, k] - positive[i, k] + curvature[i, k] * V[i, k]
            linear[k] = weight * XU[i, k] + a * consensus[i, k] + beta * pull
            quadratic[k] = weight * H[k, k] + a + beta * curvature[i, k]
            out[i, k] = V[i, k]
        for _ in range(2):
            for k in range(K):
                old, divisor = out[i, k], quadratic[k]
                usable = divisor > 0
                rest = linear[k] - weight * (fitted[i, k] - old * H[k, k])
                step = rest / (divisor if usable else 1)
                step = 0 if step <= 0 else step  # NaN stays
                step = step if usable else old
                change = step - old
                if change != 0:
                    out[i, k] = step
                    for m in range(K):
                        fitted[i, m] += change * H[k, m]


@inlined
def _add_few(X, scale, V, consensus, weight, sums):
    """`_add_sums` of the coefficients that are not 0."""
    P, G, vc, vv = sums
    n, K = V.shape
    places = np.empty(K, dtype=np.int64)
    for i in range(n):
        count = 0
        for k in range(K):
            if V[i, k] != 0:
                places[count] = k
                count += 1
        for e in range(count):
            own = np.uint64(places[e])
            v = V[i, own]
            vc[own] += v * consensus[i, own]
            vv[own] += v * v
            share = weight[i, 0] * v
            for f in range(count):
                G[own, np.uint64(places[f])] += share * V[i, np.uint64(places[f])]
            share *= scale[i, 0]
            for m in range(X.shape[1]):
                P[own, m] += share * X[i, m]


@inlined
def multiplicative_rows(V, XU, H, q, consensus, w2, a, beta, split, out):
    """`Multiplicative.update_V`: v ∘ negative/positive, v itself where positive vanishes."""
    negative, positive, _ = split
    n, K = V.shape
    tiny = np.finfo(V.dtype).tiny
    np.dot(V, H, out)
    for i in range(n):
        weight = w2[i, 0]
        for k in range(K):
            top = weight * XU[i, k] + a * consensus[i, k] * q[k] + beta * negative[i, k]
            bottom = weight * out[i, k] + a * q[k] * q[k] * V[i, k] + beta * positive[i, k]
            usable = bottom > tiny
            step = V[i, k] * top / (bottom if usable else tiny)
            out[i, k] = step if usable else V[i, k]


@inlined
def hals_rows(V, XU, H, q, consensus, w2, a, beta, split, out):
    """`SimplexHALS.update_V`: two sweeps over the coordinates, HV kept up to date.

    Coordinates depend on each other, rows do not: everything is turned so that rows lie side by side.
    """
    negative, positive, curvature = split
    n, K = V.shape
    room = np.empty((4, K, n), dtype=V.dtype)
    new, linear, quadratic, fitted = room[0], room[1], room[2], room[3]
    weight, change = np.empty(n, dtype=V.dtype), np.empty(n, dtype=V.dtype)
    for i in range(n):
        weight[i] = w2[i, 0]
        for k in range(K):
            pull = negative[i, k] - positive[i, k] + curvature[i, k] * V[i, k]
            linear[k, i] = w2[i, 0] * XU[i, k] + a * consensus[i, k] + beta * pull
            quadratic[k, i] = w2[i, 0] * H[k, k] + a + beta * curvature[i, k]
            new[k, i] = V[i, k]
    np.dot(H, new, fitted)
    for _ in range(2):
        for k in range(K):
            for i in range(n):
                old, divisor = new[k, i], quadratic[k, i]
                usable = divisor > 0
                rest = linear[k, i] - weight[i] * (fitted[k, i] - old * H[k, k])
                step = rest / (divisor if usable else 1)
                step = 0 if step <= 0 else step  # NaN stays
                step = step if usable else old
                change[i] = step - old
                new[k, i] = step
            for m in range(K):
                for i in range(n):
                    fitted[m, i] += change[i] * H[k, m]
    for i in range(n):
        for k in range(K):
            out[i, k] = new[k, i]


#: Rows of a block, half as many where rows are long. With so few, and X turned, OpenBLAS uses kernels for
#: small products where the processor has AVX-512: a third less time than with larger blocks, and half of
#: it in float32. (Told to compute as on older processors, the float32 pass took a fifth longer instead.)
BLOCK, WIDE = 64, 2048


@fast
def rows_pass(
    X, scale, U, V, H, q, consensus, fit_weight, a, beta, split, sum_weight, out, sums, hals
):
    """The pass over some rows: a block is read once for X_bU, the step on V_b and its sums.

    The rows are those of X, each times its ``scale``: so that none need be written anew.
    ``hals`` is True, or None for the multiplicative rule: of these two types, numba compiles one rule each.
    """
    K, M, dtype = V.shape[1], X.shape[1], X.dtype
    size = BLOCK if M <= WIDE else BLOCK // 2
    negative, positive, curvature = split
    Ut = np.ascontiguousarray(U.T)
    XU, WV = np.empty((K, size), dtype=dtype), np.empty((size, K), dtype=dtype)
    XWV = np.empty((K, M), dtype=dtype)
    for start in range(0, len(X), size):
        b = slice(start, min(start + size, len(X)))
        x, scale_b, V_b, V_new, V_star = X[b], scale[b], V[b], out[b], consensus[b]
        split_b = (negative[b], positive[b], curvature[b])
        products = XU if len(x) == size else np.empty((K, len(x)), dtype=dtype)
        np.dot(Ut, x.T, products)
        for k in range(K):
            for i in range(len(x)):
                products[k, i] *= scale_b[i, 0]
        XU_b, weight = products.T, fit_weight[b]
        few = False
        if hals is None:
            multiplicative_rows(V_b, XU_b, H, q, V_star, weight, a, beta, split_b, V_new)
        elif K >= MANY:
            _hals_row_by_row(V_b, XU_b, H, V_star, weight, a, beta, split_b, V_new)
            few = _mostly_zero(V_new)
        else:
            hals_rows(V_b, XU_b, H, q, V_star, weight, a, beta, split_b, V_new)
        if few:
            _add_few(x, scale_b, V_new, V_star, sum_weight[b], sums)
        else:
            _add_sums(x, scale_b, V_new, V_star, sum_weight[b], WV[: len(x)], XWV, sums)


@fast
def sparse_rows_pass(
    X, scale, U, V, H, q, consensus, fit_weight, a, beta, split, sum_weight, out, sums, hals
):
    """`rows_pass` of rows in CSR form, the first of which X begins with: no block is copied."""
    indptr, indices, data = X
    P, G, vc, vv = sums
    K, dtype = V.shape[1], V.dtype
    negative, positive, curvature = split
    products, weighted = np.empty((BLOCK, K), dtype=dtype), np.empty((BLOCK, K), dtype=dtype)
    for start in range(0, len(V), BLOCK):
        b = slice(start, min(start + BLOCK, len(V)))
        V_b, V_new, V_star, weight, scale_b = V[b], out[b], consensus[b], fit_weight[b], scale[b]
        split_b = (negative[b], positive[b], curvature[b])
        XU, WV = products[: len(V_b)], weighted[: len(V_b)]
        for i in range(len(V_b)):
            XU[i] = 0
            for e in range(indptr[start + i], indptr[start + i + 1]):
                j, x = np.uint64(indices[e]), data[e]
                for k in range(K):
                    XU[i, k] += x * U[j, k]
            for k in range(K):
                XU[i, k] *= scale_b[i, 0]
        if hals is None:
            multiplicative_rows(V_b, XU, H, q, V_star, weight, a, beta, split_b, V_new)
        elif K >= MANY:
            _hals_row_by_row(V_b, XU, H, V_star, weight, a, beta, split_b, V_new)
        else:
            hals_rows(V_b, XU, H, q, V_star, weight, a, beta, split_b, V_new)
        for i in range(len(V_b)):
            for k in range(K):
                v = V_new[i, k]
                WV[i, k] = sum_weight[start + i, 0] * v
                vc[k] += v * V_star[i, k]
                vv[k] += v * v
        VWV = np.dot(V_new.T, WV)
        for k in range(K):
            for m in range(K):
                G[k, m] += VWV[k, m]
        for i in range(len(V_b)):
            for k in range(K):
                WV[i, k] *= scale_b[i, 0]
            for e in range(indptr[start + i], indptr[start + i + 1]):
                j, x = np.uint64(indices[e]), data[e]
                for k in range(K):
                    P[j, k] += x * WV[i, k]


#: Neighbors lie anywhere in V: their rows are prefetched this many edges ahead.
EDGES_AHEAD = 16


@fast
def graph_rows(graph, degrees, V, start, stop, negative, positive):
    """Rows of A V and D V, and their share of Tr(VᵀLV)."""
    indptr, indices, data = graph
    K, last, value = V.shape[1], len(indices) - 1, 0.0
    for i in range(start, stop):
        for k in range(K):
            negative[i, k] = 0
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + EDGES_AHEAD, last)]
            ask_for(V, coming, 0)
            ask_for(V, coming, K - 1)
            # Unsigned: otherwise every access asks whether the index counts from the end.
            j, weight = np.uint64(indices[e]), data[e]
            for k in range(K):
                negative[i, k] += weight * V[j, k]
    # A loop of its own: as one it is twice as slow, the compiler being unsure what the stores touch.
    for i in range(start, stop):
        for k in range(K):
            own = degrees[i, 0] * V[i, k]
            positive[i, k] = own
            value += V[i, k] * (own - negative[i, k])
    return value


@fast
def graph_step(graph, now, before, p, q, r, start, stop, out):
    """Rows of p·S now + q·now + r·before."""
    indptr, indices, data = graph
    K, last = now.shape[1], len(indices) - 1
    for i in range(start, stop):
        for k in range(K):
            out[i, k] = q * now[i, k] + r * before[i, k]
        for e in range(indptr[i], indptr[i + 1]):
            coming = indices[min(e + EDGES_AHEAD, last)]
            ask_for(now, coming, 0)
            ask_for(now, coming, K - 1)
            j, weight = np.uint64(indices[e]), p * data[e]
            for k in range(K):
                out[i, k] += weight * now[j, k]


# --- distances and codes of rows -----------------------------------------------------------------

#: Rows lie anywhere: they are prefetched this many pairs ahead, in lines of memory of this many bytes.
PAIRS_AHEAD, LINE = 8, 64
#: Features of long rows that are looked at together when pairs are measured.
COLUMNS = 1024
#: Rows and columns of a square array that are in the cache together.
TILE = 64


@fast
def pair_distances(Z, root_mu, comparable, i, j, out):
    """d of the pairs (i, j); 1 where a member is missing.

    Of long rows some columns at a time, so that few rows and many pairs are read from the cache.
    """
    out[:] = 0
    last = len(i) - 1
    for start in range(0, Z.shape[1], COLUMNS):
        stop = min(start + COLUMNS, Z.shape[1])
        for e in range(len(i)):
            coming = j[min(e + PAIRS_AHEAD, last)]
            for m in range(start, stop, LINE // Z.itemsize):
                ask_for(Z, coming, m)
            r, c = np.uint64(i[e]), np.uint64(j[e])
            if not (comparable[r] and comparable[c]):
                continue
            # Counted from 0: otherwise every access asks whether the index counts from the end.
            one, other, squared = Z[r, start:stop], Z[c, start:stop], Z[r, 0] * 0
            for m in range(len(one)):
                gap = one[m] - other[m]
                squared += gap * gap
            out[e] += squared
    _in_units(root_mu, comparable, i, j, out)


@inlined
def _in_units(root_mu, comparable, i, j, out):
    """Squared distances as d."""
    for e in range(len(i)):
        r, c = i[e], j[e]
        known = comparable[r] and comparable[c]
        out[e] = out[e] / (root_mu[r] * root_mu[c]) if known else 1.0


@fast
def sparse_pair_distances(rows, root_mu, comparable, i, j, out):
    """The same of rows in CSR form with sorted columns: what only one of two rows has is all a gap."""
    indptr, indices, data = rows
    for e in range(len(i)):
        a, a_end = indptr[i[e]], indptr[i[e] + 1]
        b, b_end = indptr[j[e]], indptr[j[e] + 1]
        squared = 0.0
        while a < a_end and b < b_end:
            left, right = indices[a], indices[b]
            x = data[a] if left <= right else data[a] * 0
            y = data[b] if right <= left else data[b] * 0
            squared += (x - y) * (x - y)
            a += left <= right
            b += right <= left
        while a < a_end:
            squared += data[a] * data[a]
            a += 1
        while b < b_end:
            squared += data[b] * data[b]
            b += 1
        out[e] = squared
    _in_units(root_mu, comparable, i, j, out)


@fast
def row_codes(Z, bits, odd, out):
    """`repeats.row_codes`; ``bits`` are those of Z as whole numbers, ``odd`` the three odd numbers."""
    first, second, place = odd[0], odd[1], odd[2]
    for i in range(Z.shape[0]):
        total = np.int64(0)
        for m in range(Z.shape[1]):
            z = Z[i, m]
            code = np.int64(bits[i, m])
            code = np.int64(0) if z == 0 else code  # −0 is 0
            code = np.int64(1) if z != z else code
            x = (code + place * np.int64(m + 1)) * first
            x = (x ^ (x >> 31)) * second
            total += x ^ (x >> 29)
        out[i] = total


@fast
def sparse_row_codes(rows, bits, odd, out):
    """The same of rows in CSR form; zeros that are stored are as if they were not."""
    indptr, indices, data = rows
    first, second, place = odd[0], odd[1], odd[2]
    for i in range(len(indptr) - 1):
        total = np.int64(0)
        for e in range(indptr[i], indptr[i + 1]):
            z = data[e]
            code = np.int64(1) if z != z else np.int64(bits[e])
            x = (code + place * np.int64(indices[e] + 1)) * first
            x = (x ^ (x >> 31)) * second
            total += np.int64(0) if z == 0 else x ^ (x >> 29)
        out[i] = total


@fast
def smallest_rows(d, k, first, indices, values):
    """The k smallest entries of every row in order, ties by column; row r itself is first + r."""
    for r in range(d.shape[0]):
        count = 0
        for c in range(d.shape[1]):
            x = d[r, c]
            if c == first + r or (count == k and x >= values[r, k - 1]):
                continue
            place = count if count < k else k - 1
            count = min(count + 1, k)
            while place > 0 and values[r, place - 1] > x:
                values[r, place] = values[r, place - 1]
                indices[r, place] = indices[r, place - 1]
                place -= 1
            values[r, place] = x
            indices[r, place] = c


@fast
def sparse_products(indptr, indices, data, starts, rows, values, out):
    """Z Zᵀ of rows in CSR form, into zeros.

    Columns are written down as rows come, from ``starts`` on in ``rows`` and ``values``: a row meets those
    before it alone.
    """
    n, filled = len(indptr) - 1, starts.copy()
    for i in range(n):
        for e in range(indptr[i], indptr[i + 1]):
            column, z = np.uint64(indices[e]), data[e]
            place = filled[column]
            rows[place], values[place], filled[column] = i, z, place + 1
            for f in range(starts[column], place + 1):
                out[i, np.uint64(rows[f])] += z * values[f]
    _mirrored(out)


@inlined
def _mirrored(square):
    """What is below the diagonal of a square array is above it as well, a tile at a time."""
    n = len(square)
    for top in range(0, n, TILE):
        for left in range(0, top + 1, TILE):
            for i in range(top, min(top + TILE, n)):
                for j in range(left, min(left + TILE, i)):
                    square[j, i] = square[i, j]


# --- lists of the nearest --------------------------------------------------------------------------

#: Products that are compared with the last of a list at a time: as many as processors' widest registers
#: take in a few steps. Most groups hold nothing that is near enough.
GROUP = 64
#: Products that are made at a time, so that they stay in the processor's cache, and most dense rows among
#: which they are searched for.
ROOM, WIDEST = 2**16, 512


@fast
def look_into(left, right, own, starts, order, chosen, shared, near, values):
    """Put rows of cells with small products into the lists, in order, of rows that look into these.

    Cell c has the rows of ``right`` from ``starts[c]`` on; cells are visited in ``order``, and ``chosen``
    (cells × rows) says who looks into which. Row a of ``left`` is row ``own[a]`` itself. ``shared`` are
    sparse rows and, if there are any, who of a cell has a feature, as `_add_shared` takes them.
    """
    ends, features, entries, posts, posted, weights = shared
    asking, rows = np.empty(len(left), dtype=np.int64), np.empty_like(left)
    room = np.empty(max(ROOM, np.diff(starts).max()), dtype=left.dtype)
    for cell in order:
        count = 0
        for a in range(len(left)):
            asking[count] = a
            count += chosen[cell, a]
        for k in range(count):
            rows[k] = left[asking[k]]
        first, last = starts[cell], starts[cell + 1]
        while first < last:
            width = last - first if len(posts) else min(WIDEST, last - first)
            theirs, size = right[first : first + width].T, max(1, ROOM // width)
            for start in range(0, count, size):
                who = asking[start : min(start + size, count)]
                products = room[: len(who) * width].reshape(len(who), width)
                np.dot(rows[start : start + len(who)], theirs, products)
                if len(posts):
                    _add_shared(
                        products, own, who, ends, features, entries, posts[cell], posted, weights
                    )
                _take(products, who, own, first, near, values)
            first += width


@inlined
def _take(products, who, own, first, near, values):
    """Put columns with small products into lists; column c is row ``first`` + c."""
    for a in range(len(who)):
        i, me = who[a], own[who[a]] - first
        for start in range(0, products.shape[1], GROUP):
            group = products[a, start : start + GROUP]
            if len(group) == GROUP and not _any_below(group, values[i, -1]):
                continue
            for c in range(len(group)):
                if group[c] < values[i, -1] and start + c != me:
                    _insert(group[c], first + start + c, values[i], near[i])


@inlined
def _add_shared(products, own, who, ends, features, entries, posts, posted, weights):
    """Add −2 u_i·u_j of rows ``own[who]`` and the rows of a cell, feature by feature.

    ``features`` and ``entries`` hold each row's u, rows ending at ``ends``; ``posted`` and ``weights`` the
    rows of the cell that have a feature, and theirs, features ending at ``posts``.
    """
    for a in range(len(who)):
        i = own[who[a]]
        for e in range(ends[i], ends[i + 1]):
            feature, value = features[e], -2 * entries[e]
            for t in range(posts[feature], posts[feature + 1]):
                products[a, posted[t]] += value * weights[t]


@inlined
def _any_below(group, limit):
    """Whether there is a smaller number: no branches, so that many are compared at a time."""
    found = np.float32(0)
    for c in range(GROUP):
        found += np.float32(1) if group[c] < limit else np.float32(0)
    return bool(found > 0)


@inlined
def _insert(x, who, values, near):
    """Put a number into a list, the last one of which goes."""
    place = len(values) - 1
    while place > 0 and values[place - 1] > x:
        values[place], near[place] = values[place - 1], near[place - 1]
        place -= 1
    values[place], near[place] = x, who


@fast
def listed_by(near, most):
    """For every row those that list it, a limited number, first those that list it in front; else −1."""
    n, k = near.shape
    found, count = np.full((n, most), -1, dtype=np.int32), np.zeros(n, dtype=np.int32)
    for place in range(k):
        for i in range(n):
            j = near[i, place]
            if j >= 0 and count[j] < most:
                found[j, count[j]] = i
                count[j] += 1
    return found


@fast
def look_further(left, right, first, near, listed_by, depth, seen, new, values):
    """Put into the lists of some rows those near their neighbors: ``depth`` of each one's own list.

    Neighbors are the rows that a row lists and that list it. The rows are those from ``first`` on, with
    left sides ``left`` and lists ``new``; ``near`` are the lists before. ``seen`` holds, for every row, the
    last that has looked at it.
    """
    k, both = near.shape[1], near.shape[1] + listed_by.shape[1]
    depth = min(depth, k)
    coming = np.empty(both * (depth + 1), dtype=np.int32)
    for i in range(len(new)):
        me, count = first + i, 0
        seen[me] = me
        for p in range(k):
            if near[me, p] >= 0:
                seen[near[me, p]] = me
        for p in range(both):
            j = near[me, p] if p < k else listed_by[me, p - k]
            for q in range(-1, depth if j >= 0 else -1):
                who = j if q < 0 else near[j, q]
                if who >= 0 and seen[who] != me:
                    seen[who] = me
                    coming[count] = who
                    count += 1
        for e in range(count):
            ahead = coming[min(e + PAIRS_AHEAD, count - 1)]
            for m in range(0, right.shape[1], LINE // right.itemsize):
                ask_for(right, ahead, m)
            who, product = np.uint64(coming[e]), left[i, 0] * 0
            for m in range(right.shape[1]):
                product += left[i, m] * right[who, m]
            if product < values[i, -1]:
                _insert(product, coming[e], values[i], new[i])
