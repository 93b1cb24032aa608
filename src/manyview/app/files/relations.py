"""Files of links, similarities and distances → relations between the samples of the other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array
from manyview.app.options import Reading
from manyview.engines.numpy.relations import DistanceView, GraphView, KernelView, Relation

from . import ReadViews, existing, input_of
from .arrays import READERS, read_arrays
from .tables import cells_of, read_tables, text_of
from .text import RawTable, split_suffix

#: The options of commands that name such files, and what they make of them.
OPTIONS: dict[str, type[Relation]] = {
    "graph": GraphView,
    "kernel": KernelView,
    "distance": DistanceView,
}
#: A table with this many columns lists links: from, to, and perhaps a weight.
EDGE_COLUMNS = (2, 3)


def with_relations(
    data: ReadViews, asked: Mapping[str, Sequence[str]], fitted: Array | None = None
) -> ReadViews:
    """The views that were read, and those that relate their samples.

    Parameters
    ----------
    data : ReadViews
        The tables of features.
    asked : dict of "graph", "kernel" or "distance" → list of "name=path" or path
        A list of links (from, to, weight if any) by sample ids, a square table with ids, or a matrix
        (.npz, .npy, .mtx) in the order of the first file.
    fitted : ndarray of str, optional
        To predict: the samples of the fit, to which those of the files are related. An empty array
        where the model knows none: columns are then taken in their order.

    Returns
    -------
    ReadViews
    """
    relations, notes, inputs = dict(data.relations), list(data.notes), list(data.inputs)
    for option, files in asked.items():
        for item in files:
            name, given, path = item.partition("=")
            file = existing(Path(path if given else item))
            name = name if given else split_suffix(file.name)[0]
            if name in data.views or name in relations:
                raise ValueError(
                    f"--{option} {item}: there is another view {name!r}; name it otherwise"
                )
            found, told = _read(OPTIONS[option], file, data, fitted)
            relations[name], notes = found, notes + told
            inputs.append(input_of(name, str(file), found.shape))
    return replace(data, relations=relations, notes=notes, inputs=inputs)


def _read(
    cls: Any, file: Path, data: ReadViews, fitted: Array | None
) -> tuple[Relation, list[str]]:
    if split_suffix(file.name)[1] in READERS:
        parts = read_arrays(file)
        if len(parts) != 1:
            raise ValueError(f"{file.name} holds {len(parts)} arrays; a relation is one matrix")
        return _by_position(cls, file.name, next(iter(parts.values())).matrix, data, fitted)
    found = cells_of(file)
    if len(found.header) in EDGE_COLUMNS and cls is GraphView:
        return _from_links(file.name, found, data, fitted)
    part = read_tables(file, None, file.name, Reading())[""]
    if part.ids is None or part.features is None:
        return _by_position(cls, file.name, part.matrix, data, fitted)
    return _by_ids(cls, file.name, part, data, fitted)


def _from_links(
    file: str, found: RawTable, data: ReadViews, fitted: Array | None
) -> tuple[Relation, list[str]]:
    """A graph of the rows (from, to[, weight]) of a list."""
    key = data.rule.key
    rows = _places(data.sample_names, file, "the other files have", key)
    columns = rows if fitted is None else _places(fitted, file, "the model knows", key)
    ends, weights, strangers = [], [], set[str]()
    for line, row in enumerate(found.frame.itertuples(index=False), 1):
        start, stop = key(text_of(row[0])), key(text_of(row[1]))
        if line == 1 and found.headed is None and start not in rows and stop not in columns:
            continue  # headings
        strangers |= {name for name, known in ((start, rows), (stop, columns)) if name not in known}
        if start in rows and stop in columns:
            ends.append((rows[start], columns[stop]))
            try:
                weights.append(float(row[2]) if len(row) > 2 else 1.0)
            except (TypeError, ValueError):
                raise ValueError(
                    f"{file} has the weight {row[2]!r} in link {line}; the third column is a number"
                ) from None
    if not ends:
        shown = ", ".join(repr(name) for name in sorted(strangers)[:3])
        raise ValueError(
            f"{file} lists no link between samples of the other files (it names {shown}); its first two "
            "columns are sample ids, as they are written there"
        )
    i, j = np.array(ends).T
    A = sp.csr_array((weights, (i, j)), shape=(len(rows), len(columns)))
    notes = [f"{file}: {len(ends)} links between {len(set(i) | set(j))} samples"]
    if strangers:
        shown = ", ".join(repr(name) for name in sorted(strangers)[:3])
        notes.append(
            f"{file}: {len(strangers)} samples are in no other file and left out "
            f"({shown}{', …' * (len(strangers) > 3)})"
        )
    return GraphView(A), notes


def _places(
    names: Array | None, file: str, who: str, key: Callable[[str], str] = str
) -> dict[str, int]:
    if names is None or len(names) == 0:
        raise ValueError(
            f"{file} lists links by sample ids, and {who} none; pass a matrix (.npz, .mtx, .npy) in the "
            "order of the first file"
        )
    return {key(str(name)): i for i, name in enumerate(names)}


def _by_position(
    cls: Any, file: str, matrix: Any, data: ReadViews, fitted: Array | None
) -> tuple[Relation, list[str]]:
    if matrix.shape[0] != data.n_first:
        raise ValueError(
            f"{file} has {matrix.shape[0]} rows and no sample ids, and the first file has {data.n_first} "
            "samples; it must list the same ones in that order"
        )
    found = cls(matrix)
    if fitted is not None:
        found = found.for_unseen(None)
    else:
        found.check(file)
    return found.take(data.first_rows), []


def _by_ids(
    cls: Any, file: str, part: Any, data: ReadViews, fitted: Array | None
) -> tuple[Relation, list[str]]:
    rows = {data.rule.key(name): i for i, name in reversed(list(enumerate(part.ids)))}
    _places(data.sample_names, file, "the other files have")
    assert data.sample_names is not None
    order = np.array([rows.get(data.rule.key(str(name)), -1) for name in data.sample_names])
    if (order < 0).all():
        raise ValueError(
            f"{file} has no sample of the other files (it has {part.ids[0]!r}, they have "
            f"{str(data.sample_names[0])!r})"
        )
    if fitted is not None:
        found = cls(part.matrix, columns=part.features)
        return found.for_unseen(fitted if len(fitted) else None).take(order), []
    if list(part.ids) != list(part.features):
        raise ValueError(
            f"{file} has other samples in its rows than in its columns, or in another order; both need "
            "the same samples in the same order"
        )
    found = cls(part.matrix)
    found.check(file)
    lacking = int((order < 0).sum())
    told = [f"{file} lacks {lacking} samples; it is a missing view for them"] if lacking else []
    return found.take(order), told
