"""MultiNMF: factorizations of all views, drawn to one consensus with a fixed weight."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.extmath import row_norms

from manyview._types import Array, Matrix, Seed, Views
from manyview.base import generator
from manyview.engines.numpy.rows import residual_rows
from manyview.initialize import gnmf
from manyview.labels import kmeans, tell_empty_clusters
from manyview.maths import equations as eq
from manyview.nonnegative import SHIFTING, fit_nonnegative
from manyview.regularizers import NoPenalty

from ._base import COUNT, COUNT_OR_ZERO, NOT_NEGATIVE, SCALED, Baseline, observed

#: No entry of U or V falls below. They decay to subnormal numbers otherwise, whose arithmetic is
#: several times slower, and so would be their products; at 0 the consensus could not revive them.
NEGLIGIBLE = 1e-150


@dataclass(eq=False, repr=False)
class MultiNMF(Baseline):
    """Multi-view NMF by joint factorization (Liu, Wang, Gao & Han).

    Minimizes, with the columns of every U_s summing to 1 and one weight a for all views::

        Σ_s ‖X_s − V_s U_sᵀ‖² + a Σ_s ‖V_s − V*‖²

    and clusters the consensus V* by k-means. Missing views are left out of both sums. `WMNMF` is this
    with learned weights, sample weights and a graph.

    Parameters
    ----------
    n_clusters : int, default=8
    n_components : int, optional
        Number K of columns; ``n_clusters`` if not given.
    weight : "equal" or float, default=0.01
        a; "equal" is 1/n_views.
    max_iter : int, default=30
        Rounds. In the first V* is V of the first view, afterwards the mean of all.
    inner_iter : int, default=200
        Iterations per view and round.
    start_passes : int, default=3
        Number of passes of starting factorizations through all views; each starts from the V of the one
        before.
    start_iter : int, default=200
        Iterations of each starting factorization.
    max_redo : int, default=30
        A round that increases the objective is undone and repeated, with the consensus that it ended with.
        The fit ends after this number of repetitions.
    scale : {"sum", "total", "minmax", "standard", "tfidf", "sqrt"} or None, default="sum"
        As in `WMNMF`; "minmax" and "standard" accept negative values.
    n_init : int, default=5
        Starts of k-means.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None

    Attributes
    ----------
    labels_ : ndarray (N,)
    consensus_ : ndarray (N, K), V*
    components_ : list of ndarray (K, M_s), the U_s transposed
    coefficients_ : list of ndarray (N, K), the V_s; NaN for samples that lack the view
    history_ : dict of arrays
        "round", "objective" at its start, and "accepted": False where the round before was undone.
    n_iter_ : int, rounds done

    References
    ----------
    J. Liu, C. Wang, J. Gao and J. Han, Multi-view clustering via joint nonnegative matrix
    factorization, SIAM Data Mining 2013.
    """

    _takes_missing: ClassVar[bool] = True
    _parameter_constraints: ClassVar[dict] = SCALED | {
        "n_components": [COUNT, None],
        "weight": [StrOptions({"equal"}), NOT_NEGATIVE],
        "max_iter": [COUNT],
        "inner_iter": [COUNT],
        "start_passes": [COUNT],
        "start_iter": [COUNT_OR_ZERO],
        "max_redo": [COUNT_OR_ZERO],
        "n_init": [COUNT],
    }

    n_clusters: int = 8
    _: KW_ONLY
    n_components: int | None = None
    weight: str | float = 0.01
    max_iter: int = 30
    inner_iter: int = 200
    start_passes: int = 3
    start_iter: int = 200
    max_redo: int = 30
    scale: str | None = "sum"
    n_init: int = 5
    views: Any = None
    random_state: Seed = None

    def _cluster(self, views: Views) -> None:
        rng = generator(self.random_state)
        a = 1 / len(views) if self.weight == "equal" else float(self.weight)
        k = self.n_components or self.n_clusters
        parts, rows = observed(views)
        Xs = [
            fit_nonnegative(part, self.scale)[0].apply(
                part.matrices[0].astype(np.float64, copy=False)
            )
            for part in parts
        ]
        if self.scale == "total":  # the sum of a view with fewer samples is smaller as well
            n = views.n_samples
            Xs = [X if len(r) == n else X * (len(r) / n) for X, r in zip(Xs, rows, strict=True)]
        U, V = chained_starts(Xs, k, rng, self.start_passes, self.start_iter, rows)
        joint = factorize(Xs, U, V, a, self.max_iter, self.inner_iter, self.max_redo, rows)
        self.labels_ = kmeans(joint.consensus, self.n_clusters, rng, self.n_init)
        tell_empty_clusters(self.labels_, self.n_clusters)
        self.consensus_ = joint.consensus
        self.components_ = [np.ascontiguousarray(Us.T) for Us in joint.U]
        self.coefficients_ = [np.full(joint.consensus.shape, np.nan) for _ in joint.V]
        for whole, Vs, present in zip(self.coefficients_, joint.V, rows, strict=True):
            whole[present] = Vs
        self.history_ = {name: np.array(column) for name, column in joint.history.items()}
        self.n_iter_ = int(self.history_["round"][-1])

    def _allows_negative(self, name: str = "") -> bool:
        return self.scale in SHIFTING


@dataclass
class JointFactors:
    """Factors of all views, their consensus, and the objective round by round."""

    U: list[Array]
    V: list[Array]
    consensus: Array
    history: dict[str, list] = field(
        default_factory=lambda: {"round": [], "objective": [], "accepted": []}
    )

    def record(self, round_: int, objective: float, accepted: bool) -> None:
        for name, value in zip(self.history, (round_, objective, accepted), strict=True):
            self.history[name].append(value)


def chained_starts(
    Xs: list[Matrix],
    k: int,
    rng: np.random.Generator,
    passes: int,
    n_iter: int,
    rows: list[Array],
) -> tuple[list[Array], list[Array]]:
    """Plain NMF of one view after another, each from the V of the last and a random U.

    ``rows`` are the samples that each view has.
    """
    n = 1 + max(int(r.max()) for r in rows)
    U: list[Array] = [np.empty(0)] * len(Xs)
    V: list[Array] = [np.empty(0)] * len(Xs)
    current = 1 - rng.random((n, k))  # in (0, 1]: a zero would stay zero
    for _ in range(passes):
        for s, X in enumerate(Xs):
            U[s], V[s] = nmf(X, 1 - rng.random((X.shape[1], k)), current[rows[s]], n_iter)
            current[rows[s]] = V[s]
    return U, V


def nmf(X: Matrix, U: Array, V: Array, n_iter: int) -> tuple[Array, Array]:
    """Plain NMF with unit column sums of U: GNMF without its graph, whose scaling cancels out."""
    U, V = gnmf(X, U, V, NoPenalty(), 0.0, n_iter)
    return eq.rescale(U, V)


def pulled_nmf(
    X: Matrix, U: Array, V: Array, consensus: Array, a: float, n_iter: int
) -> tuple[Array, Array]:
    """Minimize ‖X − VUᵀ‖² + a‖V − V*‖² over V then U, with unit column sums after every iteration."""
    n, k = V.shape
    w2, one = np.ones((n, 1), dtype=V.dtype), np.ones(k, dtype=V.dtype)
    U, V = eq.rescale(U, V)
    for _ in range(n_iter):
        V = eq.ratio_step(
            V,
            *eq.split_V(V, X @ U, U.T @ U, one, consensus, w2, a, 0.0, (np.zeros(1), np.zeros(1))),
        )
        U = eq.ratio_step(U, *eq.split_U(U, eq.sums_over_rows(X, V, consensus, w2), a))
        U, V = eq.rescale(U, V)
        U, V = np.maximum(U, NEGLIGIBLE), np.maximum(V, NEGLIGIBLE)
    return U, V


def factorize(
    Xs: list[Matrix],
    U: list[Array],
    V: list[Array],
    a: float,
    max_iter: int,
    inner_iter: int,
    max_redo: int = 30,
    rows: list[Array] | None = None,
) -> JointFactors:
    """The rounds: consensus, objective, undo if it rose, then every view anew.

    ``rows`` are the samples that each view has, by default all. The consensus of a sample is over its
    views; it starts as V of the first view that has the sample.
    """
    rows = [np.arange(len(Vs)) for Vs in V] if rows is None else rows
    first = np.empty((1 + max(int(r.max()) for r in rows), V[0].shape[1]))
    for Vs, present in reversed(list(zip(V, rows, strict=True))):
        first[present] = Vs

    def mean_over_views(V: list[Array]) -> Array:
        total, count = np.zeros(first.shape), np.zeros((len(first), 1))
        for Vs, present in zip(V, rows, strict=True):
            total[present] += Vs
            count[present] += 1
        return total / count

    x_sq = [row_norms(X, squared=True) for X in Xs]
    joint = JointFactors(list(U), list(V), first)
    kept, lowest = (joint.U, joint.V), np.inf
    round_ = redone = 0
    while round_ < max_iter:
        if round_ > 0:
            joint.consensus = mean_over_views(joint.V)
        now = _objective(Xs, x_sq, joint, a, rows)
        accepted = not now > lowest
        joint.record(round_ + 1 if accepted else round_, now, accepted)
        if accepted:
            kept, lowest = (joint.U, joint.V), now
            round_ += 1
        elif redone < max_redo:
            joint.U, joint.V = kept
            redone += 1
        else:
            joint.U, joint.V = kept
            joint.consensus = mean_over_views(joint.V)
            break
        pairs = [
            pulled_nmf(X, Us, Vs, joint.consensus[present], a, inner_iter)
            for X, Us, Vs, present in zip(Xs, joint.U, joint.V, rows, strict=True)
        ]
        joint.U, joint.V = [p[0] for p in pairs], [p[1] for p in pairs]
    return joint


def _objective(
    Xs: list[Matrix], x_sq: list[Array], joint: JointFactors, a: float, rows: list[Array]
) -> float:
    total = 0.0
    for X, sq, U, V, present in zip(Xs, x_sq, joint.U, joint.V, rows, strict=True):
        total += float(residual_rows(X, X @ U, U, V, sq, U.T @ U).sum())
        total += a * eq.consensus_gap(V, np.ones(V.shape[1]), joint.consensus[present])
    return total
