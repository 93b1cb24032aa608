"""The options of `manyview fit`: parse and delegate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from manyview.io.guard import unpacking_up_to

from . import options, works
from .common import Voice, reported
from .reading import NO_RELATIONS, Relations, reads_files


@reads_files
def fit(
    views: options.Files,
    clusters: Annotated[
        str,
        typer.Option(
            metavar="K|auto|communities",
            help="How many clusters; auto chooses, communities takes those of the fused graph.",
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the results, new or empty.")],
    method: Annotated[
        str, typer.Option(help="robust (recommended) or wmnmf (the paper's).")
    ] = "robust",
    scale: Annotated[
        str | None,
        typer.Option(
            help="robust: auto, log, quantile, sqrt or none, or by view (rna=log,protein=quantile); "
            "wmnmf: sum, minmax, standard, tfidf, sqrt or none."
        ),
    ] = None,
    view_weights: Annotated[
        str | None,
        typer.Option(
            help="robust: learned, equal, or numbers by view (rna=2,protein=1); 0 leaves a view out "
            "of the labels."
        ),
    ] = None,
    zero_rows: Annotated[
        str | None,
        typer.Option(
            help="robust: whether a row of zeros is missing or observed, or by view "
            "(mutations=observed); auto: observed in tables of 0 and 1, of one column, or with "
            "numbers below 0."
        ),
    ] = None,
    missing: Annotated[
        str,
        typer.Option(help="allow: samples of any file; drop: those complete in every file."),
    ] = "allow",
    labels: options.Labels = None,
    clinical: options.Clinical = None,
    time: options.TimeColumn = None,
    event: options.EventColumn = None,
    horizon: options.Horizon = None,
    adjust: options.Adjust = None,
    figures: options.Figures = False,
    reading: Any = None,
    relations: Relations = NO_RELATIONS,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same result.")] = 0,
    force: options.Force = False,
    report: Annotated[
        bool, typer.Option(help="Write report.html; without it no refits judge the stability.")
    ] = True,
    on_disk: Annotated[
        bool, typer.Option("--on-disk", help="Read files by rows even if they fit in memory.")
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(help="File for the state of the fit; the same command goes on from it."),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="numpy, torch (GPUs) or dask (several processes or machines).")
    ] = "numpy",
    device: Annotated[
        str, typer.Option(help="With --engine torch: auto, cpu, cuda or cuda:1.")
    ] = "auto",
    resolution: Annotated[
        float | None,
        typer.Option(help="With --clusters communities: more gives more clusters; 1 unless said."),
    ] = None,
    max_unpacked: options.MaxUnpacked = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
) -> None:
    """Cluster the samples of your files; write labels, weights, parts, the model and a report.

    One file is one view of the samples (.csv .tsv .txt, also .gz .bz2 .zst; .xlsx .xls .ods, also
    book.xlsx:Sheet; .parquet .feather .rds .rda .npy .npz .mat .mtx .h5ad .h5mu, and .h5 .zarr).
    Files .npy .parquet .h5ad .h5 .zarr of over 256 MiB in all stay on disk.
    Samples are matched by the ids in the first column; rows are samples, but a table whose
    headings are the other files' ids is turned.

    \b
    Examples:
      manyview fit rna.csv meth.tsv protein.parquet --clusters 4 --out run/
      manyview fit rna=expression.csv atac=peaks.mtx --clusters auto --out run/
      manyview fit words.csv --graph cites=links.csv --clusters 6 --out run/
      manyview fit cells.h5mu --clusters communities --resolution 1 --out run/
      manyview fit a.csv b.csv --clusters 3 --missing drop --labels truth.csv --out run/
      manyview fit rna.csv mutations.csv --clusters 4 --zero-rows mutations=observed --out run/
      manyview fit genes.csv proteins.csv --transpose genes --index patient --clusters 5 --out run/
      manyview fit rna.csv meth.csv --clusters auto --out run/ --clinical clinical.csv \\
        --time os_months --event dead --labels clinical.csv:subtype --adjust batch

    \b
    Exit status: 0 done, 1 failure, 2 bad input, 130 interrupted.
    """
    with reported("fit", out, checkpoint=checkpoint), unpacking_up_to(max_unpacked):
        ask = works.fit_request(
            views,
            clusters,
            out,
            method,
            scale,
            missing,
            labels,
            reading,
            seed,
            force,
            report,
            on_disk,
            checkpoint,
            engine,
            device,
            view_weights,
            zero_rows,
            resolution,
            clinical,
            time,
            event,
            tuple(adjust or ()),
            figures,
            relations=dict(relations),
            horizon=horizon,
        )
        works.run_fit(ask, Voice(quiet, json))
