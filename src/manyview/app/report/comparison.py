"""Rows of a comparison → one self-contained page: no network, no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .page import Section, asset, clean, macros, page, printable, trusted, with_csv

Row = Mapping[str, Any]

#: Column of the summary, heading, its explanation.
SCORES = (
    ("acc", "ACC", "accuracy: share of observations in the right class, clusters named at best"),
    ("nmi", "NMI", "normalised mutual information of clusters and classes"),
    ("ari", "ARI", "adjusted Rand index: agreement on pairs, 0 for a random clustering"),
    ("f_score", "F", "harmonic mean of pair precision and recall"),
    ("precision", "Prec.", "of the pairs put together, the share that belong together"),
    (
        "recall",
        "Recall",
        "of the pairs that belong together, the share found; 1 for one big cluster",
    ),
)
OTHERS = (
    (
        "mean_rank",
        "Rank",
        "mean rank over ACC, NMI, ARI and F, where classes are known; 1 is best, and an oracle "
        "pushes nobody down",
    ),
    ("stability", "Stab.", "stability: mean adjusted Rand index between runs of different seeds"),
    ("seconds_mean", "Seconds", "mean wall-clock time of one run"),
    ("peak_memory_mb", "MB", "largest peak memory of a run's whole process, Python included"),
)


def comparison_page(
    *,
    summary: Sequence[Row],
    results: Sequence[Row],
    methods: Sequence[Row],
    groups: Mapping[str, str],
    settings: Row,
    figure_svg: str,
    command: str | None = None,
) -> str:
    """The page. Everything is text to be escaped except ``figure_svg``, an <svg> element."""
    title = f"{len(methods)} method{'s' * (len(methods) != 1)} compared"
    scores = tuple(score for score in SCORES if f"{score[0]}_mean" in summary[0])
    # Precision and recall last: the F-score sums them up, and screens are narrow.
    front, back = (scores[:-2], scores[1:][-2:]) if len(scores) > 1 else (scores, ())
    present = {method["group"] for method in methods}
    prose = macros(
        "comparison.html",
        rows=[{**row, "method": printable(row["method"])} for row in summary],
        about={printable(m["name"]): {**m, "name": printable(m["name"])} for m in methods},
        groups={group: text for group, text in groups.items() if group in present},
        cautions={method["caution"] for method in methods},
        settings={**settings, "views": {printable(v): m for v, m in settings["views"].items()}},
        command=command and printable(command),
        svg=trusted(clean(figure_svg)),
        scores=scores,
        others=OTHERS,
        front=front,
        back=back,
        best={score: _best(summary, f"{score}_mean", max) for score, _, _ in scores}
        | {"rank": _best(summary, "mean_rank", min)},
        troubles=_troubles(results),
        fixed=lambda value, digits: f"{round(value, digits) + 0.0:.{digits}f}",  # never "-0.00"
        with_csv=lambda body: with_csv(
            body, list(summary[0]), [list(row.values()) for row in summary], name="summary"
        ),
    )
    sections = [
        Section("summary", "Summary", prose.summary()),
        Section("every-run", "Every run", prose.runs()),
        Section("the-methods", "The methods", prose.methods()),
        Section("the-columns", "The columns", prose.columns()),
        Section("settings", "Settings", prose.made()),
    ]
    return page(title, sections, lead=prose.lead(), css=asset("comparison.css"))


def _best(summary: Sequence[Row], column: str, best: Any) -> float | None:
    values = [r[column] for r in summary if r[column] is not None and not r["oracle"]]
    return best(values) if values else None


def _troubles(results: Sequence[Row]) -> list[tuple[str, str, str, str]]:
    """Reasons of failed and skipped runs and remarks of the others, equal ones together."""
    seen: dict[tuple[str, str, str], list[int]] = {}
    for row in results:
        if text := row["reason"] or row["remark"]:
            what = "remark" if row["status"] == "ok" else row["status"]
            seen.setdefault((row["method"], what, text), []).append(row["run"])
    found = []
    for (method, what, text), runs in seen.items():
        whole = len(runs) > 2 and runs == list(range(runs[0], runs[-1] + 1))
        which = f"{runs[0]} to {runs[-1]}" if whole else ", ".join(map(str, runs))
        found.append((printable(method), what, which, printable(text)))
    return sorted(found, key=lambda item: ("failed", "skipped", "remark").index(item[1]))
