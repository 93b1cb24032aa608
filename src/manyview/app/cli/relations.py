"""The options that name files of links, similarities and distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

#: "graph", "kernel" or "distance" → files, each perhaps as name=file.
Relations = Mapping[str, Sequence[str]]
NO_RELATIONS: Relations = {}
Graph = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=FILE",
        help="Links between the samples as a view: a list (id, id, weight), or a matrix; may be repeated.",
    ),
]
Kernel = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="Similarities between the samples; may be repeated."),
]
Distance = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=FILE", help="Distances between the samples; may be repeated."),
]


def relation_options(
    graph: Graph = None, kernel: Kernel = None, distance: Distance = None
) -> dict[str, tuple[str, ...]]:
    """What was asked for, by the name of the option."""
    asked = {"graph": graph, "kernel": kernel, "distance": distance}
    return {option: tuple(files) for option, files in asked.items() if files}
