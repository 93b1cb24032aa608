"""Options on what is known of the samples beside the views."""

from __future__ import annotations

from typing import Annotated

import typer

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
    typer.Option("--event", metavar="COLUMN", help="Its column that says who had the event."),
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
