"""`manyview report` and `manyview reproduce`: the page of a finished run, and that of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from manyview.app.options import ReportRequest, ReproduceRequest, cluster_names
from manyview.app.run.folder import KIND, PAGE, measured_again, name_clusters, page_of_tables
from manyview.io.writing import files_of, restored

from .inputs import NotTheData, fitted
from .terminal import Voice, caught_warnings

COMPARISON = "comparison.html"


def run_report(ask: ReportRequest, voice: Voice) -> None:
    """Make the page of a fit or of a reproduction, or name that of a comparison."""
    folder, told = ask.out, list[str]()
    if folder.is_dir():
        restored(folder)
    ours = files_of(folder, KIND) if folder.is_dir() else []
    if folder.is_dir() and COMPARISON in files_of(folder, "compare"):
        page = folder / COMPARISON
    elif ours:
        stability = ask.stability
        if stability is not None and (stability < 0 or stability == 1):
            raise ValueError(f"--stability must be 0 or at least 2 refits, got {stability}")
        about = name_clusters(folder, cluster_names(ask.names))
        complete = PAGE in ours and stability is None
        if ask.force or not (complete or stability == 0):
            page, told = _measured(folder, about, stability, voice)
        else:
            page = page_of_tables(folder)
    else:
        paper = _paper("page")
        if ask.markdown:
            typer.echo(paper.markdown(folder), nl=False)
        else:
            made = paper.build(folder)[0]
            typer.echo(f"{made}, and the same in {folder}/figures and {folder}/tables")
        return
    voice.warn(told)
    voice.show(str(page))
    voice.result({"page": str(page), "warnings": told})


def run_reproduce(ask: ReproduceRequest, voice: Voice) -> None:
    """Run the paper's experiments and write their page; exit status 1 if a cell failed."""
    settings = {name: getattr(ask, name) for name in
                ("replications", "seed", "jobs", "data", "again", "force")}  # fmt: skip
    run = _paper("command").run_reproduce
    failed = run(ask.experiments, ask.out, console=voice.console, **settings)
    typer.echo(f"The page: {_paper('page').build(ask.out)[0]}")
    if failed:
        raise typer.Exit(1)


def _paper(module: str) -> Any:
    """A module of the reproduction, which only the command line knows, and by name alone."""
    return import_module(f"manyview.paper.{module}")


def _measured(
    folder: Path, about: Mapping[str, Any], stability: int | None, voice: Voice
) -> tuple[Path, list[str]]:
    """The page with refits; where the data are not those of the fit, that of the tables and a sentence."""
    with voice.busy("reading the files") as tell:
        try:
            model, read = fitted(folder, about)
        except NotTheData as error:
            return page_of_tables(folder), [
                f"{error}. The report is rebuilt from the tables in {folder}; nothing "
                "is measured again, so it shows stability only if the tables do"
            ]
        with caught_warnings():  # the fit gave them, and the page has them
            page = measured_again(
                folder,
                model,
                read.views,
                read.given.known,
                stability_runs=stability,
                progress=tell,
            )
    return page, []
