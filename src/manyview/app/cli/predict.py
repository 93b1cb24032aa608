"""`manyview predict`: new samples into the clusters of a saved model."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape

from manyview.app.compare.page import plain_rows
from manyview.app.files import ReadViews, located, place_of, read_views
from manyview.app.files.relations import with_relations
from manyview.app.options import PredictRequest, command_line
from manyview.app.run import write_run
from manyview.app.run.folder import PAGE
from manyview.app.run.meaning import check_gene_sets
from manyview.base import fitted_input
from manyview.io.safe_csv import csv_bytes, safe_text
from manyview.io.writing import check_file, restored, write_file
from manyview.models import Estimator, load
from manyview.outcomes import predict_cohort
from manyview.outcomes.cohort import Cohort
from manyview.robust import RobustWMNMF
from manyview.views.containers import Collection

from .inputs import known_ids, read_given
from .terminal import Voice, caught_warnings


def run_predict(ask: PredictRequest, voice: Voice) -> None:
    """Label the samples of the files and write id, cluster and confidence."""
    model_file, out = ask.model, ask.out
    ask.check_clinical()
    given_beside = ask.clinical is not None or ask.labels is not None
    if ask.report is None and (given_beside or ask.gene_sets is not None):
        raise ValueError(
            "--clinical, --labels and --gene-sets need --report FOLDER, where their results are written"
        )
    check_file(out, ask.force)
    restored(model_file)
    _refuse_adjusted(model_file)
    model = load(
        model_file / "model.npz" if model_file.is_dir() else model_file,
        fitted_on=_files_of_fit(ask.files, ask.fitted_on),
    )
    held = fitted_input(model)
    if held.single:
        raise ValueError(
            f"{model_file} was fitted on one array rather than on named views; predict in Python"
        )
    allows, robust = held.may_lack, isinstance(model, RobustWMNMF)
    if not robust and (ask.rescale or ask.report):
        raise ValueError(
            f"--rescale and --report need a model of --method robust; {model_file} has another method"
        )
    with voice.busy("reading the files") as tell:
        data = read_views(
            ask.files,
            missing="allow" if any(map(allows, held.names)) else "error",
            fitted=_features(model),
            known=known_ids(ask),
            **vars(ask.reading),
        )
        known = model.sample_names_in_
        data = with_relations(data, vars(ask.relations), np.zeros(0) if known is None else known)
        views = _with_absent_views(model, data, allows, voice)
        tell("placing the samples among the fitted ones")
        cohort = None
        with caught_warnings() as warned:
            aligned = isinstance(model, RobustWMNMF) and model.needs_batch
            if aligned != (ask.new_batch is not None):
                raise ValueError(
                    f"{model_file} was fitted with --batch: name the batch of these samples (--batch), "
                    "one of those of the fit or a new name"
                    if aligned
                    else f"{model_file} was fitted without --batch; leave it out"
                )
            if aligned and (ask.rescale or ask.report):
                raise ValueError(
                    "--rescale and --report do not go with a model fitted with --batch, which aligns new "
                    "samples itself; leave them out"
                )
            if isinstance(model, RobustWMNMF):
                batch = [ask.new_batch] * len(data.first_rows) if aligned else None
                fitted = getattr(getattr(model, "_batches", None), "names", ())
                if aligned and ask.new_batch not in fitted:
                    data.notes.append(
                        f"--batch: {ask.new_batch!r} is not a batch of the fit ({', '.join(fitted[:5])}"
                        f"{', …' if len(fitted) > 5 else ''}); its samples are aligned as a new batch."
                    )
                cohort = predict_cohort(model, views, batch=batch, rescale=ask.rescale)
                labels, sure = cohort.labels, cohort.confidence
            else:
                labels, sure = model.predict(views), None
        if cohort is not None:
            data.notes.extend(cohort.notes)
            warned += cohort.warnings
            if ask.report is not None:
                _write_report(ask, cohort, data, warned, tell)
    n = len(labels)
    ids = [str(i) for i in (range(n) if data.sample_names is None else data.sample_names)]
    columns: dict[str, Any] = {"id": ids, "cluster": [int(label) for label in labels]}
    if data.original_ids is not None:
        columns = {"id": ids, "original_id": data.original_ids, "cluster": columns["cluster"]}
    if sure is not None:
        columns["confidence"] = [None if p != p else float(p) for p in sure]
    changed = sum(safe_text(sample) != sample for sample in ids)
    if changed:
        data.notes.append(
            f"{changed} ids look like formulas to spreadsheets: "
            f"they get a leading apostrophe in {out.name}"
        )
    voice.note(*data.told)
    voice.warn(warned)
    check_file(out, ask.force)  # hours may have passed
    write_file(out, csv_bytes(list(columns), zip(*columns.values(), strict=True), digits=8))
    names, sizes = np.unique(labels, return_counts=True)
    counts = {str(k): int(m) for k, m in zip(names, sizes, strict=True)}
    told = ", ".join(f"{m} in {k}" for k, m in counts.items())
    voice.show(f"{n} samples ({told}) in [bold]{escape(str(out))}[/bold]")
    summary = {"out": str(out), "n_samples": n, "cluster_sizes": counts}
    if cohort is not None:
        voice.show(
            f"{cohort.confident:.0%} of the labels are confident: a refit would give them more often than "
            f"not (of the fitted samples {cohort.confident_at_fit:.0%})"
        )
        summary |= {"confident": cohort.confident, "confident_at_fit": cohort.confident_at_fit}
        tables = {"features": cohort.features, "cohorts": cohort.shift}
        summary |= {name: plain_rows(table) for name, table in tables.items()}
    if ask.report is not None:
        voice.show(f"Report: [bold]{escape(str(ask.report / PAGE))}[/bold]")
        summary["report"] = str(ask.report)
    voice.result(summary | {"notes": data.told, "warnings": warned})


def _write_report(
    ask: PredictRequest, cohort: Cohort, data: ReadViews, warned: list[str], tell: Any
) -> None:
    """The folder of a run, of the new samples."""
    assert ask.report is not None
    ids = None if data.sample_names is None else data.sample_names.tolist()
    given = read_given(ask, ids, len(cohort.labels), data, data.rule)
    data.notes.extend(given.notes)
    if ask.gene_sets is not None:
        check_gene_sets(cohort.views, ask.gene_sets)
    info = {
        "title": f"New samples in the clusters of {ask.model}",
        "command": command_line("predict", ask),
        "alignment": [*data.decisions, *data.notes],
        "warnings": warned,
        "inputs": [*data.inputs, *given.inputs],
        "cohort": {
            "model": str(ask.model),
            "rescaled": ask.rescale,
            "confident": cohort.confident,
            "confident_at_fit": cohort.confident_at_fit,
        },
    }
    write_run(
        cohort.model,
        cohort.views,
        ask.report,
        ids=ids,
        original_ids=data.original_ids,
        info=info,
        clinical=given.known,
        gene_sets=ask.gene_sets,
        stability_runs=0,
        force=ask.force,
        figures=ask.figures,
        tables={f"{name}.csv": table for name, table in cohort.tables.items()},
        progress=tell,
    )


def _refuse_adjusted(model_file: Path) -> None:
    """New samples would have to lose the same covariates by the same numbers."""
    about = (model_file if model_file.is_dir() else model_file.parent) / "run.json"
    if not about.is_file():
        return
    try:
        adjusted = json.loads(about.read_text(encoding="utf-8")).get("adjusted")
    except (ValueError, AttributeError):  # another program's file of that name
        return
    if adjusted:
        raise ValueError(
            f"{model_file} was fitted on views without {', '.join(map(str, adjusted))} (--adjust), "
            "which new samples still have; fit old and new samples together"
        )


def _files_of_fit(files: Sequence[str], fitted_on: Sequence[str]) -> Any:
    """What the model may open: the files that are named here; VIEW=FILE where those of the fit moved."""
    moved = [item.partition("=") for item in fitted_on if not Path(item).exists() and "=" in item]
    if moved and len(moved) < len(fitted_on):
        raise ValueError("--fitted-on takes VIEW=FILE for every file or for none")
    if moved:
        return {view: file for view, _, file in moved}
    return [*(place_of(*located(file)[1:]) for file in files), *fitted_on]


def _features(model: Estimator) -> dict[str, list[str]]:
    """The names of the fitted features of each view; of the only view, whatever it is called."""
    wanted = [str(name) for name in model.view_names_in_]
    listed = model.view_feature_names_in_.items()
    known = {str(v): [str(f) for f in names] for v, names in listed if names is not None}
    return {"": known[wanted[0]]} if len(wanted) == len(known) == 1 else known


def _with_absent_views(
    model: Estimator, data: ReadViews, allows: Callable[[str], bool], voice: Voice
) -> Collection:
    """The files' views; one that is given under another name, or not at all, is dealt with aloud."""
    given, wanted = data.collection(), [str(name) for name in model.view_names_in_]
    if len(wanted) == len(given.names) == 1:
        given.names[0] = wanted[0]
    unknown = [name for name in given.names if name not in wanted]
    if unknown:
        raise ValueError(
            f"the model has the views {', '.join(wanted)} and none called {unknown[0]!r}; name the "
            f"file's view, as in {wanted[0]}=FILE"
        )
    absent = [name for name in wanted if name not in given.names]
    if not all(map(allows, absent)):
        raise ValueError(
            f"the model needs every view, and no file was given for {', '.join(absent)}; add "
            f"{absent[0]}=FILE"
        )
    for name in absent:
        voice.note(f"no file for the view {name!r}: it is missing for every sample")
        given.names.append(name)
        given.items.append(fitted_input(model).absent(name, given.items[0]))
    return given
