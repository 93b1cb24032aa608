"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyview._version import __version__

Out = Annotated[Path, typer.Option(help="Folder for the result files.")]
Seed = Annotated[int, typer.Option(help="Seed of the first run.")]
Files = Annotated[
    list[str], typer.Argument(metavar="VIEW...", help="One file per view, or name=file.")
]
MaxUnpacked = Annotated[
    float | None,
    typer.Option(metavar="GIB", help="Most that a packed file may take in memory, if you know it."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace the results of an earlier run.")]
Beside = Annotated[
    bool, typer.Option("--force", help="Write beside what is in the folder; nothing there is lost.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]
Clinical = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Table of what else is known of the samples, tested by cluster."
    ),
]
TimeColumn = Annotated[
    str | None,
    typer.Option("--time", metavar="COLUMN", help="Its column with the time of survival."),
]
EventColumn = Annotated[
    str | None,
    typer.Option(
        "--event",
        metavar="COLUMN[=VALUE]",
        help="Its column that says who had the event, and by which value if that is unclear.",
    ),
]
Horizon = Annotated[
    float | None,
    typer.Option(
        metavar="TIME",
        help="Time up to which mean survival is compared; by default the last with 10% of every "
        "cluster, and 5 samples, still at risk.",
    ),
]
Labels = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[:COLUMN]", help="Known classes (id and label), to score the clusters only."
    ),
]
Figures = Annotated[
    bool, typer.Option("--figures", help="Draw the figures as SVG, PNG and PDF, too.")
]
Adjust = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Column of the clinical table (batch, site) to regress out of every view; may be "
        "repeated.",
    ),
]
Match = Annotated[
    str,
    typer.Option(
        metavar="exact|loose|tcga",
        help="When two ids are one sample: as written; case and marks do not count; barcodes.",
    ),
]


def _tell_version(asked: bool) -> None:
    if asked:
        typer.echo(f"manyview {__version__}")
        raise typer.Exit()


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=_tell_version, is_eager=True, help="Print the version and stop."
    ),
]
