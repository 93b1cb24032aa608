"""The folder of a run → its page: the prose is in `assets/fit.html`, what it says comes from the files."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from manyview.outcomes.batch import Followed
from manyview.plot._draw import p_text

from .charts import chart_svg, charts_of, map_of
from .methods import methods_text
from .page import Section, chart, figure, macros, page, table
from .run_files import Rows, Run, read_run

#: Rows kept for the largest CSVs; rows of a table that is listed whole, if it has not more.
EMBEDDED, MOST_NAMED = 20_000, 30
#: An observation that departs more than this from its cluster's usual reliance is named.
UNUSUAL = 0.25
#: Shares of labels that agree with the class, with a sign of doubt and without: `benchmarks/sentences.py`
#: measures them on eleven data sets with known classes, up to 600 observations of each.
MEASURED = {
    "low confidence": (0.467, 0.799),  # below .8
    "one view": (0.626, 0.701),  # three in ten observations keep one view
    "unusual reliance": (0.547, 0.733),
    "no support": (0.598, 0.720),
    "unstable observation": (0.352, 0.751),  # below .6
    "unstable cluster": (0.356, 0.737),  # below .6
}
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

    def drawn(name: str, caption: Any = "") -> Any:
        if name not in charts:
            return ""
        return chart(chart_svg(name, charts[name]), charts[name].label, name, caption)

    prose = macros(
        "fit.html",
        run=run,
        about=about,
        charts=charts,
        chart=drawn,
        map=_map,
        rows=lambda *args, **how: _rows(run, *args, **how),
        pairs=lambda *args: _pairs(run, *args),
        basis=lambda *args: _basis(run, *args),
        survival_table=lambda *args: _survival_table(run, *args),
        clinical_summary=lambda caption: _clinical_summary(run, caption),
        data_tables=_data_tables(run),
        in_short=_in_short,
        on_views=_on_views,
        leading=_leading,
        methods_text=methods_text,
        p_text=p_text,
        embedded=EMBEDDED,
        limit=f"{UNUSUAL:.0%}",
    )
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
    formats: Mapping[str, str],
    *,
    shown: int | None = None,
    columns: Sequence[str] | None = None,
    headings: Mapping[str, str] | None = None,
    least: str = "",
    whole: bool = False,
) -> Any:
    """A table of the run, or some of its columns; by ``least`` on; its CSV ``whole`` if that is said."""
    rows = run.tables[name]
    if not rows:
        return ""
    if least:
        rows = sorted(rows, key=lambda row: (row[least] is None, row[least] or 0))
    columns, spoken = columns or list(rows[0]), headings or {}
    # Headings of the table of classes are users' words.
    shown_as = [
        spoken.get(c, c if name in ("classes", "history") else c.replace("_", " ")) for c in columns
    ]
    return table(
        shown_as,
        [[row[column] for column in columns] for row in rows[:EMBEDDED]],
        name=name,
        caption=caption,
        formats=formats,
        shown=shown,
        full=(list(rows[0]), [list(row.values()) for row in rows]) if whole else None,
    )


def _pairs(run: Run, name: str, caption: str) -> Any:
    """A table of views by views."""
    rows, names = run.tables[name], run.views
    if not rows:
        return ""
    body = [[row["view"], *[row[f"with:{view}"] for view in names]] for row in rows]
    return table(["view", *names], body, name=name, caption=caption,
                 formats=dict.fromkeys(names, ".2f"))  # fmt: skip


def _basis(run: Run, sign: str, before: str = "", after: str = "") -> str:
    """What a claim rests on, between two texts; "" for a method that it was not measured with."""
    if run.about["method"] != "RobustWMNMF":
        return ""
    doubted, others = MEASURED[sign]
    return (
        f"{before}on eleven data sets with known classes {doubted:.0%} against {others:.0%} of the "
        f"others lay in the cluster of their class{after}"
    )


def _map(run: Run, caption: Any) -> Any:
    return figure(
        map_of(run), label="Observations in two dimensions", name="map", caption=caption, height=560
    )


def _in_short(run: Run) -> dict[str, Any]:
    """The few sentences to read first, and what to know before trusting the rest."""
    about = run.about
    sizes = sorted((row["size"] for row in run.clusters), reverse=True)
    lines = []
    if len(sizes) == 1:
        lines.append("One cluster holds everything.")
    elif sizes:
        from_to = f"{sizes[-1]} to {sizes[0]}" if sizes[0] > sizes[-1] else f"{sizes[0]}"
        each = "" if sizes[0] > sizes[-1] else " each"
        lines.append(f"{len(sizes)} clusters of {from_to} observations{each}.")
    stability = about.get("stability")
    if stability and len(sizes) > 1:
        ari = stability["ari"]
        grade = (
            "come back nearly unchanged" if ari > 0.85
            else "come back in part" if ari > 0.6 else "change a great deal"
        )  # fmt: skip
        lines.append(
            f"Refitted {stability['runs']} times on parts of the data, the clusters {grade} "
            f"(mean agreement of two refits {ari:.2f}; 1 is always the same, 0 is chance)."
        )
    if run.tables["baseline"]:
        ari = run.tables["baseline"][0]["ari_with_other"]
        same = "nearly the same" if ari > 0.8 else "partly the same" if ari > 0.5 else "other"
        lines.append(
            f"A plain method on the same data finds {same} clusters (agreement {ari:.2f})."
        )
    if len(run.views) > 1:
        weights = sorted(run.tables["view_weights"], key=lambda row: -row["weight"])
        most, least = weights[0], weights[-1]
        line = (
            "all views count about the same."
            if most["weight"] < 1.25 * least["weight"]
            else f"the view that counts most is “{most['view']}” ({most['weight']:.0%} of the weight), "
            f"the one that counts least “{least['view']}” ({least['weight']:.0%})."
        )
        asked = about.get("weights_are", "learned") != "learned"
        lines.append(f"As asked, {line}" if asked else line[0].upper() + line[1:])
    if about["logarithms"]:
        told = ", ".join(f"“{view}” ({why})" for view, why in about["logarithms"].items())
        lines.append(f"The logarithm was taken of {told}.")
    remedy = (
        "Fit again with {option}; in the app choose “Change and run again”, then remove the effect of "
        "“{column}”."
        if about.get("command")
        else "Fit RobustWMNMF on mv.adjust(views, {{{column!r}: clinical[{column!r}]}}).views."
    )
    urgent, neutral = followed(about, remedy)
    notes = list(about.get("warnings", []))
    said = " ".join(notes).lower()
    notes += [
        text
        for text in dict.fromkeys(str(text) for text in about.get("fit_warnings", []))
        if not any(words in text.lower() and words in said for words in SAME)
        and not any(words in text for words in EXPLAINED)
    ]
    read = about.get("alignment") or []
    if isinstance(read, dict):
        read = [f"{key}: {item}" for key, item in read.items()]
    read = [read] if isinstance(read, str) else [str(item) for item in read]
    return {
        "urgent": urgent,
        "followed": urgent + neutral,
        "lines": [*lines, *neutral, *_outcomes(about)],
        "notes": notes,
        "read": list(dict.fromkeys([*read, *about.get("outcome_notes", [])])),
    }


def _outcomes(about: Mapping[str, Any]) -> list[str]:
    """What the clusters mean, in a line each."""
    lines = []
    survival, clinical, classes = (about.get(k) or {} for k in ("survival", "clinical", "classes"))
    if survival.get("p_value") is not None:
        differs = "differs" if survival["p_value"] <= 0.05 else "cannot be shown to differ"
        p = p_text(survival["p_value"], survival["permutations"])
        lines.append(f"Survival {differs} between the clusters (log-rank p {p}).")
    if named := clinical.get("significant"):
        listed = ", ".join(f"“{name}”" for name in named[:3]) + (", …" if len(named) > 3 else ".")
        lines.append(f"Clinical columns that differ between the clusters: {listed}")
    if classes.get("ari") is not None:
        lines.append(f"Agreement with the known classes: {classes['ari']:.2f} (1 is the same).")
    return lines


def followed(about: Mapping[str, Any], remedy: str) -> tuple[list[str], list[str]]:
    """Of `run.json`: warnings of batches that the clusters follow, and sentences on other columns.

    ``remedy`` has "{option}", or "{column}", for the column to be regressed out.
    """
    robust = "--method robust " if about.get("method") == "WMNMF" else ""
    told: tuple[list[str], list[str]] = ([], [])
    for item in (about.get("clinical") or {}).get("followed", []):
        found = Followed(**item)
        option = f"{robust}--adjust {shlex.quote(found.column)}"
        again = remedy.format(option=option, column=found.column)
        told[not found.technical].append(found.sentence(again, found.column in about["adjusted"]))
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
    columns = ["id", "cluster", "departure", *[f"reliance: {view}" for view in views]]
    return {
        "unusual": unusual,
        "unsupported": unsupported if run.about["method"] == "RobustWMNMF" else [],
        "alone": {view: alone[view] for view in views if alone[view]},
        "of": len(rows),
        "table": table(
            columns,
            [
                [
                    row["id"],
                    row["cluster"],
                    row["departure"],
                    *[row[f"reliance:{v}"] for v in views],
                ]
                for row in unusual[:EMBEDDED]
            ],
            name="unusual_observations",
            caption="Departure: the share of reliance that lies elsewhere than is usual in the cluster.",
            formats=dict.fromkeys(columns[2:], ".0%"),
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

    def value(row: Mapping[str, Any], key: str, absent: str) -> str:
        return absent if row[key] is None else f"{row[key]:.3g}"

    def between(row: Mapping[str, Any], key: str) -> str:
        if row[f"{key}_lower"] is None and row[f"{key}_upper"] is None:
            return "–"
        return f"{value(row, f'{key}_lower', '…')} to {value(row, f'{key}_upper', '…')}"

    if name == "survival":
        columns = ["cluster", "n", "events", "last time", "median", interval, "restricted mean",
                   interval, "at risk at the horizon"]  # fmt: skip
        shown = [
            [row["cluster"], row["n"], row["events"], row["last_time"],
             value(row, "median", "not reached"), between(row, "median"),
             value(row, "restricted_mean", "–"), between(row, "restricted_mean"),
             row.get("at_risk_at_horizon")]
            for row in rows
        ]  # fmt: skip
    else:
        columns = ["cluster", "other", "χ²", "p", "q", "difference of means", interval]
        shown = [
            [*(row[c] for c in ("cluster", "other", "statistic", "p_value", "q_value")),
             value(row, "mean_difference", "–"), between(row, "mean_difference")]
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


def _clinical_summary(run: Run, caption: str) -> Any:
    rows = run.tables["clinical_summary"]
    if not rows:
        return ""
    body, last = [], None
    for row in rows:
        values = list(row.values())
        # The name, p and q stand once, at the first line of a column.
        body.append(values if row["column"] != last else ["", *values[1:-2], None, None])
        last = row["column"]
    formats = {"p value": ".2g", "q value": ".2g"}
    return table([column.replace("_", " ") for column in rows[0]], body, name="clinical_summary",
                 caption=caption, formats=formats, shown=40)  # fmt: skip


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
