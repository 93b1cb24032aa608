"""The options that say how files are read: the same for every command that reads some."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from .common import reported
from .later import later
from .relations import NO_RELATIONS, Relations, relation_options

__all__ = ["NO_RELATIONS", "Relations", "reads_files"]

#: How files are read, as the options say.
as_reading = later("manyview.app.files", "Reading")


def _options(
    index: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN", help="Column of sample ids, VIEW=COLUMN, or VIEW= for none."
        ),
    ] = None,
    transpose: Annotated[
        list[str] | None,
        typer.Option(
            metavar="VIEW", help="This file has samples in columns; all, or none; may be repeated."
        ),
    ] = None,
    header: Annotated[
        list[str] | None,
        typer.Option(
            metavar="yes|no",
            help="Whether the first line is headings, or VIEW=yes; may be repeated.",
        ),
    ] = None,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="exact|loose|tcga",
            help="When two ids are one sample: as written; case and marks do not count; barcodes.",
        ),
    ] = None,
    keep_normals: Annotated[
        bool,
        typer.Option(
            "--keep-normals", help="Use normal tissue and controls, too, which TCGA barcodes name."
        ),
    ] = False,
    tumors: Annotated[
        str | None,
        typer.Option(
            metavar="one|all", help="Several tumor samples of a TCGA patient: use one, or all."
        ),
    ] = None,
    decimal: Annotated[
        list[str] | None,
        typer.Option(metavar="comma|point", help="Decimal mark, or VIEW=comma, if it is in doubt."),
    ] = None,
    na: Annotated[
        list[str] | None,
        typer.Option(metavar="TEXT", help="This text stands for an empty cell; may be repeated."),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Leave this column out, or VIEW=COLUMN."),
    ] = None,
    drop_text: Annotated[
        bool, typer.Option("--drop-text", help="Leave columns of text out.")
    ] = False,
    one_hot: Annotated[
        bool, typer.Option("--one-hot", help="Make every word of a column a column of 0 and 1.")
    ] = False,
    as_view: Annotated[
        list[str] | None,
        typer.Option(metavar="VIEW", help="This table is a view, though it looks like labels."),
    ] = None,
) -> Any:
    return as_reading(
        tuple(index or ()),
        tuple(transpose or ()),
        tuple(header or ()),
        tuple(decimal or ()),
        tuple(na or ()),
        tuple(drop or ()),
        drop_text,
        one_hot,
        tuple(as_view or ()),
        match,
        keep_normals,
        tumors,
    )


#: Parameters that commands receive instead of options, and what makes them of the options.
RECEIVED: dict[str, Callable[..., Any]] = {"reading": _options, "relations": relation_options}


def refuse_absent(items: Sequence[str]) -> None:
    """A mistyped name is the commonest mistake: it is told before anything heavy is loaded."""
    for item in items:
        named = item.partition("=")[2] or item
        if item.startswith("="):
            return  # no name=path: the reader has a sentence of its own
        if not any(_is_there(text) for text in (item, named)):
            raise ValueError(f"{named} does not exist; name a file")


def _is_there(text: str) -> bool:
    """Whether it is a file, or one with the name of a sheet or an array behind it."""
    while text:
        try:
            if Path(text).exists():
                return True
        except (OSError, ValueError):  # a name no file system takes: the reader says so
            return True
        text = text.rpartition(":")[0]
    return False


def reads_files(command: Callable[..., Any]) -> Callable[..., Any]:
    """A command with parameters that are in `RECEIVED` → one with the options for them."""
    own = inspect.signature(command, eval_str=True)
    ours = {
        name: inspect.signature(RECEIVED[name], eval_str=True).parameters
        for name in own.parameters
        if name in RECEIVED
    }
    parameters: list[inspect.Parameter] = []
    for name, parameter in own.parameters.items():
        parameters += ours[name].values() if name in ours else [parameter]
    # Those with a default follow those without: Python asks for it, typer does not care.
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]

    @functools.wraps(command)
    def run(**given: Any) -> Any:
        with reported(command.__name__.replace("_", "-")):
            refuse_absent(given["views"])
        made = {
            name: RECEIVED[name](**{option: given.pop(option) for option in options})
            for name, options in ours.items()
        }
        return command(**given, **made)

    run.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run
