"""What is known of the observations beside the views, by cluster."""

from __future__ import annotations

from typing import Any

from manyview.app.report.page import html, table
from manyview.app.report.run_files import Run

from .survival import equal, p_text

#: Rows of a table shown at first.
SHOWN = 40


def clinical(run: Run) -> Any:
    about = run.about["clinical"]
    if "problem" in about:
        return html("<p>Clinical columns were not compared: {{ why }}.</p>", why=about["problem"])
    return html(
        "<p>{{ verdict }}</p>{{ adjusted }}{{ summary }}{{ tests }}"
        "{% if notes %}<ul>{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul>{% endif %}",
        verdict=_verdict(about),
        adjusted=_adjusted(run, about),
        summary=_summary(run),
        tests=_tests(run),
        notes=about["notes"],
    )


def _verdict(about: dict[str, Any]) -> str:
    found = about["significant"]
    if not found:
        said = "No clinical column can be shown to differ between the clusters (q ≤ 0.05)."
    else:
        more = f" and {len(found) - 6} more" if len(found) > 6 else ""
        listed = ", ".join(f"“{name}”" for name in found[:6])
        said = f"Columns that differ between the clusters (q ≤ 0.05): {listed}{more}."
    return (
        f"{said} A column that was among the views, or follows from one, differs because the "
        "clusters were made from it."
    )


def _adjusted(run: Run, about: dict[str, Any]) -> Any:
    """Whether clusters follow what was regressed out of the views."""
    names = about.get("adjusted") or []
    if not names:
        return ""
    rows = {row["column"]: row for row in run.tables["clinical_tests"]}
    lines = []
    for name in names:
        row = rows.get(name)
        if row is None or row["p_value"] is None:
            lines.append(f"“{name}” was regressed out of the views; it could not be tested.")
            continue
        follows = row["p_value"] <= 0.05
        lines.append(
            f"“{name}” was regressed out of the views. "
            + ("The clusters still follow it" if follows else "No sign that clusters follow it")
            + f" (p {equal(p_text(row['p_value'], row['permutations']))}, "
            f"{row['effect_name']} {row['effect'] or 0:.2f})."
            + (
                " What remains is not linear in it, or is something else that goes with it."
                if follows
                else ""
            )
        )
    return html(
        '<div class="note"><ul>{% for line in lines %}<li>{{ line }}</li>{% endfor %}</ul></div>',
        lines=lines,
    )


def _summary(run: Run) -> Any:
    rows = run.tables["clinical_summary"]
    if not rows:
        return ""
    columns = list(rows[0])
    body, last = [], None
    for row in rows:
        values = list(row.values())
        # The name, p and q stand once, at the first line of a column.
        body.append(values if row["column"] != last else ["", *values[1:-2], None, None])
        last = row["column"]
    return table(
        [column.replace("_", " ") for column in columns],
        body,
        name="clinical_summary",
        caption="Counts and shares, or median and quartiles, by cluster.",
        formats={"p value": ".2g", "q value": ".2g"},
        shown=SHOWN,
    )


def _tests(run: Run) -> Any:
    rows = run.tables["clinical_tests"]
    columns = ["column", "kind", "n", "missing", "test", "p_value", "q_value", "effect", "effect_name",
               "most_marked", "note"]  # fmt: skip
    return table(
        [column.replace("_", " ") for column in columns],
        [[row[column] for column in columns] for row in rows],
        name="clinical_tests",
        caption="How every column was tested; effects run from 0 (none) to 1. P-values are exact or come "
        "from permuted labels, the smallest possible then being 0.0001. q is p adjusted for the number of "
        "columns (Benjamini–Hochberg).",
        formats=dict.fromkeys(("p value", "q value", "effect"), ".2g"),
        shown=SHOWN,
        full=(list(rows[0]), [list(row.values()) for row in rows]),
    )
