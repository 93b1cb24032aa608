"""`manyview demo`: the shipped digits by both estimators, beside the paper's numbers and a baseline."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table

from manyview.baselines import honest_methods
from manyview.datasets import Dataset, load_handwritten
from manyview.io.writing import OurFolder, claimed, csv_bytes
from manyview.metrics import scores
from manyview.plot import overview
from manyview.robust import RobustWMNMF
from manyview.wmnmf import WMNMF

METRICS = ("acc", "nmi", "precision", "recall", "f_score", "ari")
#: The paper's WM-NMF on these digits, mean of 20 runs.
PAPER = dict(zip(METRICS, (0.96, 0.93, 0.93, 0.94, 0.93, 0.93), strict=True))

FILES = ("labels.csv", "view_weights.csv", "sample_weights.csv", "scores.csv", "digits.png")


def run_demo(out: Path, seed: int, runs: int, console: Console, force: bool = False) -> None:
    """Fit ``runs`` seeds, print the tables, write labels, weights, scores and a picture to ``out``."""
    with claimed(out, "demo", force=force) as place:
        place.check(FILES)
        _run(place, out, seed, runs, console)


def _run(place: OurFolder, out: Path, seed: int, runs: int, console: Console) -> None:
    digits = load_handwritten(views="paper")
    started = time.perf_counter()
    console.print(
        f"[bold]Handwritten digits[/bold]: {digits.n_samples} images of 10 digits, measured in "
        f"{len(digits.views)} ways ({', '.join(digits.views)}). No label is used to cluster them.",
        highlight=False,
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
            for r in progress.track(range(seed, seed + runs), description=f"{name:14}"):
                models[name].append(fit(r))
    rated = {
        name: [scores(digits.labels, model.labels_) for model in fitted]
        for name, fitted in models.items()
    }
    console.print(_score_table(rated, runs))
    robust = models["RobustWMNMF"][0]
    console.print(_weight_table(robust, models["WM-NMF"]))
    files = _write(place, digits, robust, rated, seed)
    console.print(
        f"{time.perf_counter() - started:.0f} s. Results of RobustWMNMF in [bold]{out}/[/bold]: "
        f"{', '.join(files)}",
        highlight=False,
    )


def _score_table(rated: dict[str, list[dict]], runs: int) -> Table:
    table = Table(title=f"Agreement with the true digits, mean (sd) of {runs} runs")
    table.add_column("score")
    for column in ("RobustWMNMF", "WM-NMF", "the paper's WM-NMF", "plain baseline*"):
        table.add_column(column, justify="right")
    for name in METRICS:
        cells = []
        for rows in rated.values():
            values = np.array([row[name] for row in rows])
            cells.append(f"{values.mean():.3f} ({values.std():.3f})")
        table.add_row(name, *cells[:2], f"{PAPER[name]:.2f}", cells[2])
    table.caption = "* k-NN spectral clustering of the z-scored features of all views together"
    return table


def _weight_table(robust: RobustWMNMF, papers: list[WMNMF]) -> Table:
    table = Table(title="View weights: how much each view shapes the consensus")
    table.add_column("view")
    for column in ("features", "RobustWMNMF", "WM-NMF"):
        table.add_column(column, justify="right")
    paper = np.mean([model.view_weights_ for model in papers], axis=0)
    for name, m, ours, theirs in zip(
        robust.view_names_in_, robust.n_features_in_, robust.view_weights_, paper, strict=True
    ):
        table.add_row(name, str(m), f"{ours:.3f}", f"{theirs:.3f}")
    return table


def _write(
    place: OurFolder, digits: Dataset, model: RobustWMNMF, rated: dict[str, list[dict]], seed: int
) -> list[str]:
    names = list(model.view_names_in_)
    tables: dict[str, tuple[list[str], Iterable]] = {
        "labels.csv": (
            ["sample", "cluster", "confidence", "digit"],
            zip(
                range(digits.n_samples),
                model.labels_,
                model.confidence_.max(axis=1).round(4),
                digits.labels,
                strict=True,
            ),
        ),
        "view_weights.csv": (["view", "weight"], zip(names, model.view_weights_, strict=True)),
        "sample_weights.csv": (
            ["sample", *names],
            ([i, *row] for i, row in enumerate(model.sample_weights_)),
        ),
        "scores.csv": (
            ["method", "seed", *METRICS],
            (
                [method, seed + r, *(row[m] for m in METRICS)]
                for method, rows in rated.items()
                for r, row in enumerate(rows)
            ),
        ),
    }
    contents = {name: csv_bytes(header, rows) for name, (header, rows) in tables.items()}
    picture = io.BytesIO()
    overview(model, digits.views["pix"], image_shape=(16, 15)).savefig(picture, dpi=110)
    place.put(contents | {"digits.png": picture.getvalue()})
    return list(FILES)
