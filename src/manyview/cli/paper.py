"""The commands of the paper's experiments: run them, and build the page that holds them together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .common import PatientConsole, reported
from .later import later

console = PatientConsole()

# What commands do is loaded when one of them runs: help and completion are there at once.
run_reproduce = later("manyview.reproduction.command", "run_reproduce")
build = later("manyview.reproduction.page", "build")
as_markdown = later("manyview.reproduction.page", "markdown")
page_of_run = later("manyview.cli.pages", "page_of_run")


def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="all, or digits honest synthetic lihc nutrimouse p beta k runtime operations "
            "convergence noise degeneracy.",
        ),
    ] = None,
    out: options.Out = Path("reproduction"),
    replications: Annotated[int, typer.Option(min=1, help="Seeds of every method.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The seeds are derived from it.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Processes at the same time.")] = 2,
    data: Annotated[Path | None, typer.Option(help="Folder of your LIHC files.")] = None,
    linear_mlrssc: Annotated[
        str,
        typer.Option(
            help="full: all digits, an hour; small: 50 per class; skip; auto: full from 20."
        ),
    ] = "auto",
    again: Annotated[
        bool, typer.Option("--again", help="Rerun stored cells that other code has made.")
    ] = False,
    force: options.Beside = False,
) -> None:
    """Run the paper's experiments and write their tables and the page that holds them together.

    Finished cells are kept in the output folder: the same command goes on where it was interrupted.
    """
    resume = f"Interrupted. Finished cells are in {out}/runs; run it again to go on."
    with reported("reproduce", out, resume):
        failed = run_reproduce(
            experiments or [],
            out,
            replications=replications,
            seed=seed,
            jobs=jobs,
            data=data,
            linear_mlrssc=linear_mlrssc,
            console=console,
            again=again,
            force=force,
        )
        typer.echo(f"The page: {build(out)[0]}")
    if failed:
        raise typer.Exit(1)


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What reproduce, fit or compare has written.")
    ],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the numbers as Markdown instead.")
    ] = False,
) -> None:
    """Build the page, figures and tables of reproduce from its files alone, or name the page of a run."""
    with reported("report", folder):
        page = page_of_run(folder)
        if page is not None:
            typer.echo(f"{page}")
        elif markdown:
            typer.echo(as_markdown(folder), nl=False)
        else:
            typer.echo(f"{build(folder)[0]}, and the same in {folder}/figures and {folder}/tables")
