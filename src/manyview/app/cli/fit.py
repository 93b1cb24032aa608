"""`manyview fit`: files in; labels, weights, parts, the model and a report out."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from rich.markup import escape
from rich.table import Table

from manyview.app.files import ReadViews, file_checksum, read_views
from manyview.app.files.relations import with_relations
from manyview.app.options import FitRequest, request_of
from manyview.app.run import write_run
from manyview.app.run.evidence import known_scores
from manyview.app.run.folder import KIND, changed_views, read_about, sure_files
from manyview.app.run.meaning import known
from manyview.app.run.record import component_files, is_of, selection_record
from manyview.base import ZERO_ROWS, of_view
from manyview.covariates import adjust
from manyview.engines.files.rows import INSIDE
from manyview.engines.table import ENGINES
from manyview.fuse import SCALINGS
from manyview.io.writing import OurFolder, claimed, files_of, is_whole, restored
from manyview.models import Estimator, load, number_of_clusters
from manyview.robust import RobustWMNMF
from manyview.scaling import SCALES
from manyview.selection import Selection, select_n_clusters
from manyview.storage.checkpoint import kept_until_written
from manyview.wmnmf import WMNMF

from .known import Given, known_ids, read_given
from .outcomes import told_outcomes
from .select_k import reasons
from .terminal import BAD_INPUT, Voice, caught_warnings

METHODS = {"robust": RobustWMNMF, "wmnmf": WMNMF}


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
        place.check(sure_files(ask.report, given, ask.figures))
        _fit(place, ask, voice)


def _fit(place: OurFolder, ask: FitRequest, voice: Voice) -> None:
    model = make_model(ask)
    # The results of a finished fit are lost with its process until they are written.
    with kept_until_written(), voice.busy("reading the files") as tell:
        read = read_inputs(ask, model.zero_rows if ask.adjust else None, voice.note)
        data, given, views = read.data, read.given, read.views
        place.check(component_files(views.names))
        _check_sparse(model, data)
        n = len(data.first_rows)
        tell(f"clustering {n} samples, {len(views.names)} views")
        selection = None
        with caught_warnings() as warned:
            if ask.clusters == "auto":
                # Both methods ask the same graph; that of the robust one with its settings.
                of = model if isinstance(model, RobustWMNMF) else None
                selection = select_n_clusters(views, model=of, random_state=ask.seed)
                model.n_clusters = selection.n_clusters
            model.fit(views)
        voice.warn(warned)
        info = {
            "command": shlex.join(["manyview", *sys.argv[1:]]),
            "alignment": data.decisions + (data.notes or [f"all files list the same {n} samples"]),
            "warnings": warned,
            "inputs": [*data.inputs, *given.inputs],
        }
        write_run(
            model,
            views,
            ask.out,
            settings=recorded_settings(ask),
            original_ids=data.original_ids,
            info=info,
            truth=given.classes,
            clinical=given.columns,
            time=given.time,
            event=given.event,
            horizon=ask.horizon,
            adjusted=given.adjust,
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
    """What is told of the run in the folder, if it is whole and of this request: whoever is killed after
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
    if read.given.classes is not None:
        found = known_scores(read.given.classes, labels)
        summary["scores"] = {name: float(value) for name, value in found.items()}
    summary |= {"notes": read.data.told, "warnings": warned}
    outcomes = told_outcomes(ask.out, summary, voice)
    if chosen is not None:
        summary["selection"] = chosen
        voice.show(*reasons(Selection(**chosen, table={})))
    voice.show(*_tables(summary), *outcomes)
    voice.show(
        f"Results in [bold]{escape(str(ask.out))}/[/bold]: {escape(', '.join(summary['files']))}"
    )
    voice.result(summary)


def make_model(ask: FitRequest) -> Any:
    """The estimator asked for; what it does not take is refused before any file is read."""
    ask.check_clinical()
    n_clusters: int | str = ask.clusters
    if n_clusters not in ("auto", "communities"):
        if not ask.clusters.isdecimal() or int(ask.clusters) < 1:
            raise ValueError(
                f"--clusters must be a number of 1 or more, auto or communities; got {ask.clusters!r}"
            )
        n_clusters = int(ask.clusters)
    robust = ask.method == "robust"
    if ask.adjust and not robust:
        raise ValueError(
            "--adjust gives values below zero, which --method wmnmf does not take; use --method robust"
        )
    if ask.device not in ("auto", "cpu") and not ENGINES[ask.engine].takes_devices:
        raise ValueError(
            f"--device {ask.device} goes with --engine torch; --engine {ask.engine} computes on the "
            "processor"
        )
    params: dict[str, Any] = {"random_state": ask.seed, "checkpoint": ask.checkpoint}
    params |= {"engine": ask.engine, "device": ask.device}
    if ask.scale is not None:
        params["scale"] = _scale(ask.scale, ask.method)
    for name, parsed in (("view_weights", _view_weights), ("zero_rows", _zero_rows)):
        text = getattr(ask, name)
        if text is not None:
            if not robust:
                raise ValueError(
                    f"--{name.replace('_', '-')} goes with --method robust; leave one of them out"
                )
            params[name] = parsed(text)
    if n_clusters == "communities" and not robust:
        raise ValueError(
            "--clusters communities goes with --method robust; wmnmf takes a number or auto"
        )
    if ask.resolution is not None and n_clusters != "communities":
        raise ValueError("--resolution goes with --clusters communities; leave it out")
    if ask.resolution is not None:
        params["resolution"] = ask.resolution
    params["missing"] = "allow" if ask.missing == "allow" else "error"
    # "auto" is replaced once the data are there.
    return METHODS[ask.method](2 if n_clusters == "auto" else n_clusters, **params)


def _by_view(text: str, option: str) -> str | dict[str, str]:
    """One word, or words by view: ``equal``, ``rna=2,protein=1``.

    A view's name may hold "=" (the last one counts), but no comma.
    """
    if "=" not in text:
        return text
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = (piece.strip() for piece in part.rpartition("="))
        if not sign or not name or not value:
            raise ValueError(
                f"{option} {text}: {part!r} is not VIEW=VALUE; say it as rna=…,protein=…"
            )
        if name in found:
            raise ValueError(f"{option} {text} names the view {name!r} twice; say it once")
        found[name] = value
    return found


def _view_weights(text: str) -> Any:
    """ "learned", "equal", or a number by view."""
    found = _by_view(text, "--view-weights")
    if not isinstance(found, dict):
        if found not in ("learned", "equal"):
            raise ValueError(
                "--view-weights must be learned, equal or numbers such as rna=2,protein=1; "
                f"got {text!r}"
            )
        return found
    numbers = {}
    for name, value in found.items():
        try:
            numbers[name] = float(value)
        except ValueError:
            raise ValueError(
                f"--view-weights: the weight of view {name!r} must be a number, got {value!r}"
            ) from None
    return numbers


def _zero_rows(text: str) -> Any:
    """ "auto", "missing", "observed", or one of them by view."""
    found = _by_view(text, "--zero-rows")
    for kind in found.values() if isinstance(found, dict) else [found]:
        if kind not in ZERO_ROWS:
            raise ValueError(
                "--zero-rows must be auto, missing, observed or such as mutations=observed; "
                f"got {kind!r}"
            )
    return found


def _scale(text: str, method: str) -> Any:
    """The scaling of a method, by view where it can be."""
    robust = method == "robust"
    found = _by_view(text, "--scale")
    allowed = (*(SCALINGS if robust else SCALES), "none")
    for kind in found.values() if isinstance(found, dict) else [found]:
        if kind not in allowed:
            raise ValueError(
                f"--scale {text}: the method {method} takes {', '.join(allowed)}"
                + f", or these by view (rna={allowed[1]},protein={allowed[2]})"
                + ("; for others use --method wmnmf" if robust and kind in SCALES else "")
            )
    if isinstance(found, dict):
        return {name: None if kind == "none" else kind for name, kind in found.items()}
    return None if found == "none" else found


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


def _weights_table(summary: dict[str, Any]) -> Table:
    """The weights of the views; beside those that were given what the data would have given."""
    used = summary["view_weights"]
    learned = summary.get("learned_view_weights", used)
    if used == learned:
        table = Table("view", "weight", title="How far the views agree with the others")
        for view, weight in used.items():
            table.add_row(escape(view), f"{weight:.3f}")
        return table
    table = Table("view", "weight", "learned", title="Weights as given, and as the data have them")
    for view, weight in used.items():
        table.add_row(escape(view), f"{weight:.3f}", f"{learned[view]:.3f}")
    return table


def _tables(summary: dict[str, Any]) -> list[Any]:
    sizes = Table("cluster", "samples", title=f"{summary['n_samples']} samples")
    for cluster, size in summary["cluster_sizes"].items():
        sizes.add_row(cluster, str(size))
    shown: list[Any] = [sizes, _weights_table(summary)]
    if "scores" in summary:
        known = Table("score", "value", title="Against the known classes")
        for name, value in summary["scores"].items():
            known.add_row(name, f"{value:.3f}")
        shown.append(known)
    return shown


# The files of a fit: read for the fit, and again for a report that is made later ----------------


class NotTheData(ValueError):
    """The files of a fit are not there any more, or hold something else."""


def recorded_settings(ask: FitRequest) -> dict[str, Any]:
    """The request as `run.json` has it: all that decides the results."""
    found = {k: v for k, v in asdict(ask).items() if k not in ("output", "max_unpacked")}
    found["relations"] = {kind: files for kind, files in found["relations"].items() if files}
    return {k: str(v) if isinstance(v, Path) else v for k, v in found.items()}


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the files of a request hold; ``views`` are without what the covariates explain."""

    data: ReadViews
    given: Given
    views: Any


def read_inputs(ask: FitRequest, zero_rows: Any, note: Callable[[str], None]) -> Inputs:
    """Read the views and what is known beside them; ``note`` is told how they were read."""
    data = read_views(
        ask.files,
        missing=ask.missing,
        on_disk=ask.on_disk,
        known=known_ids(ask),
        **vars(ask.reading),
    )
    data = with_relations(data, vars(ask.relations))
    samples = None if data.sample_names is None else data.sample_names.tolist()
    given = read_given(ask, samples, len(data.first_rows), data, data.rule)
    data.notes.extend(given.notes)
    ids = [str(i) for i in range(len(data.first_rows))]
    known(ids, given.columns, given.time, given.event, given.classes, horizon=ask.horizon)
    for text in data.told:
        note(text)
    views = data.collection()
    if given.adjust:
        columns = given.columns or {}
        found = adjust(views, {name: columns[name] for name in given.adjust}, zero_rows=zero_rows)
        views = found.views
        shares = ", ".join(f"{view} {share:.0%}" for view, share in found.explained.items())
        names = ", ".join(given.adjust)
        told = [*found.notes, f"{names} regressed out; it explained of the variance: {shares}"]
        for text in told:
            note(text)
        data.notes.extend(told)
    return Inputs(data, given, views)


def fitted(folder: Path, about: Mapping[str, Any]) -> tuple[Any, Inputs]:
    """The model of the run and its data, if they are still what they were."""
    settings = about.get("settings") or {}
    if "files" not in settings:
        raise NotTheData(f"{folder} does not say which files it was fitted on")
    if not (folder / "model.npz").is_file():
        raise NotTheData(f"{folder} has no model.npz any more")
    for item in about.get("inputs") or []:
        _check_file(item)
    try:
        model = load(folder / "model.npz", fitted_on=[item["path"] for item in about["inputs"]])
        zero_rows = model.get_params().get("zero_rows", "auto")
        read = read_inputs(
            request_of(FitRequest, settings, nested=True), zero_rows, lambda text: None
        )
        changed = changed_views(about, model, read.views)
    except (*BAD_INPUT, KeyError, TypeError) as error:
        raise NotTheData(f"the data of the fit cannot be had again ({error})") from None
    if changed:
        raise NotTheData(f"the values of {', '.join(changed)} are not those of the fit")
    return model, read


def _check_file(item: Mapping[str, Any]) -> None:
    """Only what has the checksum of the run is read: a run.json may come from anybody."""
    file = Path(str(item["path"]).partition(INSIDE)[0])
    if not file.exists():
        where = "" if file.is_absolute() else f" in {Path.cwd()}, where it is looked for"
        raise NotTheData(
            f"{file}, which the run was fitted on, is not there any more{where}; put it back, or run "
            "this where the fit was run"
        )
    if not (file.is_file() or file.is_dir()) or file_checksum(str(file)) != item["sha256"]:
        raise NotTheData(f"{file} has changed since the fit: its checksum is another")
