"""Clinical tables and known classes: read, and matched with the samples of the views."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyview.app.files import (
    NOTHING,
    ReadViews,
    cells_of,
    file_checksum,
    load_npy,
    located,
    text_of,
)
from manyview.app.files.clinical import (
    ClinicalTable,
    clinical_ids,
    read_clinical,
    split_column,
)
from manyview.app.files.samples import EXACT, Rule, smallest_rule
from manyview.app.options import KnownOptions
from manyview.datasets._tables import split_suffix
from manyview.io.writing import safe_text
from manyview.outcomes.columns import stands_for_missing
from manyview.outcomes.endpoints import UnclearEvent, read_events, recognise, split_event

#: Headings of the column of labels in a table of more than two columns.
LABEL_NAMES = {"label", "labels", "class", "classes", "cluster", "target", "y"}


@dataclass(frozen=True, eq=False)
class Given:
    """The same, read and in the order of the samples; notes say how."""

    columns: dict[str, list[Any]] | None = None
    time: str | None = None
    event: str | None = None
    classes: list[Any] | None = None
    adjust: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    inputs: list[dict[str, Any]] = field(default_factory=list)


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
    asked.check_clinical()
    notes: list[str] = []
    inputs: list[dict[str, Any]] = []
    table, time, event = None, None, None
    adjust: tuple[str, ...] = ()
    if asked.clinical is not None:
        table = read_clinical(asked.clinical, samples, n, rule)
        notes += table.notes
        size = {"rows": int(table.present.sum()), "columns": len(table.columns)}
        inputs.append(
            {"view": "(clinical)", "path": asked.clinical, **size, "sha256": table.sha256}
        )
        time, event, note = _endpoint(asked, table)
        notes += [note] if note else []
        adjust = tuple(table.name_of(name, "--adjust") for name in asked.adjust)
    classes = None
    if asked.labels is not None:
        classes = _classes(asked.labels, samples, n, views, rule)
        _, file, _ = located(split_column(asked.labels)[0])
        size = {"rows": sum(label is not None for label in classes), "columns": 1}
        inputs.append(
            {"view": "(labels)", "path": str(file), **size, "sha256": file_checksum(str(file))}
        )
        if None in classes:
            notes.append(
                f"{asked.labels} knows the classes of {sum(t is not None for t in classes)} of "
                f"{len(classes)} samples; only these are scored"
            )
    columns = None if table is None else table.columns
    return Given(columns, time, event, classes, adjust, notes, inputs)


def _endpoint(asked: KnownOptions, table: ClinicalTable) -> tuple[str | None, str | None, str]:
    """Columns of time and event: as named, or recognized; one may be named if it is a recognized one."""
    found = recognise(table.columns)
    if asked.time is None and asked.event is None:
        if found.doubt is not None:
            return None, None, f"{found.note}; {_question(found.doubt)}"
        advice = "; name others by" if found.time else "; name them by"
        advice = f"{advice} --time COLUMN and --event COLUMN" if found.note else ""
        return found.time, found.event, found.note + advice
    time, event, value = found.time, found.event, None
    if asked.time is not None:
        time = table.name_of(asked.time, "--time")
    if asked.event is not None:
        event, value = split_event(asked.event, table.columns)
        event = table.name_of(event, "--event")
    if (asked.time is None and event != found.event) or (
        asked.event is None and time != found.time
    ):
        given, lacking = ("--time", "--event") if asked.event is None else ("--event", "--time")
        raise ValueError(f"{given} without {lacking}: survival needs both; name the column")
    assert event is not None
    try:
        read_events(table.columns[event], event, value)
    except UnclearEvent as doubt:
        raise ValueError(
            f"--event {asked.event or event}: {doubt.why}; {_question(doubt)}"
        ) from None
    except ValueError as error:
        raise ValueError(f"--event {asked.event}: {error}") from None
    return time, event if value is None else f"{event}={value}", ""


def _question(doubt: UnclearEvent) -> str:
    answers = [f"--event {shlex.quote(answer)}" for answer in doubt.answers]
    return "say which value means that the event happened: " + (
        " or ".join(answers) or "--event COLUMN=VALUE"
    )


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
    known: dict[str, str] = {}
    for sample, label in zip(ids, labels, strict=True):
        if known.setdefault(sample, label) != label:
            raise ValueError(f"{file} gives the sample {sample!r} two labels; keep one")
    # Our own tables have an apostrophe before ids that spreadsheets take for formulas.
    wanted = [str(sample) for sample in read.sample_names]
    if read.rule is not EXACT:
        return _by_key(file, known, wanted, read)
    found = [_known(known.get(sample, known.get(safe_text(sample)))) for sample in wanted]
    rule = smallest_rule([wanted, list(known)], None)
    if all(label is None for label in found) and rule is not EXACT:
        raise ValueError(
            f"{file} has other ids than the views ({next(iter(known))!r}, {wanted[0]!r}), which are the "
            f"same if {rule.words}; add --match {rule.match}"
        )
    return found


def _by_key(file: str, known: dict[str, str], wanted: list[str], read: ReadViews) -> list[Any]:
    """Labels by the rule that matched the views' ids; two labels for one sample are refused."""
    by_key: dict[str, str] = {}
    for sample, label in known.items():
        key = read.rule.key(sample)
        if by_key.setdefault(key, label) != label:
            raise ValueError(
                f"{file} gives two labels to {sample!r} and another id that --match "
                f"{read.rule.match} takes for the same sample; keep one"
            )
    return [_known(by_key.get(read.rule.key(sample))) for sample in wanted]


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
