"""The folder of a run → its page: the prose is in `assets/fit.html`, what it says comes from the files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from manyview.outcomes.enrich import Followed
from manyview.plot._draw import p_text

from .charts import chart_svg, charts_of, map_of
from .page import Section, chart, figure, macros, page, table
from .run_files import Rows, Run, read_run

#: Rows kept for the largest CSVs; rows of a table that is listed whole, if it has not more.
EMBEDDED, MOST_NAMED = 20_000, 30
#: An observation that departs more than this from its cluster's usual reliance is named.
UNUSUAL = 0.25
#: Words that a warning of the fit and the note on the same matter both have.
SAME = (
    "missing in every view",
    "before the objective settled",
    "near-duplicates",
    "no number of clusters stands out",
)
#: Decisions of a fit that the section on views explains: no reason for distrust.
EXPLAINED = ("their logarithms are taken",)
SECTIONS = {
    "short": "In short",
    "clusters": "The clusters",
    "number": "Why this many clusters",
    "reliance": "Which view each observation relies on",
    "views": "How much each view counts",
    "features": "What sets each cluster apart",
    "survival": "Survival",
    "clinical": "Clinical columns by cluster",
    "classes": "Comparison with the known classes",
    "sure": "How sure the clusters are",
    "baseline": "Comparison with a simple baseline",
    "fit": "How the fit went",
    "data": "Data and settings",
    "methods": "Methods, to copy",
}
#: Sections of what is known beside the views, and the key of `run.json` that they need.
OPTIONAL = {
    "number": "selection",
    "survival": "survival",
    "clinical": "clinical",
    "classes": "classes",
}


class Citations(list[str]):
    """What was cited, numbered in the order of first use."""

    def __call__(self, *keys: str) -> str:
        self += [key for key in keys if key not in self]
        return f"[{','.join(str(self.index(key) + 1) for key in keys)}]"


def fit_page(folder: Path, otherwise: Path | None = None) -> str:
    """The report of the run in ``folder`` as one self-contained page.

    A file that is not there is looked for in ``otherwise``.
    """
    run = read_run(folder, otherwise)
    about, n = run.about, len(run.clusters)
    about |= {key: about.get(key) for key in ("logarithms", "not_left_out", "no_stability")}
    title = about.get("title") or (
        f"{n} cluster{'s' * (n != 1)} among {about['n_samples']} observations"
    )
    charts = charts_of(run)
    remedy = (
        "Fit again with {option}; in the app choose “Change and run again”, then align the batches of "
        "“{column}”."
        if about.get("command")
        else "Fit again with RobustWMNMF(…).fit(views, batch=clinical[{column!r}])."
    )
    urgent, neutral = followed(about, remedy)

    def drawn(name: str, caption: Any = "") -> Any:
        if name not in charts:
            return ""
        return chart(chart_svg(name, charts[name]), charts[name].label, name, caption)

    prose = macros(
        "fit.html",
        run=run,
        about=about,
        urgent=urgent,
        neutral=neutral,
        notes=_notes(about),
        how_read=_how_read(about),
        charts=charts,
        chart=drawn,
        map=partial(figure, map_of(run), label="Observations in two dimensions", name="map",
                    height=560),
        rows=partial(_rows, run),
        survival_table=partial(_survival_table, run),
        data_tables=_data_tables(run),
        on_views=_on_views(run),
        leading=_leading(run) if run.tables["top_features"] else None,
        cite=Citations(),
        p_text=p_text,
        embedded=EMBEDDED,
        limit=f"{UNUSUAL:.0%}",
    )  # fmt: skip
    sections = [
        Section(name, heading, getattr(prose, name)())
        for name, heading in SECTIONS.items()
        if name not in OPTIONAL or about.get(OPTIONAL[name])
    ]
    return page(title, sections, lead=prose.lead())


def _rows(
    run: Run,
    name: str,
    caption: Any,
    formats: Mapping[str, str] | str,
    *,
    shown: int | None = None,
    columns: Sequence[str] | None = None,
    headings: Mapping[str, str] | None = None,
    least: str = "",
    once: Sequence[str] = (),
    whole: bool = False,
) -> Any:
    """A table of the run, or some of its columns.

    ``formats`` is for each heading, or for all. Rows are sorted by ``least``, if it is given; cells of the
    columns ``once`` are blank where the first of these columns is as in the row before. With ``whole`` the
    CSV has all columns.
    """
    rows = run.tables[name]
    if not rows:
        return ""
    if least:
        rows = sorted(rows, key=lambda row: (row[least] is None, row[least] or 0))
    columns = columns or list(rows[0])

    def heading(column: str) -> str:
        if column.startswith("with:"):
            return column.removeprefix("with:")
        # Headings of the table of classes are users' words.
        plain = column if name in ("classes", "history") else column.replace("_", " ")
        return (headings or {}).get(column, plain)

    body, last = [], None
    for row in rows[:EMBEDDED]:
        again = bool(once) and row[once[0]] == last
        last = row[once[0]] if once else None
        body.append([None if again and column in once else row[column] for column in columns])
    headed = [heading(column) for column in columns]
    return table(
        headed,
        body,
        name=name,
        caption=caption,
        formats=dict.fromkeys(headed, formats) if isinstance(formats, str) else formats,
        shown=shown,
        full=(list(rows[0]), [list(row.values()) for row in rows]) if whole else None,
    )


def _notes(about: Mapping[str, Any]) -> list[str]:
    """What to know before trusting the rest; each matter once."""
    notes = list(about.get("warnings", []))
    said = " ".join(notes).lower()
    return notes + [
        text
        for text in dict.fromkeys(str(text) for text in about.get("fit_warnings", []))
        if not any(words in text.lower() and words in said for words in SAME)
        and not any(words in text for words in EXPLAINED)
    ]


def _how_read(about: Mapping[str, Any]) -> list[str]:
    read = about.get("alignment") or []
    if isinstance(read, dict):
        read = [f"{key}: {item}" for key, item in read.items()]
    read = [read] if isinstance(read, str) else [str(item) for item in read]
    return list(dict.fromkeys([*read, *about.get("outcome_notes", [])]))


def followed(about: Mapping[str, Any], remedy: str) -> tuple[list[str], list[str]]:
    """Of `run.json`: warnings of batches that the clusters follow, and sentences on other columns.

    ``remedy`` has "{option}", or "{column}", for the column whose batches are to be aligned.
    """
    robust = "--method robust " if about.get("method") == "WMNMF" else ""
    told: tuple[list[str], list[str]] = ([], [])
    for item in (about.get("clinical") or {}).get("followed", []):
        found = Followed(**item)
        option = f"{robust}--batch {shlex.quote(found.column)}"
        again = remedy.format(option=option, column=found.column)
        removed = [*about["adjusted"], *(about.get("settings") or {}).get("batch", [])]
        told[not found.technical].append(found.sentence(again, found.column in removed))
    return told


def _on_views(run: Run) -> dict[str, Any]:
    """Observations that rely on other views than their cluster, on one view only, or on none."""
    views = run.views
    rows = [row for row in run.tables["sample_weights"] if row["cluster"] >= 0]
    unusual = [row for row in rows if (row["departure"] or 0) > UNUSUAL]
    unusual.sort(key=lambda row: -row["departure"])
    # The cells of a view that an observation lacks are empty.
    here = [[view for view in views if row[f"weight:{view}"] is not None] for row in rows]
    alone = Counter(own[0] for own in here if len(own) == 1)
    unsupported = [
        row["id"]
        for row, own in zip(rows, here, strict=True)
        if len(own) > 1 and not any(row[f"weight:{view}"] for view in own)
    ]
    columns = ["id", "cluster", "departure", *[f"reliance:{view}" for view in views]]
    headings = [column.replace("reliance:", "reliance: ", 1) for column in columns]
    return {
        "unusual": unusual,
        "unsupported": unsupported if run.about["method"] == "RobustWMNMF" else [],
        "alone": {view: alone[view] for view in views if alone[view]},
        "of": len(rows),
        "table": table(
            headings,
            [[row[column] for column in columns] for row in unusual[:EMBEDDED]],
            name="unusual_observations",
            caption="Departure: the share of reliance that lies elsewhere than is usual in the cluster.",
            formats=dict.fromkeys(headings[2:], ".0%"),
            shown=MOST_NAMED if len(unusual) <= MOST_NAMED else 10,
        ),
    }


def _leading(run: Run) -> dict[str, Any]:
    """The five leading features of every cluster and view."""
    rows = [row for row in run.tables["top_features"] if row["rank"] <= 5]
    effects = sorted(abs(row["effect"]) for row in rows)
    groups: dict[int, dict[str, Rows]] = {}
    for row in rows:
        groups.setdefault(row["cluster"], {}).setdefault(row["view"], []).append(row)
    return {
        "groups": groups,
        "sizes": {row["cluster"]: row["size"] for row in run.clusters},
        # A single huge effect must not make all other bars invisible.
        "longest": max(1.0, effects[int(0.9 * len(effects))]),
    }


def _survival_table(run: Run, name: str, caption: str) -> Any:
    rows, interval = run.tables[name], f"{run.about['survival']['level']:.0%} interval"
    if not rows:
        return ""

    def value(row: Mapping[str, Any], key: str, absent: str = "–") -> str:
        return absent if row[key] is None else f"{row[key]:.3g}"

    def between(row: Mapping[str, Any], key: str) -> str:
        ends = [value(row, f"{key}_{end}", "…") for end in ("lower", "upper")]
        return "–" if ends == ["…", "…"] else " to ".join(ends)

    if name == "survival":
        columns = ["cluster", "n", "events", "last time", "median", interval, "restricted mean",
                   interval, "at risk at the horizon"]  # fmt: skip
        shown = [
            [row["cluster"], row["n"], row["events"], row["last_time"],
             value(row, "median", "not reached"), between(row, "median"),
             value(row, "restricted_mean"), between(row, "restricted_mean"),
             row.get("at_risk_at_horizon")]
            for row in rows
        ]  # fmt: skip
    else:
        columns = ["cluster", "other", "χ²", "p", "q", "difference of means", interval]
        shown = [
            [*(row[c] for c in ("cluster", "other", "statistic", "p_value", "q_value")),
             value(row, "mean_difference"), between(row, "mean_difference")]
            for row in rows
        ]  # fmt: skip
    return table(
        columns,
        shown,
        name=name,
        caption=caption,
        formats=dict.fromkeys(("χ²", "p", "q"), ".3g"),
        shown=15 if name == "survival_pairs" else None,
        full=(list(rows[0]), [list(row.values()) for row in rows]),
    )


def _data_tables(run: Run) -> dict[str, Any]:
    about = run.about
    counted = {row["view"]: row["observations"] for row in run.tables["view_weights"]}
    views = [
        [v["name"], v["features"], counted.get(v["name"]), about["n_samples"], v["sha256"]]
        for v in about["views"]
    ]
    heads = ["view", "features", "observations with it", "all observations", "sha256 of the values"]
    files = [item for item in about.get("inputs") or [] if isinstance(item, dict)]
    columns = list(dict.fromkeys(key for item in files for key in item))
    listed = [[_text(item.get(key)) for key in columns] for item in files]
    chosen = [
        [key, _text(value, none="None")]
        for group in ("settings", "parameters")
        for key, value in about.get(group, {}).items()
    ]
    return {
        "views": table(heads, views, name="data", caption="The data as the model saw them."),
        "files": table(columns, listed, name="inputs", caption="The files it came from.")
        if files
        else "",
        "settings": table(["setting", "value"], chosen, name="settings"),
    }


def _text(value: Any, none: Any = None) -> Any:
    if value is None:
        return none
    return value if isinstance(value, str | int | float) else str(value)
