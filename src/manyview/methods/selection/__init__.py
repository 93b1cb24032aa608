"""How many clusters there are: seven criteria, one recommendation with its reasons.

They judge the results of the first stages of `RobustWMNMF`, whoever made them: a fit with
``n_clusters="auto"``, or `manyview.select_n_clusters`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyview._types import Array, Views
from manyview._warn import warn_user
from manyview.engines.numpy.repeats import distinct
from manyview.engines.protocols import Scaling
from manyview.methods.agree import Settings, agree
from manyview.methods.given import with_weight
from manyview.methods.precision import working_dtype
from manyview.methods.stages import measure_some
from manyview.methods.wmnmf import WMNMF

from .of_wmnmf import CRITERIA, SLACK, largest_own_rank, own_curves
from .result import NoClustersWarning, Selection, Vote, as_table
from .together import Verdict, combine, heed_copies, too_few
from .votes import GRAPH_METHODS, METHODS, RANK_RUNS, Evidence, by_curves, judge

__all__ = [
    "DEFAULT",
    "METHODS",
    "OWN_METHODS",
    "Evidence",
    "NoClustersWarning",
    "Selection",
    "choose",
    "choose_for_wmnmf",
    "gather",
    "usual_candidates",
]

#: The criteria that are asked unless others are named, by whoever asks.
DEFAULT = GRAPH_METHODS
#: The criteria for `WMNMF` itself.
OWN_METHODS = tuple(CRITERIA)
#: Numbers tried unless others are named: all up to 14, then fewer the larger they are.
SMALL, LARGE = range(2, 15), (16, 18, 20, 23, 26, 30, 35, 40)
#: Large numbers need so many observations for each cluster.
MEMBERS = 10

#: Runs of "stability", and the most observations that are looked at, unless asked otherwise.
RUNS, MAX_SAMPLES = 20, 1000


def usual_candidates(n_samples: int) -> list[int]:
    """The numbers of clusters tried unless others are named: 2 to 14, and up to 40 of larger data."""
    small = [K for K in SMALL if n_samples > K] or [2]
    return small + [K for K in LARGE if n_samples >= MEMBERS * K]


def gather(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    settings: Settings,
    rng: np.random.Generator,
    *,
    n_values: int,
    dtype: np.dtype | None = None,
    max_samples: int = MAX_SAMPLES,
    resolution: float = 1.0,
) -> Evidence:
    """What does not depend on the number of clusters, of (a sample of) the observations some view has.

    Parameters
    ----------
    views : Views
        On the host, as they were read.
    present : list of ndarray (N,)
        Which rows of each view count.
    scalings : list of Scaling or None
        How the features are made comparable, learnt from all rows.
    settings : Settings
    rng : Generator
    n_values : int
        Eigenvalues wanted: one more than the largest candidate.
    dtype : dtype, optional
        Precision of the computation.
    max_samples : int
    resolution : float
        Of the communities.

    Returns
    -------
    Evidence
    """
    # Nobody can tell the cluster of an observation that no view with weight has.
    telling = with_weight(present, settings.view_weights)
    rows, notes = np.flatnonzero(np.any(telling, axis=0)), []
    if len(rows) < 3:
        raise ValueError(
            f"select_n_clusters needs at least 3 observations with values, got {len(rows)}"
        )
    if len(rows) > max_samples:
        notes.append(f"{max_samples} of the {len(rows)} observations, drawn at random, were used")
        rows = np.sort(rng.permutation(rows)[:max_samples])
    if n_values - 1 > len(rows):
        raise ValueError(
            f"candidates go up to {n_values - 1}, but only {len(rows)} observations are looked at "
            f"(max_samples={max_samples}, those missing everywhere left out); lower the candidates or "
            "raise max_samples"
        )
    spaces = measure_some(views, present, scalings, working_dtype(views, dtype), rows)
    spaces, repeats = distinct(spaces, with_weight(spaces, settings.view_weights))
    if repeats is not None and len(repeats.first) < 3:
        raise ValueError(
            f"select_n_clusters needs at least 3 distinct observations, got {len(repeats.first)} of "
            f"{len(rows)}; say the number of clusters"
        )
    copies = None if repeats is None else np.bincount(repeats.of)
    agreement = agree(spaces, settings, rng)
    return Evidence(spaces, agreement, n_values, rng, notes, resolution, copies)


def choose(
    evidence: Evidence,
    candidates: Sequence[int],
    methods: Sequence[str],
    rng: np.random.Generator,
    n_runs: int = RUNS,
) -> Selection:
    """The number of clusters that most methods find; a warning where none stands out.

    Parameters
    ----------
    evidence : Evidence
    candidates : sequence of int
        Growing, each at least 2.
    methods : sequence of str
        Some of `METHODS`.
    rng : Generator
    n_runs : int
        Runs of "stability".

    Returns
    -------
    Selection
    """
    asked = _possible(candidates, evidence)
    votes = [judge(evidence, name, asked, n_runs, rng) for name in methods]
    verdict = heed_copies(combine(votes), evidence.copies, asked)
    return _selection(verdict, votes, asked, evidence.notes)


def choose_for_wmnmf(
    views: Views,
    model: WMNMF,
    candidates: Sequence[int],
    methods: Sequence[str],
    rng: np.random.Generator,
    max_samples: int = MAX_SAMPLES,
) -> Selection:
    """The rank K of `WMNMF` itself, on its own scaled views and by its own objective.

    Parameters
    ----------
    views : Views
        Nonnegative, or negative where the model's scale takes them; complete.
    model : WMNMF
        Its settings are used; never changed.
    candidates : sequence of int
        Growing, each at least 2.
    methods : sequence of str
        Some of `OWN_METHODS`.
    rng : Generator
    max_samples : int

    Returns
    -------
    Selection
    """
    notes = []
    if views.n_samples > max_samples:
        notes.append(
            f"{max_samples} of the {views.n_samples} observations, drawn at random, were used"
        )
        rows = np.sort(rng.permutation(views.n_samples)[:max_samples])
        views = views.with_matrices([X[rows] for X in views.matrices])
    limit = largest_own_rank(views)
    asked = [K for K in candidates if limit >= K]
    if not asked:
        raise ValueError(
            f"the blocks that {', '.join(methods)} can fit hold a rank of {limit} at most, less than every "
            "candidate; use more observations or features, or lower the candidates"
        )
    if len(asked) < len(candidates):
        notes.append(
            f"the blocks that are fitted hold a rank of {limit} at most: no more was tried"
        )
    votes = []
    for name in methods:
        curves = own_curves(views, model, [1, *asked], name, RANK_RUNS, rng)
        votes.append(by_curves(name, asked, curves, limit, SLACK))
    return _selection(combine(votes), votes, asked, notes)


def _selection(
    verdict: Verdict, votes: list[Vote], asked: list[int], notes: list[str]
) -> Selection:
    selection = Selection(
        verdict.n_clusters,
        verdict.n_clusters > 1,
        [*notes, *(vote.reason for vote in votes), *verdict.words],
        {vote.method: vote.choice for vote in votes},
        as_table(votes, asked),
        verdict.runner_up,
        verdict.doubtful,
    )
    _warn(selection, votes)
    return selection


def _possible(candidates: Sequence[int], evidence: Evidence) -> list[int]:
    """The candidates that distinct observations can have: copies of one belong together."""
    n = evidence.n_samples
    possible = [K for K in candidates if n >= K]
    if not possible:
        raise ValueError(
            f"there are only {n} distinct observations, and no candidate is as small; lower the candidates"
        )
    if len(possible) < len(candidates):
        evidence.notes.append(f"only {n} observations are distinct: no more clusters were tried")
    return possible


def _warn(selection: Selection, votes: list[Vote]) -> None:
    backers = [vote for vote in votes if vote.choice == selection.n_clusters]
    if not selection.found:
        warn_user(
            "no number of clusters stands out among the candidates: "
            + "; ".join(selection.reasons)
            + ". n_clusters is 1",
            NoClustersWarning,
        )
    elif too_few(votes) or (backers and all(vote.open_ended for vote in backers)):
        warn_user(
            f"the best number of clusters is the largest candidate ({selection.n_clusters}); "
            "more may be better still: raise the candidates"
        )
