"""How many clusters there are: `select_n_clusters`, the criteria of `manyview.criteria`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from manyview._types import Seed
from manyview.base import (
    check_by_view,
    generator,
    kept_views,
    observed_columns,
    observed_part,
    of_view,
)
from manyview.criteria import (
    DEFAULT,
    METHODS,
    OWN_METHODS,
    NoClustersWarning,
    Selection,
    choose,
    choose_for_wmnmf,
    gather,
    usual_candidates,
)
from manyview.fuse import Settings, fit_scalings, quiet_presence
from manyview.robust import RobustWMNMF
from manyview.views.views import as_views
from manyview.wmnmf import WMNMF

__all__ = [
    "DEFAULT",
    "METHODS",
    "OWN_METHODS",
    "NoClustersWarning",
    "Selection",
    "select_n_clusters",
    "usual_candidates",
]


def select_n_clusters(
    views: Any,
    candidates: Iterable[int] | None = None,
    method: str | Iterable[str] = DEFAULT,
    *,
    model: Any = None,
    n_runs: int = 20,
    max_samples: int = 1000,
    random_state: Seed = None,
) -> Selection:
    """Recommend a number of clusters.

    What does not depend on K is done once: the views are scaled, weighted (α) and fused as
    `RobustWMNMF` does; eigenvectors are computed for the largest candidate and cut for the others;
    factorisations of rank K start from rank K−1.

    Three methods look for clusters in the fused graph; these are asked by default. They compare it
    with the graphs of eight clouds without clusters, drawn from a Gaussian with the views' joint
    covariance:

    "stability"
        Clusterings of 80% of the observations, repeated ``n_runs`` times. The score of K is
        (A − A₀)/(1 − A₀), A the mean adjusted Rand index between two runs and A₀ that of the clouds:
        a cloud can be halved reproducibly, so that A alone favours K = 2. Only candidates count
        that reach .5 and whose K-th eigenvalue (as below) exceeds the clouds' by three of their
        standard deviations; of these the largest within one standard error of the best is taken.
        The table also has A, the proportion of ambiguous pairs (PAC) and the cophenetic correlation.
    "eigengap"
        h(ρ_K) − h(ρ_{K+1}) for the eigenvalues ρ of the normalised graph, h(ρ) =
        (ρ² + ρ⁵ + ρ¹⁰ + ρ²⁰)/4; the largest excess over the clouds, if it is at least .05 and three
        of their standard deviations. Without such a gap, and with eigenvalues near 1 beyond the
        largest candidate, the answer is that candidate or more. Clouds that are far from Gaussian
        (bent, skewed, bounded) may have a gap without clusters: ask for stability as well.
    "communities"
        How many Leiden communities the graph has (extra ``communities``; without it this method
        abstains and says so), if they come back in parts of 80% with a score as that of stability of
        at least .5.

    Four choose the rank of a nonnegative factorisation of each view (α-weighted means over views;
    the smallest rank within one standard error of the best). That rank is not the number of
    clusters in general: it is lower where clusters share parts, higher where they need several:

    "bicv"
        Bi-cross-validation: left-out blocks predicted from their neighbours.
    "imputation"
        Error on a hidden tenth of the entries.
    "mdl"
        Bits to write down residual and factors.
    "sure"
        Stein's unbiased risk estimate.

    Parameters
    ----------
    views : list, dict, DataFrames, or one 2-D array
        As `RobustWMNMF` takes them; negative and missing values are fine.
    candidates : iterable of int, optional
        By default 2 to 14 and, where there are ten observations for each, 16, 18, 20, 23, 26, 30, 35
        and 40. 1 may be among them, but is not scored: it is the answer when nothing else stands out.
    method : str or list of str, default=("stability", "eigengap", "communities")
        One or several of the above, or "all". Several vote: graph methods count 1, rank methods
        ¼; a method whose best is the largest candidate, or that cannot tell, abstains if others do
        not. Ties go to the method named first. Where several numbers come back, stability's vote goes
        to the best after a loss of .1 for every doubling or halving between it and the number of
        communities, or of eigengap if no communities come back. If stability and communities find
        nothing, or these are not asked and eigengap finds nothing, that is the answer, unless
        eigengap sees more clusters than any candidate.
    model : RobustWMNMF or WMNMF, optional
        Its settings (neighbours, scale, views, …) are used; never changed. Of a `WMNMF` the rank of its
        own fits is judged, on its own scaled views and by its own objective (consensus, learned weights
        and regulariser included), by "bicv" (then the default) or "imputation": the share of the
        variation of unseen entries that its consensus of rank K leaves, in 4 runs on up to 150 features
        of each view. The answer is the smallest rank after which at most a tenth of the fall is left.
        Complete views only.
    n_runs : int, default=20
        Runs of "stability", at least 3.
    max_samples : int, default=1000
        Larger data are represented by this many random observations.
    random_state : int, RandomState, Generator or None

    Returns
    -------
    Selection
        With ``n_clusters``, ``runner_up``, ``doubtful``, ``reasons``, ``table``, ``votes``, ``found``
        and ``figure()``.

    Examples
    --------
    >>> import manyview as mv
    >>> data = mv.datasets.make_synthetic(150, n_clusters=3, noisy_views=(), random_state=0)
    >>> mv.select_n_clusters(data.views, range(2, 6), "stability", n_runs=5, random_state=0)
    <Selection: 3 clusters (stability 3)>
    """
    rng = generator(random_state)
    if isinstance(model, WMNMF):
        return _for_wmnmf(views, candidates, method, model, max_samples, rng)
    methods = _methods(method, METHODS)
    model = _model(model)
    given = as_views(
        views,
        model.views,
        allow_negative=True,
        allow_files=True,
        allow_missing=True,
        allow_relations=True,
        zero_is_missing=lambda name: of_view(model.zero_rows, name, "auto") != "observed",
        caller="select_n_clusters",
    )
    for parameter, allowed in model._by_view.items():
        check_by_view(parameter, getattr(model, parameter), given.names, allowed)
    _check_count("n_runs", n_runs, 3)
    _check_count("max_samples", max_samples, 10)
    asked = [] if candidates is None else _candidates(candidates, given.n_samples)
    columns, kept, names = observed_columns(given), None, given.names
    if columns is not None and any(mask.any() for mask in columns):
        given, kept = observed_part(given, columns), kept_views(columns)
    settings = Settings.of(model, names, kept)
    with threadpool_limits(1):  # as the estimators: sums differ between thread counts
        present = quiet_presence(given, model.zero_rows)  # fitting the model will give the warnings
        if candidates is None:
            asked = usual_candidates(min(max_samples, int(np.any(present, axis=0).sum())))
        evidence = gather(
            given,
            present,
            fit_scalings(given, present, model.scale),
            settings,
            rng,
            n_values=max(asked) + 1,
            dtype=model.dtype,
            max_samples=max_samples,
            resolution=model.resolution,
        )
        return choose(evidence, asked, methods, rng, n_runs)


def _for_wmnmf(
    views: Any,
    candidates: Iterable[int] | None,
    method: Any,
    model: WMNMF,
    max_samples: int,
    rng: np.random.Generator,
) -> Selection:
    """The rank of the paper's method: its own fits are judged, and no fused graph is made."""
    # Nobody named a method: the criteria of a graph do not apply.
    methods = _methods("bicv" if method == DEFAULT else method, OWN_METHODS)
    _check_count("max_samples", max_samples, 10)
    given = as_views(
        views, model.views, allow_negative=model._allows_negative, caller="select_n_clusters"
    )
    n = min(max_samples, given.n_samples)
    asked = usual_candidates(n) if candidates is None else _candidates(candidates, n)
    with threadpool_limits(1):
        return choose_for_wmnmf(given, model, asked, methods, rng, max_samples)


# --- input -------------------------------------------------------------------------------------


def _methods(method: Any, known: Sequence[str]) -> list[str]:
    listed = list(known) if isinstance(method, str) and method == "all" else method
    listed = [listed] if isinstance(listed, str) else list(dict.fromkeys(listed))
    for name in listed:
        if name not in known:
            raise ValueError(f"method must be 'all' or among {', '.join(known)}; got {name!r}")
    if not listed:
        raise ValueError(f"method is an empty list; name one or more of {', '.join(known)}")
    return listed


def _candidates(candidates: Any, n_samples: int) -> list[int]:
    rule = "candidates must be numbers of clusters such as range(2, 15)"
    if isinstance(candidates, Integral | str) or not isinstance(candidates, Iterable):
        raise ValueError(f"{rule}; got {candidates!r}")
    listed = list(candidates)
    if not listed:
        raise ValueError(f"{rule}; got none")
    for K in listed:
        if isinstance(K, bool) or not isinstance(K, Integral) or K < 1:
            raise ValueError(f"{rule}, integers of at least 1; got {K!r}")
    if max(listed) > n_samples:
        raise ValueError(
            f"candidates go up to {max(listed)}, more than the {n_samples} observations "
            f"(n_samples={n_samples}); ask for fewer"
        )
    asked = sorted({int(K) for K in listed} - {1})
    if not asked:
        raise ValueError(f"{rule}; 1 alone leaves nothing to choose from, add a candidate above it")
    return asked


def _model(model: Any) -> RobustWMNMF:
    if model is None:
        return RobustWMNMF()
    if not isinstance(model, RobustWMNMF):
        raise TypeError(
            f"model must be a RobustWMNMF (its fused graph is what is judged) or a WMNMF, got "
            f"{type(model).__name__}; for another estimator compare "
            "stability(model, views).score between numbers of clusters"
        )
    return model


def _check_count(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
