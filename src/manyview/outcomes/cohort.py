"""`predict_cohort`: put the samples of a second cohort into the clusters of a fitted model.

Whether the cohorts are alike is tested view by view, on the features that both have. With ranks over the
samples of both, the features and their distances from the median are compared between the cohorts; the
statistic is the sum of squared standardized differences, and its p-value comes from samples that change
places. If the cohorts are draws from the same population, p ≤ a has probability a at most.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.stats import rankdata

from manyview import fuse
from manyview._types import Array, Matrix, Seed, Views
from manyview.base import fitted_input, generator
from manyview.engines.numpy.presence import is_table
from manyview.engines.numpy.sources import is_streamed
from manyview.robust import RobustWMNMF
from manyview.views.containers import Collection, collect

from .align import counted, frame, pandas, printed, quoted
from .chance import staged_p

#: Samples of each cohort that are compared, and permutations.
MOST_COMPARED, PERMUTATIONS = 400, 999
#: With fewer samples the 1st and 99th percentile of a feature say little.
FEWEST_TO_RESCALE = 30
#: A label is called confident if a refit gives it more often than not.
CONFIDENT = 0.5
#: Level at which a difference of the cohorts is a warning.
LEVEL = 0.01


@dataclass(frozen=True, eq=False)
class Cohort:
    """What `predict_cohort` found.

    Attributes
    ----------
    model : RobustWMNMF
        A copy with the results of the new samples (``labels_``, ``confidence_``, ``embedding_``, …), for
        figures, `survival` and the like. It cannot predict.
    views : Collection
        The views as the model took them.
    features : DataFrame
        By view: features of the fit, how many of them the cohort has, and its other features.
    shift : DataFrame
        By view: ``difference``, the mean absolute rank correlation of a feature with the cohort beyond
        chance (0: none, 1: all values of one cohort above those of the other); ``within_clusters``, the
        same among samples of one cluster, which another mix of clusters does not explain;
        ``after_rescaling`` (with ``rescale``); ``p_value`` of any difference.
    clusters : DataFrame
        Size and share of each cluster, its share at the fit, and mean confidence.
    confident, confident_at_fit : float
        Share of samples whose label a refit would give more often than not; the same of the fitted samples.
    warnings, notes : tuple of str
    """

    model: RobustWMNMF
    views: Collection
    features: Any
    shift: Any
    clusters: Any
    confident: float
    confident_at_fit: float
    warnings: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def labels(self) -> Array:
        return self.model.labels_

    @property
    def confidence(self) -> Array:
        """Probability of each sample's label; NaN without one."""
        return _own(self.model.confidence_, self.labels)

    @property
    def tables(self) -> dict[str, Any]:
        """Every table by name."""
        return {
            "cohort_features": self.features,
            "cohort_shift": self.shift,
            "cohort_clusters": self.clusters,
        }

    def __repr__(self) -> str:
        lines = [
            f"{len(self.labels)} new samples in {len(self.clusters)} clusters; {self.confident:.0%} of the "
            f"labels are confident (at the fit {self.confident_at_fit:.0%})",
            *map(printed, self.tables.values()),
        ]
        return "\n".join([*lines, *(f"Note: {note}" for note in (*self.warnings, *self.notes))])


def predict_cohort(
    model: RobustWMNMF,
    views: Any,
    *,
    batch: Any = None,
    rescale: bool = False,
    random_state: Seed = 0,
) -> Cohort:
    """Assign the samples of a second cohort to the clusters of a model, and compare the cohorts.

    The cohort may lack views and features of the fit, which are treated as missing. If another platform or
    laboratory shifts or stretches the measurements, labels may be wrong. This is tested for each view.

    Parameters
    ----------
    model : fitted RobustWMNMF
    views : as `predict` takes them, named
    batch : array-like of N, for a model fitted with batches
        As `predict` takes it. Samples are compared with those of their batch at the fit. A new batch is
        compared with all of them, each feature less its median in its batch: alignment removes shifts.
    rescale : bool, default=False
        Estimate the range (1st to 99th percentile) of each feature in the new cohort instead of the fit.
        This removes differences of platforms that shift or stretch features, and assumes about the same
        mix of clusters in the new cohort. Do not use it for a few or selected samples.
    random_state : int, Generator or None, default=0
        For the samples compared, where there are many, and permutations.

    Returns
    -------
    Cohort

    Examples
    --------
    >>> import manyview as mv
    >>> data = mv.datasets.make_cohort(120, missing=0, random_state=0)
    >>> frames = {name: frame for name, frame in data.frames().items() if name != "mutation"}
    >>> old, new = ({n: f[s] for n, f in frames.items()} for s in (slice(80), slice(80, None)))
    >>> model = mv.RobustWMNMF(4, random_state=0).fit(old)
    >>> found = mv.outcomes.predict_cohort(model, new)
    >>> found.shift["view"].tolist(), bool((found.shift["p_value"] > 0.01).all())
    (['expression', 'methylation'], True)
    """
    if not isinstance(model, RobustWMNMF):
        raise ValueError(f"predict_cohort takes a RobustWMNMF, got {type(model).__name__}")
    if model.needs_batch and rescale:
        raise ValueError(
            "the model was fitted with batches and aligns new samples itself; leave out rescale"
        )
    held, rng = fitted_input(model), generator(random_state)
    model = copy(model)
    model.missing = "allow"  # new samples may lack views and features
    given = collect(views)
    if held.single:
        raise ValueError("the model was fitted on one array; fit it on named views")
    features = _features(model, given)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always", UserWarning)
        ordered = fitted_input(model).in_order(given)
        read = model._read(ordered, reset=False)
        if model.needs_batch or batch is not None:
            read = model._with_batch(read, batch)
    warned = [str(item.message) for item in seen if issubclass(item.category, UserWarning)]
    present = fuse.quiet_presence(read, model.zero_rows_)
    scalings, notes = list(model._scalings), list[str]()
    if rescale:
        scalings = _rescaled(model, read, present, notes)
    placed = model._placed_on(read, scalings)
    shift = _shift(model, placed, read, present, scalings if rescale else None, rng, notes)
    labels, sure = placed.labels_, _own(placed.confidence_, placed.labels_)
    if not (labels >= 0).any():
        raise ValueError(
            "no sample of the cohort has a view that has weight; check how the files were read, and "
            "zero_rows"
        )
    at_fit = _own(model.confidence_, model.labels_)
    known, clusters = labels >= 0, range(model.n_clusters_)
    before = [float((model.labels_ == k).mean()) for k in clusters]
    table = frame(
        {
            "cluster": clusters,
            "size": [int((labels == k).sum()) for k in clusters],
            "share": [float((labels == k).mean()) for k in clusters],
            "share_at_fit": before,
            "mean_confidence": [
                float(sure[labels == k].mean()) if (labels == k).any() else np.nan for k in clusters
            ],
        }
    )
    if not known.all():
        notes.append(
            f"{counted(int((~known).sum()), 'sample')} without data and without a cluster."
        )
    warned += _shift_warnings(shift, rescale, _batches(model))
    confident, then = (float((s[~np.isnan(s)] > CONFIDENT).mean()) for s in (sure, at_fit))
    return Cohort(
        placed, ordered, features, shift, table, confident, then, tuple(warned), tuple(notes)
    )


def _own(shares: Array, labels: Array) -> Array:
    chosen = shares[np.arange(len(labels)), np.maximum(labels, 0)].astype(float)
    return np.where(labels >= 0, chosen, np.nan)


def _features(model: RobustWMNMF, given: Collection) -> Any:
    rows = []
    found = dict(zip(given.names, given.items, strict=True))
    for name, wanted in model.view_feature_names_in_.items():
        item, n = found.get(str(name)), model._view_widths[list(model.view_names_in_).index(name)]
        here = n if item is not None else 0
        others = 0
        if item is not None and wanted is not None and item.features is not None:
            seen = set(map(str, item.features))
            here = len(seen & set(map(str, wanted)))
            others = len(seen) - here
        elif (
            item is not None and isinstance(item.matrix, np.ndarray) and np.isnan(item.matrix).all()
        ):
            here = 0
        rows.append({"view": str(name), "features": n, "present": here, "lacking": n - here,
                     "share_lacking": (n - here) / n, "not_in_the_fit": others})  # fmt: skip
    return pandas().DataFrame(rows)


def _rescaled(
    model: RobustWMNMF, views: Views, present: Sequence[Array], notes: list[str]
) -> list[Any]:
    """The scalings with the range of every feature in the new cohort."""
    found: list[Any] = []
    for name, X, here, old in zip(
        views.names, views.matrices, present, model._scalings, strict=True
    ):
        n, new = int(here.sum()), old.refit(X, here, name)
        if new is old and n:
            notes.append(
                f"View {quoted(name)} is not rescaled: it has the scaling of the fit ({old.kind})."
            )
        elif new is not old and n < FEWEST_TO_RESCALE:
            notes.append(
                f"View {quoted(name)} is rescaled by {counted(n, 'sample')}, too few to know the range of "
                f"a feature: {FEWEST_TO_RESCALE} or more are better."
            )
        found.append(new)
    return found


def _shift(
    model: RobustWMNMF,
    placed: RobustWMNMF,
    views: Views,
    present: Sequence[Array],
    scalings: list[Any] | None,
    rng: np.random.Generator,
    notes: list[str],
) -> Any:
    """Compare the cohorts, view by view."""
    columns = ["view", *["batch"] * (views.batch is not None), "fitted", "new", "features", "difference",
               "within_clusters", "after_rescaling", "p_value"]  # fmt: skip
    rows: list[dict[str, Any]] = []
    for s, (name, X, here) in enumerate(zip(views.names, views.matrices, present, strict=True)):
        old = model._data[s]
        there = model._all_rows(model._geometry[s].present)
        if not here.sum() > 1 or not there.sum() > 1:
            notes.append(
                f"View {quoted(name)} is not compared: fewer than two new samples have it."
            )
            continue
        if not is_table(X) or not is_table(old) or is_streamed(old) or is_streamed(X):
            notes.append(
                f"View {quoted(name)} is not compared: it is a relation, or stays in its file."
            )
            continue
        scaling = model._scalings[s]
        for batch, fitted, own_rows in _sides(model, views, there, here):
            if not fitted.sum() > 1 or not own_rows.sum() > 1:
                notes.append(
                    f"View {quoted(name)} of batch {quoted(batch)} is not compared: fewer than two of its "
                    "samples here or at the fit have it."
                )
                continue
            i, j = (
                np.sort(rng.permutation(np.flatnonzero(p))[:MOST_COMPARED])
                for p in (fitted, own_rows)
            )
            both = [_dense(part[own]) for part, own in ((old, i), (X, j))]
            raw = both if scaling.by_range else [scaling.apply(part) for part in both]
            if batch is not None and batch not in _batches(model):
                groups = np.asarray(model._batch)[i], np.zeros(len(j))
                raw = [_centered(*pair) for pair in zip(raw, groups, strict=True)]
            clusters = np.r_[model.labels_[i], placed.labels_[j]]
            row: dict[str, Any] = {"view": name, "batch": batch, "fitted": len(i), "new": len(j)}
            row |= compare_samples(raw, clusters, rng)
            row["after_rescaling"] = np.nan
            if scalings is not None and scaling.by_range:
                again = [
                    own.apply(part) for own, part in zip((scaling, scalings[s]), both, strict=True)
                ]
                row["after_rescaling"] = compare_samples(again, None, rng)["difference"]
            rows.append(row)
    return pandas().DataFrame(rows, columns=columns)


def _batches(model: RobustWMNMF) -> tuple[str, ...]:
    return () if model._batches is None else model._batches.names


def _centered(X: Array, batch: Array) -> Array:
    """Every feature less its median in the batch."""
    X = X.copy()
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        # a feature that the batch lacks stays NaN
        for b in np.unique(batch):
            X[batch == b] -= np.nanmedian(X[batch == b], axis=0)
    return X


def _sides(
    model: RobustWMNMF, views: Views, there: Array, here: Array
) -> list[tuple[str | None, Array, Array]]:
    """Which fitted samples the new ones are compared with: those of their batch, or of all if it is new."""
    if views.batch is None:
        return [(None, there, here)]
    of_fit, of_new = np.asarray(model._batch), np.asarray(views.batch)
    return [
        (str(b), there & (of_fit == b) if b in _batches(model) else there, here & (of_new == b))
        for b in np.unique(of_new)
    ]


def _dense(X: Matrix) -> Array:
    return X.toarray().astype(float) if sp.issparse(X) else np.asarray(X, dtype=float)


def compare_samples(
    parts: Sequence[Array], clusters: Array | None, rng: np.random.Generator
) -> dict[str, Any]:
    """Differences of two samples, the rows of two arrays; with ``clusters`` a p-value, and those within."""
    new = np.r_[np.zeros(len(parts[0]), bool), np.ones(len(parts[1]), bool)]
    there = ~np.isnan(parts[0]).all(axis=0) & ~np.isnan(parts[1]).all(axis=0)
    X = np.vstack([part[:, there] for part in parts])
    found: dict[str, Any] = {"features": int(there.sum()), "difference": _difference(X, new, rng)}
    if clusters is None or not there.any():
        return found | {"within_clusters": np.nan, "p_value": np.nan}
    shares, weight = [], []
    for k in np.unique(clusters[clusters >= 0]):
        own = clusters == k
        if min(new[own].sum(), (~new[own]).sum()) > 1:
            shares.append(_difference(X[own], new[own], rng))
            weight.append(new[own].sum())
    found["within_clusters"] = float(np.average(shares, weights=weight)) if shares else np.nan
    # Ranks, and how far they lie from the middle: a platform may shift features, or stretch them.
    ranks, _ = _ranks(X)
    W = np.hstack([ranks, np.where(np.isnan(X), 0, np.abs(ranks))])
    W -= W.mean(axis=0)
    norm = np.sqrt((W**2).sum(axis=0))
    W = W[:, norm > 0] / norm[norm > 0]
    products = W @ W.T

    def statistics(members: Array) -> Array:
        """Sums of squared differences of means: all columns are centered."""
        return np.einsum("bi,bi->b", members @ products, members)

    def draw(b: int) -> Array:
        return statistics(rng.permuted(np.repeat(new[None].astype(float), b, axis=0), axis=1))

    observed = float(statistics(new[None].astype(float))[0])
    return found | {"p_value": staged_p(observed, draw, PERMUTATIONS)[0]}


def _ranks(X: Array) -> tuple[Array, Array]:
    """Ranks around their middle, 0 where missing; and half their number."""
    there = ~np.isnan(X)
    policy = "propagate" if there.all() else "omit"
    count = there.sum(axis=0)
    ranks = rankdata(X, axis=0, nan_policy=policy) - (count + 1) / 2
    return np.where(there, ranks, 0.0), np.maximum(count / 2, 1)


def _difference(X: Array, new: Array, rng: np.random.Generator) -> float:
    """Mean absolute rank correlation of the features with the cohort, less what chance gives (0 to 1)."""
    ranks, scale = _ranks(X)

    def mean(member: Array) -> float:
        gap = ranks[member].mean(axis=0) - ranks[~member].mean(axis=0)
        return float(np.abs(gap / scale).mean()) if gap.size else np.nan

    chance = float(np.mean([mean(rng.permutation(new)) for _ in range(10)]))
    return float(np.clip((mean(new) - chance) / (1 - chance), 0, 1))


def _shift_warnings(shift: Any, rescale: bool, known: Sequence[str]) -> list[str]:
    sentences = []
    for row in shift.to_dict("records"):
        if not row["p_value"] <= LEVEL:
            continue
        p = max(row["p_value"], 1 / (PERMUTATIONS + 1))
        batch = row.get("batch")
        new, fit = "the new cohort", "the fit"
        if batch is not None:
            new, fit = f"new samples of batch {quoted(batch)}", "those of the fit"
            if batch not in known:
                new, fit = f"the new batch {quoted(batch)}", "the fit by more than a shift"
        text = (
            f"View {quoted(row['view'])} differs between {new} and {fit} (p = {p:.2g}): the "
            f"rank correlation of a feature with the cohort is {row['difference']:.2f} beyond chance, "
            f"where 1 is complete; among samples of one cluster it is {row['within_clusters']:.2f}, which "
            "another mix of clusters does not explain. "
        )
        if batch is not None:
            text += (
                "Labels may be wrong where it is large. Alignment removes what the batch had at the fit: "
                "give samples that were processed apart the name of a new batch, or fit all together."
                if batch in known
                else "Labels may be wrong where it is large, as alignment removes shifts only: normalize "
                "both cohorts together, or fit all samples together."
            )
        elif rescale:
            text += f"After rescaling it is {row['after_rescaling']:.2f}."
        else:
            text += (
                "Another platform, normalization or laboratory may be the reason, or other patients. "
                "Where it is large, labels may be wrong: normalize both cohorts together, or rescale "
                "each feature in the new cohort (rescale=True, --rescale) if its mix of samples is about "
                "the same."
            )
        sentences.append(text)
    return sentences
