"""`manyview demo`: WM-NMF on the shipped digits, beside the paper's numbers and an honest baseline."""

from __future__ import annotations

import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeElapsedColumn
from rich.table import Table
from sklearn.cluster import SpectralClustering
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from .datasets import Dataset, load_handwritten
from .estimators import WMNMF
from .metrics import scores

METRICS = ("acc", "nmi", "precision", "recall", "f_score", "ari")
#: The paper's WM-NMF on these digits, mean of 20 runs.
PAPER = dict(zip(METRICS, (0.96, 0.93, 0.93, 0.94, 0.93, 0.93), strict=True))


def run_demo(out: Path, seed: int, runs: int, console: Console) -> None:
    """Fit ``runs`` seeds, print the tables, write labels, weights, scores and a picture to ``out``."""
    digits = load_handwritten(views="paper")
    started = time.perf_counter()
    console.print(
        f"[bold]Handwritten digits[/bold]: {digits.n_samples} images of 10 digits, measured in "
        f"{len(digits.views)} ways ({', '.join(digits.views)}). No label is used to cluster them.",
        highlight=False,
    )
    with Progress(
        "[progress.description]{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
    ) as progress:
        models = _fit_all(digits, seed, runs, progress)
        baseline = [_baseline(digits, seed + r) for r in range(runs)]
    ours = [scores(digits.labels, model.labels_) for model in models]
    honest = [scores(digits.labels, labels) for labels in baseline]
    console.print(_score_table(ours, honest, runs))
    console.print(_weight_table(models))
    files = _write(out, digits, models, ours, honest, seed)
    console.print(
        f"{time.perf_counter() - started:.0f} s. Results in [bold]{out}/[/bold]: {', '.join(files)}",
        highlight=False,
    )


def _fit_all(digits: Dataset, seed: int, runs: int, progress: Progress) -> list[WMNMF]:
    task = progress.add_task("WM-NMF", total=None)

    def advance(info: dict[str, Any]) -> None:
        progress.update(task, total=info["total"] * runs, advance=1)

    settings: dict[str, Callable] = {"callback": advance}
    return [
        WMNMF(10, random_state=seed + r, **settings).fit(digits.views)  # type: ignore[arg-type]
        for r in range(runs)
    ]


def _baseline(digits: Dataset, seed: int) -> np.ndarray:
    """k-NN spectral clustering of the z-scored features side by side: simple, and hard to beat."""
    X = StandardScaler().fit_transform(np.hstack(list(digits.views.values())))
    with threadpool_limits(1):
        return SpectralClustering(
            10, affinity="nearest_neighbors", n_neighbors=10, random_state=seed
        ).fit_predict(X)


def _score_table(ours: list[dict], honest: list[dict], runs: int) -> Table:
    table = Table(title=f"Agreement with the true digits, mean (sd) of {runs} runs")
    table.add_column("score")
    for column in ("WM-NMF", "the paper's WM-NMF", "plain baseline*"):
        table.add_column(column, justify="right")
    for name in METRICS:
        cells = [
            f"{_column(rows, name).mean():.3f} ({_column(rows, name).std():.3f})"
            for rows in (ours, honest)
        ]
        table.add_row(name, cells[0], f"{PAPER[name]:.2f}", cells[1])
    table.caption = "* k-NN spectral clustering of the z-scored features of all views together"
    return table


def _weight_table(models: list[WMNMF]) -> Table:
    table = Table(title="View weights (how much each view shapes the consensus)")
    table.add_column("view")
    table.add_column("features", justify="right")
    table.add_column("weight", justify="right")
    weights = np.mean([model.view_weights_ for model in models], axis=0)
    for name, m, weight in zip(
        models[0].view_names_in_, models[0].n_features_in_, weights, strict=True
    ):
        table.add_row(name, str(m), f"{weight:.3f}")
    return table


def _column(rows: list[dict], name: str) -> np.ndarray:
    return np.array([row[name] for row in rows])


def _write(
    out: Path, digits: Dataset, models: list[WMNMF], ours: list[dict], honest: list[dict], seed: int
) -> list[str]:
    out.mkdir(parents=True, exist_ok=True)
    first = models[0]
    names = list(first.view_names_in_)
    _write_csv(
        out / "labels.csv",
        ["sample", "cluster", "digit"],
        zip(range(digits.n_samples), first.labels_, digits.labels, strict=True),
    )
    _write_csv(
        out / "view_weights.csv", ["view", "weight"], zip(names, first.view_weights_, strict=True)
    )
    _write_csv(
        out / "sample_weights.csv",
        ["sample", *names],
        ([i, *row] for i, row in enumerate(first.sample_weights_)),
    )
    _write_csv(
        out / "scores.csv",
        ["method", "seed", *METRICS],
        (
            [method, seed + r, *(row[m] for m in METRICS)]
            for method, rows in (("WM-NMF", ours), ("plain baseline", honest))
            for r, row in enumerate(rows)
        ),
    )
    files = ["labels.csv", "view_weights.csv", "sample_weights.csv", "scores.csv"]
    from .plot import overview

    overview(first, digits.views["pix"], image_shape=(16, 15)).savefig(out / "digits.png", dpi=110)
    return [*files, "digits.png"]


def _write_csv(path: Path, header: list[str], rows: Any) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
