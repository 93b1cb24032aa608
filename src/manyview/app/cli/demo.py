"""`manyview demo` and `manyview datasets`: the data that come with manyview."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from manyview.app.options import DatasetsRequest, DemoRequest, FitRequest, command_line
from manyview.app.report.run_files import read_run
from manyview.baselines import honest_methods
from manyview.datasets import (
    load_handwritten,
    load_nutrimouse,
    make_cohort,
    make_synthetic,
)
from manyview.datasets._dataset import tables_of
from manyview.io.safe_csv import csv_of_dicts
from manyview.io.writing import claimed
from manyview.metrics import scores
from manyview.plot import overview
from manyview.plot._draw import p_text
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF

from .fit import run_fit
from .terminal import Voice

METRICS = ("acc", "nmi", "precision", "recall", "f_score", "ari")
#: The paper's WM-NMF on these digits, mean of 20 runs.
PAPER = dict(zip(METRICS, (0.96, 0.93, 0.93, 0.94, 0.93, 0.93), strict=True))
FILES = ("digits.csv", "digits.png")


def run_datasets(ask: DatasetsRequest, voice: Voice) -> None:
    """List the data, or write a folder of CSV files for each."""
    made = (
        load_handwritten(),
        load_nutrimouse(),
        make_synthetic(200, random_state=ask.seed),
        make_cohort(random_state=ask.seed),
    )
    out = ask.out
    if out is None:
        for data in made:
            voice.show(f"[bold]{escape(data.name)}[/bold]: {escape(data.description)}")
        voice.show("Write them as tables by manyview datasets --out FOLDER")
        voice.result({data.name: data.description for data in made})
        return
    with claimed(out, "datasets", force=ask.force) as place:
        contents: dict[str, bytes] = {}
        for data in made:
            contents |= {f"{data.name}/{name}": text for name, text in tables_of(data).items()}
        place.put(contents)
    first = made[0]
    here = out / first.name
    files = " ".join(str(here / f"{view}.csv") for view in list(first.views)[:2])
    command = f"manyview fit {files} --clusters 10 --labels {here / 'labels.csv'} --out run"
    voice.show(f"{len(contents)} files in [bold]{escape(str(out))}/[/bold]. Try: {escape(command)}")
    voice.result({"out": str(out), "files": sorted(contents)})


def run_demo(ask: DemoRequest, voice: Voice) -> None:
    """Fit the sample cohort from its tables, with a report; then the digits, next to the paper's."""
    started = time.perf_counter()
    with claimed(ask.out, "demo", force=ask.force) as place:
        place.check(FILES)
        cohort = tables_of(make_cohort(random_state=0))
        place.put({f"cohort/{name}": text for name, text in cohort.items()})
    tables, run = ask.out / "cohort", ask.out / "run"
    request = FitRequest(
        files=tuple(
            str(tables / f"{view}.csv") for view in ("expression", "methylation", "mutation")
        ),
        clusters="auto",
        out=run,
        clinical=str(tables / "clinical.csv"),
        labels=f"{tables / 'clinical.csv'}:subtype",
        adjust=("batch",),
        force=True,
    )
    voice.show(
        "[bold]1. Tables of 240 patients[/bold] (made up, four subtypes, three batches): expression, "
        f"methylation, mutations, clinical data.\n\n{escape(command_line('fit', request))}\n"
    )
    run_fit(request, Voice(True, False))
    voice.show(
        f"The report: [bold]{escape(str(run / 'report.html'))}[/bold]. Open it in a browser.",
        *(f"- {finding}" for finding in _findings(run)),
        "",
    )
    with claimed(ask.out, "demo", force=True) as place:
        digits = load_handwritten(views="paper")
        voice.show(
            f"[bold]2. Handwritten digits[/bold]: {digits.n_samples} images of 10 digits, measured in "
            f"{len(digits.views)} ways ({', '.join(digits.views)}). No label is used to cluster them."
        )
        fits: dict[str, Callable[[int], Any]] = {
            "RobustWMNMF": lambda r: RobustWMNMF(10, random_state=r).fit(digits.views),
            "WM-NMF": lambda r: WMNMF(10, random_state=r).fit(digits.views),
            "baseline": lambda r: honest_methods(10)["ConcatSpectral-z"](r).fit(digits.views),
        }
        seeds = range(ask.seed, ask.seed + ask.runs)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=voice.console) as progress:
            models = {
                name: [fit(r) for r in progress.track(seeds, description=f"{name:14}")]
                for name, fit in fits.items()
            }
        rated = [
            {"method": name, "seed": seed, **scores(digits.labels, model.labels_)}
            for name, fitted in models.items()
            for seed, model in zip(seeds, fitted, strict=True)
        ]
        voice.show(_score_table(rated, ask.runs))
        picture = io.BytesIO()
        robust = models["RobustWMNMF"][0]
        overview(robust, digits.views["pix"], image_shape=(16, 15)).savefig(picture, dpi=110)
        table = csv_of_dicts(rated, columns=["method", "seed", *METRICS])
        contents = {f"cohort/{name}": text for name, text in cohort.items()}
        place.put(contents | dict(zip(FILES, (table, picture.getvalue()), strict=True)))
    voice.show(
        f"{time.perf_counter() - started:.0f} s. In [bold]{escape(str(ask.out))}/[/bold]: run/ (the report "
        f"and its tables), cohort/ (its input), {', '.join(FILES)}"
    )


def _findings(run: Path) -> list[str]:
    """Three findings of the run of the cohort, in a sentence each."""
    about, tables = read_run(run)
    survival, told = about["survival"], []
    p = p_text(survival["p_value"], survival["permutations"])
    told.append(
        f"{about['n_clusters']} clusters were chosen; they agree with the four subtypes of the patients "
        f"with an adjusted Rand index of {about['classes']['ari']:.2f} (1 is the same)."
    )
    worst = max(read_run(run).hazards, key=lambda row: row["hazard_ratio"] or 0)
    of = next(row for row in tables["survival"] if row["cluster"] == worst["cluster"])
    told.append(
        f"Survival differs (log-rank p {p}): the median of cluster {worst['cluster']} is "
        f"{of['median']:.3g} months, its hazard ratio against all others {worst['hazard_ratio']:.1f} "
        f"({worst['lower']:.1f} to {worst['upper']:.1f})."
    )
    batch = next(row for row in tables["clinical_tests"] if row["column"] == "batch")
    told.append(
        f"The batch was regressed out (--adjust batch), and the clusters do not follow it: p = "
        f"{batch['p_value']:.2g}."
        if batch["p_value"] > 0.05
        else f"The clusters still follow the batch: p = {batch['p_value']:.2g}."
    )
    return told


def _score_table(rated: list[dict[str, Any]], runs: int) -> Table:
    spread = f", mean (sd) of {runs} runs" if runs > 1 else ""
    table = Table("score", title=f"Agreement with the true digits{spread}")
    for column in ("RobustWMNMF", "WM-NMF", "the paper's WM-NMF", "baseline*"):
        table.add_column(column, justify="right")
    for name in METRICS:
        values = np.reshape([row[name] for row in rated], (3, runs))  # a row for each method
        cells = [f"{of.mean():.3f}" + f" ({of.std():.3f})" * (runs > 1) for of in values]
        table.add_row(name, *cells[:2], f"{PAPER[name]:.2f}", cells[2])
    table.caption = "* k-NN spectral clustering of the z-scored features of all views together"
    return table
