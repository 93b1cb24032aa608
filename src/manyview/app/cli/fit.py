"""`manyview fit`: files in; labels, weights, parts, the model and a report out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.markup import escape
from rich.table import Table

from manyview.app.files import ReadViews
from manyview.app.options import FitRequest, cluster_names, command_line
from manyview.app.run import write_run
from manyview.app.run.evidence import known_scores
from manyview.app.run.folder import KIND, read_about, sure_files
from manyview.app.run.meaning import check_gene_sets
from manyview.app.run.record import component_files, is_of, selection_record
from manyview.base import ZERO_ROWS, of_view
from manyview.engines.numpy.scaling import SCALINGS
from manyview.engines.table import ENGINES
from manyview.io.writing import OurFolder, claimed, files_of, is_whole, restored
from manyview.models import Estimator, number_of_clusters
from manyview.nonnegative import SCALES
from manyview.robust import RobustWMNMF
from manyview.selection import Selection, select_n_clusters
from manyview.storage.checkpoint import kept_until_written

from .inputs import Inputs, fitted, read_inputs, recorded_settings
from .outcomes import told_outcomes
from .select_k import METHODS, reasons
from .terminal import Voice, caught_warnings


def run_fit(ask: FitRequest, voice: Voice) -> None:
    """Read, fit, write to ``ask.out``, print what was found."""
    before = None if ask.force else _finished(ask)
    with claimed(ask.out, KIND, force=ask.force, goes_on=before is not None) as place:
        if before is not None:
            voice.note(
                f"{ask.out} has the results of this command on these files already; nothing is computed "
                "again (--force does so)"
            )
            _told(ask, voice, *before)
            return
        given = ask.clinical is not None or ask.labels is not None
        place.check(sure_files(ask.report, given, ask.figures, ask.gene_sets is not None))
        _fit(place, ask, voice)


def _fit(place: OurFolder, ask: FitRequest, voice: Voice) -> None:
    model = make_model(ask)
    # The results of a finished fit are lost with its process until they are written.
    with kept_until_written(), voice.busy("reading the files") as tell:
        read = read_inputs(ask, model.zero_rows if ask.adjust else None, voice.note)
        data, given, views = read.data, read.given, read.views
        place.check(component_files(views.names))
        _check_sparse(model, data)
        if ask.gene_sets is not None:  # before the work, not after
            check_gene_sets(views, ask.gene_sets)
        n = len(data.first_rows)
        tell(f"clustering {n} samples, {len(views.names)} views")
        selection = None
        with caught_warnings() as warned:
            if ask.clusters == "auto":
                # Both methods ask the same graph; that of the robust one with its settings.
                of = model if isinstance(model, RobustWMNMF) else None
                selection = select_n_clusters(
                    views, model=of, batch=given.batch, random_state=ask.seed
                )
                model.n_clusters = selection.n_clusters
            model.fit(views, **({} if given.batch is None else {"batch": given.batch}))
        voice.warn(warned)
        info = {
            "command": command_line("fit", ask),
            "alignment": data.decisions + (data.notes or [f"all files list the same {n} samples"]),
            "warnings": warned,
            "inputs": [*data.inputs, *given.inputs],
            "names": {k: name for k, name in cluster_names(ask.names).items() if name},
        }
        write_run(
            model,
            views,
            ask.out,
            settings=recorded_settings(ask),
            original_ids=data.original_ids,
            info=info,
            clinical=given.known,
            gene_sets=ask.gene_sets,
            selection=selection,
            force=ask.force,
            report=ask.report,
            figures=ask.figures,
            stability_runs=None if ask.report else 0,
            progress=tell,
        )
    chosen = None if selection is None else selection_record(selection)
    _told(ask, voice, model, read, warned, chosen)


def _finished(ask: FitRequest) -> tuple[Estimator, Inputs, list[str], Any] | None:
    """Describe the run in the folder, if it is complete and of this request: a command killed after
    the results are in place can run the same command again."""
    restored(ask.out)
    if not is_whole(ask.out, KIND):
        return None
    try:
        about = read_about(ask.out)
        if not is_of(about, recorded_settings(ask)):
            return None
        return *fitted(ask.out, about), list(about["fit_warnings"]), about.get("selection")
    except (ValueError, KeyError):  # the data have changed, or it says less than ours
        return None


def _told(
    ask: FitRequest,
    voice: Voice,
    model: Estimator,
    read: Inputs,
    warned: list[str],
    chosen: dict[str, Any] | None,
) -> None:
    """Print what was found."""
    labels = np.asarray(model.labels_)
    clusters, sizes = np.unique(labels[labels >= 0], return_counts=True)
    names = [str(name) for name in model.view_names_in_]
    summary: dict[str, Any] = {
        "out": str(ask.out),
        "method": ask.method,
        "n_samples": len(labels),
        "n_clusters": number_of_clusters(model),
        "cluster_sizes": {str(k): int(n) for k, n in zip(clusters, sizes, strict=True)},
        "view_weights": dict(zip(names, map(float, model.view_weights_), strict=True)),
        "files": files_of(ask.out, KIND),
    }
    if isinstance(model, RobustWMNMF):
        learned = map(float, model.learned_view_weights_)
        summary["learned_view_weights"] = dict(zip(names, learned, strict=True))
    if (classes := read.given.known.classes) is not None:
        found = known_scores(classes, labels)
        summary["scores"] = {name: float(value) for name, value in found.items()}
    summary |= {"notes": read.data.told, "warnings": warned}
    outcomes = told_outcomes(ask.out, summary, voice)
    if chosen is not None:
        summary["selection"] = chosen
        voice.show(*reasons(Selection(**chosen, table={})))
    voice.show(*_tables(summary), *outcomes)
    voice.finish(summary)


def make_model(ask: FitRequest) -> Any:
    """The requested estimator; refuse unsuitable options before any file is read."""
    ask.check_clinical()
    cluster_names(ask.names)
    robust, communities = ask.method == "robust", ask.clusters == "communities"
    number = ask.clusters.isdecimal() and int(ask.clusters) > 0
    if not (number or communities or ask.clusters == "auto"):
        raise ValueError(
            f"--clusters must be a number of 1 or more, auto or communities; got {ask.clusters!r}"
        )
    if ask.adjust and not robust:
        raise ValueError(
            "--adjust gives values below zero, which --method wmnmf does not accept; use --method robust"
        )
    if ask.batch and not robust:
        raise ValueError("--batch works only with --method robust; leave one of them out")
    if ask.device not in ("auto", "cpu") and not ENGINES[ask.engine].takes_devices:
        raise ValueError(
            f"--device {ask.device} works only with --engine torch; --engine {ask.engine} computes on the "
            "processor"
        )
    for name in ("view_weights", "zero_rows"):
        if getattr(ask, name) is not None and not robust:
            option = f"--{name.replace('_', '-')}"
            raise ValueError(f"{option} works only with --method robust; leave one of them out")
    if communities and not robust:
        raise ValueError(
            "--clusters communities works only with --method robust; wmnmf takes a number or auto"
        )
    if ask.resolution is not None and not communities:
        raise ValueError("--resolution works only with --clusters communities; leave it out")
    params = {name: getattr(ask, name) for name in ("checkpoint", "engine", "device")}
    params["random_state"] = ask.seed
    params["missing"] = "allow" if ask.missing == "allow" else "error"
    if ask.resolution is not None:
        params["resolution"] = ask.resolution
    if ask.scale is not None:
        scalings = (*(("auto", *SCALINGS) if robust else SCALES), "none")
        params["scale"] = _by_view("--scale", ask.scale, scalings)
    if ask.zero_rows is not None:
        params["zero_rows"] = _by_view("--zero-rows", ask.zero_rows, ZERO_ROWS)
    if ask.view_weights is not None:
        words = ("learned", "equal")
        params["view_weights"] = _by_view("--view-weights", ask.view_weights, words, numbers=True)
    # "auto" is replaced once the data are there.
    n_clusters = int(ask.clusters) if number else "communities" if communities else 2
    return METHODS[ask.method](n_clusters, **params)


def _by_view(option: str, text: str, words: Sequence[str], numbers: bool = False) -> Any:
    """One of ``words`` for all views, or by view: ``rna=log,protein=none``, numbers ``rna=2,protein=1``.

    A view's name may hold "=" (the last one counts), but no comma.
    """
    example = "rna=2,protein=1" if numbers else f"rna={words[1]},protein={words[-1]}"

    def word(said: str) -> str | None:
        if said not in words:
            allowed = ", ".join(words)
            raise ValueError(
                f"{option} must be {allowed}, or by view such as {example}; got {said!r}"
            )
        return None if said == "none" else said

    if "=" not in text:
        return word(text)
    found: dict[str, Any] = {}
    for part in text.split(","):
        view, _, said = (piece.strip() for piece in part.rpartition("="))
        if not view or not said:
            raise ValueError(f"{option} {text}: {part!r} is not VIEW=VALUE; write {example}")
        if view in found:
            raise ValueError(f"{option} {text} names the view {view!r} twice; name it once")
        try:
            found[view] = float(said) if numbers else word(said)
        except ValueError as error:
            wrong = f"{option}: the weight of view {view!r} must be a number, got {said!r}"
            raise ValueError(wrong if numbers else str(error)) from None
    return found


def _check_sparse(model: Estimator, data: ReadViews) -> None:
    """Where a sparse row of zeros is a value it cannot stand for a missing one."""
    robust = isinstance(model, RobustWMNMF)
    n = len(data.first_rows)
    held = {entry["view"]: entry["rows"] for entry in data.inputs}
    for view, X in data.views.items():
        zeros_count = not robust or of_view(model.zero_rows, view, "auto") == "observed"
        if sp.issparse(X) and held[view] < n and zeros_count:
            asked = "--zero-rows observed" if robust else "--method wmnmf"
            raise ValueError(
                f"view {view!r} is sparse and lacks {n - held[view]} of {n} samples, which {asked} "
                "cannot tell from zeros; use --missing drop, or "
                + ("leave the option out" if robust else "--method robust")
            )


def _tables(summary: dict[str, Any]) -> list[Any]:
    """Sizes, weights (set ones next to learned ones), and scores."""
    sizes = Table("cluster", "samples", title=f"{summary['n_samples']} samples")
    for cluster, size in summary["cluster_sizes"].items():
        sizes.add_row(cluster, str(size))
    used = summary["view_weights"]
    learned = summary.get("learned_view_weights", used)
    if used == learned:
        weights = Table("view", "weight", title="View weights")
    else:
        title = "View weights: set by you, and learned"
        weights = Table("view", "weight", "learned", title=title)
    for view, weight in used.items():
        also = [] if used == learned else [f"{learned[view]:.3f}"]
        weights.add_row(escape(view), f"{weight:.3f}", *also)
    if "scores" not in summary:
        return [sizes, weights]
    scores = Table("score", "value", title="Agreement with the known classes")
    for name, value in summary["scores"].items():
        scores.add_row(name, f"{value:.3f}")
    return [sizes, weights, scores]
