"""The command line: parse and delegate."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

app = typer.Typer(
    help="Cluster observations measured in several ways, and learn which views to trust.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
console = Console()

Out = Annotated[Path, typer.Option(help="Folder for the result files.")]
Seed = Annotated[int, typer.Option(help="Seed of the first run.")]


@app.callback()
def root() -> None:
    """Keeps sub-commands named even while there is only one."""


@app.command()
def demo(
    out: Out = Path("demo-results"),
    seed: Seed = 0,
    runs: Annotated[int, typer.Option(min=1, help="Runs with different seeds.")] = 3,
) -> None:
    """Cluster the shipped handwritten digits and compare with the paper and a plain baseline."""
    from .demo import run_demo

    run_demo(out, seed, runs, console)


@app.command()
def compare(
    views: Annotated[
        list[str],
        typer.Argument(
            metavar="VIEW_FILE...",
            help="One file per view (.csv, .tsv, .parquet, .npy, .npz), or name=file.",
        ),
    ],
    clusters: Annotated[int, typer.Option(min=1, help="How many clusters to look for.")],
    out: Out,
    labels: Annotated[
        Path | None, typer.Option(help="Known classes: id and label, or one column in file order.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="all, paper, honest, or names with commas between them.")
    ] = "all",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each method.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="The runs' seeds are derived from it.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at the same time.")] = 1,
    max_seconds: Annotated[float, typer.Option(help="Longest time of one run.")] = 300.0,
    max_memory: Annotated[float, typer.Option(help="Most memory of one run, in GiB.")] = 4.0,
) -> None:
    """Run every method on your files and write tables, a picture and a page to compare them.

    Finished runs are kept in the output folder: the same command goes on where it was interrupted.
    """
    from .comparison.command import run_compare

    settings = {
        "n_clusters": clusters,
        "n_runs": runs,
        "random_state": seed,
        "n_jobs": jobs,
        "max_seconds": max_seconds,
        "max_memory": max_memory,
    }
    try:
        run_compare(views, labels, out, methods, settings, console)
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"manyview compare: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(
            f"Interrupted. Finished runs are in {out}/runs; run it again to go on.", err=True
        )
        raise typer.Exit(130) from None


@app.command()
def datasets() -> None:
    """List the data that comes with manyview."""
    from .datasets import load_handwritten, load_nutrimouse

    for data in (load_handwritten(), load_nutrimouse()):
        console.print(f"[bold]{data.name}[/bold]: {data.description}", highlight=False)


@app.command()
def reproduce(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EXPERIMENT]...",
            help="all, or digits honest synthetic lihc nutrimouse p beta k runtime operations "
            "convergence noise degeneracy.",
        ),
    ] = None,
    out: Out = Path("reproduction"),
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
) -> None:
    """Run the paper's experiments and write their tables and the page that holds them together.

    Finished cells are kept in the output folder: the same command goes on where it was interrupted.
    """
    from .experiments.command import run_reproduce
    from .report.reproduction import build

    with _told(
        "reproduce", f"Interrupted. Finished cells are in {out}/runs; run it again to go on."
    ):
        failed = run_reproduce(
            experiments or [],
            out,
            replications=replications,
            seed=seed,
            jobs=jobs,
            data=data,
            linear_mlrssc=linear_mlrssc,
            console=console,
        )
        typer.echo(f"The page: {build(out)[0]}")
    if failed:
        raise typer.Exit(1)


@app.command()
def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What reproduce has written.")],
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the numbers as Markdown instead.")
    ] = False,
) -> None:
    """Build the page, figures and tables of results from their files alone."""
    from .report.reproduction import build
    from .report.reproduction import markdown as as_markdown

    with _told("report", "Interrupted."):
        if markdown:
            typer.echo(as_markdown(folder), nl=False)
        else:
            typer.echo(f"{build(folder)[0]}, and the same in {folder}/figures and {folder}/tables")


@contextmanager
def _told(command: str, interrupted: str) -> Iterator[None]:
    """What goes wrong as one sentence, and Ctrl-C as another."""
    try:
        yield
    except (ValueError, OSError, ImportError) as error:
        typer.echo(f"manyview {command}: {' '.join(str(error).split())}", err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt:
        typer.echo(interrupted, err=True)
        raise typer.Exit(130) from None
