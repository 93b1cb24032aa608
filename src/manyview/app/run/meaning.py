"""What the clusters mean to those who know more of the samples: survival, clinic, classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import numpy as np

from manyview._labels import as_list
from manyview._types import Array, Views
from manyview.engines.numpy.presence import is_table
from manyview.outcomes import crosstab, enrichment, gene_sets, survival
from manyview.outcomes.align import frame, read_table
from manyview.outcomes.chance import rounds
from manyview.outcomes.columns import may_be_codes, read_column, stands_for_missing
from manyview.outcomes.endpoints import (
    UnclearEvent,
    is_follow_up,
    read_events,
    split_event,
    unit_of,
)
from manyview.outcomes.sets import match_sets
from manyview.outcomes.survive import Survival, observed
from manyview.views.containers import Collection, Item, collect
from manyview.views.ids import places

from .evidence import looked_at

#: Clinical columns that are tested, and that are kept to color the map by.
MOST_COLUMNS, MOST_KEPT = 200, 60
TITLES = {
    "clusters": "survival",
    "pairs": "survival_pairs",
    "curves": "survival_curves",
    "at_risk": "survival_at_risk",
    "cox": "survival_cox",
    "columns": "clinical_tests",
    "summary": "clinical_summary",
    "cells": "clinical_cells",
    "crosstab": "classes",
    "gene_sets": "gene_sets",
}


@dataclass(frozen=True, eq=False)
class Known:
    """Clinical data and classes of the samples, one entry per sample.

    ``happened`` is the value of ``event`` that means the event, where it was said. ``adjusted`` names
    the columns that were regressed out of the views.
    """

    clinical: dict[str, list[Any]] = field(default_factory=dict)
    time: str | None = None
    event: str | None = None
    classes: list[Any] | None = None
    adjusted: tuple[str, ...] = ()
    happened: str | None = None
    horizon: float | None = None
    covariates: tuple[str, ...] = ()

    def check(self) -> None:
        """Refuse times and events that cannot be read, before any work is done."""
        if (self.time is None) != (self.event is None):
            given, lacking = ("time", "event") if self.event is None else ("event", "time")
            raise ValueError(
                f"survival needs a time and an event; {given} is given, name {lacking}"
            )
        if self.horizon is not None and self.time is None:
            raise ValueError("a horizon needs survival: name the columns of time and event")
        if self.covariates and self.time is None:
            raise ValueError("covariates need survival: name the columns of time and event")
        for name in (*filter(None, (self.time, self.event)), *self.covariates, *self.adjusted):
            if name not in self.clinical:
                raise ValueError(f"the clinical table has no column {name!r}")
        if self.time is not None:
            if own := {self.time, self.event} & set(self.covariates):
                raise ValueError(
                    f"{own.pop()!r} is a column of the survival outcome; leave it out of the covariates"
                )
            self.survival([0] * len(self.clinical[self.time]), 0)

    def events(self) -> tuple[Any, str]:
        """Who had the event, and in words how that was read."""
        assert self.event is not None
        return read_events(self.clinical[self.event], self.event, self.happened)

    def survival(
        self, labels: Sequence[int], permutations: int | None, covariates: Any = None
    ) -> Survival:
        assert self.time is not None
        try:
            events, how = self.events()
            found = survival(
                labels,
                self.clinical[self.time],
                events,
                covariates=covariates,
                horizon=self.horizon,
                permutations=permutations,
            )
        except UnclearEvent as doubt:
            raise ValueError(f"{doubt.why}; {question(doubt)}") from None
        except ValueError as error:
            raise ValueError(
                f"survival by the columns {self.time!r} and {self.event!r}: {error}"
            ) from None
        return replace(found, notes=(how, *found.notes)) if how else found


def question(doubt: UnclearEvent) -> str:
    """Ask for the value of the event."""
    answers = [f'event="{answer}"' for answer in doubt.answers] or ['event="COLUMN=VALUE"']
    return f"say which value means that the event happened: {' or '.join(answers)}"


class Meaning:
    """Tables by file name, and what `run.json` says of them: its keys are always the same."""

    def __init__(self) -> None:
        self.tables: dict[str, Any] = {}
        self.about: dict[str, Any] = dict.fromkeys(("survival", "clinical", "classes", "gene_sets"))
        self.about["annotations"] = []

    def attempt(
        self, name: str, compute: Callable[[], Any], describe: Callable[[Any], Any]
    ) -> None:
        """Add a result, its tables and its description; or the sentence that says why there is none."""
        try:
            result = compute()
        except ValueError as error:
            self.about[name] = {"problem": str(error)}
            return
        self.tables |= {f"{TITLES[title]}.csv": table for title, table in result.tables.items()}
        self.about[name] = {"notes": list(result.notes), **describe(result)}


def known(
    ids: Sequence[str],
    clinical: Any = None,
    time: str | None = None,
    event: str | None = None,
    truth: Any = None,
    adjusted: Sequence[str] = (),
    horizon: float | None = None,
    covariates: Sequence[str] = (),
) -> Known:
    """Bring a clinical table to the order of ``ids``: by its own ids if it has any, else by rows.

    What is known already is returned as it is.
    """
    if isinstance(clinical, Known):
        return clinical
    columns: dict[str, list[Any]] = {}
    if clinical is not None:
        table = read_table("clinical", clinical)
        table = table.numbered_like([int(i) if i.isdecimal() else i for i in ids])
        rows = np.arange(table.n)
        if table.ids is not None:
            rows = places(ids, [str(i) for i in table.ids])
            if len(ids) and not (rows >= 0).any():
                raise ValueError(
                    f"clinical shares no id with the samples: they have {ids[0]!r}, it has "
                    f"{str(table.ids[0])!r}; give one sample one id everywhere"
                )
        elif table.n != len(ids):
            raise ValueError(
                f"clinical has {table.n} rows for {len(ids)} samples; give one row each, or a "
                "DataFrame indexed by their ids"
            )
        columns = {name: as_list(c) for name, c in table.columns.reindex(rows).items()}
    read = None if truth is None else [None if stands_for_missing(c) else c for c in truth]
    happened = None
    if event is not None:
        event, happened = split_event(event, columns)
    found = Known(columns, time, event, read, tuple(adjusted), happened, horizon, tuple(covariates))
    found.check()
    return found


def meaning(
    labels: Array,
    ids: Sequence[str],
    known: Known,
    views: Views | None = None,
    sets: Any = None,
    others: Mapping[str, Any] | None = None,
) -> Meaning:
    """Every table and number there is to say of the clusters; what cannot be said is a sentence.

    ``others`` are labels found with fewer views, to be compared by the same outcomes.
    """
    found = Meaning()
    given = [int(label) for label in labels]
    if known.time is not None:
        _add_survival(found, given, known)
    if known.clinical:
        _add_clinical(found, given, known)
    if known.classes is not None:
        found.attempt(
            "classes",
            lambda: crosstab(given, known.classes),
            lambda c: {"ari": c.ari, "nmi": c.nmi, "n": c.n, "classes": len(c.classes)},
        )
    if sets is not None and views is not None:
        _add_gene_sets(found, labels, views, sets)
    if others:
        _add_others(found, others, known)
    if known.clinical or known.classes is not None:
        found.tables["annotations.csv"], kinds = _annotations(ids, known)
        found.about["annotations"] = kinds
    return found


def _add_survival(found: Meaning, labels: list[int], known: Known) -> None:
    def described(result: Survival) -> dict[str, Any]:
        test = result.test
        return {
            "time": known.time,
            "event": known.event,
            "unit": unit_of(str(known.time)),
            "level": result.curves[0].level,
            "horizon": result.horizon,
            "statistic": None if np.isnan(test.statistic) else float(test.statistic),
            "degrees": int(test.degrees),
            "p_value": None if np.isnan(test.p_value) else float(test.p_value),
            "permutations": int(test.permutations),
            "cox": _adjusted(result.cox),
        }

    # Hazard ratios need lifelines: without it there are none, unless they were requested.
    wanted = bool(known.covariates) or find_spec("lifelines") is not None
    covariates = {n: known.clinical[n] for n in known.covariates} if wanted else None
    found.attempt("survival", lambda: known.survival(labels, None, covariates), described)


def check_gene_sets(views: Any, sets: Any) -> None:
    """Refuse gene sets that share no ids with the features of the views."""
    given = collect(views)
    pairs = zip(given.names, given.items, strict=True)
    match_sets(sets, {name: item.features for name, item in pairs if item.features is not None})


def _add_gene_sets(found: Meaning, labels: Array, views: Views, sets: Any) -> None:
    shown, rows = looked_at(views, labels)
    parts = zip(shown.names, shown.matrices, shown.feature_names, strict=True)
    items = {n: Item(X, None, own) for n, X, own in parts if own is not None and is_table(X)}

    def described(result: Any) -> dict[str, Any]:
        table = result.full_table
        return {"sets": int(table["set"].nunique()), "views": list(table["view"].unique())}

    given = Collection(list(items), list(items.values()), by_name=True)
    found.attempt("gene_sets", lambda: gene_sets(labels[rows], given, sets), described)


def _adjusted(cox: Any) -> dict[str, Any] | None:
    """What `run.json` says of the Cox model with covariates."""
    if cox is None or not cox.covariates:
        return None
    p = None if np.isnan(cox.test.p_value) else float(cox.test.p_value)
    return {"model": cox.model, "n": cox.n, "events": cox.n_events, "p_value": p}


def _add_others(found: Meaning, others: Mapping[str, Any], known: Known) -> None:
    """What each set of views says of survival and of known classes.

    Without known classes two clinical columns of categories stand there that the clusters go with most.
    """
    columns: dict[str, list[Any]] = {}
    if known.classes is not None:
        columns["class"] = known.classes
    elif "clinical_tests.csv" in found.tables:
        tests = found.tables["clinical_tests.csv"]
        some = tests[(tests["kind"] == "category") & (tests["q_value"] <= 0.05)]
        some = some.sort_values("effect", ascending=False, kind="stable")["column"][:2]
        columns = {name: known.clinical[name] for name in some}
    has_survival = (found.about["survival"] or {}).get("p_value") is not None
    if not (columns or has_survival):
        return
    rows = []
    for name, labels in others.items():
        own = [int(label) for label in labels]
        row: dict[str, Any] = {"views": name}
        if has_survival:
            seen = observed(own, known.clinical[str(known.time)], known.events()[0], None, None)
            draws = rounds(None, len(seen.time))
            everyone = range(len(seen.groups.names))
            test = seen.logrank(everyone, draws, np.random.default_rng(0))
            row |= {"logrank": test.statistic, "p_value": test.p_value}
        for column, values in columns.items():
            row[f"ari:{column}"] = crosstab(own, values).ari
        rows.append(row)
    found.tables["fusion_outcomes.csv"] = rows


def _add_clinical(found: Meaning, labels: list[int], known: Known) -> None:
    own = {known.time, known.event}
    columns = {n: c for n, c in known.clinical.items() if n not in own and not _is_class(c, known)}
    # A time that ends at the last visit says as much of the visits as of the patients.
    times = [
        n for n, c in columns.items() if is_follow_up(n) and read_column(n, c).kind == "number"
    ]
    columns = {n: c for n, c in columns.items() if n not in times}
    tested = dict(list(columns.items())[:MOST_COLUMNS])
    if not tested:
        return

    def described(result: Any) -> dict[str, Any]:
        record = {"tested": len(tested), "columns": len(columns), "adjusted": list(known.adjusted)}
        record["notes"] = [
            *result.notes,
            *(
                f"“{name}” is a time of follow-up: it ends early where the event did not happen, so it "
                "is not tested as a plain number. Compare it by survival, with its event column."
                for name in times
            ),
        ]
        record["followed"] = [found._asdict() for found in result.followed]
        return record | {"significant": list(result.significant())}

    # What was regressed out level by level is looked for level by level.
    kinds = {
        n: "category"
        for n in known.adjusted
        if n in tested and may_be_codes(read_column("", tested[n]))
    }
    found.attempt("clinical", lambda: enrichment(labels, tested, kinds=kinds), described)
    if len(columns) > len(tested):
        found.about["clinical"].setdefault("notes", []).append(
            f"The first {len(tested)} of {len(columns)} columns "
            "are used; remove those that you do not need."
        )


def _is_class(values: list[Any], known: Known) -> bool:
    """Whether a column is the known classes themselves, which have a table of their own."""
    if known.classes is None:
        return False
    mine = [None if stands_for_missing(value) else str(value).strip() for value in values]
    return mine == [None if value is None else str(value).strip() for value in known.classes]


def _annotations(ids: Sequence[str], known: Known) -> tuple[Any, list[dict[str, Any]]]:
    """What samples can be colored by: a column each of texts or numbers, and of which kind."""
    columns: dict[str, Any] = {"id": list(ids)}
    kinds: list[dict[str, Any]] = []
    given: list[tuple[str, Any]] = [
        (name, values) for name, values in known.clinical.items() if not _is_class(values, known)
    ]
    if known.classes is not None:
        given.insert(0, ("class", known.classes))
    for name, values in given:
        column = read_column(name, values, "category" if values is known.classes else None)
        if column.kind is None or len(kinds) >= MOST_KEPT:
            continue
        heading = f"{len(kinds) + 1}:{name}"  # names may repeat, and "id" may be one of them
        kinds.append({"heading": heading, "name": name, "kind": column.kind})
        if column.levels:
            kinds[-1]["levels"] = [str(level) for level in column.levels]
            texts = [None if np.isnan(v) else str(column.levels[int(v)]) for v in column.values]
            columns[heading] = texts
        else:
            columns[heading] = column.values.tolist()
    return frame(columns), kinds
