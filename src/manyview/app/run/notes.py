"""Plain sentences about what a reader of a run should know before trusting it."""

from __future__ import annotations

from typing import Any

import numpy as np

from manyview._types import Array, Stop, Views
from manyview.maths.agreement import repeated_views
from manyview.models import Estimator, number_of_clusters
from manyview.reliability import Stability
from manyview.robust import RobustWMNMF
from manyview.wmnmf import COLLAPSE

from .evidence import Findings

#: Smaller clusters are pointed out: fewer members than this, or less than this share.
TINY, TINY_SHARE = 5, 0.01
#: A view whose agreement with every other is below this share of the strongest has a note.
STRANGER = 0.1
#: Hennig's rule for the Jaccard stability of a cluster.
UNSTABLE = 0.6
#: Samples missing everywhere that are named.
NAMED = 5
#: Below this adjusted Rand index with the baseline there is a note.
DIFFERENT = 0.5


def warnings_about(model: Estimator, views: Views, ids: list[str], found: Findings) -> list[str]:
    """Every sentence that applies, the gravest first."""
    notes = []
    if not np.any(model.consensus_):
        notes.append(
            "The consensus is zero everywhere, because the regularizer is too strong, and the "
            "clusters mean nothing. Use a smaller beta (in Python)."
        )
    if model.stop_reason_ == Stop.MAX_ITER:
        notes.append(
            f"The fit stopped after {model.n_iter_} iterations before the objective settled. "
            "Labels hardly change after that; in Python, max_iter sets the number."
        )
    if len(views) > 1:
        notes += _views(model, views, found)
    notes += _samples(views, ids, found)
    notes += _clusters(found.labels, number_of_clusters(model), found.stable)
    if found.rivals and found.rivals[0]["ari_with_other"] < DIFFERENT:
        gaps = " The baseline fills missing views with means, which can explain the difference."
        notes.append(
            "A simple baseline on the same data agrees with these clusters by an adjusted Rand index "
            f"of {found.rivals[0]['ari_with_other']:.2f} only (1 is the same). This does not show which "
            "is right: check the features and the stability." + ("" if found.here.all() else gaps)
        )
    return notes


def choice_notes(selection: Any) -> list[str]:
    """Note that the chosen number of clusters is doubtful, or that none stands out."""
    if selection.found and selection.doubtful:
        return [f"The choice of {selection.n_clusters} clusters is doubtful: see “Choosing K”."]
    if selection.found:
        return []
    return [
        "No number of clusters stands out, so there may be no groups. The reasons are "
        "under “Choosing K”."
    ]


def _views(model: Estimator, views: Views, measured: Findings) -> list[str]:
    found, weights = [], model.view_weights_
    shared = isinstance(model, RobustWMNMF) and np.array_equal(weights, model.learned_view_weights_)
    for group in repeated_views(measured.redundancy):
        alike = [f"“{views.names[s]}”" for s in group]
        effect = "they share one weight" if shared else "what they share has double weight"
        found.append(f"Views {', '.join(alike)} are near-duplicates; {effect}.")
    if weights.max() > COLLAPSE:
        found.append(
            f"View “{views.names[int(weights.argmax())]}” holds {weights.max():.0%} of the "
            "view weight: the clusters are nearly those of this view alone."
        )
    others = measured.agreement.copy()
    np.fill_diagonal(others, 0)
    for s in np.flatnonzero(others.max(axis=1) < STRANGER * max(others.max(), 1e-12)):
        found.append(
            f"View “{views.names[s]}” agrees with no other view: samples close to each "
            f"other in it are not close elsewhere. Its weight is {weights[s]:.2f}. It may be noise, "
            "or show something that the other views do not."
        )
    if others.max() <= 1e-12:
        found.append(
            "No two views agree: they may share no clusters, "
            "and no view confirms the clusters of another."
        )
    return found


def _samples(views: Views, ids: list[str], measured: Findings) -> list[str]:
    found, labels = [], measured.labels
    nowhere = np.flatnonzero(labels < 0)
    if len(nowhere):
        listed = ", ".join(f"“{ids[i]}”" for i in nowhere[:NAMED])
        are = "sample is" if len(nowhere) == 1 else "samples are"
        found.append(
            f"{len(nowhere)} {are} missing in every view that has weight: {listed}"
            f"{', …' if len(nowhere) > NAMED else ''}. They have no cluster (label -1)."
        )
    for name, here in zip(views.names, measured.here.T, strict=True):
        absent = int((~here).sum())
        if absent > 0.5 * len(labels):
            found.append(
                f"View “{name}” is missing for {absent} of {len(labels)} samples; its "
                "weight and features come from the other samples."
            )
    return found


def _clusters(labels: Array, asked: int, stable: Stability | None) -> list[str]:
    names, sizes = np.unique(labels[labels >= 0], return_counts=True)
    found = []
    if len(names) < asked:
        found.append(
            f"{asked} clusters were requested, but only {len(names)} have members. Choose fewer."
        )
    tiny = (sizes < TINY) | (sizes < TINY_SHARE * len(labels))
    if tiny.any():
        listed = ", ".join(f"{k} ({n})" for k, n in zip(names[tiny], sizes[tiny], strict=True))
        found.append(
            f"Very small clusters (number of members): {listed}. They may be outliers rather than "
            "groups; averages over them are uncertain."
        )
    if stable is not None:
        if stable.score < UNSTABLE:
            found.append(
                "Refits on parts of the data agree by an adjusted Rand index of "
                f"{stable.score:.2f} on average (1 is the same). There may be no clear groups, "
                "another number of clusters, or too few samples."
            )
        shaky = [f"{k} ({value:.2f})" for k, value in stable.clusters.items() if value < UNSTABLE]
        if shaky:
            found.append(
                f"Clusters with a stability below {UNSTABLE} when the model is refitted on parts of the "
                f"data: {', '.join(shaky)}. Hennig (2007) advises not to rely on such clusters."
            )
    return found
