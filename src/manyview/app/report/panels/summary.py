"""The few sentences to read first, and what to know before trusting the rest."""

from __future__ import annotations

from typing import Any

from manyview.app.report.batch import followed
from manyview.app.report.page import html
from manyview.app.report.run_files import Run

from .survival import equal, p_text

#: Words that a warning of the fit and the note on the same matter both have.
SAME = (
    "missing in every view",
    "before the objective settled",
    "near-duplicates",
    "no number of clusters stands out",
)
#: Decisions of a fit that the section on views explains: no reason for distrust.
EXPLAINED = ("their logarithms are taken",)


def in_short(run: Run) -> Any:
    about = run.about
    sizes = sorted((row["size"] for row in run.clusters), reverse=True)
    lines = []
    if sizes:
        lines.append(
            "One cluster holds everything."
            if len(sizes) == 1
            else f"{len(sizes)} clusters of {sizes[0]} observations each."
            if sizes[0] == sizes[-1]
            else f"{len(sizes)} clusters of {sizes[-1]} to {sizes[0]} observations."
        )
    stability = about.get("stability")
    if stability and len(sizes) > 1:
        lines.append(
            f"Refitted {stability['runs']} times on parts of the data, the clusters "
            f"{_grade(stability['ari'])} (mean agreement of two refits {stability['ari']:.2f}; "
            "1 is always the same, 0 is chance)."
        )
    if run.tables["baseline"]:
        ari = run.tables["baseline"][0]["ari_with_other"]
        lines.append(
            "A plain method on the same data finds "
            + ("nearly the same" if ari > 0.8 else "partly the same" if ari > 0.5 else "other")
            + f" clusters (agreement {ari:.2f})."
        )
    if len(run.views) > 1:
        weights = sorted(run.tables["view_weights"], key=lambda row: -row["weight"])
        asked = about.get("weights_are", "learned") != "learned"
        most, least = weights[0], weights[-1]
        line = (
            "all views count about the same."
            if most["weight"] < 1.25 * least["weight"]
            else f"the view that counts most is “{most['view']}” ({most['weight']:.0%} of the weight), "
            f"the one that counts least “{least['view']}” ({least['weight']:.0%})."
        )
        lines.append(f"As asked, {line}" if asked else line[0].upper() + line[1:])
    reasons = about.get("logarithms") or {}
    if reasons:
        told = ", ".join(f"“{view}” ({why})" for view, why in reasons.items())
        lines.append(f"The logarithm was taken of {told}.")
    urgent, neutral = followed(about, _remedy(about))
    lines += [*neutral, *_outcomes(about)]
    notes = [*about.get("warnings", []), *_told(about)]
    return html(
        '{% if urgent %}<div class="warning" role="note"><p><b>Batch effect</b></p><ul>'
        "{% for text in urgent %}<li>{{ text }}</li>{% endfor %}</ul></div>{% endif %}"
        "<ul>{% for line in lines %}<li>{{ line }}</li>{% endfor %}</ul>"
        '{% if notes %}<div class="warning" role="note"><p><b>Before you trust this</b></p><ul>'
        "{% for note in notes %}<li>{{ note }}</li>{% endfor %}</ul></div>"
        '{% elif not followed %}<p class="note">Nothing unusual was noticed: no view took over, no cluster '
        "is tiny, every observation has data, and the fit settled.</p>{% endif %}"
        "{% if read %}<h3>How the files were read</h3><ul>{% for line in read %}<li>{{ line }}</li>"
        "{% endfor %}</ul>{% endif %}",
        urgent=urgent,
        followed=urgent + neutral,
        lines=lines,
        notes=notes,
        read=list(
            dict.fromkeys([*_listed(about.get("alignment")), *about.get("outcome_notes", [])])
        ),
    )


def _remedy(about: dict[str, Any]) -> str:
    if about.get("command"):
        return (
            "Fit again with {option}; in the app choose “Change and run again”, then remove the effect of "
            "“{column}”."
        )
    return "Fit RobustWMNMF on mv.adjust(views, {{{column!r}: clinical[{column!r}]}}).views."


def _outcomes(about: dict[str, Any]) -> list[str]:
    """What the clusters mean, in a line each."""
    lines = []
    survival, clinical, classes = (about.get(k) or {} for k in ("survival", "clinical", "classes"))
    if survival.get("p_value") is not None:
        differs = "differs" if survival["p_value"] <= 0.05 else "cannot be shown to differ"
        p = equal(p_text(survival["p_value"], survival["permutations"]))
        lines.append(f"Survival {differs} between the clusters (log-rank p {p}).")
    if clinical.get("significant"):
        named = clinical["significant"]
        listed = ", ".join(f"“{name}”" for name in named[:3]) + (", …" if len(named) > 3 else ".")
        lines.append(f"Clinical columns that differ between the clusters: {listed}")
    if classes.get("ari") is not None:
        lines.append(f"Agreement with the known classes: {classes['ari']:.2f} (1 is the same).")
    return lines


def _told(about: dict[str, Any]) -> list[str]:
    """What the fit warned of, unless a note says the same."""
    notes = " ".join(about.get("warnings", [])).lower()
    told = dict.fromkeys(str(text) for text in about.get("fit_warnings", []))
    return [
        text
        for text in told
        if not any(w in text.lower() and w in notes for w in SAME)
        and not any(words in text for words in EXPLAINED)
    ]


def _listed(value: Any) -> list[str]:
    """Sentences, whether one, several, or a table of them was given."""
    if isinstance(value, dict):
        return [f"{key}: {item}" for key, item in value.items()]
    return [value] if isinstance(value, str) else [str(item) for item in value or []]


def _grade(ari: float) -> str:
    if ari > 0.85:
        return "come back nearly unchanged"
    return "come back in part" if ari > 0.6 else "change a great deal"
