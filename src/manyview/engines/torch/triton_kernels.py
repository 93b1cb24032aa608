# mypy: ignore-errors
"""The kernel of `triton_pass`, in Gluon, the layer of Triton in which a kernel says what lies where.

One program per multiprocessor keeps U in shared memory and its part of XᵀWV in registers, while tiles
of R rows of X come in through a ring of chunks, fetched ahead. Each of the W warps owns C columns of
every chunk (the first axis of all three-dimensional blocks), so the long side of X is summed over
inside a warp and only R × K numbers are exchanged per tile. X is read from memory once.
"""

from __future__ import annotations

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.ampere import async_copy, mma_v2


@gluon.constexpr_function
def _tile_layout(W, R, C):
    """Where X[w, r, c] lies: columns permuted row by row so that a warp meets 32 different banks both
    when it reads 8 rows × 4 columns (for XU) and when it reads 4 rows × 8 columns (for XᵀWV)."""
    shift = {2: 8, 4: 4} if C == 16 else {1: 8, 2: 16, 4: 4}
    bases = [[0, 0, 1 << i] for i in range(C.bit_length() - 1)]
    bases += [[0, 1 << i, shift.get(1 << i, 0)] for i in range(R.bit_length() - 1)]
    bases += [[1 << i, 0, 0] for i in range(W.bit_length() - 1)]
    return gl.SharedLinearLayout(bases)


@gluon.jit
def _truncated(x):
    """The digits of x that TF32 keeps."""
    return (x.to(gl.int32, bitcast=True) & -8192).to(gl.float32, bitcast=True)


@gluon.jit
def _times(x, y, total):
    return mma_v2(x, y, total, input_precision="tf32")


@gluon.jit
def _added(total, x, y, X3: gl.constexpr):
    """total + xy on the tensor cores; with X3 in three passes, which bring back the digits TF32 drops.

    They start from 0: tensor cores cut off where an addition rounds, and long sums would shrink.
    """
    product = gl.zeros_like(total)
    if X3:
        x1, y1 = _truncated(x), _truncated(y)
        product = _times(x1, y - y1, _times(x - x1, y1, product))
        return total + _times(x1, y1, product)
    else:
        return total + _times(x, y, product)


@gluon.jit
def _both_added(a, b, x, y, z, X3: gl.constexpr, APART: gl.constexpr):
    """a + xy and b + xz in turns, so that a product need not wait for the one before.

    APART keeps the small digits in a sum of their own: more turns, for more registers.
    """
    if X3:
        p, q = gl.zeros_like(a), gl.zeros_like(b)
        x1, y1, z1 = _truncated(x), _truncated(y), _truncated(z)
        x0 = x - x1
        if APART:
            small_p, small_q = _times(x0, y1, p), _times(x0, z1, q)
            p, q = _times(x1, y1, p), _times(x1, z1, q)
            small_p, small_q = _times(x1, y - y1, small_p), _times(x1, z - z1, small_q)
            return a + (small_p + p), b + (small_q + q)
        else:
            p, q = _times(x0, y1, p), _times(x0, z1, q)
            p, q = _times(x1, y - y1, p), _times(x1, z - z1, q)
            return a + _times(x1, y1, p), b + _times(x1, z1, q)
    else:
        return _added(a, x, y, False), _added(b, x, z, False)


@gluon.jit
def _side_by_side(x, y):
    return gl.permute(gl.join(x, y), (0, 2, 1)).reshape(x.shape[0], 2 * x.shape[1])


@gluon.jit
def _halves(x):
    return gl.split(gl.permute(x.reshape(x.shape[0], 2, x.shape[1] // 2), (0, 2, 1)))


@gluon.jit
def _index(n: gl.constexpr, axis: gl.constexpr, layout: gl.constexpr):
    """0..n-1 along one axis of three."""
    first: gl.constexpr = 1 if axis == 0 else 0
    second: gl.constexpr = 1 if axis == 2 else 2
    i = gl.arange(0, n, gl.SliceLayout(first, gl.SliceLayout(second, layout)))
    return gl.expand_dims(gl.expand_dims(i, first), second)


@gluon.jit
def _fetch(X, tile, chunk, room, N, M):
    """Start copying a chunk of a tile of X; what lies outside X is filled with zeros."""
    W: gl.constexpr = room.shape[0]
    R: gl.constexpr = room.shape[1]
    C: gl.constexpr = room.shape[2]
    copy: gl.constexpr = gl.BlockedLayout([1, 1, 4], [1, 128 // C, C // 4], [W, 1, 1], [2, 1, 0])
    row = tile * R + _index(R, 1, copy)
    col = (chunk * W + _index(W, 0, copy)) * C + _index(C, 2, copy)
    inside = (row < N) & (col < M)
    async_copy.async_copy_global_to_shared(room, X + row.to(gl.int64) * M + col, inside)
    async_copy.commit_group()


@gluon.jit
def _keep(U, room, first, M, K):
    """Copy columns first.. of U into shared memory, transposed within a chunk."""
    Q: gl.constexpr = room.shape[0]
    W: gl.constexpr = room.shape[1]
    C: gl.constexpr = room.shape[3]
    copy: gl.constexpr = gl.BlockedLayout([1, 1, 1], [1, 1, 32], [1, W, 1], [2, 1, 0])
    k = first + _index(room.shape[2], 1, copy)
    for j in gl.static_range(Q):
        col = (j * W + _index(W, 0, copy)) * C + _index(C, 2, copy)
        room.index(j).store(gl.load(U + col * K + k, (col < M) & (k < K), other=0.0))


@gluon.jit
def _put_sums(P, part, chunk, first, M, K):
    W: gl.constexpr = part.shape[0]
    C: gl.constexpr = part.shape[1]
    layout: gl.constexpr = part.type.layout
    col = (chunk * W + _index(W, 0, layout)) * C + _index(C, 1, layout)
    k = first + _index(part.shape[2], 2, layout)
    gl.store(P + col * K + k, part, (col < M) & (k < K))


@gluon.jit
def _multiplicative(v, xu, fitted, q, star, fit, a, beta, neg, pos):
    """`equations.split_V` and `ratio_step`."""
    top = fit * xu + a * star * q + beta * neg
    bottom = fit * fitted + a * v * (q * q) + beta * pos
    usable = bottom > 1.1754943508222875e-38
    return gl.where(usable, v * (top / gl.where(usable, bottom, 1.0)), v)


@gluon.jit
def _hals(v, xu, fitted, H, h_rows, k, K, star, fit, a, beta, neg, pos, cur):
    """`SimplexHALS.update_V`: two sweeps, every coordinate proposed, one at a time taken.

    A change of coordinate c moves the proposals of all others by its row of H, and not its own.
    """
    rows: gl.constexpr = v.type.layout
    pick = gl.full([v.shape[0], 1], 0, gl.int32, rows)
    diagonal = gl.load(H + k * (K + 1), k < K, other=0.0)
    linear = fit * xu + a * star + beta * (neg - pos + cur * v)
    quadratic = fit * diagonal + a + beta * cur
    movable = quadratic > 0
    inverse = gl.where(movable, 1 / gl.where(movable, quadratic, 1.0), 0.0)
    best = (linear - fit * (fitted - v * diagonal)) * inverse
    pull = fit * inverse
    for _sweep in gl.static_range(2):
        for c in range(K):
            here = (k == c) & movable
            taken = gl.where(best > 0, best, 0 * best)
            change = gl.gather(gl.where(here, taken - v, 0.0), gl.full_like(pick, c), 1)
            v = gl.where(here, taken, v)
            row = h_rows.index(c).load(gl.SliceLayout(0, rows))[None, :]
            best = gl.where(here, best, best - change * (pull * row))
    return v


@gluon.jit
def pass_kernel(
    X, U, V, H, q, STAR, FIT, SUM, NEG, neg_r, neg_c, POS, pos_r, pos_c, CUR, cur_r, cur_c,
    OUT, PARTS, a, beta, N, M, K,
    ALIGN: gl.constexpr, TIMES_V: gl.constexpr, HALS: gl.constexpr, X3: gl.constexpr,
    R: gl.constexpr, C: gl.constexpr, Q: gl.constexpr, S: gl.constexpr,
    KA: gl.constexpr, KB: gl.constexpr, KP: gl.constexpr,
):  # fmt: skip
    """Rows in tiles of R; columns in Q chunks of W·C, S of them in the ring; K as KA + KB, KP in all.

    (Blocks have sides that are powers of two: 20 components as 16 + 8 cost a quarter less than 32.)
    """
    W: gl.constexpr = gl.num_warps()
    M = M * ALIGN  # so the compiler knows that rows start at multiples of 16 bytes
    program, step = gl.program_id(0), gl.num_programs(0)
    mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [W, 1, 1], [1, 16, 8])
    left: gl.constexpr = gl.DotOperandLayout(0, mma, 1)
    right: gl.constexpr = gl.DotOperandLayout(1, mma, 1)
    fit_mma: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [1, W], [16, 8])
    gram: gl.constexpr = gl.NVMMADistributedLayout([2, 0], [2, W // 2], [16, 8])
    # The parts of all warps come together in one thread; a row of V stays within a warp.
    LANES: gl.constexpr = KA if KA < 32 else 32
    all_warps: gl.constexpr = gl.BlockedLayout(
        [W, 1, 1], [1, 32 // LANES, LANES], [1, W, 1], [2, 1, 0]
    )
    form = gl.zeros([R, KA], gl.float32, gl.SliceLayout(0, all_warps))
    if KB:
        form = _side_by_side(form, form)
    rows: gl.constexpr = form.type.layout

    ring = gl.allocate_shared_memory(gl.float32, [S, W, R, C], _tile_layout(W, R, C))
    for n in gl.static_range(S):
        _fetch(X, program + (n // Q) * step, n % Q, ring.index(n), N, M)
    # Swizzled so that the tensor cores' operands come from as many banks as there are.
    u_layout: gl.constexpr = gl.SwizzledSharedLayout(4, 32 // C, C // 4, [2, 1, 0])
    plain: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [2, 1, 0])
    flat: gl.constexpr = gl.SwizzledSharedLayout(8, 1, 4 if KP >= 32 else 2, [1, 0])
    ua = gl.allocate_shared_memory(gl.float32, [Q, W, KA, C], u_layout)
    _keep(U, ua, 0, M, K)
    parts_a = gl.allocate_shared_memory(gl.float32, [W, R, KA], plain)
    if KB:
        ub = gl.allocate_shared_memory(gl.float32, [Q, W, KB, C], u_layout)
        _keep(U, ub, KA, M, K)
        parts_b = gl.allocate_shared_memory(gl.float32, [W, R, KA], plain)
        parts_b.store(gl.zeros([W, R, KA], gl.float32, all_warps))
    v_layout: gl.constexpr = gl.SwizzledSharedLayout(4, 1, 8 if KP >= 32 else 4, [1, 0])
    old_v = gl.allocate_shared_memory(gl.float32, [R, KP], v_layout)
    new_v = gl.allocate_shared_memory(gl.float32, [R, KP], flat)
    weighted_v = gl.allocate_shared_memory(gl.float32, [R, KP], flat)
    fitted_v = gl.allocate_shared_memory(gl.float32, [R, KP], flat)
    pa, pb = (), ()
    for _j in gl.static_range(Q):
        pa = pa + (gl.zeros([W, C, KA], gl.float32, mma),)  # noqa: RUF005
        if KB:
            pb = pb + (gl.zeros([W, C, KB], gl.float32, mma),)  # noqa: RUF005

    k = gl.arange(0, KP, gl.SliceLayout(0, rows))[None, :]
    r = gl.arange(0, R, gl.SliceLayout(1, rows))[:, None]
    h_r = gl.arange(0, KP, gl.SliceLayout(1, rows))[:, None]
    h_room = gl.allocate_shared_memory(gl.float32, [KP, KP], flat)
    h_room.store(gl.load(H + h_r * K + k, (h_r < K) & (k < K), other=0.0))
    if HALS:
        h_rows = gl.allocate_shared_memory(
            gl.float32, [KP, KP], gl.SwizzledSharedLayout(1, 1, 1, [0])
        )
        for c in range(K):
            k_1 = gl.arange(0, KP, gl.SliceLayout(0, rows))
            h_rows.index(c).store(gl.load(H + c * K + k_1, k_1 < K, other=0.0))
    else:
        h_rows = h_room
    q_k = gl.load(q + k, k < K, other=0.0)
    G = gl.zeros([KP, KP], gl.float32, gram)
    vc = gl.zeros([R, KP], gl.float32, rows)
    vv = gl.zeros([R, KP], gl.float32, rows)
    slot = 0
    row = (program * R + r).to(gl.int64)
    v_next = gl.load(V + row * K + k, (row < N) & (k < K), other=0.0)
    old_v.store(v_next)
    for tile in range(program, gl.cdiv(N, R), step):
        # Asked for now, needed after XU; V itself a tile ahead, since V H is formed beside XU.
        v = v_next
        row = (tile * R + r).to(gl.int64)
        inside = (row < N) & (k < K)
        star = gl.load(STAR + row * K + k, inside, other=0.0)
        neg = gl.load(NEG + row * neg_r + k * neg_c, inside, other=0.0)
        pos = gl.load(POS + row * pos_r + k * pos_c, inside, other=0.0)
        fit = gl.load(FIT + row, row < N, other=0.0)
        weight = gl.load(SUM + row, row < N, other=0.0)
        after = row + step * R
        v_next = gl.load(V + after * K + k, (after < N) & (k < K), other=0.0)
        async_copy.wait_group(S - Q)
        xa = gl.zeros([W, R, KA], gl.float32, mma)
        xb = gl.zeros([W, R, KB if KB else 8], gl.float32, mma)
        at, x_t = slot, ()
        for j in gl.static_range(Q):
            x = ring.index(at).load(left)
            u_a = ua.index(j).permute((0, 2, 1)).load(right)
            if KB:
                u_b = ub.index(j).permute((0, 2, 1)).load(right)
                xa, xb = _both_added(xa, xb, x, u_a, u_b, X3, not HALS)
            else:
                xa = _added(xa, x, u_a, X3)
            # Kept in registers for XᵀWV, so that the next tile can come in during the step on V.
            x_t = x_t + (ring.index(at).permute((0, 2, 1)).load(left),)  # noqa: RUF005
            at = gl.where(at == S - 1, 0, at + 1)
        # What the warps tell each other goes through shared memory, all of it past one barrier.
        v_left = old_v.load(gl.DotOperandLayout(0, fit_mma, 1))
        h = h_room.load(gl.DotOperandLayout(1, fit_mma, 1))
        fitted_v.store(_added(gl.zeros([R, KP], gl.float32, fit_mma), v_left, h, X3))
        parts_a.store(xa)
        if KB:
            parts_b.slice(0, KB, 2).store(xb)
        fitted = fitted_v.load(rows)
        xu = gl.sum(parts_a.load(all_warps), 0)
        if KB:
            xu = _side_by_side(xu, gl.sum(parts_b.load(all_warps), 0))
        at = slot  # past the barrier nobody reads this tile any more: its room is free
        for j in gl.static_range(Q):
            _fetch(X, tile + ((S + j) // Q) * step, (S + j) % Q, ring.index(at), N, M)
            at = gl.where(at == S - 1, 0, at + 1)
        slot = at

        if TIMES_V:
            pos = pos * v
        if HALS:
            cur = gl.load(CUR + row * cur_r + k * cur_c, inside, other=0.0)
            new = _hals(v, xu, fitted, H, h_rows, k, K, star, fit, a, beta, neg, pos, cur)
        else:
            new = _multiplicative(v, xu, fitted, q_k, star, fit, a, beta, neg, pos)
        gl.store(OUT + row * K + k, new, inside)
        vc += new * star
        vv += new * new

        old_v.store(v_next)
        new_v.store(new)
        weighted_v.store(weight * new)
        wa = weighted_v.load(gl.SliceLayout(0, right))
        if KB:
            wa, wb = _halves(wa)
            if KB < KA:
                wb, _nothing = _halves(wb)
            wb = gl.convert_layout(wb, gl.SliceLayout(0, right))
            wb = gl.expand_dims(wb, 0).broadcast_to(W, R, KB)
            wa = gl.convert_layout(wa, gl.SliceLayout(0, right))
        wa = gl.expand_dims(wa, 0).broadcast_to(W, R, KA)
        v_t = new_v.permute((1, 0)).load(gl.DotOperandLayout(0, gram, 1))
        G = _added(G, v_t, weighted_v.load(gl.DotOperandLayout(1, gram, 1)), X3)
        new_a, new_b = (), ()
        for j in gl.static_range(Q):
            if KB:
                p_a, p_b = _both_added(pa[j], pb[j], x_t[j], wa, wb, X3, False)
                new_b = new_b + (p_b,)  # noqa: RUF005
            else:
                p_a = _added(pa[j], x_t[j], wa, X3)
            new_a = new_a + (p_a,)  # noqa: RUF005
        pa, pb = new_a, new_b

    async_copy.wait_group(0)
    P = PARTS + program.to(gl.int64) * K * (M + K + 2)
    for j in gl.static_range(Q):
        _put_sums(P, pa[j], j, 0, M, K)
        if KB:
            _put_sums(P, pb[j], j, KA, M, K)
    g_r = gl.arange(0, KP, gl.SliceLayout(1, gram))[:, None]
    g_c = gl.arange(0, KP, gl.SliceLayout(0, gram))[None, :]
    gl.store(P + (M + g_r) * K + g_c, G, (g_r < K) & (g_c < K))
    k = gl.arange(0, KP, gl.SliceLayout(0, rows))
    gl.store(P + (M + K) * K + k, gl.sum(vc, 0), k < K)
    gl.store(P + (M + K + 1) * K + k, gl.sum(vv, 0), k < K)
