"""The command line: parse and delegate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manyview.io.guard import unpacking_up_to

from . import options, works
from .common import PatientConsole, Voice, reported
from .fit_options import fit
from .page import web_page
from .reading import NO_RELATIONS, Relations, reads_files
from .report_command import report

app = typer.Typer(
    help="Cluster observations measured in several ways, and learn which views to trust.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = PatientConsole()

#: `manyview.selection.DEFAULT`, without loading it.
USUAL_METHODS = "stability,eigengap,communities"


@app.callback()
def root(version: options.Version = False) -> None:
    """Keeps sub-commands named even while there is only one."""


@app.command()
def demo(
    out: options.Out = Path("demo-results"),
    seed: options.Seed = 0,
    runs: Annotated[int, typer.Option(min=1, help="Runs with different seeds.")] = 3,
    force: options.Force = False,
) -> None:
    """Cluster the shipped handwritten digits and compare with the paper and a plain baseline."""
    with reported("demo", out):
        works.run_demo(out, seed, runs, console, force)


@app.command()
@reads_files
def compare(
    views: Annotated[
        list[str],
        typer.Argument(
            metavar="VIEW_FILE...",
            help="One file per view, or name=file; kinds as for fit.",
        ),
    ],
    clusters: Annotated[int, typer.Option(min=1, help="How many clusters to look for.")],
    out: options.Out,
    labels: Annotated[
        Path | None, typer.Option(help="Known classes: id and label, or one column in file order.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="all, paper, honest, omics, or names with commas between them.")
    ] = "all",
    scale: Annotated[
        str | None, typer.Option(help="standard or minmax: every feature, for every method.")
    ] = None,
    missing: Annotated[
        str, typer.Option(help="error: no empty cells; drop: only samples complete in every file.")
    ] = "error",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each method.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The runs' seeds are derived from it.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    max_seconds: Annotated[float, typer.Option(help="Longest time of one run.")] = 300.0,
    max_memory: Annotated[float, typer.Option(help="Most memory of one run, in GiB.")] = 4.0,
    reading: Any = None,
    max_unpacked: options.MaxUnpacked = None,
    force: options.Beside = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Run every method on your files and write tables, a picture and a page to compare them.

    Finished runs are kept in the output folder: the same command goes on where it was interrupted.
    """
    settings = {
        "n_clusters": clusters,
        "n_runs": runs,
        "random_state": seed,
        "n_jobs": jobs,
        "max_seconds": max_seconds,
        "max_memory": max_memory,
        "scale": None if scale == "none" else scale,
    }
    resume = f"Interrupted. Finished runs are in {out}/runs; run it again to go on."
    with reported("compare", out, resume), unpacking_up_to(max_unpacked):
        voice = Voice(quiet, json)
        any_result = works.run_compare(
            views, labels, out, methods, settings, voice, reading, force, missing
        )
    if not any_result:
        typer.echo("manyview compare: no run gave a result; the reasons are above.", err=True)
        raise typer.Exit(1)


@app.command()
def datasets(
    out: Annotated[
        Path | None, typer.Option(help="Write the data there, a folder of CSV files for each.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the synthetic data.")] = 0,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """List the data that comes with manyview, or write it as tables to try things on."""
    with reported("datasets", out):
        works.run_datasets(out, seed, force, Voice(quiet, json))


app.command("fit")(fit)


@app.command()
def outcomes(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a finished fit.")],
    clinical: options.Clinical = None,
    time: options.TimeColumn = None,
    event: options.EventColumn = None,
    horizon: options.Horizon = None,
    labels: options.Labels = None,
    match: options.Match = "exact",
    figures: options.Figures = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Ask what the clusters of a finished fit mean: survival, clinical columns, known classes.

    Writes the tables into the folder of the run and makes its report anew. Samples are matched by
    their ids; columns of time and event are recognised by their names if they are not given.

    \b
    Examples:
      manyview outcomes run/ --clinical clinical.csv
      manyview outcomes run/ --clinical clinical.csv --time os_months --event dead
      manyview outcomes run/ --labels clinical.csv:subtype
    """
    with reported("outcomes", run):
        asked = works.asked_clinical(clinical, time, event, labels)
        works.run_outcomes(run, asked, horizon, match, figures, Voice(quiet, json))


@app.command()
@reads_files
def predict(
    model: Annotated[Path, typer.Argument(help="model.npz of a run, or the folder of the run.")],
    views: options.Files,
    out: Annotated[Path, typer.Option(help="File for id, cluster and confidence (CSV).")],
    reading: Any = None,
    relations: Relations = NO_RELATIONS,
    fitted_on: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="A file of the fit that stayed on disk, or VIEW=FILE if it moved; may be repeated.",
        ),
    ] = None,
    max_unpacked: options.MaxUnpacked = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Put new samples into the clusters of a saved model.

    Files are told apart by the names of the views at the fit. With the robust method a view may be
    left out, or lack some samples.

    \b
    Examples:
      manyview predict run/model.npz rna=new_rna.csv meth=new_meth.tsv --out labels.csv
      manyview predict run/ rna=new_rna.csv --out labels.csv
    """
    with reported("predict", out), unpacking_up_to(max_unpacked):
        works.run_predict(
            model,
            views,
            out,
            reading,
            force,
            Voice(quiet, json),
            tuple(fitted_on or ()),
            relations,
        )


@app.command("select-k")
@reads_files
def select_k(
    views: options.Files,
    out: Annotated[Path, typer.Option(help="Folder for the table, the picture and the reasons.")],
    smallest: Annotated[int, typer.Option("--from", min=2, help="Fewest clusters tried.")] = 2,
    largest: Annotated[
        int | None,
        typer.Option("--to", min=2, help="Most clusters tried; 40 if there are samples enough."),
    ] = None,
    methods: Annotated[
        str,
        typer.Option(
            help="all, or of stability, eigengap, communities, bicv, imputation, mdl, sure, by commas."
        ),
    ] = USUAL_METHODS,
    method: Annotated[
        str, typer.Option(help="robust, or wmnmf: its own rank, by bicv or imputation.")
    ] = "robust",
    reading: Any = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    max_unpacked: options.MaxUnpacked = None,
    force: options.Force = False,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Recommend a number of clusters, with reasons.

    \b
    Example:
      manyview select-k rna.csv meth.tsv protein.parquet --to 10 --out choice/
    """
    with reported("select-k", out), unpacking_up_to(max_unpacked):
        works.run_select_k(
            views,
            out,
            smallest,
            largest,
            methods,
            method,
            reading,
            seed,
            force,
            Voice(quiet, json),
        )


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="all, or digits mlrssc honest synthetic lihc nutrimouse p beta k seeds runtime "
            "operations convergence noise degeneracy.",
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
            help="Tuned linear MLRSSC. full: all digits, hours; small: 50 per class; skip; auto."
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
        failed = works.run_reproduce(
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
        typer.echo(f"The page: {works.build(out)[0]}")
    if failed:
        raise typer.Exit(1)


app.command()(report)
app.command("app")(web_page)
