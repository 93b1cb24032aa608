"""`manyview fit`: files in; labels, weights, parts, the model and a report out."""

from __future__ import annotations

import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.markup import escape
from rich.table import Table

from manyview.data.read import ReadViews, read_views
from manyview.io.writing import OurFolder, claimed, files_of
from manyview.judge.comparison.labels import read_labels
from manyview.judge.selection import Selection, select_n_clusters
from manyview.methods.robust import RobustWMNMF
from manyview.methods.scaling import SCALES
from manyview.methods.wmnmf import WMNMF
from manyview.output.run import write_run
from manyview.output.run.evidence import known_scores
from manyview.output.run.folder import KIND, component_files, selection_record, sure_files
from manyview.storage.checkpoint import kept_until_written

from .common import Voice, candidates_for, caught_warnings, reasons

ENGINES = ("numpy", "torch", "dask")
METHODS = {"robust": RobustWMNMF, "wmnmf": WMNMF}


@dataclass(frozen=True)
class FitRequest:
    """What was asked on the command line."""

    files: list[str]
    clusters: str
    out: Path
    method: str = "robust"
    scale: str | None = None
    missing: str = "allow"
    labels: Path | None = None
    index: tuple[str, ...] = ()
    transpose: tuple[str, ...] = ()
    seed: int = 0
    force: bool = False
    report: bool = True
    on_disk: bool = False
    checkpoint: Path | None = None
    engine: str = "numpy"
    device: str = "auto"
    header: tuple[str, ...] = ()
    resolution: float | None = None


def run_fit(ask: FitRequest, voice: Voice) -> dict[str, Any]:
    """Read, fit, write to ``ask.out``, say what was found; the summary as plain values."""
    with claimed(ask.out, KIND, force=ask.force) as place:
        place.check(sure_files(ask.report))
        return _fit(place, ask, voice)


def _fit(place: OurFolder, ask: FitRequest, voice: Voice) -> dict[str, Any]:
    model = make_model(ask)
    # The results of a finished fit are lost with its process until they are written.
    with kept_until_written(), voice.busy("reading the files") as tell:
        data = read_views(
            ask.files,
            index=ask.index,
            transpose=ask.transpose,
            header=ask.header,
            missing=ask.missing,
            on_disk=ask.on_disk,
        )
        truth = None if ask.labels is None else read_labels(ask.labels, data, partial=True)
        if truth is not None and None in truth:
            data.notes.append(
                f"{ask.labels} knows the classes of {sum(t is not None for t in truth)} of "
                f"{len(truth)} samples; only these are scored"
            )
        for note in data.told:
            voice.note(note)
        views = data.collection()
        place.check(component_files(views.names))
        _check_sparse(ask, data)
        n = len(data.first_rows)
        tell(f"clustering {n} samples, {len(data.views)} views")
        selection = None
        with caught_warnings() as warned:
            if ask.clusters == "auto":
                selection = _choose(model, views, data, ask.seed)
                model.n_clusters = selection.n_clusters
            model.fit(views)
        voice.warn(warned)
        info = {
            "command": shlex.join(["manyview", *sys.argv[1:]]),
            "alignment": data.decisions + (data.notes or [f"all files list the same {n} samples"]),
            "warnings": warned,
            "inputs": data.inputs,
        }
        write_run(
            model,
            views,
            ask.out,
            settings=_plain(asdict(ask)),
            info=info,
            truth=truth,
            selection=selection,
            force=ask.force,
            report=ask.report,
            stability_runs=None if ask.report else 0,
            progress=tell,
        )
    summary = _summary(model, data, truth, ask) | {"notes": data.told, "warnings": warned}
    if selection is not None:
        summary["selection"] = selection_record(selection)
    if selection is not None:
        voice.show(*reasons(selection))
    voice.show(*_tables(summary))
    voice.show(
        f"Results in [bold]{escape(str(ask.out))}/[/bold]: {escape(', '.join(summary['files']))}"
    )
    voice.result(summary)
    return summary


def make_model(ask: FitRequest) -> Any:
    """The estimator asked for; what it does not take is refused before any file is read."""
    if ask.method not in METHODS:
        raise ValueError(f"--method must be robust or wmnmf, got {ask.method!r}")
    if ask.missing not in ("allow", "drop"):
        raise ValueError(f"--missing must be allow or drop, got {ask.missing!r}")
    n_clusters = _n_clusters(ask.clusters)
    robust = ask.method == "robust"
    scales = ("auto", "none") if robust else (*SCALES, "none")
    if ask.scale is not None and ask.scale not in scales:
        raise ValueError(
            f"--scale {ask.scale}: the method {ask.method} takes {', '.join(scales)}"
            + ("; for others use --method wmnmf" if robust and ask.scale in SCALES else "")
        )
    if ask.engine not in ENGINES:
        raise ValueError(f"--engine must be one of {', '.join(ENGINES)}, got {ask.engine!r}")
    params: dict[str, Any] = {"random_state": ask.seed, "checkpoint": ask.checkpoint}
    params |= {"engine": ask.engine, "device": ask.device}
    if ask.scale is not None:
        params["scale"] = None if ask.scale == "none" else ask.scale
    if n_clusters == "communities" and not robust:
        raise ValueError(
            "--clusters communities goes with --method robust; wmnmf takes a number or auto"
        )
    if ask.resolution is not None and n_clusters != "communities":
        raise ValueError("--resolution goes with --clusters communities; leave it out")
    if ask.resolution is not None:
        params["resolution"] = ask.resolution
    if ask.missing == "allow":
        params["missing"] = "allow" if robust else "mask"
    else:
        params["missing"] = "error"
    # "auto" is replaced once the data are there.
    return METHODS[ask.method](2 if n_clusters == "auto" else n_clusters, **params)


def _n_clusters(text: str) -> int | str:
    if text in ("auto", "communities"):
        return text
    if not text.isdecimal() or int(text) < 1:
        raise ValueError(
            f"--clusters must be a number of 1 or more, auto or communities; got {text!r}"
        )
    return int(text)


def _choose(model: Any, views: Any, data: ReadViews, seed: int) -> Selection:
    """Both methods ask the same graph; that of the robust one with its settings."""
    return select_n_clusters(
        views,
        candidates_for(data),
        model=model if isinstance(model, RobustWMNMF) else None,
        random_state=seed,
    )


def _check_sparse(ask: FitRequest, data: ReadViews) -> None:
    """To the paper's method a sparse row of zeros is a value: it cannot stand for a missing one."""
    if ask.method == "robust":
        return
    n = len(data.first_rows)
    held = {entry["view"]: entry["rows"] for entry in data.inputs}
    for view, X in data.views.items():
        if sp.issparse(X) and held[view] < n:
            raise ValueError(
                f"view {view!r} is sparse and lacks {n - held[view]} of {n} samples, which --method "
                "wmnmf cannot tell from zeros; use --missing drop or --method robust"
            )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    return {k: str(v) if isinstance(v, Path) else v for k, v in values.items()}


def _summary(model: Any, data: ReadViews, truth: Any, ask: FitRequest) -> dict[str, Any]:
    labels = np.asarray(model.labels_)
    names, sizes = np.unique(labels[labels >= 0], return_counts=True)
    found: dict[str, Any] = {
        "out": str(ask.out),
        "method": ask.method,
        "n_samples": len(labels),
        "n_clusters": int(getattr(model, "n_clusters_", model.n_clusters)),
        "cluster_sizes": {str(k): int(n) for k, n in zip(names, sizes, strict=True)},
        "view_weights": {
            str(v): float(a) for v, a in zip(model.view_names_in_, model.view_weights_, strict=True)
        },
        "files": files_of(ask.out, KIND),
    }
    if truth is not None:
        found["scores"] = {k: float(v) for k, v in known_scores(truth, labels).items()}
    return found


def _tables(summary: dict[str, Any]) -> list[Any]:
    sizes = Table("cluster", "samples", title=f"{summary['n_samples']} samples")
    for cluster, size in summary["cluster_sizes"].items():
        sizes.add_row(cluster, str(size))
    weights = Table("view", "weight", title="How far the views agree with the others")
    for view, weight in summary["view_weights"].items():
        weights.add_row(escape(view), f"{weight:.3f}")
    shown: list[Any] = [sizes, weights]
    if "scores" in summary:
        known = Table("score", "value", title="Against the known classes")
        for name, value in summary["scores"].items():
            known.add_row(name, f"{value:.3f}")
        shown.append(known)
    return shown
