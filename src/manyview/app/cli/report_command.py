"""The options of `manyview report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from manyview.io.guard import unpacking_up_to

from . import options, works
from .common import Voice, reported


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="RUN", help="What fit, compare or reproduce has written.")
    ],
    stability: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Of a fit: so many refits, to see which clusters come back; 0 makes none.",
        ),
    ] = None,
    markdown: Annotated[
        bool,
        typer.Option("--markdown", help="Of reproduce: print the numbers as Markdown instead."),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Of a fit: measure everything anew, though the run has a page already."
        ),
    ] = False,
    max_unpacked: options.MaxUnpacked = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Make the page of a finished run, or make it anew.

    Of a fit with --no-report it reads the files of the fit once more (only if their checksums are
    those of then), refits parts of them, and writes the page that the fit would have written. Of a
    fit that has a page it writes the page anew from the tables. Of a comparison it says where the
    page is. Of a reproduction it builds page, figures and tables from the result files.

    \b
    Examples:
      manyview report run/
      manyview report run/ --stability 20
      manyview report reproduction/ --markdown
    """
    with reported("report", folder), unpacking_up_to(max_unpacked):
        if works.run_report(folder, stability, force, Voice(quiet, json)):
            return
        if markdown:
            typer.echo(works.as_markdown(folder), nl=False)
        else:
            typer.echo(
                f"{works.build(folder)[0]}, and the same in {folder}/figures and {folder}/tables"
            )
