"""MLRSSC: each sample as a combination of the others, with coefficients alike in all views."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix, Seed, Views
from manyview._warn import warn_user
from manyview.base import generator
from manyview.labels import largest_first, spectral_from_graph

from . import admm
from ._base import COMMON, COUNT, NOT_NEGATIVE, POSITIVE, Baseline

#: From this many samples on, a fit says first what it will cost.
LARGE = 1000
#: Iterations allowed where ``max_iter`` is None.
MAX_ITER = {"pairwise": 300, "centroid": 100}
#: Size of the trial from which seconds are extrapolated: large enough for BLAS to reach its pace.
TRIAL = 500
#: N×N arrays of float64 alive at once: per view (kernel, A, three C, three L), and in one step.
#: The latter was measured (solver and SVD workspaces are LAPACK's own): 1.8 GB for N=2000, four views.
ARRAYS_PER_VIEW, ARRAYS_OF_STEP = 8, 17


class CostWarning(UserWarning):
    """A fit will need much memory or time."""


@dataclass(eq=False, repr=False)
class MLRSSC(Baseline):
    """Multi-view low-rank sparse subspace clustering (Brbić & Kopriva).

    Every sample is a combination of the others in each view, Xᵀ ≈ XᵀC, where C has low rank (l1), is sparse
    (l2) and alike in all views (l3)::

        Σ_s  l1 ‖C_s‖_* + l2 ‖C_s‖_1 + l3 · (disagreement)  [+ ½‖X_sᵀ − X_sᵀC_s‖²]

    where the disagreement is Σ_{t≠s} ‖C_s − C_t‖² ("pairwise") or ‖C_s − C*‖² ("centroid"), solved by
    ADMM; spectral clustering with unit rows of ``|C| + |C|ᵀ`` gives labels. **Everything is dense N×N**
    in float64, with a solve and a decomposition per view and iteration: see `estimate_cost`, which
    a fit of 1000 or more samples also reports first. ADMM is deterministic; seeds only enter
    in k-means, so use `relabel` instead of fitting again.

    Parameters
    ----------
    n_clusters : int, default=8
    kind : {"pairwise", "centroid"}, default="pairwise"
    kernel : {"rbf"} or None, default=None
        None uses inner products; "rbf" exp(−d²/2σ²) with σ = ``kernel_width`` × median distance.
    kernel_width : float, sequence or dict, default=1
        Factor of the median distance of a view: one for all, one per view, or by view name.
    mu : float, default=100
        First penalty.
    low_rank, consensus : float, default=0.3
        l1 and l3.
    sparse : float, optional
        l2; 1 − ``low_rank`` if not given.
    noisy : bool, default=True
        Allow Xᵀ ≈ XᵀC; otherwise equality is enforced. Kernels need True.
    thr : float, default=1e-3
        Stop when all copies of C differ by no more than this.
    max_iter : int, optional
        ``None``: 300 pairwise, 100 centroid.
    rho, mu_max : float, default=1.5 and 1e6
        The penalty grows by rho per iteration, up to mu_max.
    accumulate : bool, default=False
        Let the centroid grow from iteration to iteration as the authors' program does, which the
        published algorithm does not; it grows without bound where n_views·l3 < 1.
    n_init : int, default=5
        Starts of k-means.
    views : sequence or dict, optional
        If the input is one 2-D array: the number of columns of each view.
    random_state : int, RandomState, Generator or None
    verbose : int, default=0
        1 prints the cost expected and a line per iteration.

    Attributes
    ----------
    labels_ : ndarray (N,)
    affinity_matrix_ : dense ndarray (N, N), ``|C| + |C|ᵀ``
    history_ : dict of arrays, one entry per iteration
        "iteration", "mu", and the largest residuals "low_rank", "sparse", "consensus", "change".
    n_iter_ : int
    converged_ : bool

    References
    ----------
    M. Brbić and I. Kopriva, Multi-view low-rank sparse subspace clustering, Pattern Recognition
    73, 2018.
    """

    _parameter_constraints: ClassVar[dict] = COMMON | {
        "kind": [StrOptions(set(MAX_ITER))],
        "kernel": [StrOptions({"rbf"}), None],
        "kernel_width": [POSITIVE, "array-like", dict],
        "mu": [POSITIVE],
        "low_rank": [NOT_NEGATIVE],
        "sparse": [NOT_NEGATIVE, None],
        "consensus": [NOT_NEGATIVE],
        "noisy": ["boolean"],
        "thr": [NOT_NEGATIVE],
        "max_iter": [COUNT, None],
        "rho": [Interval(Real, 1, None, closed="left")],
        "mu_max": [POSITIVE],
        "accumulate": ["boolean"],
        "n_init": [COUNT],
        "verbose": ["verbose"],
    }

    n_clusters: int = 8
    _: KW_ONLY
    kind: str = "pairwise"
    kernel: str | None = None
    kernel_width: Any = 1.0
    mu: float = 100.0
    low_rank: float = 0.3
    sparse: float | None = None
    consensus: float = 0.3
    noisy: bool = True
    thr: float = 1e-3
    max_iter: int | None = None
    rho: float = 1.5
    mu_max: float = 1e6
    accumulate: bool = False
    n_init: int = 5
    views: Any = None
    random_state: Seed = None
    verbose: int = 0

    def fit(self, X: Any, y: object = None) -> MLRSSC:
        """Find the joint representation and cluster it.

        Parameters
        ----------
        X : list, dict or array
            The views, as for `WMNMF`.
        y : ignored

        Returns
        -------
        MLRSSC
            The estimator itself, fitted.
        """
        self.find_affinity(X)
        self.relabel(self.random_state)
        return self

    def find_affinity(self, X: Any) -> Array:
        """Do all of a fit but its k-means: what no seed changes.

        Parameters
        ----------
        X : list, dict or array
            The views, as for `WMNMF`.

        Returns
        -------
        ndarray (N, N)
            ``affinity_matrix_``, which `relabel` clusters.
        """
        views = self._checked(X)
        self._check_settings()
        widths = self._widths(views)
        if views.n_samples >= LARGE:
            self._announce(views)
        outcome = admm.solve(
            [_kernel(M, self.kernel, f) for M, f in zip(views.matrices, widths, strict=True)],
            [None if self.noisy else M.astype(np.float64) for M in views.matrices],
            self._weights(),
            centroid=self.kind == "centroid",
            mu=float(self.mu),
            rho=self.rho,
            mu_max=self.mu_max,
            thr=self.thr,
            max_iter=self._max_iter(),
            accumulate=self.accumulate,
            report=self._print if self.verbose else None,
        )
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history["iteration"])
        self.converged_ = outcome.converged
        self.affinity_matrix_ = np.abs(outcome.C) + np.abs(outcome.C.T)
        if not self.affinity_matrix_.any():
            warn_user(
                "in MLRSSC no sample is a combination of others, so its affinity is 0 "
                f"everywhere and its labels are meaningless; lower mu={self.mu:g}, thr={self.thr:g} or "
                "sparse; without a kernel, larger features do the same"
            )
        if not outcome.converged:
            worst = max(float(outcome.history[name][-1]) for name in admm.RESIDUALS)
            warn_user(
                f"MLRSSC stopped after {self.n_iter_} iterations with a residual of {worst:.2g}, "
                f"above thr={self.thr:g}; raise max_iter or thr",
                ConvergenceWarning,
            )
        return self.affinity_matrix_

    def relabel(self, random_state: Seed = None) -> Array:
        """Cluster the fitted affinity again with another seed.

        Parameters
        ----------
        random_state : int, Generator or None
            Seed of k-means.

        Returns
        -------
        ndarray (n_samples,)
            The new labels, which are also in ``labels_``.
        """
        check_is_fitted(self, "affinity_matrix_")
        rng = generator(random_state)
        with threadpool_limits(1):
            graph = sp.csr_array(self.affinity_matrix_)
            labels = spectral_from_graph(graph, self.n_clusters, rng, True, self.n_init)
        self.labels_ = largest_first(labels)
        return self.labels_

    def estimate_cost(self, n_samples: int, n_views: int) -> dict[str, float]:
        """What a fit will take: extrapolated from a short trial on this machine.

        Parameters
        ----------
        n_samples : int
            Samples.
        n_views : int
            Views; their numbers of features matter little.

        Returns
        -------
        dict
            "bytes" at the peak; "seconds_per_iteration"; "iterations" likely to be done (with noise
            until mu is so large that the thresholds l/mu fall below thr; without, or if mu does not
            grow so far, all) and "max_iter"; "seconds" and "seconds_at_most" of the two.
        """
        self._validate_params()
        self._check_settings()
        # One solve and one decomposition per view, both cubic in N.
        per_iteration = n_views * float(n_samples) ** 3 * _seconds_per_cube()
        likely, most = self._likely_iterations(), self._max_iter()
        return {
            "bytes": 8.0 * n_samples**2 * (ARRAYS_PER_VIEW * n_views + ARRAYS_OF_STEP),
            "seconds_per_iteration": per_iteration,
            "iterations": likely,
            "max_iter": most,
            "seconds": likely * per_iteration,
            "seconds_at_most": most * per_iteration,
        }

    def _likely_iterations(self) -> int:
        weights = self._weights()
        largest, first = max(weights.low_rank, weights.sparse), min(self.mu, self.mu_max)
        # Equality converges slowly once mu is large: the digits never got below thr.
        if not self.noisy or self.thr == 0 or largest > self.thr * self.mu_max:
            return self._max_iter()
        growth = max(largest / self.thr / first, 1.0)
        if growth > 1 and self.rho == 1:
            return self._max_iter()
        rounds = np.log(growth) / np.log(self.rho) if growth > 1 else 0.0
        return min(self._max_iter(), 2 + int(np.ceil(rounds)))

    def _check_settings(self) -> None:
        """What no single parameter's range can say."""
        if self.kernel is not None and not self.noisy:
            raise ValueError(
                f"kernel={self.kernel!r} has no features to reproduce exactly; use noisy=True"
            )
        if self.accumulate and self.consensus == 0:
            raise ValueError("accumulate=True divides by consensus; use consensus above 0")

    def _weights(self) -> admm.Penalties:
        sparse = max(1 - self.low_rank, 0.0) if self.sparse is None else self.sparse
        return admm.Penalties(self.low_rank, sparse, self.consensus)

    def _max_iter(self) -> int:
        return MAX_ITER[self.kind] if self.max_iter is None else self.max_iter

    def _widths(self, views: Views) -> list[float]:
        given = self.kernel_width
        if isinstance(given, Mapping):
            absent = [name for name in views.names if name not in given]
            if absent:
                raise ValueError(f"kernel_width names {list(given)}, but not the views {absent}")
            factors = [given[name] for name in views.names]
        else:
            factors = [given] * len(views) if np.ndim(given) == 0 else list(given)
        if len(factors) != len(views):
            raise ValueError(f"kernel_width has {len(factors)} factors for {len(views)} views")
        for name, factor in zip(views.names, factors, strict=True):
            if not isinstance(factor, Real) or not 0 < float(factor) < np.inf:
                raise ValueError(
                    f"kernel_width of view {name!r} is {factor!r}; it multiplies the median distance "
                    "and must be a number above 0"
                )
        return [float(factor) for factor in factors]

    def _announce(self, views: Views) -> None:
        cost = self.estimate_cost(views.n_samples, len(views))
        message = (
            f"MLRSSC on {views.n_samples} samples in {len(views)} views will take about "
            f"{cost['bytes'] / 1e9:.1f} GB of memory and {cost['seconds_per_iteration']:.1f} s per "
            f"iteration: likely {duration(cost['seconds'])} ({cost['iterations']} iterations), at most "
            f"{duration(cost['seconds_at_most'])} ({cost['max_iter']})"
        )
        if self.verbose:
            print(message)
        else:
            warn_user(message, CostWarning)

    def _print(self, iteration: int, mu: float, worst: tuple[float, ...]) -> None:
        parts = ", ".join(f"{n} {r:.2g}" for n, r in zip(admm.RESIDUALS, worst, strict=True))
        print(f"iteration {iteration}: mu {mu:.3g}, residuals {parts}", flush=True)


def _kernel(X: Matrix, kernel: str | None, factor: float) -> Array:
    """K (N×N) in float64: inner products, or exp(−d²/2σ²), σ = factor × median of all N² distances."""
    X = X.astype(np.float64, copy=False)
    if kernel is None:
        K = X @ X.T
        return K.toarray() if sp.issparse(K) else K
    distances = euclidean_distances(X)
    width = factor * float(np.median(distances))
    # More than half of the pairs coincide: there is no scale to read, any width tells 0 from the rest.
    width = width if width > 0 else 1.0
    return np.exp(-(distances**2) / (2 * width**2))


@lru_cache(maxsize=1)
def _seconds_per_cube() -> float:
    """Seconds of one solve and one thresholding, divided by N³: the best of three trials."""
    M = np.random.default_rng(0).standard_normal((TRIAL, TRIAL))
    system = M @ M.T + TRIAL * np.eye(TRIAL)
    seconds = []
    for _ in range(3):
        started = time.perf_counter()
        np.linalg.solve(system, M)
        admm.soft_singular(M, 1.0)
        seconds.append(time.perf_counter() - started)
    return min(seconds) / TRIAL**3


def duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"
