"""The files of a fit, read as it was asked: for the fit, and for a report that is made later."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from manyview.app.files import Reading, ReadViews, read_views
from manyview.app.files.relations import with_relations
from manyview.app.run.meaning import known
from manyview.covariates import adjust

from .clinical import (
    Asked,
    Given,
    known_ids,
    read_given,
)


@dataclass(frozen=True)
class FitRequest:
    """What was asked on the command line."""

    files: list[str]
    clusters: str
    out: Path
    method: str = "robust"
    scale: str | None = None
    missing: str = "allow"
    labels: str | None = None
    reading: Reading = field(default_factory=Reading)
    seed: int = 0
    force: bool = False
    report: bool = True
    on_disk: bool = False
    checkpoint: Path | None = None
    engine: str = "numpy"
    device: str = "auto"
    view_weights: str | None = None
    zero_rows: str | None = None
    resolution: float | None = None
    clinical: str | None = None
    time: str | None = None
    event: str | None = None
    adjust: tuple[str, ...] = ()
    figures: bool = False
    #: "graph", "kernel" or "distance" → files, each perhaps as name=file.
    relations: Mapping[str, Sequence[str]] = field(default_factory=dict)
    horizon: float | None = None

    @property
    def known(self) -> Asked:
        """What is known of the samples beside the views."""
        return Asked(self.clinical, self.time, self.event, self.labels, self.adjust)

    @classmethod
    def of_settings(cls, settings: Mapping[str, Any]) -> FitRequest:
        """The request as `run.json` has it; what another version asked beside is left out."""
        known = {name: settings[name] for name in cls.__dataclass_fields__ if name in settings}
        reading: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in dict(known.get("reading") or {}).items()
            if name in Reading.__dataclass_fields__
        }
        known |= {"reading": Reading(**reading), "adjust": tuple(known.get("adjust") or ())}
        return cls(**known)


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
        known=known_ids(ask.known),
        **vars(ask.reading),
    )
    data = with_relations(data, ask.relations)
    samples = None if data.sample_names is None else data.sample_names.tolist()
    given = read_given(ask.known, samples, len(data.first_rows), data, data.rule)
    data.notes.extend(given.notes)
    ids = [str(i) for i in range(len(data.first_rows))]
    known(ids, given.columns, given.time, given.event, given.classes, horizon=ask.horizon)
    for text in data.told:
        note(text)
    return Inputs(data, given, _adjusted(data, given, zero_rows, note))


def _adjusted(data: ReadViews, given: Given, zero_rows: Any, note: Callable[[str], None]) -> Any:
    """The views, without what the covariates asked for explain."""
    views = data.collection()
    if not given.adjust:
        return views
    columns = given.columns or {}
    chosen = {name: columns[name] for name in given.adjust}
    found = adjust(views, chosen, zero_rows=zero_rows)
    shares = ", ".join(f"{view} {share:.0%}" for view, share in found.explained.items())
    told = [
        *found.notes,
        f"{', '.join(given.adjust)} regressed out; it explained of the variance: {shares}",
    ]
    for text in told:
        note(text)
    data.notes.extend(told)
    return found.views
