"""The stages of RobustWMNMF: views → present → scaled → distances → agreement → embedding → start.

A stage is a function of the results of those before. `RobustWMNMF`, the choice of the number of
clusters and reports share them; `agree` and `embed` are in `manyview.methods.agree`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from manyview._arrays import namespace
from manyview._types import Array, Matrix, Views
from manyview._warn import warn_user
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.masked import FEWEST_SHARE
from manyview.engines.numpy.neighbors import for_all_rows
from manyview.engines.numpy.presence import (
    absence,
    is_table,
    observed_rows,
    present_rows,
    separable,
    survey,
    unobserved,
)
from manyview.engines.numpy.repeats import Repeats, distinct
from manyview.engines.protocols import Distances, Engine, Scaling
from manyview.maths.agreement import Agreement, agreement_matrix

from .agree import Settings, compare_distances, list_graph, split_half
from .assign import kmeans
from .given import ZeroRows, refuse_strangers, zeros_of
from .observed import kept_views, observed_columns, observed_part
from .precision import working_dtype
from .scaling import largest

#: What the scaling of a view may be, besides None.
SCALINGS = ("auto", "log", "quantile", "sqrt")
#: The scalings of all views, or by their names; views that are not named are "auto".
Scale: TypeAlias = str | dict[str, str | None] | None
#: A row with a larger share of its features unobserved counts as missing in that view.
MAX_UNOBSERVED = 0.5
#: Views with less weight than this in sum cannot place an observation.
NO_WEIGHT = 1e-3
#: Starts of k-means: one in twenty fits of the digits met a poor local minimum with 10.
STARTS = 30


# --- present -----------------------------------------------------------------------------------


def presence(views: Views, zero_rows: ZeroRows = "auto") -> tuple[list[Array], dict[str, str]]:
    """Which rows of each view count as present, and what a row of zeros is in each view.

    What is left out is told in warnings.
    """
    present, zeros = [], {}
    for X, name in zip(views.matrices, views.names, strict=True):
        asked = zeros_of(zero_rows, name)
        if asked == "auto":
            here, values = survey(X)
            asked = "observed" if values and name not in views.filled else "missing"
            here = observed_rows(X) if asked == "observed" else here
        else:
            here = observed_rows(X) if asked == "observed" else present_rows(X)
        zeros[name] = asked
        present.append(_present(X, name, here, asked == "observed"))
    return present, zeros


def quiet_presence(views: Views, zero_rows: ZeroRows = "auto") -> list[Array]:
    """Which rows are present, without warnings, for those to whom a fit has told or will tell."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return presence(views, zero_rows)[0]


def settled_zeros(views: Views, zero_rows: ZeroRows) -> dict[str, str]:
    """What a row of zeros is in each view: refits of some of the rows take it as the whole fit does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return presence(views, zero_rows)[1]


def _present(X: Matrix, name: str, present: Array, zeros_count: bool) -> Array:
    share, words = unobserved(X), absence(X, name, zeros_count)
    lacking = ~present & (share < 1)
    if not present.any():
        warn_user(f"view {name!r} {words.nobody}; it gets no weight")
    elif lacking.any():
        warn_user(
            f"view {name!r}: {int(lacking.sum())} observations {words.lacking} and count as missing "
            f"there{words.remedy}"
        )
    mostly = present & (share > MAX_UNOBSERVED)
    if mostly.any():
        warn_user(
            f"view {name!r}: {int(mostly.sum())} observations have over "
            f"{MAX_UNOBSERVED:.0%} of their features unobserved and count as missing there"
        )
    enough = present & ~mostly
    if present.any() and enough.mean() < FEWEST_SHARE:
        warn_user(
            f"view {name!r} is observed for {int(enough.sum())} of {len(enough)} observations: "
            "too few for the view to tell much"
        )
    return enough


def described(views: Views, present: list[Array]) -> Array | None:
    """Observations that some view has, if not all: the others are no neighbours of anybody.

    Rows of files stay: none can be taken out. So do those of relations, whose columns they are.
    """
    rows = np.any(present, axis=0)
    return rows if all(map(separable, views.matrices)) and rows.any() and not rows.all() else None


def only(views: Views, present: list[Array], rows: Array | None) -> tuple[Views, list[Array]]:
    """Some of the observations (a mask or places); all of them for None."""
    if rows is None:
        return views, present
    return views.with_matrices([X[rows] for X in views.matrices]), [here[rows] for here in present]


def counted(present: list[Array], alpha: Array) -> Array:
    """Observations that some view with weight describes; the others get the label −1."""
    return np.column_stack(present) @ alpha > NO_WEIGHT


# --- scaled, and distances ---------------------------------------------------------------------


def fit_scalings(
    views: Views, present: list[Array], scale: Scale, engine: Engine = HOST
) -> list[Scaling | None]:
    """How the features of every view are made comparable; None where they are taken as they are."""
    found: list[Scaling | None] = []
    for X, here, name in zip(views.matrices, present, views.names, strict=True):
        kind = asked_scaling(scale, name) if is_table(X) else "auto"
        if kind is None:
            _refuse_extreme_size(X, name)
        found.append(None if kind is None else engine.fit_scaling(X, here, name, kind))
    return found


def asked_scaling(scale: Scale, name: str) -> str | None:
    """The scaling of one view as the user asked for it."""
    kind = scale.get(name, "auto") if isinstance(scale, dict) else scale
    return None if kind == "none" else kind


def check_scale(scale: Scale, names: Sequence[str]) -> None:
    """Refuse a dict with views or scalings that do not exist."""
    if not isinstance(scale, dict):
        return
    refuse_strangers("scale", scale, names)
    for name, kind in scale.items():
        if kind is not None and kind not in {*SCALINGS, "none"}:
            raise ValueError(
                f"scale of view {name!r} must be one of {sorted(SCALINGS)} or None, got {kind!r}"
            )


def _refuse_extreme_size(X: Matrix, name: str) -> None:
    size = largest(X)
    if size and not 1e-150 < size < 1e150:
        raise ValueError(
            f"view {name!r} has a largest entry of {size:g}, whose square is no number to "
            "compute with; divide the view by a constant, or use scale='auto'"
        )


def scaled(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    dtype: np.dtype,
    engine: Engine = HOST,
) -> list[Matrix]:
    """z of every view; rows missing there are zero."""
    return [
        engine.scaled(X, scaling, here, dtype)
        for X, here, scaling in zip(views.matrices, present, scalings, strict=True)
    ]


def measure(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    dtype: np.dtype,
    engine: Engine = HOST,
) -> list[Distances]:
    """The distances between the scaled rows of every view."""
    Zs = scaled(views, present, scalings, dtype, engine)
    return [
        engine.distances(Z, here, scaling is not None and scaling.low is None)
        for Z, here, scaling in zip(Zs, present, scalings, strict=True)
    ]


def measure_some(
    views: Views,
    present: list[Array],
    scalings: list[Scaling | None],
    dtype: np.dtype,
    rows: Array,
) -> list[Distances]:
    """The distances between some of the rows; in a relation these keep what links them to others."""
    found: list[Distances] = []
    for X, here, scaling in zip(views.matrices, present, scalings, strict=True):
        apart = is_table(X)
        part, there = (X[rows], here[rows]) if apart else (X, here)
        Z = HOST.scaled(part, scaling, there, dtype)
        space = HOST.distances(Z, there, scaling is not None and scaling.low is None)
        found.append(space if apart else space.rows(rows))
    return found


# --- start -------------------------------------------------------------------------------------


def start_labels(
    P: Array,
    anywhere: Array,
    n_clusters: int,
    rng: np.random.Generator,
    repeats: Repeats | None,
    engine: Engine = HOST,
) -> Array:
    """k-means of the embedding P of distinct observations; 0 for those that are nowhere.

    ``anywhere`` tells of all observations, copies included.
    """
    here = anywhere if repeats is None else anywhere[repeats.first]
    start = namespace(P).zeros_like(P[:, 0], dtype=namespace(P).int64)
    mass = None if repeats is None or repeats.mass is None else repeats.mass[here]
    if repeats is not None and (not engine.weighs_rows or here.sum() < n_clusters):
        # All copies take part.
        found = kmeans(P[repeats.of[anywhere]], n_clusters, rng, n_init=STARTS)
        start[repeats.of[anywhere]] = found
        return start
    start[here] = kmeans(P[here], n_clusters, rng, STARTS, mass)
    return start


# --- results -----------------------------------------------------------------------------------


def agreement_on_host(agreement: Agreement, engine: Engine) -> Agreement:
    """The same with graphs of the host."""
    return replace(
        agreement,
        view_graphs=[engine.graph_on_host(graph) for graph in agreement.view_graphs],
        fused=engine.graph_on_host(agreement.fused),
        fused_single=engine.graph_on_host(agreement.fused_single),
    )


def view_agreement(views: Views) -> tuple[Array, Array, Array]:
    """How much views agree (n_views×n_views), halves of each view, and how much views repeat each
    other (n_views×n_views), with the default settings.

    A view without any value has zeros.
    """
    columns, settings = observed_columns(views), Settings()
    kept = list(range(len(views))) if columns is None else kept_views(columns)
    part = views if columns is None else observed_part(views, columns)
    present = quiet_presence(part)
    scalings = fit_scalings(part, present, "auto")
    spaces, _ = distinct(measure(part, present, scalings, working_dtype(part, None)))
    n, lists = spaces[0].n_samples, [view.nearest(settings.n_neighbors) for view in spaces]
    graphs = [list_graph(near, n) for near in lists]
    neighbors = [for_all_rows(near.rows, near.indices, n) for near in lists]
    halves = split_half(spaces, settings.n_neighbors, 0)
    rows = HOST.row_contrasts(spaces, graphs)
    matrix, repeated = np.zeros((2, len(views), len(views)))
    all_halves = np.zeros(len(views))
    matrix[np.ix_(kept, kept)] = agreement_matrix(rows, halves, spaces[0].mass)
    repeated[np.ix_(kept, kept)] = compare_distances(spaces, neighbors, 0)[1]
    all_halves[kept] = halves
    return matrix, all_halves, repeated


def graph_of_all(graph: sp.csr_array, rows: Array | None) -> sp.csr_array:
    """A graph of the observations of a fit as one of all that were given."""
    if rows is None:
        return graph
    edges, place = graph.tocoo(), np.flatnonzero(rows)
    i, j = (place[ends] for ends in edges.coords)
    return sp.csr_array((edges.data, (i, j)), shape=(len(rows),) * 2)
