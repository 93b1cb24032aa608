"""What the files of a request hold: views, clinical tables and known classes; again for a later report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from manyview.app.files import (
    NOTHING,
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
from manyview.app.files.samples import EXACT, Rule, smallest_rule
from manyview.app.files.text import split_suffix
from manyview.app.options import FitRequest, KnownOptions, request_of
from manyview.app.run.folder import changed_views
from manyview.app.run.meaning import known, question
from manyview.covariates import adjust
from manyview.engines.files.rows import INSIDE
from manyview.io.writing import exact_text
from manyview.models import load
from manyview.outcomes.columns import stands_for_missing
from manyview.outcomes.endpoints import recognise, split_event

from .terminal import BAD_INPUT, in_options

#: Headings of the column of labels in a table of more than two columns.
LABEL_NAMES = {"label", "labels", "class", "classes", "cluster", "target", "y"}


class NotTheData(ValueError):
    """The files of a fit are not there any more, or hold something else."""


@dataclass(eq=False)
class Given:
    """What is known beside the views, in the order of the samples; notes say how it was read."""

    columns: dict[str, list[Any]] | None = None
    time: str | None = None
    event: str | None = None
    classes: list[Any] | None = None
    covariates: tuple[str, ...] = ()
    adjust: tuple[str, ...] = ()
    #: The batch of every sample, of one column or of several together.
    batch: list[str] | None = None
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)

    def survival(self, horizon: float | None) -> dict[str, Any]:
        """What `write_run` and `add_meaning` need for survival."""
        names = ("time", "event", "covariates")
        return {name: getattr(self, name) for name in names} | {"horizon": horizon}


@dataclass(frozen=True, eq=False)
class Inputs:
    """What the files of a request hold; ``views`` are without what the covariates explain."""

    data: ReadViews
    given: Given
    views: Any


def recorded_settings(ask: FitRequest) -> dict[str, Any]:
    """The request as `run.json` has it: all that decides the results."""
    found = {k: v for k, v in asdict(ask).items() if k not in ("output", "max_unpacked")}
    found["relations"] = {kind: files for kind, files in found["relations"].items() if files}
    return {k: str(v) if isinstance(v, Path) else v for k, v in found.items()}


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
    known(ids, given.columns, classes=given.classes, **given.survival(ask.horizon))
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
        model = load(folder / "model.npz")
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


# Clinical tables and known classes ----------------------------------------------------------------


def known_ids(asked: KnownOptions) -> list[list[str]]:
    """Columns of the files that are asked for, which may hold ids: they help to read the views."""
    found = [] if asked.clinical is None else clinical_ids(asked.clinical)
    if asked.labels is not None:
        path, column = split_column(asked.labels)
        found += [ids_in(path)] if column is None else clinical_ids(path)
    return found


def read_given(
    asked: KnownOptions,
    samples: Sequence[Any] | None,
    n: int,
    views: ReadViews | None = None,
    rule: Rule = EXACT,
) -> Given:
    """Read what was asked for; ``views`` (as read) may give classes in file order a meaning."""
    found = Given()
    if asked.clinical is not None:
        table = read_clinical(asked.clinical, samples, n, rule)
        found.columns = table.columns
        found.time, found.event, note = _endpoint(asked, table)
        found.covariates = _columns(table, asked.covariates)
        found.adjust = tuple(table.name_of(name, "--adjust") for name in asked.adjust)
        if asked.batch:
            columns = [table.columns[table.name_of(name, "--batch")] for name in asked.batch]
            levels = [
                ["missing" if v in (None, "") or v != v else str(v) for v in c] for c in columns
            ]
            found.batch = [" / ".join(parts) for parts in zip(*levels, strict=True)]
            lacking = sum("missing" in parts for parts in zip(*levels, strict=True))
            if lacking:
                found.notes.append(
                    f"--batch: {lacking} samples without a value are a batch of their own."
                )
        found.notes += [*table.notes, *([note] if note else [])]
        size = {"rows": int(table.present.sum()), "columns": len(table.columns)}
        known = {"view": "(clinical)", "path": asked.clinical, **size, "sha256": table.sha256}
        found.inputs.append(known)
    if asked.labels is not None:
        found.classes = _classes(asked.labels, samples, n, views, rule)
        file = str(located(split_column(asked.labels)[0])[1])
        rows = sum(label is not None for label in found.classes)
        known = {"view": "(labels)", "path": file, "rows": rows, "columns": 1}
        found.inputs.append(known | {"sha256": file_checksum(file)})
        if rows < len(found.classes):
            found.notes.append(
                f"{asked.labels} knows the classes of {rows} of {len(found.classes)} samples; only "
                "these are scored"
            )
    return found


def _columns(table: ClinicalTable, text: str | None) -> tuple[str, ...]:
    """Columns with commas between them; a column of that very name first."""
    if text is None or text in table.columns:
        return () if text is None else (text,)
    names = [name.strip() for name in text.split(",") if name.strip()]
    return tuple(dict.fromkeys(table.name_of(name, "--covariates") for name in names))


def _endpoint(asked: KnownOptions, table: ClinicalTable) -> tuple[str | None, str | None, str]:
    """Columns of time and event: as named, or recognized; one may be named if it is a recognized one."""
    found = recognise(table.columns)
    if asked.time is None and asked.event is None:
        if found.doubt is not None:
            return None, None, in_options(f"{found.note}; {question(found.doubt)}")
        advice = "; name others by" if found.time else "; name them by"
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


def _classes(
    text: str, samples: Sequence[Any] | None, n: int, views: ReadViews | None, rule: Rule
) -> list[Any]:
    """Known classes of FILE (id and label) or FILE:COLUMN; None where a sample has none."""
    path, column = split_column(text)
    if column is None and views is not None:
        return read_labels(path, views, partial=True)
    table = read_clinical(path, samples, n, rule)
    if column is None and len(table.columns) > 1:
        raise ValueError(
            f"--labels {text}: {table.file} has several columns; say which, as in {text}:COLUMN"
        )
    name = next(iter(table.columns)) if column is None else column
    found = [
        None if stands_for_missing(value) else value for value in table.column(name, "--labels")
    ]
    if all(value is None for value in found):
        raise ValueError(f"--labels {text}: no sample has a class in that column")
    return found


def read_labels(path: str | Path, read: ReadViews, partial: bool = False) -> list[Any]:
    """Known classes for the samples of ``read``: a table of id and label, or one column in file order.

    With ``partial`` a sample may lack one: it gets ``None``.
    """
    found, name = _labels(path, read), Path(path).name
    absent = [i for i, label in enumerate(found) if label is None]
    if absent and not partial:
        names = read.first_rows + 1 if read.sample_names is None else read.sample_names
        raise ValueError(
            f"{name} lacks the labels of {len(absent)} of the {len(found)} samples, the first being "
            f"{str(names[absent[0]])!r}; add them, or remove the samples from the views"
        )
    if len(absent) == len(found):
        remedy = "fill them in"
        if read.sample_names is not None:
            remedy = f"its ids should be those of the views, such as {read.sample_names[0]!r}"
        raise ValueError(f"{name} has a label for none of the {len(found)} samples; {remedy}")
    return found


def _labels(path: str | Path, read: ReadViews) -> list[Any]:
    _, path, inside = located(str(path))
    if split_suffix(path.name)[1] == ".npy":
        array = load_npy(path)
        if array.ndim != 1:
            raise ValueError(f"{path.name} has shape {array.shape}; labels are one per sample, 1-D")
        return _in_file_order(path.name, array.tolist(), read)
    frame, header, headed, *_ = cells_of(path, inside)
    texts = [[text_of(cell) for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]
    if len(texts) == 1:
        # A heading cannot be told from a label by its looks, only by being one line too many.
        if len(texts[0]) == read.n_first:
            return _in_file_order(path.name, texts[0], read)
        if header[0].lower() in LABEL_NAMES:  # unless it says so: then a line below is missing
            raise ValueError(
                f"{path.name} has {len(texts[0])} labels under the heading {header[0]!r} for "
                f"{read.n_first} samples (blank lines do not count); give one label each"
            )
        if not headed:  # a number that was no label but the heading pandas invents
            return _in_file_order(path.name, texts[0][len(texts[0]) == read.n_first + 1 :], read)
        return _in_file_order(path.name, [*header, *texts[0]], read)
    column = 1
    if len(texts) > 2:
        matching = [j for j, name in enumerate(header) if name.lower() in LABEL_NAMES]
        if len(matching) != 1:
            raise ValueError(
                f"{path.name} has the columns {', '.join(header)}; keep the id and the label, or head "
                "one column 'label'"
            )
        column = matching[0]
    ids, labels = texts[0], texts[column]
    if read.sample_names is not None and read.rule.key(header[0]) in map(
        read.rule.key, map(str, read.sample_names)
    ):
        ids, labels = [header[0], *ids], [header[column], *labels]  # no heading: a sample
    return _by_id(path.name, ids, labels, read)


def _in_file_order(file: str, labels: list[Any], read: ReadViews) -> list[Any]:
    if len(labels) != read.n_first:
        raise ValueError(
            f"{file} has {len(labels)} lines for {read.n_first} samples; give one label each, or two "
            "columns, id and label"
        )
    if (read.first_rows < 0).any():
        raise ValueError(
            f"{file} has labels in file order, but some samples are not in the first file; give two "
            "columns, id and label"
        )
    return [_known(labels[i]) for i in read.first_rows]


def _by_id(file: str, ids: list[str], labels: list[str], read: ReadViews) -> list[Any]:
    if read.sample_names is None:
        counted = ([str(i) for i in range(read.n_first)], [str(i + 1) for i in range(read.n_first)])
        if ids in counted:
            return _in_file_order(file, labels, read)
        raise ValueError(
            f"{file} gives labels by sample id, but the view files have no ids; give a single column "
            "of labels in the order of the views' rows"
        )
    key, known = read.rule.key, dict[str, str]()
    for sample, label in zip(ids, labels, strict=True):
        # Our own tables have an apostrophe before ids that spreadsheets take for formulas.
        if known.setdefault(key(exact_text(sample)), label) != label:
            same = "" if read.rule is EXACT else f", as --match {read.rule.match} reads ids"
            raise ValueError(f"{file} gives the sample {sample!r} two labels{same}; keep one")
    wanted = [str(sample) for sample in read.sample_names]
    found = [_known(known.get(key(sample))) for sample in wanted]
    rule = smallest_rule([wanted, list(known)], None)
    if read.rule is EXACT and rule is not EXACT and all(label is None for label in found):
        raise ValueError(
            f"{file} has other ids than the views ({next(iter(known))!r}, {wanted[0]!r}), which are the "
            f"same if {rule.words}; add --match {rule.match}"
        )
    return found


def ids_in(path: str | Path) -> list[str]:
    """The ids of a table of labels, as far as it has any; nothing of a file that is no such table."""
    _, file, inside = located(str(path))
    if split_suffix(file.name)[1] == ".npy":
        return []
    frame, header, *_ = cells_of(file, inside)
    return [header[0], *map(text_of, frame.iloc[:, 0])] if frame.shape[1] > 1 else []


def _known(label: Any) -> Any:
    """The label, ``None`` where the cell is empty or says so."""
    return None if label in NOTHING or label != label else label
