"""Catalog of baselines by name: those of the paper's tables, omics methods and simple ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.cluster import KMeans, SpectralClustering

from manyview._types import Seed
from manyview.wmnmf import WMNMF

from .fusion import NEMO, SNF
from .graphs import ConcatLeiden, KNNSpectral, SumOfGraphs
from .mlrssc import MLRSSC
from .multinmf import MultiNMF
from .pintmf import PIntMF
from .wrappers import BestSingleView, ConcatViews

#: Called with a seed, makes an unfitted estimator.
Factory = Callable[[Any], Any]

#: Methods that use known classes if they are passed, as in ``fit(views, y)``.
ORACLES = ("BSV-kmeans", "BSV-Spectral")

DESCRIPTIONS: dict[str, str] = {
    "BSV-kmeans": (
        "k-means on each view alone; the best view is used. If the known classes are passed, they decide "
        "which view is best, as in the paper: an upper bound, which a user cannot reach."
    ),
    "ConcatK": (
        "k-means (one start) on all views side by side, unscaled: features with large numbers "
        "dominate."
    ),
    "BSV-Spectral": (
        "Spectral clustering with MATLAB's defaults on each view alone; the best view is used. If "
        "the known classes are passed, they decide which view is best, as in the paper: an upper bound."
    ),
    "ConcatSpectral": (
        "Spectral clustering with MATLAB's defaults on all views side by side, unscaled. Its poor "
        "score is an artifact: on unscaled features the kernel exp(-d^2) underflows to 0 for all "
        "pairs, or all but a few, so the graph is empty and nothing is clustered. See "
        "ConcatSpectral-z for the same idea on scaled features."
    ),
    "MultiNMF1": "Joint NMF of all views, drawn to their mean with the weight 1/(number of views).",
    "MultiNMF2": "Joint NMF of all views, drawn to their mean with the weight 0.01.",
    "P-MLRSSC": "Low-rank sparse subspace clustering, every pair of views drawn together.",
    "C-MLRSSC": "Low-rank sparse subspace clustering, every view drawn to a common center.",
    "P-KMLRSSC": "P-MLRSSC with a Gaussian kernel.",
    "C-KMLRSSC": "C-MLRSSC with a Gaussian kernel.",
    "NMF-W1": "WM-NMF with equal sample weights, to show what its sample weights add.",
    "NMF-W2": "WM-NMF with equal sample weights and no graph.",
    "WM-NMF": "The paper's method: weights for views and samples, and a graph in each view.",
    "ConcatSpectral-z": (
        "All views side by side, each feature as a z-score, then scikit-learn's spectral "
        "clustering of the 10-nearest-neighbor graph. Simple, strong, and not in the paper."
    ),
    "ConcatK-z": (
        "All views side by side, each feature as a z-score, then the best of 10 k-means starts. Not in "
        "the paper."
    ),
    "ConcatSpectral-minmax": (
        "As ConcatSpectral-z, with each feature mapped to [0, 1] instead. Not in the paper."
    ),
    "SumOfGraphs": (
        "Spectral clustering of the sum of the views' 10-nearest-neighbor graphs. Not in the paper."
    ),
    "SNF": (
        "Similarity network fusion: the views' networks are diffused through each other, then "
        "clustered. Common in omics; not in the paper."
    ),
    "NEMO": (
        "Similarities relative to the nearest neighbors, averaged over the views, then clustered. "
        "Common in omics; not in the paper."
    ),
    "PIntMF": (
        "One nonnegative matrix of weights for all views and sparse profiles for each, from a start by "
        "SNF. Not in the paper."
    ),
    "ConcatLeiden": (
        "All views side by side, each feature as a z-score, then Leiden communities of the "
        "10-nearest-neighbor graph, with the requested number. Not in the paper."
    ),
}

_KINDS = {
    "P-MLRSSC": "pairwise",
    "C-MLRSSC": "centroid",
    "P-KMLRSSC": "pairwise",
    "C-KMLRSSC": "centroid",
}
#: What the authors of MLRSSC chose on the digits; kernel widths by view name.
_WIDTHS = {"fac": 5.0, "fou": 0.5, "kar": 0.5, "mor": 0.5, "pix": 0.5, "zer": 0.5}
_DIGITS: dict[str, dict[str, Any]] = {
    "P-MLRSSC": {"mu": 100, "low_rank": 0.5, "consensus": 0.7, "noisy": False},
    "C-MLRSSC": {"mu": 10, "low_rank": 0.9, "consensus": 0.7, "noisy": False},
    "P-KMLRSSC": {"mu": 1e4, "low_rank": 0.7, "consensus": 0.7, "kernel_width": _WIDTHS},
    "C-KMLRSSC": {"mu": 1e4, "low_rank": 0.7, "consensus": 0.5, "kernel_width": _WIDTHS},
}


def paper_methods(n_clusters: int, *, settings: str = "default") -> dict[str, Factory]:
    """Return the thirteen methods of the paper's tables by name (`DESCRIPTIONS` describes them).

    Parameters
    ----------
    n_clusters : int
    settings : {"default", "digits"}, default="default"
        For MLRSSC: its authors' defaults, or their settings for the handwritten digits (with the view names
        of `load_handwritten`).

    Returns
    -------
    dict of str to function
        Name → function of a seed that makes the estimator.

    Examples
    --------
    >>> methods = paper_methods(10)
    >>> len(methods), methods["MultiNMF1"](0).weight
    (13, 'equal')
    """
    if settings not in ("default", "digits"):
        raise ValueError(f"settings must be 'default' or 'digits', got {settings!r}")
    # k-means from one start here and in MLRSSC, as MATLAB's default: it is part of the paper's spread.
    kmeans = KMeans(n_clusters, n_init=1)
    spectral = KNNSpectral(n_clusters)
    methods: dict[str, Factory] = {
        "BSV-kmeans": _seeded(BestSingleView, kmeans),
        "ConcatK": _seeded(ConcatViews, kmeans),
        "BSV-Spectral": _seeded(BestSingleView, spectral),
        "ConcatSpectral": _seeded(ConcatViews, spectral),
        "MultiNMF1": _seeded(MultiNMF, n_clusters, weight="equal"),
        "MultiNMF2": _seeded(MultiNMF, n_clusters, weight=0.01),
    }
    for name, kind in _KINDS.items():
        kernel = "rbf" if "-K" in name else None
        chosen: dict[str, Any] = {"kind": kind, "kernel": kernel, "n_init": 1}
        if settings == "digits":
            chosen |= {"thr": 1e-5, **_DIGITS[name]}
        methods[name] = _seeded(MLRSSC, n_clusters, **chosen)
    return methods | {
        "NMF-W1": _seeded(WMNMF.nmf_w1, n_clusters),
        "NMF-W2": _seeded(WMNMF.nmf_w2, n_clusters),
        "WM-NMF": _seeded(WMNMF, n_clusters),
    }


def plain_spectral(n_clusters: int, n_neighbors: int = 10) -> SpectralClustering:
    """The honest baseline, on z-scored features side by side: simple, and hard to beat."""
    return SpectralClustering(n_clusters, affinity="nearest_neighbors", n_neighbors=n_neighbors)


def honest_methods(n_clusters: int) -> dict[str, Factory]:
    """Return simple methods on scaled features by name, to compare with other methods.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    dict of str to function
        Name → function of a seed that makes the estimator.
    """
    spectral = plain_spectral(n_clusters)
    kmeans = KMeans(n_clusters, n_init=10)
    return {
        "ConcatSpectral-z": _seeded(ConcatViews, spectral, scale="standard"),
        "ConcatK-z": _seeded(ConcatViews, kmeans, scale="standard"),
        "ConcatSpectral-minmax": _seeded(ConcatViews, spectral, scale="minmax"),
        "SumOfGraphs": _seeded(SumOfGraphs, n_clusters),
    }


def omics_methods(n_clusters: int) -> dict[str, Factory]:
    """Return methods that are common in omics by name, with their authors' settings.

    Parameters
    ----------
    n_clusters : int

    Returns
    -------
    dict of str to function
        Name → function of a seed that makes the estimator.
    """
    return {
        "SNF": _seeded(SNF, n_clusters),
        "NEMO": _seeded(NEMO, n_clusters),
        "PIntMF": _seeded(PIntMF, n_clusters),
        "ConcatLeiden": _seeded(ConcatLeiden, n_clusters),
    }


def _make(
    maker: Callable[..., Any], args: tuple, params: dict[str, Any], random_state: Seed = None
) -> Any:
    return maker(*args, **params, random_state=random_state)


def _seeded(maker: Callable[..., Any], *args: Any, **params: Any) -> Factory:
    # A partial, not a closure: comparisons send factories to other processes.
    return partial(_make, maker, args, params)
