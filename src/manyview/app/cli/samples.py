"""`manyview demo` and `manyview datasets`: the data that come with manyview."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
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
from manyview.io.writing import claimed, csv_bytes
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
    files = " ".join(str(out / first.name / f"{view}.csv") for view in list(first.views)[:2])
    voice.show(
        f"{len(contents)} files in [bold]{escape(str(out))}/[/bold]. Try: manyview fit "
        f"{escape(files)} --clusters 10 --labels {escape(str(out / first.name / 'labels.csv'))} "
        "--out run"
    )
    voice.result({"out": str(out), "files": sorted(contents)})


def run_demo(ask: DemoRequest, voice: Voice) -> None:
    """Fit the digits with several seeds; print tables, write labels, weights, scores and a picture."""
    console = voice.console
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
        models: dict[str, list[Any]] = {name: [] for name in fits}
        with Progress(
            "[progress.description]{task.description}",
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        ) as progress:
            for name, fit in fits.items():
                seeds = range(ask.seed, ask.seed + ask.runs)
                models[name] = [fit(r) for r in progress.track(seeds, description=f"{name:14}")]
        rated = {
            name: [scores(digits.labels, model.labels_) for model in fitted]
            for name, fitted in models.items()
        }
        voice.show(_score_table(rated, ask.runs), _weight_table(models))
        robust = models["RobustWMNMF"][0]
        picture = io.BytesIO()
        overview(robust, digits.views["pix"], image_shape=(16, 15)).savefig(picture, dpi=110)
        place.put({**_tables(digits, robust, rated, ask.seed), "digits.png": picture.getvalue()})
    voice.show(
        f"{time.perf_counter() - started:.0f} s. Results of RobustWMNMF in [bold]{escape(str(ask.out))}/"
        f"[/bold]: {', '.join(FILES)}"
    )


def _score_table(rated: dict[str, list[dict]], runs: int) -> Table:
    table = Table(title=f"Agreement with the true digits, mean (sd) of {runs} runs")
    table.add_column("score")
    for column in ("RobustWMNMF", "WM-NMF", "the paper's WM-NMF", "plain baseline*"):
        table.add_column(column, justify="right")
    for name in METRICS:
        values = [np.array([row[name] for row in rows]) for rows in rated.values()]
        cells = [f"{of.mean():.3f} ({of.std():.3f})" for of in values]
        table.add_row(name, *cells[:2], f"{PAPER[name]:.2f}", cells[2])
    table.caption = "* k-NN spectral clustering of the z-scored features of all views together"
    return table


def _weight_table(models: dict[str, list[Any]]) -> Table:
    table = Table(title="View weights: how much each view shapes the consensus")
    table.add_column("view")
    for column in ("features", "RobustWMNMF", "WM-NMF"):
        table.add_column(column, justify="right")
    robust = models["RobustWMNMF"][0]
    paper = np.mean([model.view_weights_ for model in models["WM-NMF"]], axis=0)
    for name, m, ours, theirs in zip(
        robust.view_names_in_, robust.n_features_in_, robust.view_weights_, paper, strict=True
    ):
        table.add_row(name, str(m), f"{ours:.3f}", f"{theirs:.3f}")
    return table


def _tables(digits: Any, model: Any, rated: dict[str, list[dict]], seed: int) -> dict[str, bytes]:
    names = list(model.view_names_in_)
    sure = model.confidence_.max(axis=1).round(4)
    samples = range(digits.n_samples)
    return {
        "labels.csv": csv_bytes(
            ["sample", "cluster", "confidence", "digit"],
            zip(samples, model.labels_, sure, digits.labels, strict=True),
        ),
        "view_weights.csv": csv_bytes(
            ["view", "weight"], zip(names, model.view_weights_, strict=True)
        ),
        "sample_weights.csv": csv_bytes(
            ["sample", *names], ([i, *row] for i, row in enumerate(model.sample_weights_))
        ),
        "scores.csv": csv_bytes(
            ["method", "seed", *METRICS],
            (
                [method, seed + r, *(row[m] for m in METRICS)]
                for method, rows in rated.items()
                for r, row in enumerate(rows)
            ),
        ),
    }
