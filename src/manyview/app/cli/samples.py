"""`manyview demo` and `manyview datasets`: the data that come with manyview."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from manyview.app.options import DatasetsRequest, DemoRequest
from manyview.baselines import honest_methods
from manyview.datasets import (
    load_handwritten,
    load_nutrimouse,
    make_cohort,
    make_synthetic,
)
from manyview.datasets._dataset import tables_of
from manyview.io.writing import claimed, csv_bytes, csv_of_dicts
from manyview.metrics import scores
from manyview.plot import overview
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF

from .terminal import Voice

METRICS = ("acc", "nmi", "precision", "recall", "f_score", "ari")
#: The paper's WM-NMF on these digits, mean of 20 runs.
PAPER = dict(zip(METRICS, (0.96, 0.93, 0.93, 0.94, 0.93, 0.93), strict=True))
FILES = ("labels.csv", "view_weights.csv", "sample_weights.csv", "scores.csv", "digits.png")


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
    """Fit the digits with several seeds; print tables, write labels, weights, scores and a picture."""
    with claimed(ask.out, "demo", force=ask.force) as place:
        place.check(FILES)
        digits = load_handwritten(views="paper")
        started = time.perf_counter()
        voice.show(
            f"[bold]Handwritten digits[/bold]: {digits.n_samples} images of 10 digits, measured in "
            f"{len(digits.views)} ways ({', '.join(digits.views)}). No label is used to cluster them."
        )
        fits: dict[str, Callable[[int], Any]] = {
            "RobustWMNMF": lambda r: RobustWMNMF(10, random_state=r).fit(digits.views),
            "WM-NMF": lambda r: WMNMF(10, random_state=r).fit(digits.views),
            "plain baseline": lambda r: honest_methods(10)["ConcatSpectral-z"](r).fit(digits.views),
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
        voice.show(_score_table(rated, ask.runs), _weight_table(models))
        robust, picture = models["RobustWMNMF"][0], io.BytesIO()
        overview(robust, digits.views["pix"], image_shape=(16, 15)).savefig(picture, dpi=110)
        names, sure = list(robust.view_names_in_), robust.confidence_.max(axis=1).round(4)
        labels = zip(range(digits.n_samples), robust.labels_, sure, digits.labels, strict=True)
        weights = zip(names, robust.view_weights_, strict=True)
        each = ([i, *row] for i, row in enumerate(robust.sample_weights_))
        made = (
            csv_bytes(["sample", "cluster", "confidence", "digit"], labels),
            csv_bytes(["view", "weight"], weights),
            csv_bytes(["sample", *names], each),
            csv_of_dicts(rated, columns=["method", "seed", *METRICS]),
            picture.getvalue(),
        )
        place.put(dict(zip(FILES, made, strict=True)))
    voice.show(
        f"{time.perf_counter() - started:.0f} s. Results of RobustWMNMF in [bold]{escape(str(ask.out))}/"
        f"[/bold]: {', '.join(FILES)}"
    )


def _score_table(rated: list[dict[str, Any]], runs: int) -> Table:
    table = Table("score", title=f"Agreement with the true digits, mean (sd) of {runs} runs")
    for column in ("RobustWMNMF", "WM-NMF", "the paper's WM-NMF", "plain baseline*"):
        table.add_column(column, justify="right")
    for name in METRICS:
        values = np.reshape([row[name] for row in rated], (3, runs))  # a row for each method
        cells = [f"{of.mean():.3f} ({of.std():.3f})" for of in values]
        table.add_row(name, *cells[:2], f"{PAPER[name]:.2f}", cells[2])
    table.caption = "* k-NN spectral clustering of the z-scored features of all views together"
    return table


def _weight_table(models: dict[str, list[Any]]) -> Table:
    table = Table("view", title="View weights: how much each view shapes the consensus")
    for column in ("features", "RobustWMNMF", "WM-NMF"):
        table.add_column(column, justify="right")
    robust = models["RobustWMNMF"][0]
    paper = np.mean([model.view_weights_ for model in models["WM-NMF"]], axis=0)
    ours = (robust.view_names_in_, robust.n_features_in_, robust.view_weights_)
    for name, m, weight, theirs in zip(*ours, paper, strict=True):
        table.add_row(name, str(m), f"{weight:.3f}", f"{theirs:.3f}")
    return table
