"""The page of a finished run, made later: from its tables alone, or measured anew from its data."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from types import SimpleNamespace
from typing import Any

from manyview.app.report.fit import fit_page, read_run
from manyview.io.writing import claimed, files_in

from .figures import MODEL_FIGURES, heatmap_figure, model_figures
from .findings import (
    find_out,
    notes_on,
    said_of,
    tables_of,
)
from .folder import (
    KIND,
    TABLES,
    ids_of_run,
    table_bytes,
    views_of_run,
)
from .later import keep
from .notes import choice_notes
from .record import run_json, values_checksum

PAGE = "report.html"
#: What the data say anew; tables of outcomes, the choice of the number and the model stay.
FRESH = {*TABLES, "baseline.csv", "run.json", PAGE}


def page_of_tables(run: Path) -> Path:
    """Write the page from the tables of the run; nothing is computed."""
    with claimed(run, KIND, force=True) as place:
        place.check([PAGE, "run.json"])
        about = read_about(run)
        about["files"] = sorted({*about["files"], PAGE})
        page = fit_page(run).encode()
        place.put({"run.json": run_json(about), PAGE: page}, keep=True)
    return run / PAGE


def measured_again(
    run: Path,
    model: Any,
    views: Any,
    *,
    truth: Any = None,
    stability_runs: int | None = None,
    progress: Callable[[str], Any] | None = None,
) -> Path:
    """Measure what the tables say anew, with refits, and write tables and page.

    Parameters
    ----------
    run : folder of a finished fit
    model : its model
    views : the data it was fitted on, see `changed_views`
    truth, stability_runs, progress : as `write_run` takes them

    Returns
    -------
    Path of the page
    """
    tell = progress or (lambda text: None)
    with claimed(run, KIND, force=True) as place, place.replacing() as beside:
        place.check([*TABLES, "run.json", PAGE])
        about = read_about(run)
        ids, originals = ids_of_run(run)
        given = views_of_run(model, views, "report")
        found = find_out(model, given, ids, truth, stability_runs, tell)
        files, notes = tables_of(model, given, ids, found), notes_on(model, given, ids, found)
        keep(run, beside, lambda name: name in files or _made_anew(name))
        for name, rows in files.items():
            (beside / name).write_bytes(table_bytes(rows, originals))
        if about.get("selection"):
            notes += choice_notes(SimpleNamespace(**about["selection"]))
        about |= {"warnings": notes, **said_of(model, found)}
        if any(name.startswith("figures/") for name in about["files"]):
            tell("drawing the figures")
            drawings = model_figures(model, given, files, about["projection"])
            (beside / "run.json").write_bytes(run_json(about))
            for name, content in (drawings | heatmap_figure(read_run(beside))).items():
                (beside / name).parent.mkdir(exist_ok=True)
                (beside / name).write_bytes(content)
        about["files"] = sorted({*files_in(beside), "run.json", PAGE})
        (beside / "run.json").write_bytes(run_json(about))
        tell("writing the report")
        (beside / PAGE).write_text(fit_page(beside), encoding="utf-8")
    return run / PAGE


def _made_anew(name: str) -> bool:
    return name in FRESH or PurePosixPath(name).stem in MODEL_FIGURES


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
