"""What can be said about a clustering beyond its labels: a plain rival, refits, tests of features."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

from manyview._types import Array, Matrix, Views
from manyview.base import fitted_input, kept_views, observed_columns, observed_part
from manyview.baselines._base import scaled, side_by_side
from manyview.baselines.catalogue import plain_spectral
from manyview.engines.affinity import nearest_neighbors
from manyview.engines.numpy.distances import sparse_products, written_out
from manyview.engines.numpy.presence import as_table, is_table, observed_rows
from manyview.engines.numpy.sources import is_streamed
from manyview.fuse import quiet_presence
from manyview.fuse import view_agreement as compare_views
from manyview.labels import n_neighbors, shared_ari
from manyview.metrics import scores
from manyview.models import Estimator, number_of_clusters
from manyview.outcomes import markers
from manyview.outcomes.mark import Markers, fitted_on, tested_markers
from manyview.reliability import Refits, Stability, stability
from manyview.robust import RobustWMNMF
from manyview.views.containers import Collection, Item

#: Most rows of large files that are looked at, and of sparse views all of whose distances are measured.
MOST_ROWS = 5000
#: Entries, and fewest rows, of the part of large files that is looked at.
ENTRIES, FEWEST_ROWS = 2**22, 500
#: Above this many samples refits and the rival clustering are left to those who ask for them.
LARGE = 20_000
#: Share of the samples in a refit.
PART = 0.8
#: Up to this many samples a refit is a whole fit. With the weights of the model small parts would agree
#: too well: .74 for .54 with communities in a cohort of 345 samples.
FITTED_WHOLE = 1000
#: Refits of parts that compare each view alone, and all but one, with all views.
PART_RUNS = 5
#: Features listed per cluster and view.
LISTED = 50
#: Entries of all views that are tested, of large data in a part of the samples: some seconds.
TESTED = 80_000_000
#: Members of each cluster in that part; all members of a smaller cluster.
FEWEST_MEMBERS = 50
#: Views up to which the model is fitted again without each.
MOST_VIEWS = 12
BASELINE = "z-scored features side by side, spectral clustering of their 10 nearest neighbors"
#: What is written behind it where the fit aligned batches.
CENTERED = "; each feature centered within each batch"
#: Entries of a sparse view up to which it is centered.
MOST_CENTERED = 2**27


VOTES = "share of its nearest neighbors in the consensus that are in the same cluster"
REFITS = "how likely a refit on resampled data is to put it into the same cluster"
SHARE = "its largest share of the consensus"


@dataclass(frozen=True)
class Findings:
    """What was found out about a fitted model."""

    labels: Array
    #: How sure every label is, and what that number means.
    sure: Array
    sure_is: str
    #: Which views describe each sample.
    here: Array
    #: The views and the rows that were looked at.
    shown: Views
    rows: Array
    #: The simple baseline; empty if it was left out.
    rivals: list[dict[str, Any]]
    stable: Stability | None
    no_stability: str
    #: Leading features with their tests; each view on clusters found without it, or why that was not done.
    leading: Any
    without_views: Markers | None
    not_left_out: str
    n_tested: int
    agreement: Array
    redundancy: Array
    #: The same method on fewer views, and the labels it found there.
    fusion: list[dict[str, Any]]
    fusion_labels: dict[str, Array]


def find_out(
    model: Estimator, views: Views, truth: Any, n_runs: int | None, tell: Callable[[str], Any]
) -> Findings:
    """Compare, refit, test and measure; ``tell`` hears of every step that takes time."""
    labels = np.asarray(model.labels_)
    seed = model.random_state if isinstance(model.random_state, int) else 0
    sure, sure_is = confidence(model)
    tell("comparing with a simple baseline")
    tabled = views
    if not all(map(is_table, views.matrices)):  # relations as methods of features take them
        tabled = views.with_matrices([as_table(X) for X in views.matrices])
    shown, rows = looked_at(tabled, labels)
    whole = shown is tabled
    batch = model.batch_of(views) if isinstance(model, RobustWMNMF) else None
    zs = z_scored(shown, batch) if whole else None
    rival = None if zs is None else rival_labels(zs, number_of_clusters(model), seed)
    baseline = BASELINE + (CENTERED if batch is not None else "")
    rivals = [] if rival is None else rivalry(type(model).__name__, labels, baseline, rival, truth)
    tell("refitting parts of the data, to see which clusters come back")
    n_runs = n_refits(views.n_samples) if n_runs is None else n_runs
    n_runs = n_runs if whole else 0
    stable = refitted(model, views, n_runs, seed, tell)
    tell("testing features, and each view on clusters found without it")
    others = None
    if stable is not None and shown is views and 1 < len(views) <= MOST_VIEWS:
        others = OtherViews(model, views, number_of_clusters(model))
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # the fit of all views has said them
        tested = feature_tests(model, shown, labels[rows], others)
        fusion = ([], {}) if others is None else others.table(labels, seed, tell)
    tell("measuring how much the views agree")
    agreement, redundancy = view_agreement(model, shown)
    no_stability = no_refits(model, views.n_samples, n_runs)
    return Findings(
        labels, sure, sure_is, described(model, views), shown, rows, rivals, stable, no_stability,
        *tested, agreement, redundancy, *fusion,
    )  # fmt: skip


# --- labels, and who has which view -----------------------------------------------------------------


def confidence(model: Estimator) -> tuple[Array, str]:
    """How sure each label is, from 0 to 1, and in words what that number is."""
    labels = np.asarray(model.labels_)
    if isinstance(model, RobustWMNMF):
        return model.confidence_[np.arange(len(labels)), np.maximum(labels, 0)], REFITS
    V = model.consensus_
    if model.assign_labels == "argmax":
        return V.max(axis=1) / np.maximum(V.sum(axis=1), 1e-300), SHARE
    V = np.asarray(V, dtype=float)
    indices, _ = nearest_neighbors(V, n_neighbors(len(V)))
    return (labels[indices] == labels[:, None]).mean(axis=1), VOTES


def described(model: Estimator, views: Views) -> Array:
    """Which views describe each sample (N×n_views), as the model has it."""
    if not isinstance(model, RobustWMNMF):
        return np.column_stack([observed_rows(X) for X in views.matrices])
    columns = observed_columns(views)
    if columns is None:
        return np.column_stack(quiet_presence(views, model.zero_rows_))
    # Columns without values were left out of the fit, and make no row incomplete.
    here = np.zeros((views.n_samples, len(views)), dtype=bool)
    part = observed_part(views, columns)
    here[:, kept_views(columns)] = np.column_stack(quiet_presence(part, model.zero_rows_))
    return here


def drawn(labels: Array, most: int) -> Array:
    """Rows that have a cluster, or a random ``most`` of them, in order; the same at every call."""
    rows = np.flatnonzero(labels >= 0)
    if len(rows) > most:
        rows = np.sort(np.random.default_rng(0).choice(rows, most, replace=False))
    return rows


# --- a plain rival ----------------------------------------------------------------------------------


def looked_at(views: Views, labels: Array) -> tuple[Views, Array]:
    """The views that are looked at, and which rows: all, or of files a part that fits in memory."""
    if not any(is_streamed(X) for X in views.matrices):
        return views, np.arange(len(labels))
    most = max(FEWEST_ROWS, ENTRIES // sum(views.n_features))
    rows = drawn(labels, min(MOST_ROWS, most))
    return part_of(views, rows), rows


def part_of(views: Views, rows: Array) -> Views:
    names = None if views.sample_names is None else views.sample_names[rows]
    return replace(views, matrices=tuple(X[rows] for X in views.matrices), sample_names=names)


def z_scored(views: Views, batch: Array | None) -> list[Matrix] | None:
    """Every feature as a z-score, missing values at its mean, features without values left out.

    With ``batch`` each is centered within batches; ``None`` where sparse views are too large for that.
    """
    columns = observed_columns(views)
    views = views if columns is None else observed_part(views, columns)
    zs = scaled(views, "standard")
    if batch is not None:
        if any(sp.issparse(Z) and np.prod(Z.shape) > MOST_CENTERED for Z in zs):
            return None
        zs = [Z.toarray() if sp.issparse(Z) else Z.copy() for Z in zs]
        for Z, own in itertools.product(zs, (batch == one for one in np.unique(batch))):
            n = np.maximum(np.count_nonzero(~np.isnan(Z[own]), axis=0), 1)
            Z[own] -= np.nansum(Z[own], axis=0) / n
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


def rival_labels(zs: list[Matrix], n_clusters: int, seed: int) -> Array | None:
    """The honest baseline on the same data; ``None`` where it is too dear or not defined."""
    n = zs[0].shape[0]
    if n > LARGE or not 2 <= n_clusters < n:
        return None
    model = plain_spectral(n_clusters, min(10, n - 1)).set_params(random_state=seed)
    with warnings.catch_warnings(action="ignore", category=UserWarning), threadpool_limits(1):
        # a graph in several pieces is no news here
        if any(map(sp.issparse, zs)) and n <= MOST_ROWS:
            model.set_params(affinity="precomputed_nearest_neighbors")
            return np.asarray(model.fit_predict(sparse_distances(zs)))
        return np.asarray(model.fit_predict(side_by_side(zs)))


def rivalry(
    method: str, labels: Array, baseline: str, rival: Array, truth: Any
) -> list[dict[str, Any]]:
    """A row per clustering: agreement with the other, and scores if classes are known."""
    known = labels >= 0
    rows = []
    for name, found in ((method, labels), (baseline, rival)):
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
    """Scores over the samples that have both a known class and a cluster."""
    both = [i for i, t in enumerate(truth) if t is not None and t == t and labels[i] >= 0]
    return scores(np.asarray([truth[i] for i in both]), labels[both]) if both else {}


def view_agreement(model: Estimator, views: Views) -> tuple[Array, Array]:
    """How much views agree (off the diagonal) and halves of the same view (on it); and how much views
    repeat each other."""
    if isinstance(model, RobustWMNMF):
        matrix, halves = np.array(model.agreement_, dtype=float), model.split_half_
        repeated = model.redundancy_
    else:
        with warnings.catch_warnings(action="ignore", category=UserWarning), threadpool_limits(1):
            matrix, halves, repeated = compare_views(views)
    np.fill_diagonal(matrix, halves)
    return matrix, repeated


# --- refits ---------------------------------------------------------------------------------------


def no_refits(model: Estimator, n: int, n_runs: int) -> str:
    """Why refits of parts of the data are not made; "" if they are."""
    n_clusters = number_of_clusters(model)
    nowhere = int((np.asarray(model.labels_) < 0).sum())
    if n_clusters < 2:
        return "one cluster holding everything always comes back"
    if n_runs < 2:
        return "it refits the model several times, which was not requested or takes too long on large data"
    if n < 10:
        return f"{n} samples are too few to leave some out"
    # A part may have lost only samples that have data.
    held = round(PART * n) - nowhere
    if n_clusters > held:
        return f"{PART:.0%} of the samples are fewer than the {n_clusters} requested clusters"
    return ""


def n_refits(n: int) -> int:
    return 0 if n > LARGE else 10 if n <= 1000 else 5


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
        return Refits(model).stability(
            n_runs,
            PART,
            seed,
            lambda run: tell(f"refitting parts of the data, {run + 1} of {n_runs}"),
        )
    data: Any = dict(zip(views.names, views.matrices, strict=True))
    if fitted_input(model).single:
        data = side_by_side(list(views.matrices))
    return stability(model, data, n_runs, fraction=PART, random_state=seed)


class OtherViews:
    """The same method on each view alone and on all views but one: does fusion help?

    Leaving a view out serves the tests of that view's features as well, so each fit is made once.
    """

    def __init__(self, model: Estimator, views: Views, n_clusters: int):
        self.model, self.views, self.n_clusters = model, views, n_clusters
        # Refits take from the model what it has measured.
        self.refits = Refits(model) if Refits.possible(model) else None
        self.found: dict[tuple[int, ...], tuple[Array, Refits | None]] = {}

    def on(self, some: tuple[int, ...]) -> tuple[Array, Refits | None]:
        """Labels found with some of the views, and refits with these."""
        if some not in self.found:
            refits = None if self.refits is None else self.refits.on(some)
            if refits is None:
                model = fitted_on(self.model, self.views, some, self.n_clusters)
                refits = Refits(model) if Refits.possible(model) else None
            labels = np.asarray(model.labels_) if refits is None else refits.labels
            self.found[some] = labels, refits
        return self.found[some]

    def without(self, model: Any, views: Views, s: int, n_clusters: int) -> Array:
        """Labels without view ``s``, as `tested_markers` needs them."""
        return self.on(tuple(t for t in range(len(self.views)) if t != s))[0]

    def table(
        self, labels: Array, seed: int, tell: Callable[[str], Any]
    ) -> tuple[list[dict[str, Any]], dict[str, Array]]:
        """A row for all views together, each view alone and each view left out; and their labels.

        Stability is the mean agreement of fits of parts of the data, made alike for all rows.
        """
        everything = tuple(range(len(self.views)))
        sets = [everything, *((s,) for s in everything)]
        if len(everything) > 2:
            sets += [tuple(t for t in everything if t != s) for s in everything]
        rows, found = [], {}
        for some in sets:
            which = "all" if some == everything else "only" if len(some) == 1 else "without"
            named = some[0] if which == "only" else next(iter(set(everything) - set(some)), None)
            name = "all views" if named is None else f"{which} {self.views.names[named]}"
            tell(f"clustering {name}" if named is not None else "fitting views alone and left out")
            try:
                own, refits = (labels, self.refits) if which == "all" else self.on(some)
            except ValueError:  # a view that the model does not take by itself
                continue
            score = np.nan
            if refits is not None and len(labels) <= FITTED_WHOLE:
                score = refits.stability(PART_RUNS, PART, seed).score
            rows.append(
                {"views": name, "kind": which, "clusters": len(np.unique(own[own >= 0])),
                 "samples": int((own >= 0).sum()), "agreement": shared_ari(labels, own),
                 "stability": score}
            )  # fmt: skip
            found[name] = own
        return rows, found


# --- tests of features ------------------------------------------------------------------------------


def feature_tests(
    model: Estimator, views: Views, labels: Array, others: OtherViews | None
) -> tuple[Any, Markers | None, str, int]:
    """Leading features with tests; the views on clusters found without each; why not; samples tested."""
    clusters = np.unique(labels[labels >= 0])
    if len(clusters) < 2:
        return None, None, "there is one cluster only", len(labels)
    entries, large = len(labels) * sum(views.n_features), ""
    if entries > TESTED:
        large = f"the views hold {entries:,} numbers; up to {TESTED:,} it is done by default"
        rows = drawn(labels, max(FEWEST_ROWS, TESTED // sum(views.n_features)))
        some = [drawn(np.where(labels == k, k, -1), FEWEST_MEMBERS) for k in clusters]
        rows = np.unique(np.concatenate([rows, *some]))
        views, labels = part_of(views, rows), labels[rows]
    items = [
        Item(X, views.sample_names, np.array(feature_names(views, s), dtype=object))
        for s, X in enumerate(views.matrices)
    ]
    given, honest = Collection(list(views.names), items, by_name=True), None
    found = markers(labels, given)
    why = large or (
        "there is one view only" if len(views) < 2
        else f"there are more than {MOST_VIEWS} views" if len(views) > MOST_VIEWS
        else "no refits were requested" if others is None else ""
    )  # fmt: skip
    if others is not None and not why:
        try:
            honest = tested_markers(model, given, without=others.without)
        except ValueError as error:  # a rest of the views that the model does not take
            why = str(error)
    leading = found.top(LISTED, max_q=None)
    if honest is not None:
        number = {cluster: k for k, cluster in enumerate(found.clusters)}
        q = {view.view: view.q_value for view in honest.views}
        place = {view.view: {f: j for j, f in enumerate(view.features)} for view in found.views}
        picked = zip(leading["cluster"], leading["view"], leading["feature"], strict=True)
        leading["q_without_view"] = [q[v][number[c], place[v][f]] for c, v, f in picked]
    return leading, honest, why, len(labels)


def feature_names(views: Views, s: int) -> list[str]:
    known = views.feature_names[s]
    if known is not None:
        return [str(name) for name in known]
    return [f"{views.names[s]}_{j}" for j in range(views.n_features[s])]
