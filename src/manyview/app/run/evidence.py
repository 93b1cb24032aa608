"""What can be said about a clustering beyond its labels: a plain rival, and refits of parts of the data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix, Views
from manyview.base import fitted_input, generator, observed_columns, observed_part
from manyview.baselines.catalogue import plain_spectral
from manyview.baselines.wrappers import scaled, side_by_side
from manyview.engines.numpy.distances import sparse_products, written_out
from manyview.engines.numpy.presence import as_table, is_table
from manyview.engines.numpy.sources import is_streamed
from manyview.fuse import view_agreement as compare_views
from manyview.labels import resamples, shared_ari
from manyview.metrics import scores
from manyview.models import Estimator, number_of_clusters
from manyview.outcomes.mark import Without, fitted_without
from manyview.reliability import Refits, Stability, stability, summarize
from manyview.robust import RobustWMNMF

#: Most rows of large files that are looked at, and of sparse views all of whose distances are measured.
MOST_ROWS = 5000
#: Entries, and fewest rows, of the part of large files that is looked at.
ENTRIES, FEWEST_ROWS = 2**22, 500
#: Above this many observations refits and the rival clustering are left to those who ask for them.
LARGE = 20_000
#: Share of the observations in a refit.
PART = 0.8
BASELINE = "z-scored features side by side, spectral clustering of their 10 nearest neighbours"


def tabled(views: Views) -> Views:
    """The views as tables of features: relations as methods of features take them."""
    if all(map(is_table, views.matrices)):
        return views
    return views.with_matrices([as_table(X) for X in views.matrices])


def looked_at(views: Views, labels: Array) -> tuple[Views, Array]:
    """The views that are looked at, and which rows: all, or of files a part that fits in memory."""
    if not any(is_streamed(X) for X in views.matrices):
        return views, np.arange(len(labels))
    most = max(FEWEST_ROWS, ENTRIES // sum(views.n_features))
    rows = drawn(labels, min(MOST_ROWS, most))
    return views.with_matrices([X[rows] for X in views.matrices]), rows


def z_scored(views: Views) -> list[Matrix]:
    """Every feature as a z-score, what is not observed at its mean, features nobody has left out."""
    columns = observed_columns(views)
    views = views if columns is None else observed_part(views, columns)
    zs = scaled(views, "standard")
    return [Z if sp.issparse(Z) else np.nan_to_num(Z, nan=0.0) for Z in zs]


def sparse_distances(zs: list[Matrix]) -> Array:
    """Euclidean distances between all rows of some views side by side, most of them sparse.

    By products of our own: scikit-learn's take minutes where a tenth of the entries is not zero.
    """
    d: Any = 0.0
    for Z in zs:
        Z = written_out(sp.csr_array(Z)) if sp.issparse(Z) else Z
        products = sparse_products(Z) if sp.issparse(Z) else Z @ Z.T
        own = products.diagonal()
        d = d + (own[:, None] + own - 2 * products)
    d = np.sqrt(np.maximum(d, 0))
    np.fill_diagonal(d, 0)
    return d


def drawn(labels: Array, most: int) -> Array:
    """Rows that have a cluster, or a random ``most`` of them, in order; the same at every call."""
    rows = np.flatnonzero(labels >= 0)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return rows


def no_refits(model: Estimator, n: int, n_runs: int) -> str:
    """Why refits of parts of the data are not made; "" if they are."""
    n_clusters = number_of_clusters(model)
    nowhere = int((np.asarray(model.labels_) < 0).sum())
    if n_clusters < 2:
        return "one cluster holding everything always comes back"
    if n_runs < 2:
        return "it refits the model several times, which was not asked for or is dear on large data"
    if n < 10:
        return f"{n} observations are too few to leave some out"
    # A part may have lost only observations that have data.
    held = round(PART * n) - nowhere
    if n_clusters > held:
        return f"{PART:.0%} of the observations are fewer than the {n_clusters} clusters asked for"
    return ""


def n_refits(n: int) -> int:
    return 0 if n > LARGE else 10 if n <= 1000 else 5


def rival_labels(zs: list[Matrix], n_clusters: int, seed: int) -> Array | None:
    """The honest baseline on the same data; ``None`` where it is too dear or not defined."""
    n = zs[0].shape[0]
    if n > LARGE or not 2 <= n_clusters < n:
        return None
    model = plain_spectral(n_clusters, min(10, n - 1)).set_params(random_state=seed)
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)  # a graph in several pieces is no news here
        if any(map(sp.issparse, zs)) and n <= MOST_ROWS:
            model.set_params(affinity="precomputed_nearest_neighbors")
            return np.asarray(model.fit_predict(sparse_distances(zs)))
        return np.asarray(model.fit_predict(side_by_side(zs)))


def rivalry(method: str, labels: Array, rival: Array, truth: Any) -> list[dict[str, Any]]:
    """A row per clustering: agreement with the other, and scores if classes are known."""
    known = labels >= 0
    rows = []
    for name, found in ((method, labels), (BASELINE, rival)):
        row: dict[str, Any] = {
            "clustering": name,
            "clusters": len(np.unique(found[known])),
            "ari_with_other": shared_ari(labels, np.where(known, rival, -1)),
        }
        if truth is not None:
            row |= known_scores(truth, np.where(known, found, -1))
        rows.append(row)
    return rows


def known_scores(truth: Any, labels: Array) -> dict[str, float]:
    """Scores over the observations that have both a known class and a cluster."""
    both = [i for i, t in enumerate(truth) if t is not None and t == t and labels[i] >= 0]
    return scores(np.asarray([truth[i] for i in both]), labels[both]) if both else {}


def view_agreement(model: Estimator, views: Views) -> tuple[Array, Array]:
    """How much views agree (off the diagonal) and halves of the same view (on it); and how much views
    repeat each other."""
    if isinstance(model, RobustWMNMF):
        matrix, halves = np.array(model.agreement_, dtype=float), model.split_half_
        repeated = model.redundancy_
    else:
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore", UserWarning)
            matrix, halves, repeated = compare_views(views)
    np.fill_diagonal(matrix, halves)
    return matrix, repeated


#: Up to so many observations a refit is a whole fit: it is quick, and weights vary between parts.
FITTED_WHOLE = 1000


def shares_measurements(model: Estimator, n: int) -> bool:
    """Whether refits take from the model what it has measured."""
    return n > FITTED_WHOLE and Refits.possible(model)


def refitted(
    model: Estimator, views: Views, n_runs: int, seed: int, tell: Callable[[str], Any]
) -> Stability | None:
    """Stability over refits of parts of the data; ``None`` where there is a reason against."""
    if no_refits(model, views.n_samples, n_runs):
        return None
    if isinstance(model, RobustWMNMF) and shares_measurements(model, views.n_samples):
        return _on_parts(model, n_runs, seed, tell)
    data: Any = dict(zip(views.names, views.matrices, strict=True))
    if fitted_input(model).single:
        data = side_by_side(list(views.matrices))
    return stability(model, data, n_runs, fraction=PART, random_state=seed)


def _on_parts(model: RobustWMNMF, n_runs: int, seed: int, tell: Callable[[str], Any]) -> Stability:
    """Every observation that has a cluster is left out equally often, as by `stability`."""
    labels, rng, refits = np.asarray(model.labels_), generator(seed), Refits(model)
    known = np.flatnonzero(labels >= 0)
    runs = np.full((n_runs, len(labels)), -1)
    for run, part in enumerate(resamples(len(known), PART, n_runs, rng)):
        tell(f"refitting parts of the data, {run + 1} of {n_runs}")
        rows = known[part]
        runs[run, rows] = refits.part(rows, generator(int(rng.integers(2**31))))
    return summarize(labels, runs)


def clusters_without(model: Estimator, n: int) -> Without:
    """How to find the clusters without a view: from what the model measured, or by a whole fit."""
    if not (isinstance(model, RobustWMNMF) and shares_measurements(model, n)):
        return fitted_without
    refits = Refits(model)

    def found(model: Any, views: Views, s: int, n_clusters: int) -> Array:
        labels = refits.without(s, n_clusters)
        return fitted_without(model, views, s, n_clusters) if labels is None else labels

    return found
