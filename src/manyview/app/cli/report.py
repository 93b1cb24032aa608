"""`manyview report`: the page of a finished run, made or made anew."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from manyview.app.files import file_checksum
from manyview.app.run.again import (
    PAGE,
    changed_views,
    measured_again,
    page_of_tables,
    read_about,
)
from manyview.app.run.folder import KIND
from manyview.engines.files.formats import INSIDE
from manyview.io.writing import files_of, restored
from manyview.methods.saved import load

from .common import BAD_INPUT, Voice, caught_warnings
from .inputs import FitRequest, Inputs, read_inputs

COMPARISON = "comparison.html"


class NotTheData(ValueError):
    """The files of a fit are not there any more, or hold something else."""


def run_report(folder: Path, stability: int | None, force: bool, voice: Voice) -> bool:
    """Make the page of a fit, or name that of a comparison; False if the folder holds neither."""
    if not folder.is_dir():
        return False
    restored(folder)
    if COMPARISON in files_of(folder, "compare"):
        _say(voice, folder / COMPARISON, [])
        return True
    ours = files_of(folder, KIND)
    if not ours:
        return False
    if stability is not None and (stability < 0 or stability == 1):
        raise ValueError(f"--stability must be 0 or at least 2 refits, got {stability}")
    about = read_about(folder)
    complete = PAGE in ours and stability is None
    if force or not (complete or stability == 0):
        page, told = _measured(folder, about, stability, voice)
    else:
        page, told = page_of_tables(folder), []
    _say(voice, page, told)
    return True


def _say(voice: Voice, page: Path, warnings: list[str]) -> None:
    voice.warn(warnings)
    voice.show(str(page))
    voice.result({"page": str(page), "warnings": warnings})


def _measured(
    folder: Path, about: Mapping[str, Any], stability: int | None, voice: Voice
) -> tuple[Path, list[str]]:
    """The page with refits; where the data are not those of the fit, that of the tables and a sentence."""
    with voice.busy("reading the files") as tell:
        try:
            model, read = fitted(folder, about)
        except NotTheData as error:
            return page_of_tables(folder), [
                f"{error}. The page is made from the tables in {folder}, and nothing is measured anew "
                "for it: how stable the clusters are it says only if they do"
            ]
        with caught_warnings():  # they were told at the fit, and the page has them
            page = measured_again(
                folder,
                model,
                read.views,
                truth=read.given.classes,
                stability_runs=stability,
                progress=tell,
            )
    return page, []


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
        read = read_inputs(FitRequest.of_settings(settings), _zero_rows(model), lambda text: None)
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


def _zero_rows(model: Any) -> Any:
    """How the model takes rows of zeros, where it has a say."""
    return model.get_params().get("zero_rows", "auto")
