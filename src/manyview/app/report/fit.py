"""The folder of a run → its page: the prose is in `assets/fit.html`, what it says comes from the files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from manyview.engines.numpy.scaling import SCALINGS
from manyview.outcomes.enrich import Followed
from manyview.plot._draw import PALETTE, p_text

from .charts import chart_svg, charts_of, map_of
from .page import Section, chart, figure, macros, page, table, with_csv
from .run_files import Rows, Run, read_run

#: Rows kept for the largest CSVs; rows of a table that is listed whole, if it has not more.
EMBEDDED, MOST_NAMED = 20_000, 30
#: A sample that departs more than this from its cluster's usual reliance is named.
UNUSUAL = 0.25
#: Words that a warning of the fit and the note on the same matter both have.
SAME = (
    "missing in every view",
    "before the objective settled",
    "near-duplicates",
    "no number of clusters stands out",
)
#: Decisions of a fit that the section on views explains: no reason for distrust.
EXPLAINED = ("log-transformed",)
#: Sections of the page, with their headings in the sidebar; the first holds the first screen.
SECTIONS = {
    "clusters": "Clusters",
    "map": "Map",
    "lives": "Survival in numbers",
    "clinical": "Clinical columns",
    "classes": "Known classes",
    "features": "Markers",
    "gene_sets": "Gene sets",
    "views": "Views and weights",
    "fusion": "Does fusion help?",
    "samples": "Samples",
    "number": "Choosing K",
    "sure": "Stability",
    "data": "Data and settings",
    "methods": "Methods and references",
}
#: Sections that need a key of `run.json`.
OPTIONAL = {
    "number": "selection",
    "lives": "survival",
    "clinical": "clinical",
    "classes": "classes",
}
#: Lines of a card for each view, and deviations from which a clinical value stands out.
CARD_LINES, CARD_VALUES, STRIKING = 3, 3, 3


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
    for key in ("logarithms", "not_left_out", "no_stability"):
        about.setdefault(key, None)
    title = about.get("title") or f"{n} cluster{'s' * (n != 1)} of {about['n_samples']} samples"
    charts = charts_of(run)
    remedy = (
        "Fit again with {option}; in the app choose “Change and run again”, then align the batches of "
        "“{column}”."
        if about.get("command")
        else "Fit again with RobustWMNMF(…).fit(views, batch=clinical[{column!r}])."
    )
    urgent, neutral = followed(about, remedy)

    def drawn(name: str, caption: Any = "", rows: str = "") -> Any:
        if name not in charts:
            return ""
        table = run.hazards if name == "hazards" else run.tables[rows] if rows else None
        return chart(chart_svg(name, charts[name]), charts[name].label, name, caption, table)

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
        cards=_cards(run),
        map_figure=partial(figure, map_of(run), label="Samples in two dimensions", name="map"),
        rows=partial(_rows, run),
        survival_table=partial(_survival_table, run),
        fusion_rows=_fusion(run),
        fusion_table=partial(with_csv, name="fusion"),
        data_tables=_data_tables(run),
        on_views=_on_views(run),
        leading=_leading(run) if run.tables["markers"] else None,
        cite=Citations(),
        p_text=p_text,
        embedded=EMBEDDED,
        limit=f"{UNUSUAL:.0%}",
        scalings=_scalings(run),
    )  # fmt: skip
    sections = []
    for name, heading in SECTIONS.items():
        if name in OPTIONAL and not about.get(OPTIONAL[name]):
            continue
        body = getattr(prose, name)()
        if str(body).strip():
            sections.append(Section(name, "" if name == "clusters" else heading, body))
    nav = [(s.id, SECTIONS[s.id]) for s in sections]
    first = [("heatmap", "Heat map")] * ("heatmap" in charts)
    first += [("survival", "Survival")] * ("survival" in charts)
    return page(title, sections, lead=prose.lead(), nav=[nav[0], *first, *nav[1:]])


def _cards(run: Run) -> list[dict[str, Any]]:
    """What a cluster is, in a few lines: its features by view, clinical values, survival."""
    tables, found = run.tables, []
    names = run.about.get("names") or {}
    hazards = {row["cluster"]: row for row in run.hazards}
    lives = {row["cluster"]: row for row in tables["survival"]}
    for row in run.clusters:
        k = row["cluster"]
        views, heads = {}, []
        for view in run.views:
            own = [r for r in tables["cluster_features"] if (r["cluster"], r["view"]) == (k, view)]
            if own:
                views[view] = _feature_lines(own)
                heads.append(_headline(own[0]))
        found.append(
            {
                "cluster": k,
                "name": names.get(str(k)) or ", ".join(heads[:3]),
                "named": str(k) in names,
                "color": PALETTE[k % len(PALETTE)],
                "size": row["size"],
                "share": row["share"],
                "stability": row.get("stability"),
                "views": views,
                "clinical": _striking(run, k),
                "hazard": hazards.get(k),
                "lives": lives.get(k),
            }
        )
    return found


def _arrow(row: Mapping[str, Any]) -> str:
    return "↑" if row["effect"] > 0 else "↓"


def _headline(row: Mapping[str, Any]) -> str:
    """The strongest feature of a view, as part of the name of a cluster."""
    if row["kind"] == "numbers":
        return f"{row['feature']}\u00a0{_arrow(row)}"
    # An arrow would read as the expression of the gene.
    name, share = f"{row['feature']} {row['altered']}".strip(), f"{row['inside']:.0%}"
    fewer = row["inside"] < row["outside"]
    if fewer and share == "0%":
        return f"no\u00a0{name}"
    return f"{name}\u00a0only\u00a0{share}" if fewer else f"{name}\u00a0{share}"


def _feature_lines(rows: Rows) -> list[str]:
    """Features of a view: numbers by their direction in one line, alterations by their shares."""
    if rows[0]["kind"] == "numbers":
        return ["  ".join(f"{row['feature']}\u00a0{_arrow(row)}" for row in rows[: CARD_LINES + 1])]
    lines = []
    for row in rows[:CARD_LINES]:
        more = f" (+{row['parallel']})" if row["parallel"] else ""
        word = f"{row['feature']}{more} {row['altered']}".strip()
        lines.append(f"{word} {row['inside']:.0%} ({row['outside']:.0%})")
    return lines


def _striking(run: Run, cluster: int) -> list[str]:
    """Clinical values that are much more, or less, common in the cluster, of columns that differ."""
    sure = set((run.about.get("clinical") or {}).get("significant", []))
    cells = [row for row in run.tables["clinical_cells"] if row["column"] in sure]
    own = [
        row for row in cells if row["cluster"] == cluster and abs(row["residual"] or 0) >= STRIKING
    ]
    own.sort(key=lambda row: -abs(row["residual"]))
    lines, used = [], set()
    for row in own:
        others = [r for r in cells if (r["column"], r["level"]) == (row["column"], row["level"])]
        if row["column"] in used or (row["residual"] < 0 and row["share"] is not None):
            continue
        used.add(row["column"])
        if row["share"] is not None:
            rest = [r for r in cells if r["column"] == row["column"] and r["cluster"] != cluster]
            there = sum(r["count"] for r in others if r["cluster"] != cluster)
            share = there / max(sum(r["count"] for r in rest), 1)
            lines.append(f"{row['column']}: {row['level']} {row['share']:.0%} ({share:.0%})")
        else:
            word = "higher" if row["residual"] > 0 else "lower"
            lines.append(f"{row['column']} {word}: median {row['median']:.3g}")
    return lines[:CARD_VALUES]


def _fusion(run: Run) -> dict[str, Any] | None:
    """All views, each view alone and each view left out: headings, rows, and what they come to."""
    rows = run.tables["fusion"]
    if not rows:
        return None
    outcomes = {row["views"]: row for row in run.tables["fusion_outcomes"]}
    rows = [{**row, **outcomes.get(row["views"], {})} for row in rows]
    classes = [key.removeprefix("ari:") for key in rows[0] if key.startswith("ari:")]
    whole, alone = rows[0], [row for row in rows if row["kind"] == "only"]
    sentences = []
    for name in classes:
        best = max(alone, key=lambda row: row[f"ari:{name}"])
        ours, theirs = whole[f"ari:{name}"], best[f"ari:{name}"]
        sentences.append(
            f"Agreement with “{name}”: {ours:.2f} for all views together, {theirs:.2f} for "
            f"{best['views'].removeprefix('only ')} alone, the best single view."
        )
    nearest = max(alone, key=lambda row: row["agreement"])
    dearest = [row for row in rows if row["kind"] == "without"] or alone
    least = min(dearest, key=lambda row: row["agreement"])
    return {
        "rows": rows,
        "classes": classes,
        "sentences": sentences,
        "nearest": nearest,
        "least": least,
        "columns": list(rows[0]),
        "cells": [list(row.values()) for row in rows],
    }


def _scalings(run: Run) -> list[str]:
    """In words, how each view was scaled; views that are alike together."""
    words = SCALINGS | {"none": "used unscaled", "": "used unscaled"}
    words["part sqrt"] = "partly square-rooted, partly scaled by quantiles"
    by: dict[str, list[str]] = {}
    for row in run.tables["view_weights"]:
        if "scaling" in row:
            by.setdefault(str(row["scaling"] or ""), []).append(row["view"])
    return [f"{', '.join(views)} {words.get(how, how)}" for how, views in by.items()]


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
    sure: str = "",
) -> Any:
    """A table of the run, or some of its columns.

    ``formats`` is for each heading, or for all. Rows are sorted by ``least``, if it is given, or by the
    p-values in ``sure``, of which none up to 0.05 is cut off; cells of the columns ``once`` are blank where
    the first of these columns is as in the row before. With ``whole`` the CSV has all columns.
    """
    rows = run.tables[name]
    if not rows:
        return ""
    if least:
        rows = sorted(rows, key=lambda row: (row[least] is None, row[least] or 0))
    if sure:
        # The row of missing values has no p-value of its own and stays with its column.
        best = {row["column"]: row[sure] for row in reversed(rows) if row[sure] is not None}
        rows = sorted(rows, key=lambda row: best.get(row["column"], 2))
        shown = max(shown or 0, sum(row[sure] is not None and row[sure] <= 0.05 for row in rows))
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
    by_kind: tuple[list[str], list[str]] = ([], [])
    for item in (about.get("clinical") or {}).get("followed", []):
        found = Followed(**item)
        option = f"{robust}--batch {shlex.quote(found.column)}"
        again = remedy.format(option=option, column=found.column)
        removed = [*about["adjusted"], *(about.get("settings") or {}).get("batch", [])]
        by_kind[not found.technical].append(found.sentence(again, found.column in removed))
    return by_kind


def _on_views(run: Run) -> dict[str, Any]:
    """Samples that rely on other views than their cluster, on one view only, or on none."""
    views = run.views
    rows = [row for row in run.tables["sample_weights"] if row["cluster"] >= 0]
    unusual = [row for row in rows if (row["departure"] or 0) > UNUSUAL]
    unusual.sort(key=lambda row: -row["departure"])
    # The cells of a view that a sample lacks are empty.
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
            name="unusual_samples",
            caption="Departure: the share of reliance that differs from what is usual in the cluster.",
            formats=dict.fromkeys(headings[2:], ".0%"),
            shown=MOST_NAMED if len(unusual) <= MOST_NAMED else 10,
        ),
    }


def _leading(run: Run) -> dict[str, Any]:
    """The five leading features of every cluster and view."""
    groups: dict[int, dict[str, Rows]] = {}
    for row in run.tables["markers"]:
        own = groups.setdefault(row["cluster"], {}).setdefault(row["view"], [])
        own += [row] if len(own) < 5 else []
    return {"groups": groups, "sizes": {row["cluster"]: row["size"] for row in run.clusters}}


def _survival_table(run: Run, name: str, caption: str) -> Any:
    rows, interval = run.tables[name], f"{run.about['survival']['level']:.0%} interval"
    if not rows:
        return ""

    def value(row: Mapping[str, Any], key: str, absent: str = "–") -> str:
        return absent if row[key] is None else f"{row[key]:.3g}"

    def between(row: Mapping[str, Any], key: str) -> str:
        ends = [value(row, f"{key}_{end}", "not reached") for end in ("lower", "upper")]
        return "–" if ends[0] == ends[1] == "not reached" else " to ".join(ends)

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
        permutations = run.about["survival"]["permutations"]
        shown = [
            [*(row[c] for c in ("cluster", "other", "statistic")),
             p_text(row["p_value"], permutations).removeprefix("= "), row["q_value"],
             value(row, "mean_difference"), between(row, "mean_difference")]
            for row in rows
        ]  # fmt: skip
    return table(
        columns,
        shown,
        name=name,
        caption=caption,
        formats=dict.fromkeys(("χ²", "q"), ".3g"),
        shown=15 if name == "survival_pairs" else None,
        full=(list(rows[0]), [list(row.values()) for row in rows]),
    )


def _data_tables(run: Run) -> dict[str, Any]:
    about = run.about
    counted = {row["view"]: row["samples"] for row in run.tables["view_weights"]}
    views = [
        [v["name"], v["features"], counted.get(v["name"]), about["n_samples"], v["sha256"]]
        for v in about["views"]
    ]
    heads = ["view", "features", "samples with it", "all samples", "sha256 of the values"]
    files = [item for item in about.get("inputs") or [] if isinstance(item, dict)]
    columns = list(dict.fromkeys(key for item in files for key in item))
    listed = [[_text(item.get(key)) for key in columns] for item in files]
    chosen = [
        [key, _text(value, none="None")]
        for group in ("settings", "parameters")
        for key, value in about.get(group, {}).items()
    ]
    return {
        "views": table(heads, views, name="data", caption="The views as the model used them."),
        "files": table(columns, listed, name="inputs", caption="The input files.") if files else "",
        "settings": table(["setting", "value"], chosen, name="settings"),
    }


def _text(value: Any, none: Any = None) -> Any:
    if value is None:
        return none
    return value if isinstance(value, str | int | float) else str(value)
