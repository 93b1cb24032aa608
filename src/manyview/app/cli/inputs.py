"""What the files of a request hold: views, clinical tables and known classes; again for a later report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyview.app.files import (
    ReadViews,
    cells_of,
    file_checksum,
    load_npy,
    located,
    read_views,
    text_of,
)
from manyview.app.files.clinical import ClinicalTable, clinical_ids, read_clinical, split_column
from manyview.app.files.relations import with_relations
from manyview.app.files.samples import EXACT, Rule
from manyview.app.files.text import split_suffix
from manyview.app.options import ClinicalOptions, FitRequest, request_of, values_of
from manyview.app.run.folder import changed_views
from manyview.app.run.meaning import Known, known, question
from manyview.covariates import adjust
from manyview.engines.files.row_file import INSIDE
from manyview.models import load
from manyview.outcomes.columns import stands_for_missing
from manyview.outcomes.endpoints import recognize, split_event

from .terminal import BAD_INPUT, in_options

#: Headings of the column of labels in a table of more than two columns.
LABEL_NAMES = {"label", "labels", "class", "classes", "cluster", "target", "y"}


class NotTheData(ValueError):
    """The files of a fit are not there any more, or hold something else."""


@dataclass(eq=False)
class Given:
    """Clinical data and classes in the order of the samples; notes say how they were read."""

    known: Known = field(default_factory=Known)
    #: The batch of every sample, of one column or of several together.
    batch: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the files of a request hold; ``views`` are without what the covariates explain."""

    data: ReadViews
    given: Given
    views: Any


def recorded_settings(ask: FitRequest) -> dict[str, Any]:
    """The request as `run.json` has it: all that decides the results."""
    unread = {"quiet", "json", "max_unpacked"}
    found = {k: v for k, v in values_of(ask).items() if k not in unread and v not in (None, ())}
    return {k: str(v) if isinstance(v, Path) else v for k, v in found.items()}


def read_inputs(ask: FitRequest, zero_rows: Any, note: Callable[[str], None]) -> Inputs:
    """Read the views, clinical data and classes; report to ``note`` how they were read."""
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
    for text in data.told:
        note(text)
    views = data.collection()
    if adjusted := given.known.adjusted:
        columns = {name: given.known.clinical[name] for name in adjusted}
        found = adjust(views, columns, zero_rows=zero_rows)
        views = found.views
        shares = ", ".join(f"{view} {share:.0%}" for view, share in found.explained.items())
        names = ", ".join(adjusted)
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
        raise NotTheData(f"{folder} has no model.npz")
    for item in about.get("inputs") or []:
        _check_file(item)
    try:
        model = load(folder / "model.npz", fitted_on=[item["path"] for item in about["inputs"]])
        zero_rows = model.get_params().get("zero_rows", "auto")
        read = read_inputs(request_of(FitRequest, settings), zero_rows, lambda text: None)
        changed = changed_views(about, model, read.views)
    except (*BAD_INPUT, KeyError, TypeError) as error:
        raise NotTheData(f"the data of the fit cannot be read again ({error})") from None
    if changed:
        raise NotTheData(f"the values of {', '.join(changed)} are not those of the fit")
    return model, read


def _check_file(item: Mapping[str, Any]) -> None:
    """Only what has the checksum of the run is read: a run.json may be forged."""
    file = Path(str(item["path"]).partition(INSIDE)[0])
    if not file.exists():
        where = "" if file.is_absolute() else f" in {Path.cwd()}, where it is looked for"
        raise NotTheData(
            f"{file}, which the run was fitted on, was moved or removed{where}; put it back, or run "
            "this where the fit was run"
        )
    if not (file.is_file() or file.is_dir()) or file_checksum(str(file)) != item["sha256"]:
        raise NotTheData(f"{file} has changed since the fit: its checksum differs")


# Clinical tables and known classes ----------------------------------------------------------------


def known_ids(asked: ClinicalOptions) -> list[list[str]]:
    """Requested columns of the files, which may hold ids: they help to read the views."""
    found = [] if asked.clinical is None else clinical_ids(asked.clinical)
    if asked.labels is not None:
        path, _ = split_column(asked.labels)
        found += clinical_ids(path)
    return found


def read_given(
    asked: ClinicalOptions,
    samples: Sequence[Any] | None,
    n: int,
    views: ReadViews | None = None,
    rule: Rule = EXACT,
) -> Given:
    """Read the requested tables; ``views`` (as read) may give classes in file order a meaning."""
    found, columns, said = Given(), None, dict[str, Any]()
    if asked.clinical is not None:
        table = read_clinical(asked.clinical, samples, n, rule)
        columns = table.columns
        said["time"], said["event"], note = _endpoint(asked, table)
        said["covariates"] = _columns(table, asked.covariates)
        said["adjusted"] = [
            table.name_of(name, "--adjust") for name in getattr(asked, "adjust", ())
        ]
        batch = getattr(asked, "batch", ())
        if batch:
            levels = [
                ["missing" if v in (None, "") or v != v else str(v) for v in c]
                for c in (columns[table.name_of(name, "--batch")] for name in batch)
            ]
            found.batch = [" / ".join(parts) for parts in zip(*levels, strict=True)]
            lacking = sum("missing" in parts for parts in zip(*levels, strict=True))
            if lacking:
                found.notes.append(
                    f"--batch: {lacking} samples without a value are a batch of their own."
                )
        found.notes += [*table.notes, *([note] if note else [])]
        size = {"rows": int(table.present.sum()), "columns": len(columns)}
        file = {"view": "(clinical)", "path": asked.clinical, **size, "sha256": table.sha256}
        found.inputs.append(file)
    if asked.labels is not None:
        said["truth"] = classes = _classes(asked.labels, samples, n, views, rule)
        path = str(located(split_column(asked.labels)[0])[1])
        rows = sum(label is not None for label in classes)
        file = {"view": "(labels)", "path": path, "rows": rows, "columns": 1}
        found.inputs.append(file | {"sha256": file_checksum(path)})
        if rows < len(classes):
            found.notes.append(
                f"{asked.labels} has the classes of {rows} of {len(classes)} samples; only these are scored"
            )
    found.known = known([str(i) for i in range(n)], columns, horizon=asked.horizon, **said)
    return found


def _columns(table: ClinicalTable, text: str | None) -> tuple[str, ...]:
    """Columns with commas between them; a column of that very name first."""
    if text is None or text in table.columns:
        return () if text is None else (text,)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(table.name_of(name, "--covariates") for name in names))


def _endpoint(asked: ClinicalOptions, table: ClinicalTable) -> tuple[str | None, str | None, str]:
    """Columns of time and event: as named, or recognized; one may be named if it is a recognized one."""
    found = recognize(table.columns)
    if asked.time is None and asked.event is None:
        if found.doubt is not None:
            return None, None, in_options(f"{found.note}; {question(found.doubt)}")
        advice = "; choose other columns with" if found.time else "; choose them with"
        advice = f"{advice} --time COLUMN and --event COLUMN" if found.note else ""
        return found.time, found.event, found.note + advice
    time, event, value = found.time, found.event, None
    if asked.time is not None:
        time = table.name_of(asked.time, "--time")
    if asked.event is not None:
        event, value = split_event(asked.event, table.columns)
        event = table.name_of(event, "--event")
    if asked.event is None and time != found.time:
        raise ValueError("--time without --event: survival needs both; name the column")
    if asked.time is None and event != found.event:
        raise ValueError("--event without --time: survival needs both; name the column")
    return time, event if value is None else f"{event}={value}", ""


def read_labels(path: str | Path, read: ReadViews, partial: bool = False) -> list[Any]:
    """Known classes for the samples of ``read``; with ``partial`` a sample may lack one: it gets None."""
    samples = None if read.sample_names is None else read.sample_names.tolist()
    found = _classes(str(path), samples, len(read.first_rows), read, read.rule)
    absent = [i for i, label in enumerate(found) if label is None]
    if absent and not partial:
        names = read.first_rows + 1 if samples is None else samples
        raise ValueError(
            f"{Path(path).name} lacks the labels of {len(absent)} of the {len(found)} samples, the first "
            f"being {str(names[absent[0]])!r}; add them, or remove the samples from the views"
        )
    return found


def _classes(
    text: str, samples: Sequence[Any] | None, n: int, views: ReadViews | None, rule: Rule
) -> list[Any]:
    """Known classes of FILE (id and label, or one column in file order) or FILE:COLUMN; None where there
    is none."""
    path, column = split_column(text)
    n_first, rows = (n, range(n)) if views is None else (views.n_first, views.first_rows.tolist())
    listed = _one_column(path, n_first) if column is None else None
    if listed is not None:
        if min(rows) < 0:
            raise ValueError(
                f"--labels {text}: its labels are in file order, but some samples are not in the first "
                "file; give two columns, id and label"
            )
        found = [listed[i] for i in rows]
    else:
        table = read_clinical(path, samples, n if samples else n_first, rule)
        names = list(table.columns)
        if samples is None and column is None and len(names) > 1:
            ids = [text_of(cell) for cell in table.columns[names.pop(0)]]
            if ids not in ([str(i + start) for i in range(n_first)] for start in (0, 1)):
                raise ValueError(
                    f"{table.file} gives labels by sample id, but the view files have no ids; give a "
                    "single column of labels in the order of the views' rows"
                )
        if column is None:
            named = [name for name in names if len(names) == 1 or name.lower() in LABEL_NAMES]
            if len(named) != 1:
                raise ValueError(
                    f"--labels {text}: {table.file} has the columns {', '.join(names)}; say which, as in "
                    f"{text}:COLUMN, or head one column 'label'"
                )
            column = named[0]
        found = table.column(column, "--labels")
        found = found if samples else [found[i] for i in rows]
    found = [None if stands_for_missing(label) else text_of(label) for label in found]
    if all(label is None for label in found):
        raise ValueError(f"--labels {text}: no sample has a class there")
    return found


def _one_column(path: str, n_first: int) -> list[Any] | None:
    """Labels in file order; None of a table of several columns."""
    _, file, inside = located(path)
    if split_suffix(file.name)[1] == ".npy":
        array = load_npy(file)
        if array.ndim != 1:
            raise ValueError(f"{file.name} has shape {array.shape}; labels are one per sample, 1-D")
        labels = array.tolist()
    else:
        frame, header, headed, *_ = cells_of(file, inside)
        if frame.shape[1] > 1:
            return None
        labels = frame.iloc[:, 0].tolist()
        # A heading cannot be told from a label by its looks, only by being one line too many.
        if not headed:
            labels = labels[len(labels) == n_first + 1 :]
        elif len(labels) == n_first - 1 and header[0].lower() not in LABEL_NAMES:
            labels = [header[0], *labels]
    if len(labels) != n_first:
        raise ValueError(
            f"{file.name} has {len(labels)} labels for {n_first} samples (blank lines do not count); give "
            "one label each, or two columns, id and label"
        )
    return labels
