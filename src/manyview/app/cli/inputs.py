"""The files of a fit: read for the fit, and again for a report that is made later."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from manyview.app.files import ReadViews, read_views
from manyview.app.files.by_rows import file_checksum
from manyview.app.files.relations import with_relations
from manyview.app.options import FitRequest, request_of
from manyview.app.run.again import changed_views
from manyview.app.run.meaning import known
from manyview.covariates import adjust
from manyview.engines.files.formats import INSIDE
from manyview.methods.saved import load

from .known import Given, known_ids, read_given
from .terminal import BAD_INPUT


class NotTheData(ValueError):
    """The files of a fit are not there any more, or hold something else."""


def settings_of(ask: FitRequest) -> dict[str, Any]:
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
