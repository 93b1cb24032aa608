"""Clinical files and known classes of the command line: what is asked for, what is recognised."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from manyview.app.compare.labels import ids_in, read_labels
from manyview.app.files import ReadViews, file_checksum, located
from manyview.app.files.clinical import (
    ClinicalTable,
    clinical_ids,
    read_clinical,
    split_column,
)
from manyview.app.files.samples import EXACT, Rule
from manyview.outcomes.columns import stands_for_missing
from manyview.outcomes.endpoints import UnclearEvent, read_events, recognise, split_event


@dataclass(frozen=True)
class Asked:
    """The options on what is known of the samples beside the views."""

    clinical: str | None = None
    time: str | None = None
    event: str | None = None
    labels: str | None = None
    adjust: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse options that need a file that is not there."""
        if self.clinical is None and (self.time or self.event or self.adjust):
            option = "--time" if self.time else "--event" if self.event else "--adjust"
            raise ValueError(f"{option} names a column of the clinical table: give --clinical FILE")


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


def known_ids(asked: Asked) -> list[list[str]]:
    """Columns of the files that are asked for, which may hold ids: they help to read the views."""
    found = [] if asked.clinical is None else clinical_ids(asked.clinical)
    if asked.labels is not None:
        path, column = split_column(asked.labels)
        found += [ids_in(path)] if column is None else clinical_ids(path)
    return found


def read_given(
    asked: Asked,
    samples: Sequence[Any] | None,
    n: int,
    views: ReadViews | None = None,
    rule: Rule = EXACT,
) -> Given:
    """Read what was asked for; ``views`` (as read) may give classes in file order a meaning."""
    asked.check()
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


def _endpoint(asked: Asked, table: ClinicalTable) -> tuple[str | None, str | None, str]:
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
