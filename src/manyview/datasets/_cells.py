"""Synthetic single cells: counts of several modalities with known types, batches and scrambled cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array

from ._dataset import Dataset
from ._synthetic import _entropy, _stream, check_choice, check_count, check_nonnegative

#: Features of each modality where none are given, and expected counts of a cell in genes and peaks.
FEATURES = {"rna": 1000, "adt": 40, "atac": 3000}
DEPTH = {"rna": 2000.0, "atac": 1500.0}
#: Share of genes and peaks that mark a type, and the standard deviation of their log fold changes.
MARKERS, FOLD = 0.05, 1.5
#: Mean counts of a protein: background, and what a cell that carries it has in addition.
BACKGROUND, SIGNAL = 20.0, 150.0
#: Share of the proteins that a type carries.
CARRIED = 0.3
#: Variance of a count is mean + DISPERSION mean²; standard deviation of the logarithm of depth.
DISPERSION, DEPTH_SPREAD = 0.25, 0.3
#: Cells drawn at a time.
BLOCK = 4096

# First entries of the keys of random streams: every part has its own, so that options change no other.
_TYPES, _MODALITY, _BATCHES, _SCRAMBLED, _CELLS = range(5)


def make_single_cells(
    n_cells: int = 2000,
    n_types: int = 8,
    modalities: Sequence[str] = ("rna", "adt"),
    *,
    n_features: Mapping[str, int] | None = None,
    indistinct: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    dropout: float = 0.1,
    n_batches: int = 1,
    batch_effect: float = 0.5,
    batch_types: Any = None,
    scrambled: float = 0.0,
    scrambled_by: str = "noise",
    random_state: int | np.random.Generator | np.random.RandomState | None = None,
) -> Dataset:
    """Draw counts of single cells in several modalities: CITE-seq, multiome, several batches.

    A count is negative binomial. Its mean in a gene or peak is the cell's depth times the profile of the
    cell's type; in a protein it is a background, plus a signal where the type carries the protein. In batch
    b every feature has a factor of its own, exp(N(0, batch_effect²)), for all types alike.

    Parameters
    ----------
    n_cells, n_types : int
        Type k has .8^k times the cells of type 0.
    modalities : sequence of "rna", "adt" and "atac"
    n_features : dict of modality → int, optional
        By default 1000 genes, 40 proteins and 3000 peaks.
    indistinct : dict of modality → sequence of (type, type), optional
        Types that look the same in a modality, such as {"adt": [(0, 1)]}.
    dropout : float
        Share of the counts of genes and peaks that are lost (0 instead).
    n_batches : int
    batch_effect : float
        Standard deviation of the logarithm of a batch's factors.
    batch_types : array (n_batches, n_types), optional
        How likely each type is in each batch, relative to its overall share; 0: it is absent there.
    scrambled : float
        Share of the cells whose proteins say nothing of their type.
    scrambled_by : "noise" or "other"
        Such a cell carries random proteins, or has the proteins of a cell of another type.
    random_state : int, Generator, RandomState or None
        The same integer gives the same data.

    Returns
    -------
    Dataset
        Views are sparse (proteins dense); labels are the types 0 .. n_types - 1; ``clinical`` has the
        columns "batch" and "scrambled" (True or False).

    Examples
    --------
    >>> import manyview as mv
    >>> cells = mv.datasets.make_single_cells(500, 5, n_batches=2, random_state=0)
    >>> cells
    <Dataset single cells: 500 samples, 5 classes, 2 views (rna 1000, adt 40)>
    >>> sorted(set(cells.clinical["batch"]))
    ['batch0', 'batch1']
    """
    for name, count in (("n_cells", n_cells), ("n_types", n_types), ("n_batches", n_batches)):
        check_count(name, count)
    if n_types > n_cells:
        raise ValueError(
            f"n_types is {n_types} but there are only {n_cells} cells; choose more cells"
        )
    for modality in modalities:
        check_choice("each of modalities", modality, tuple(FEATURES))
    check_nonnegative("batch_effect", batch_effect)
    check_choice("scrambled_by", scrambled_by, ("noise", "other"))
    for name, share in (("dropout", dropout), ("scrambled", scrambled)):
        if not 0 <= share <= 1:
            raise ValueError(f"{name} is a share from 0 to 1, not {share!r}")
    if scrambled and "adt" not in modalities:
        raise ValueError("scrambled cells have wrong proteins; include 'adt' in modalities")
    odds = np.ones((n_batches, n_types)) if batch_types is None else np.asarray(batch_types, float)
    if odds.shape != (n_batches, n_types) or not (odds >= 0).all() or not odds.any(axis=0).all():
        raise ValueError(
            f"batch_types must hold a number of 0 or more for each of {n_batches} batches and {n_types} "
            "types, and some above 0 for every type"
        )
    sizes = {**FEATURES, **(n_features or {})}
    entropy = _entropy(random_state)
    rng = _stream(entropy, _TYPES, 0)
    shares = np.cumsum(0.8 ** np.arange(n_types))
    edges = np.round(shares[:-1] / shares[-1] * (n_cells - n_types)).astype(int)
    counts = np.diff(edges, prepend=0, append=n_cells - n_types) + 1  # every type has a cell
    labels = rng.permutation(np.repeat(np.arange(n_types), counts))
    edges = np.cumsum(odds / odds.sum(axis=0), axis=0)[:, labels]
    batch = (rng.random(n_cells) > edges[:-1]).sum(axis=0)
    mixed = np.zeros(n_cells, dtype=bool)
    mixed[rng.permutation(n_cells)[: round(scrambled * n_cells)]] = True

    views: dict[str, Any] = {}
    for name in modalities:
        check_count(f"n_features of {name!r}", sizes[name])
        place = list(FEATURES).index(name)
        rng = _stream(entropy, _MODALITY, place)
        if name == "adt":
            levels = rng.lognormal(0, 0.5, (2, sizes[name])) * [[BACKGROUND], [SIGNAL]]
            carried = rng.random((n_types, sizes[name])) < CARRIED
            means = levels[0] + carried * levels[1]
        else:
            base = rng.lognormal(0, 1.2, sizes[name])
            marks = rng.random((n_types, sizes[name])) < MARKERS
            means = base * np.exp(marks * rng.normal(0, FOLD, marks.shape))
            means *= DEPTH[name] / means.sum(axis=1, keepdims=True)
        for one, other in (indistinct or {}).get(name, ()):
            means[other] = means[one]
        rng = _stream(entropy, _BATCHES, place)
        factors = np.exp(batch_effect * rng.standard_normal((n_batches, sizes[name])))
        parts = []
        for number, start in enumerate(range(0, n_cells, BLOCK)):
            cells, rng = slice(start, start + BLOCK), _stream(entropy, _CELLS + place, number)
            found = _counts(rng, means[labels[cells]] * factors[batch[cells]])
            if name == "adt":
                parts.append(found)
            else:
                found[rng.random(found.shape) < dropout] = 0
                parts.append(sp.csr_array(found))
        views[name] = np.vstack(parts) if name == "adt" else sp.csr_array(sp.vstack(parts))
        if name == "adt" and mixed.any():
            rng = _stream(entropy, _SCRAMBLED, 0)
            if scrambled_by == "noise":
                own = levels[0] + (rng.random((mixed.sum(), sizes[name])) < CARRIED) * levels[1]
            else:
                other = labels[mixed] + rng.integers(1, max(2, n_types), mixed.sum())
                own = means[other % n_types]
            views[name][mixed] = _counts(rng, own * factors[batch[mixed]])
    return Dataset(
        name="single cells",
        views=views,
        labels=labels,
        description=(
            f"Negative binomial counts of {n_types} types of cells in {n_batches} batches with effect "
            f"{batch_effect:g}; {mixed.sum()} cells have proteins of no type or another "
            f"({scrambled_by}). Generated by manyview."
        ),
        sample_names=[f"cell{i}" for i in range(n_cells)],
        clinical={"batch": [f"batch{b}" for b in batch], "scrambled": mixed.tolist()},
    )


def _counts(rng: np.random.Generator, means: Array) -> Array:
    """Negative binomial counts of cells, each of a depth of its own."""
    means = means * np.exp(DEPTH_SPREAD * rng.standard_normal((len(means), 1)))
    return rng.poisson(means * rng.gamma(1 / DISPERSION, DISPERSION, means.shape)).astype(float)
