"""`manyview outcomes`: what the clusters of a finished fit mean; the same for the terminal after a fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from manyview.app.files.samples import most_alike, smallest_rule
from manyview.app.options import OutcomesRequest
from manyview.app.report.fit import followed
from manyview.app.run.folder import add_meaning, read_about, views_of_run
from manyview.app.run.meaning import check_gene_sets
from manyview.io.safe_csv import read_csv
from manyview.io.writing import restored

from .inputs import fitted, known_ids, read_given
from .terminal import Voice

#: Clinical columns named in the terminal; the files have all.
SHOWN = 12
#: Gene sets of every cluster and view, and how small their q must be.
SHOWN_SETS, SHOWN_Q = 3, 0.05


def run_outcomes(ask: OutcomesRequest, voice: Voice) -> None:
    """Read, compare, write the tables and the report of the run anew, and print what was found."""
    run = ask.out
    ask.check_clinical()
    if ask.clinical is None and ask.labels is None and ask.gene_sets is None:
        raise ValueError(
            "nothing to compare with: give --clinical FILE, --labels FILE or --gene-sets FILE.gmt"
        )
    restored(run)
    labels = run / "labels.csv"
    if not labels.is_file():
        raise ValueError(f"{run} is not the folder of a fit: it has no labels.csv; name one")
    ids = [row["id"] for row in read_csv(labels)]
    with voice.busy("reading the files") as tell:
        rule = smallest_rule([ids], ask.match, most_alike(known_ids(ask), ids))
        given = read_given(ask, ids, len(ids), rule=rule)
        voice.note(*given.notes)
        views = None
        if ask.gene_sets is not None:
            tell("reading the files of the fit")
            model, read = fitted(run, read_about(run))
            check_gene_sets(read.views, ask.gene_sets)
            views = views_of_run(model, read.views, "outcomes")
        tell("comparing the clusters")
        files = add_meaning(
            run,
            given.known,
            gene_sets=ask.gene_sets,
            views=views,
            notes=given.notes,
            figures=ask.figures,
        )
    summary: dict[str, Any] = {"out": str(run), "files": files, "notes": given.notes}
    voice.show(*told_outcomes(run, summary, voice))
    voice.finish(summary)


def told_outcomes(out: Path, summary: dict[str, Any], voice: Voice) -> list[Any]:
    """Tables and sentences on survival and clinical columns; the numbers go into ``summary``.

    Clusters that follow a batch are a warning, which ``voice`` gives at once, before anything else.
    """
    about = json.loads((out / "run.json").read_text(encoding="utf-8"))
    urgent, neutral = followed(about, "Fit again with {option}.")
    voice.warn(urgent)
    summary["warnings"] = [*summary.get("warnings", []), *urgent]
    parts = {name: about.get(name) for name in ("survival", "clinical", "classes", "gene_sets")}
    summary["outcomes"] = {name: part for name, part in parts.items() if part}
    shown: list[Any] = [escape(text) for text in neutral]
    for name, part in summary["outcomes"].items():
        if "problem" in part:
            shown.append(f"[yellow]{name}:[/yellow] {escape(part['problem'])}")
    survival, clinical, classes, sets = parts.values()
    if survival and "problem" not in survival:
        shown += _survival(out, survival)
    if clinical and "problem" not in clinical:
        shown.append(_clinical(out))
    if classes and "problem" not in classes and "scores" not in summary:
        shown.append(
            f"Against the {classes['classes']} known classes: ARI {classes['ari']:.3f}, "
            f"NMI {classes['nmi']:.3f} (classes.csv)"
        )
    if sets and "problem" not in sets:
        shown.append(_gene_sets(out))
    return shown


def _gene_sets(out: Path) -> Any:
    table = Table(
        "cluster", "set", "features", "", "effect", "q", title="Gene sets (gene_sets.csv)"
    )
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in read_csv(out / "gene_sets.csv"):
        if float(row["q_descriptive"] or "nan") <= SHOWN_Q:
            groups.setdefault((row["view"], row["cluster"]), []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: (float(row["q_descriptive"]), -abs(float(row["effect"]))))
        for row in rows[:SHOWN_SETS]:
            cells = (row["cluster"], row["set"], row["n_features"], row["direction"])
            effect, q = _digits(row["effect"]), _digits(row["q_descriptive"])
            table.add_row(*map(escape, cells), effect, q)
    return table if groups else f"No gene set has q of {SHOWN_Q} or less (gene_sets.csv)."


def _survival(out: Path, about: dict[str, Any]) -> list[Any]:
    mean = f"mean up to {about['horizon']:.4g} (at risk)"
    table = Table("cluster", "samples", "events", "median", mean, title="Survival")
    for row in read_csv(out / "survival.csv"):
        median = f"{float(row['median']):.4g}" if row["median"] else "not reached"
        mean = f"{float(row['restricted_mean']):.4g}" if row["restricted_mean"] else "–"
        mean += f" ({row['at_risk_at_horizon']})"
        table.add_row(row["cluster"], row["n"], row["events"], median, mean)
    p = "not tested" if about["p_value"] is None else f"p = {about['p_value']:.2g}"
    how = f" ({about['permutations']} permutations)" if about["permutations"] else ""
    told = [f"Log-rank over all clusters: [bold]{p}[/bold]{how}"]
    if about.get("cox"):
        told.append(
            f"{escape(about['cox']['model'])[:1].upper()}{escape(about['cox']['model'])[1:]}: clusters "
            f"together p = {_digits(about['cox']['p_value'])}; hazard ratios are in survival_cox.csv"
        )
        told += [_ratios(out, about["cox"]["model"])]
    return [table, *told, *(f"- {escape(note)}" for note in about["notes"])]


def _ratios(out: Path, model: str) -> Any:
    table = Table("", "compared with", "hazard ratio (interval)", "p", title="Hazard ratios (Cox)")
    for row in read_csv(out / "survival_cox.csv"):
        if row["model"] == model:
            ratio = " to ".join(_digits(row[bound]) for bound in ("lower", "upper"))
            ratio = f"{_digits(row['hazard_ratio'])} ({ratio})"
            p = _digits(row["p_value"] or row["wald_p"])
            table.add_row(escape(row["term"]), escape(row["reference"]), ratio, p)
    return table


def _digits(value: Any) -> str:
    return f"{float(value):.2g}" if value not in (None, "") else "–"


def _clinical(out: Path) -> Any:
    table = Table("column", "kind", "q", "effect", "largest difference", title="Clinical columns")
    rows = sorted(
        read_csv(out / "clinical_tests.csv"),
        key=lambda row: (float(row["q_value"] or "inf"), -float(row["effect"] or 0)),
    )
    for row in rows[:SHOWN]:
        q, effect = (f"{float(row[c]):.2g}" if row[c] else "–" for c in ("q_value", "effect"))
        table.add_row(
            escape(row["column"][:40]), row["kind"], q, effect, escape(row["most_marked"])
        )
    if len(rows) > SHOWN:
        table.add_row(f"… {len(rows) - SHOWN} more", "", "", "", "")
    return table
