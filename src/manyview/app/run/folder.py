"""Writing the folder of a run: everything beside first, then in place at once."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from manyview._types import Views
from manyview.app.report.fit import fit_page, read_run
from manyview.io.writing import claimed, csv_of_dicts, files_in, read_csv
from manyview.methods.estimators import Estimator
from manyview.outcomes import Table
from manyview.views.views import as_views

from . import tables
from .figures import (
    figure_files,
    heatmap_figure,
    meaning_figures,
    model_figures,
)
from .findings import (
    find_out,
    notes_on,
    said_of,
    tables_of,
)
from .meaning import FILES as MEANINGS
from .meaning import described, known, meaning
from .notes import choice_notes
from .record import (
    component_files,
    run_json,
    run_record,
    selection_record,
)

#: Digits kept in tables: enough for float32 results and half the size of all of them.
DIGITS = 8
#: Column of the ids before they were matched.
ORIGINAL = "original_id"
#: What the folder of a run is called there.
KIND = "fit"
TABLES = ("labels.csv", "clusters.csv", "view_weights.csv", "sample_weights.csv", "top_features.csv",
          "embedding.csv", "agreement.csv", "redundancy.csv", "history.csv", "stability.csv",
          "markers.csv", "leave_view_out.csv", "heatmap.csv", "consensus.csv")  # fmt: skip


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
    adjusted: Sequence[str] = (),
    stability_runs: int | None = None,
    selection: Any = None,
    force: bool = False,
    report: bool = True,
    figures: bool = False,
    progress: Callable[[str], Any] | None = None,
) -> Path:
    """Write everything there is to know about a fitted model into the folder ``out``.

    Tables (``labels.csv``, ``clusters.csv``, ``view_weights.csv``, ``sample_weights.csv``,
    ``components_<view>.csv``, ``top_features.csv``, ``embedding.csv``, ``agreement.csv``,
    ``redundancy.csv``, ``history.csv``, ``stability.csv``, ``markers.csv``, ``leave_view_out.csv``,
    ``heatmap.csv``, ``consensus.csv``, ``baseline.csv``, ``selection.csv``, and with a clinical table
    or known classes ``survival*.csv``, ``clinical_*.csv``, ``classes.csv``, ``annotations.csv``), the
    model (``model.npz``), what was done (``run.json``) and a page to read (``report.html``). A failure
    leaves nothing behind, or the earlier run as it was.

    Parameters
    ----------
    model : fitted RobustWMNMF or WMNMF
    views : the data it was fitted on, in the same form
    out : folder, made if need be; it must be empty unless ``force``
    ids : names of the observations; by default those of the data, else row numbers from 0
    original_ids : what the observations were called before their ids were matched with other tables
        Written as a second column, ``original_id``, to every table of observations.
    settings : whatever the caller wants remembered of how the model was chosen
    info : shown in the report and kept in ``run.json``
        "command" (text), "alignment" (sentences), "warnings" (sentences), "inputs" (a dict per
        file, such as view, path, rows, columns, sha256), "title", and anything else JSON can hold.
    truth : known classes, one per observation (None where unknown), to score the clusters with
    clinical : DataFrame or dict of columns, tested for differences between clusters
        A row per observation, in their order or, if it is indexed by ids, matched by these.
    time, event : columns of ``clinical`` with the time of survival and whether the event happened
    horizon : time up to which restricted mean survival is taken (`outcomes.survival`)
    adjusted : columns of ``clinical`` that were regressed out of the views (`adjust`), for the report
    stability_runs : refits on parts of the data; by default 10 up to 1000 observations, 5 up to
        20,000, none above. 0 leaves stability out.
    selection : how the number of clusters was chosen (`select_n_clusters`), written to
        ``selection.csv``; by default the model's own ``selection_``, if it has one
    force : replace the files of an earlier run in ``out``, known by their checksums; all other files
        there stay, and where one has the name of a file to be written it is refused
    report : whether to make ``report.html``
    figures : whether to draw the figures into the folder ``figures``, as SVG, PNG and PDF
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
    told = [str(item.message) for item in seen if issubclass(item.category, UserWarning)]
    info["warnings"] = list(dict.fromkeys([*info.get("warnings", []), *told]))
    names = _ids(model, given, ids)
    originals = _originals(names, original_ids)
    _check_truth(truth, given.n_samples)
    beside_views = known(names, clinical, time, event, truth, adjusted, horizon)
    # A folder that is there may be a mount point, or its parent closed: it is filled, not replaced.
    with claimed(out, KIND, force=force) as place, place.replacing() as beside:
        anything = bool(beside_views.clinical) or truth is not None
        names_to_be = sure_files(report, anything, figures)
        place.check([*names_to_be, *component_files(given.names)])
        findings = find_out(model, given, names, truth, stability_runs, tell)
        files = tables_of(model, given, names, findings)
        extra, notes = said_of(model, findings), notes_on(model, given, names, findings)
        tell("asking what the clusters mean")
        found = meaning(findings.labels, names, beside_views)
        extra |= {**described(found), "adjusted": list(adjusted)}
        chosen = getattr(model, "selection_", None) if selection is None else selection
        if chosen is not None:
            files["selection.csv"] = tables.selection_table(chosen)
            extra["selection"] = selection_record(chosen)
            notes += choice_notes(chosen)
        for name, rows in files.items():
            (beside / name).write_bytes(table_bytes(rows, originals))
        for name, table in found.tables.items():
            (beside / name).write_bytes(table_bytes(table, originals))
        model.save(beside / "model.npz")
        run = run_record(model, given, settings, info, notes, extra)
        if figures:
            tell("drawing the figures")
            drawings = model_figures(model, given, files, extra["projection"])
            (beside / "run.json").write_bytes(run_json(run))
            drawings |= meaning_figures(found) | heatmap_figure(read_run(beside))
            (beside / "figures").mkdir()
            for name, content in drawings.items():
                (beside / name).write_bytes(content)
        made = ["run.json", "report.html"] if report else ["run.json"]
        run["files"] = sorted({*files_in(beside), *made})
        (beside / "run.json").write_bytes(run_json(run))
        if report:
            tell("writing the report")
            (beside / "report.html").write_text(fit_page(beside), encoding="utf-8")
    return out


def table_bytes(table: Table | tables.Rows, originals: Mapping[str, str]) -> bytes:
    """A table as CSV; one of observations has the original of each id, if there are any, behind it."""
    rows = table if isinstance(table, list) else list(table.rows())
    columns = list(dict.fromkeys(c for row in rows for c in row))
    columns = columns if isinstance(table, list) else list(table.names)
    if originals and columns[:1] == ["id"]:
        columns.insert(1, ORIGINAL)
        rows = [{**row, ORIGINAL: originals[row["id"]]} for row in rows]
    return csv_of_dicts(rows, DIGITS, columns)


def ids_of_run(run: Path) -> tuple[list[str], dict[str, str]]:
    """The ids in `labels.csv`, and what they were before they were matched, if they were."""
    rows = read_csv(run / "labels.csv")
    return [r["id"] for r in rows], {r["id"]: r[ORIGINAL] for r in rows if ORIGINAL in r}


def sure_files(report: bool, known: bool = False, figures: bool = False) -> list[str]:
    """Files a run may have, whatever its views are called.

    ``known`` says that there is a clinical table, or known classes.
    """
    names = [*TABLES, "model.npz", "run.json", *(["report.html"] if report else [])]
    return [*names, *(MEANINGS if known else ()), *(figure_files() if figures else ())]


def _ids(model: Estimator, views: Views, ids: Any) -> list[str]:
    n = views.n_samples
    if len(model.labels_) != n:
        raise ValueError(
            f"the views have {n} observations, but the model was fitted on {len(model.labels_)}; "
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
        raise ValueError(f"ids has {len(ids)} names for {n} observations; give one each")
    return [str(i) for i in ids]


def _originals(names: list[str], original_ids: Sequence[Any] | None) -> dict[str, str]:
    if original_ids is None:
        return {}
    if len(original_ids) != len(names) or len(set(names)) < len(names):
        raise ValueError(
            f"original_ids has {len(original_ids)} names for {len(set(names))} different ids of "
            f"{len(names)} observations; give one each, and every observation its own id"
        )
    return dict(zip(names, map(str, original_ids), strict=True))


def _check_truth(truth: Any, n: int) -> None:
    if truth is not None and len(truth) != n:
        raise ValueError(f"truth has {len(truth)} classes for {n} observations; give one each")
