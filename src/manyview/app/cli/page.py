"""`manyview app`: a page to drop tables on."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from . import works
from .common import reported


def web_page(
    folder: Annotated[
        Path, typer.Option(help="Where runs are kept, with copies of their tables.")
    ] = Path("manyview-runs"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 0,
    address: Annotated[
        str, typer.Option(help="Another address of this machine; asks for a password to be set.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open the page in your browser.")] = True,
    max_upload: Annotated[float, typer.Option(metavar="GIB", help="Largest table taken.")] = 1.0,
    max_hours: Annotated[float, typer.Option(help="Longest time of one run.")] = 6.0,
    max_memory: Annotated[
        float | None, typer.Option(metavar="GIB", help="Most memory of one run; what is free.")
    ] = None,
) -> None:
    """Open a page in the browser on which to drop tables; only this machine can reach it.

    Each run is a folder as fit makes it, and the page shows the command that makes it again.
    Another --address needs a password: the variable MANYVIEW_PASSWORD, or it is asked for.
    """
    limits = works.limits_of_runs(3600 * max_hours, int((max_memory or 0) * 2**30))
    with reported("app", resume="The page is closed; finished runs are kept."):
        place = works.place_of_page(address, port, _password)
        works.run_app(folder, place, int(max_upload * 2**30), limits, browser, typer.echo)


def _password() -> str:
    known = os.environ.get("MANYVIEW_PASSWORD", "")
    if known or not sys.stdin.isatty():
        return known
    return typer.prompt("A password for the page", hide_input=True, confirmation_prompt=True)
