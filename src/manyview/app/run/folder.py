"""Write the folder of a run: everything next to it first, then in place at once; rewrite parts of it."""

from __future__ import annotations

import json
import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyview._types import Array, Views
from manyview.app.report.charts import MEANING_CHARTS, MODEL_CHARTS, chart_files, drawn_files
from manyview.app.report.fit import fit_page
from manyview.app.report.run_files import OF_FIT, OF_MEANING, OF_SETS, read_run
from manyview.io.safe_csv import csv_of_dicts, read_csv
from manyview.io.writing import claimed, files_in, ours
from manyview.models import Estimator
from manyview.outcomes.align import frame
from manyview.views.views import as_views

from .evidence import find_out
from .meaning import Known, known, meaning
from .notes import choice_notes, warnings_about
from .record import component_files, run_json, run_record, selection_record, values_checksum
from .tables import tables_of

#: Digits kept in tables: enough for float32 results and half the size of all of them.
DIGITS = 8
#: Column of the ids before they were matched.
ORIGINAL = "original_id"
#: What the folder of a run is called there.
KIND = "fit"
PAGE = "report.html"
TABLES, FILES, SETS = ([f"{name}.csv" for name in names] for names in (OF_FIT, OF_MEANING, OF_SETS))
#: Charts with clinical data; the heat map has bars of it.
FRESH_WITH_OUTCOMES = {*FILES, "run.json", PAGE, *chart_files(MEANING_CHARTS)}
#: What the data say anew; tables of outcomes, the choice of the number and the model stay.
FRESH_WITH_REPORT = {*TABLES, "run.json", PAGE}


def views_of_run(model: Estimator, views: Any, caller: str) -> Views:
    """The views of a fit as its folder tells of them."""
    return as_views(
        views,
        model.views,
        allow_negative=True,
        allow_missing=True,
        allow_relations=True,
        allow_files=True,
        caller=caller,
    )


def write_run(
    model: Estimator,
    views: Any,
    out: str | os.PathLike[str],
    *,
    ids: Sequence[Any] | None = None,
    original_ids: Sequence[Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    info: Mapping[str, Any] | None = None,
    truth: Any = None,
    clinical: Any = None,
    time: str | None = None,
    event: str | None = None,
    horizon: float | None = None,
    covariates: Sequence[str] = (),
    adjusted: Sequence[str] = (),
    gene_sets: Any = None,
    stability_runs: int | None = None,
    selection: Any = None,
    force: bool = False,
    report: bool = True,
    figures: bool = False,
    tables: Mapping[str, Any] | None = None,
    progress: Callable[[str], Any] | None = None,
) -> Path:
    """Write the tables and the report of a fitted model into the folder ``out``.

    Tables (``labels.csv``, ``clusters.csv``, ``view_weights.csv``, ``sample_weights.csv``,
    ``components_<view>.csv``, ``embedding.csv``, ``agreement.csv``,
    ``redundancy.csv``, ``cluster_view_weights.csv``, ``history.csv``, ``stability.csv``,
    ``markers.csv``, ``leave_view_out.csv``, ``heatmap.csv``, ``consensus.csv``, ``baseline.csv``,
    ``selection.csv``, and with a clinical table or known classes ``survival*.csv``,
    ``clinical_*.csv``, ``classes.csv``, ``annotations.csv``, with gene sets ``gene_sets.csv``), the
    model (``model.npz``), what was done (``run.json``) and a page to read (``report.html``). A failure
    leaves nothing behind, or the earlier run as it was.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    views : the data it was fitted on, in the same form
    out : folder, made if need be; it must be empty unless ``force``
    ids : names of the samples; by default those of the data, else row numbers from 0
    original_ids : what the samples were called before their ids were matched with other tables
        Written as a second column, ``original_id``, to every table of samples.
    settings : whatever the caller wants remembered of how the model was chosen
    info : shown in the report and kept in ``run.json``
        "command" (text), "alignment" (sentences), "warnings" (sentences), "inputs" (a dict per
        file, such as view, path, rows, columns, sha256), "title", and anything else JSON can hold.
    truth : known classes, one per sample (None where unknown), to score the clusters with
    clinical : DataFrame or dict of columns, tested for differences between clusters
        A row per sample, in their order or, if it is indexed by ids, matched by these. Or all of what is
        known, as `known` makes it.
    time, event : columns of ``clinical`` with the time of survival and whether the event happened
    horizon : time up to which restricted mean survival is taken (`outcomes.survival`)
    covariates : columns of ``clinical`` for which hazard ratios are adjusted (needs lifelines)
    adjusted : columns of ``clinical`` that were regressed out of the views (`adjust`), for the report
    gene_sets : path of a GMT file, or dict of name → genes, tested by cluster (`outcomes.gene_sets`)
    stability_runs : refits on parts of the data; by default 10 up to 1000 samples, 5 up to
        20,000, none above. 0 leaves stability out.
    selection : how the number of clusters was chosen (`select_n_clusters`), written to
        ``selection.csv``; by default the model's own ``selection_``, if it has one
    force : replace the files of an earlier run in ``out``, known by their checksums; all other files
        there stay, and where one has the name of a file to be written it is refused
    report : whether to make ``report.html``
    figures : whether to draw the figures into the folder ``figures``, as SVG, PNG and PDF
    tables : more tables to write, a DataFrame by file name
    progress : called with a few words before every step that takes time

    Returns
    -------
    Path of ``out``
    """
    check_is_fitted(model)
    out = Path(out)
    tell = progress or (lambda text: None)
    info = dict(info or {})
    with warnings.catch_warnings(record=True) as seen:  # what is to be said of files read by rows
        warnings.simplefilter("always", UserWarning)
        given = views_of_run(model, views, "write_run")
    warned = [str(item.message) for item in seen if issubclass(item.category, UserWarning)]
    info["warnings"] = list(dict.fromkeys([*info.get("warnings", []), *warned]))
    names = _ids(model, given, ids)
    originals = _originals(names, original_ids)
    if truth is not None and len(truth) != given.n_samples:
        raise ValueError(
            f"truth has {len(truth)} classes for {given.n_samples} samples; give one each"
        )
    facts = known(names, clinical, time, event, truth, adjusted, horizon, covariates)
    # A folder that is there may be a mount point, or its parent closed: it is filled, not replaced.
    with claimed(out, KIND, force=force) as place, place.replacing() as staging:
        anything = bool(facts.clinical) or facts.classes is not None
        names_to_be = sure_files(report, anything, figures, gene_sets is not None)
        place.check([*names_to_be, *component_files(given.names), *(tables or ())])
        new = NewFiles(staging, originals, tell)
        labels, others, extra, notes = new.measure(
            model, given, names, facts.classes, stability_runs
        )
        tell("describing the clusters")
        found = meaning(labels, names, facts, given, gene_sets, others)
        extra |= {**found.about, "adjusted": list(facts.adjusted)}
        chosen = getattr(model, "selection_", None) if selection is None else selection
        if chosen is not None:
            new.write({"selection.csv": frame(chosen.table)})
            extra["selection"] = selection_record(chosen)
            notes += choice_notes(chosen)
        new.write({**found.tables, **(tables or {})})
        fitted: Any = getattr(model, "_of_fit", model)
        fitted.save(staging / "model.npz")
        run = run_record(model, given, settings, info, notes, extra)
        new.finish(run, (*MODEL_CHARTS, *MEANING_CHARTS) if figures else (), report)
    return out


class NewFiles:
    """The files of a run that are rewritten, in a folder next to those in place."""

    def __init__(
        self, folder: Path, originals: Mapping[str, str], tell: Callable[[str], Any] = str
    ):
        self.folder = folder
        self.originals = originals
        self.tell = tell

    def measure(
        self, model: Estimator, views: Views, ids: list[str], truth: Any, n_runs: int | None
    ) -> tuple[Array, dict[str, Array], dict[str, Any], list[str]]:
        """Write the tables of a fit.

        Returns its labels, those of fewer views, what `run.json` says of it, and warnings.
        """
        found = find_out(model, views, truth, n_runs, self.tell)
        self.tell("drawing the consensus in two dimensions")
        tables, about = tables_of(model, views, ids, found)
        self.write(tables)
        notes = warnings_about(model, views, ids, found)
        return found.labels, found.fusion_labels, about, notes

    def write(self, tables: Mapping[str, Any]) -> None:
        """Write tables as CSV; in those of samples the original of each id, if any, is behind it."""
        for name, table in tables.items():
            rows = table if isinstance(table, list) else table.to_dict("records")
            columns = list(dict.fromkeys(c for row in rows for c in row))
            columns = columns if isinstance(table, list) else list(table.columns)
            if self.originals and columns[:1] == ["id"]:
                columns.insert(1, ORIGINAL)
                rows = [{**row, ORIGINAL: self.originals[row["id"]]} for row in rows]
            (self.folder / name).write_bytes(csv_of_dicts(rows, DIGITS, columns))

    def finish(
        self,
        about: dict[str, Any],
        charts: Sequence[str],
        page: bool,
        otherwise: Path | None = None,
    ) -> None:
        """Write the charts of these names, as far as there are values for them, `run.json` and the page.

        Tables that are not there are looked for in ``otherwise``.
        """
        record = self.folder / "run.json"
        record.write_bytes(run_json(about))
        if charts:
            self.tell("drawing the figures")
            for name, content in drawn_files(read_run(self.folder, otherwise), charts).items():
                (self.folder / name).parent.mkdir(exist_ok=True)
                (self.folder / name).write_bytes(content)
        about["files"] = sorted({*files_in(self.folder), "run.json", *([PAGE] if page else [])})
        record.write_bytes(run_json(about))
        if page:
            self.tell("writing the report")
            (self.folder / PAGE).write_text(fit_page(self.folder, otherwise), encoding="utf-8")


def ids_of_run(run: Path) -> tuple[list[str], dict[str, str]]:
    """The ids in `labels.csv`, and what they were before they were matched, if they were."""
    rows = read_csv(run / "labels.csv")
    return [r["id"] for r in rows], {r["id"]: r[ORIGINAL] for r in rows if ORIGINAL in r}


def sure_files(report: bool, known: bool, figures: bool, sets: bool) -> list[str]:
    """Files a run may have, whatever its views are called.

    ``known`` says that there is a clinical table, or known classes; ``sets`` that there are gene sets.
    """
    return [
        *TABLES,
        "model.npz",
        "run.json",
        *([PAGE] if report else ()),
        *(FILES if known else ()),
        *(SETS if sets else ()),
        *(chart_files((*MODEL_CHARTS, *MEANING_CHARTS)) if figures else ()),
    ]


def _ids(model: Estimator, views: Views, ids: Any) -> list[str]:
    n = views.n_samples
    if len(model.labels_) != n:
        raise ValueError(
            f"the views have {n} samples, but the model was fitted on {len(model.labels_)}; "
            "pass the views it was fitted on"
        )
    if list(views.names) != list(model.view_names_in_):
        raise ValueError(
            f"the views are {list(views.names)}, but the model was fitted on "
            f"{list(model.view_names_in_)}; pass the views it was fitted on"
        )
    if ids is None:
        ids = views.sample_names
    if ids is None:
        ids = range(n)
    if len(ids) != n:
        raise ValueError(f"ids has {len(ids)} names for {n} samples; give one each")
    return [str(i) for i in ids]


def _originals(names: list[str], original_ids: Sequence[Any] | None) -> dict[str, str]:
    if original_ids is None:
        return {}
    if len(original_ids) != len(names) or len(set(names)) < len(names):
        raise ValueError(
            f"original_ids has {len(original_ids)} names for {len(set(names))} different ids of "
            f"{len(names)} samples; give one each, and every sample its own id"
        )
    return dict(zip(names, map(str, original_ids), strict=True))


def add_meaning(
    run: Path,
    facts: Known,
    *,
    gene_sets: Any = None,
    views: Views | None = None,
    notes: Sequence[str],
    figures: bool = False,
) -> list[str]:
    """Compare the clusters of a finished run with what is known; return the files written.

    ``facts`` are in the order of ``labels.csv``. What an earlier comparison wrote is replaced: of a
    clinical table and classes if one of them is given, of gene sets (which need the ``views`` of the fit)
    if they are. Everything else stays as it is.
    """
    anything, fresh = bool(facts.clinical) or facts.classes is not None, {"run.json", PAGE}
    fresh |= (FRESH_WITH_OUTCOMES if anything else set()) | set(
        SETS if gene_sets is not None else ()
    )
    with claimed(run, KIND, force=True) as place, place.replacing() as staging:
        kept = keep(run, staging, fresh.__contains__)
        rows = read_csv(run / "labels.csv")
        ids, originals = ids_of_run(run)
        about = read_about(run)
        adjusted = [name for name in about.get("adjusted", []) if name in facts.clinical]
        facts = replace(facts, adjusted=tuple(adjusted))
        others: dict[str, list[int]] = {}
        if (run / "fusion_labels.csv").exists():
            for row in read_csv(run / "fusion_labels.csv"):
                for name in row.keys() - {"id", ORIGINAL}:
                    others.setdefault(name, []).append(int(row[name]))
            order = [row["views"] for row in read_csv(run / "fusion.csv")]
            others = {name: others[name] for name in order if name in others}
        labels = np.array([int(row["cluster"]) for row in rows])
        found = meaning(labels, ids, facts, views, gene_sets, others)
        if not anything:
            found.about = {"gene_sets": found.about["gene_sets"]}
        elif gene_sets is None:
            del found.about["gene_sets"]
        new = NewFiles(staging, originals)
        new.write(found.tables)
        earlier = [note for note in about.get("outcome_notes", []) if note not in notes]
        about |= {**found.about, "outcome_notes": [*earlier, *notes]}
        # The bars of the heat map are what is known now.
        bars = ("heatmap",) if anything and (run / "figures" / "heatmap.svg").exists() else ()
        charts = MEANING_CHARTS if figures else bars
        new.finish(about, charts, (run / PAGE).exists(), run)
        return sorted(name for name in files_in(staging) if name not in kept)


def keep(run: Path, staging: Path, made_anew: Callable[[str], bool]) -> set[str]:
    """Everything of the run that is not made anew, as it is: linked, or copied where that fails."""
    kept = {name for name in ours(run, kind=KIND) if not made_anew(name)}
    for name in kept:
        (staging / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(run / name, staging / name)
        except OSError:
            shutil.copy2(run / name, staging / name)
    return kept


def page_of_tables(run: Path) -> Path:
    """Write the page, and figures that are there, from the tables of the run; nothing is computed."""
    with claimed(run, KIND, force=True) as place:
        place.check([PAGE, "run.json"])
        about = read_about(run)
        about["files"] = sorted({*about["files"], PAGE})
        drawn = [
            n for n in (*MODEL_CHARTS, *MEANING_CHARTS) if f"figures/{n}.svg" in about["files"]
        ]
        made = {"run.json": run_json(about), PAGE: fit_page(run).encode()}
        place.put(made | drawn_files(read_run(run), drawn), keep=True)
    return run / PAGE


def name_clusters(run: Path, names: Mapping[str, str]) -> dict[str, Any]:
    """Change names of clusters in `run.json` (an empty one removes it), and return what that says."""
    about = read_about(run)
    if names:
        clusters = [row["cluster"] for row in read_csv(run / "clusters.csv")]
        if unknown := [k for k in names if k not in clusters]:
            raise ValueError(
                f"--names {unknown[0]}={names[unknown[0]]}: there is no cluster {unknown[0]}; the clusters "
                f"are {', '.join(clusters)}"
            )
        merged = {**about.get("names", {}), **names}
        about["names"] = {cluster: name for cluster, name in merged.items() if name}
        with claimed(run, KIND, force=True) as place:
            place.put({"run.json": run_json(about)}, keep=True)
    return about


def measured_again(
    run: Path,
    model: Any,
    views: Any,
    facts: Known,
    *,
    stability_runs: int | None,
    progress: Callable[[str], Any],
) -> Path:
    """Measure what the tables say anew, with refits, and write tables and page.

    Parameters
    ----------
    run : folder of a finished fit
    model : its model
    views : the data it was fitted on, see `changed_views`
    facts : clinical data and classes of the samples, in their order
    stability_runs, progress : as `write_run` takes them

    Returns
    -------
    Path of the page
    """
    with claimed(run, KIND, force=True) as place, place.replacing() as staging:
        place.check([*TABLES, "run.json", PAGE])
        about = read_about(run)
        ids, originals = ids_of_run(run)
        given = views_of_run(model, views, "report")
        keep(run, staging, _made_anew)
        new = NewFiles(staging, originals, progress)
        labels, others, measured, notes = new.measure(
            model, given, ids, facts.classes, stability_runs
        )
        if others and (facts.clinical or facts.classes is not None):
            found = meaning(labels, ids, facts, others=others).tables
            new.write({name: found[name] for name in found if name == "fusion_outcomes.csv"})
        if about.get("selection"):
            notes += choice_notes(SimpleNamespace(**about["selection"]))
        about |= {"warnings": notes, **measured}
        drawn = any(name.startswith("figures/") for name in about["files"])
        new.finish(about, (*MODEL_CHARTS, "heatmap") if drawn else (), page=True)
    return run / PAGE


def _made_anew(name: str) -> bool:
    components = name.startswith("components_")
    return (
        components
        or name in FRESH_WITH_REPORT
        or PurePosixPath(name).stem in (*MODEL_CHARTS, "heatmap")
    )


def read_about(run: Path) -> dict[str, Any]:
    """What `run.json` says."""
    try:
        about = json.loads((run / "run.json").read_text(encoding="utf-8"))
        return {**about, "files": list(about["files"])}
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise ValueError(
            f"{run} has no run.json that can be read ({type(error).__name__}); name the folder of a "
            "finished fit"
        ) from None


def changed_views(about: Mapping[str, Any], model: Any, views: Any) -> list[str]:
    """Names of views whose values are not those of the fit; those of the fit that are not there."""
    given = views_of_run(model, views, "report")
    now = dict(zip(given.names, given.matrices, strict=True))
    return [
        view["name"]
        for view in about["views"]
        if view["name"] not in now or values_checksum(now[view["name"]]) != view["sha256"]
    ]
