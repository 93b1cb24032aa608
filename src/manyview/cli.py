"""The command line: parse and delegate."""

from __future__ import annotations

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
    runs: Annotated[int, typer.Option(min=1, help="Runs with different seeds.")] = 5,
) -> None:
    """Cluster the shipped handwritten digits and compare with the paper and a plain baseline."""
    from .demo import run_demo

    run_demo(out, seed, runs, console)


@app.command()
def datasets() -> None:
    """List the data that comes with manyview."""
    from .datasets import load_handwritten, load_nutrimouse

    for data in (load_handwritten(), load_nutrimouse()):
        console.print(f"[bold]{data.name}[/bold]: {data.description}", highlight=False)
