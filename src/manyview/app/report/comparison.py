"""Rows of a comparison → one self-contained page: no network, no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .page import (
    Section,
    clean,
    page,
    trusted,
    with_csv,
)
from .style import CSS
from .text import escape

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
    about = {method["name"]: method for method in methods}
    title = f"{len(methods)} method{'s' * (len(methods) != 1)} compared"
    summary_part = [
        _in_short(summary, methods, settings),
        _key(methods, groups),
        _csv(_table(summary, about), summary, "summary"),
        "<p class=faint>Mean and (standard deviation) over the runs; bold is the best in a column, "
        "oracles aside; empty is what could not be computed. Press a heading to sort.</p>",
    ]
    runs_part = [
        f"<figure><div class=scroll>{figure_svg}</div><figcaption>A dot is a run, a bar the mean, "
        "also written at the right of each row. Rows are in the order of the table."
        "</figcaption></figure>",
        _troubles(results),
    ]
    parts = {
        "Summary": "".join(summary_part),
        "Every run": "".join(runs_part),
        "The methods": _explained(summary, about),
        "The columns": _columns(summary),
        "Settings": _settings(settings, command),
    }
    sections = [
        Section(heading.lower().replace(" ", "-"), heading, trusted(clean(body)))
        for heading, body in parts.items()
    ]
    return page(title, sections, lead=trusted(_data(settings)), css=CSS)


def _csv(table: str, rows: Sequence[Row], name: str) -> str:
    columns = list(rows[0])
    return str(with_csv(trusted(table), columns, [list(row.values()) for row in rows], name=name))


def _data(settings: Row) -> str:
    views = ", ".join(f"{name} ({m})" for name, m in settings["views"].items())
    classes = settings["n_classes"]
    known = "classes unknown" if classes is None else f"{classes} known classes, used to score only"
    return escape(
        f"{settings['n_samples']} observations; views and their features: {views}. "
        f"{settings['n_clusters']} clusters asked for; {known}. "
        f"Up to {settings['n_runs']} runs of each method, with different seeds."
    )


def _in_short(summary: Sequence[Row], methods: Sequence[Row], settings: Row) -> str:
    truth = settings["n_classes"] is not None
    fair = [r for r in summary if not r["oracle"] and r["n_ok"]]
    if not fair:
        return "<div class=short><p>No run gave a result; the reasons are below.</p></div>"
    if truth:
        first, *rest = sorted(fair, key=lambda r: -r["acc_mean"])
        text = f"Highest mean accuracy: <b>{escape(first['method'])}</b>, {_spread(first, 'acc')}"
        if rest:
            text += f"; then {escape(rest[0]['method'])}, {_spread(rest[0], 'acc')}"
        lines = [
            f"{text}. In brackets the standard deviation over seeds; what other data of the same kind "
            "would give, one dataset cannot say."
        ]
    else:
        lines = [
            "Without known classes nothing here says which clustering is right, so methods have no "
            "rank; stability says how often a method repeats itself."
        ]
    if any(r["oracle"] for r in summary):
        lines.append(
            "Rows marked <span class=tag>oracle</span> chose their view by the known classes, as the "
            "paper did: an upper bound for single views, not something one can do with new data."
        )
    if any(method["caution"] == "unscaled" for method in methods):
        lines.append(
            "Rows marked <span class=tag>unscaled</span> use features as they come, so that the "
            "largest numbers decide; a poor score there may be an artefact of units only."
        )
    if any(method["caution"] == "shifted" for method in methods):
        lines.append(
            "Rows marked <span class=tag>shifted</span> take no negative numbers: features that have some "
            "were moved to start at 0 for them, and for them only."
        )
    return f"<div class=short>{''.join(f'<p>{line}</p>' for line in lines)}</div>"


def _key(methods: Sequence[Row], groups: Mapping[str, str]) -> str:
    present = {method["group"] for method in methods}
    items = [
        f"<span><span class='dot {escape(g)}'></span>{escape(text)}</span>"
        for g, text in groups.items()
        if g in present
    ]
    return f"<div class=key>{''.join(items)}</div>"


def _table(summary: Sequence[Row], about: Mapping[str, Row]) -> str:
    scores = [score for score in SCORES if f"{score[0]}_mean" in summary[0]]
    # Precision and recall last: the F-score sums them up, and screens are narrow.
    front, back = scores[:-2] if len(scores) > 1 else scores, scores[1:][-2:]
    heads = [_head("Method", "", "ascending"), _head(*OTHERS[0][1:], "ascending", sorted_=True)]
    heads += [_head(word, hint, "descending") for _, word, hint in (*front, OTHERS[1])]
    heads += [_head(word, hint, "ascending") for _, word, hint in OTHERS[2:]]
    heads.append(_head("Runs", "runs that gave a result", "descending"))
    heads += [_head(word, hint, "descending") for _, word, hint in back]
    means = [f"{score[0]}_mean" for score in scores]
    best = {column: _best(summary, column, low=False) for column in means}
    rows = []
    for row in summary:

        def shown(columns: Sequence[tuple[str, str, str]], row: Row = row) -> list[str]:
            pairs = [(f"{column}_mean", f"{column}_sd") for column, _, _ in columns]
            return [_cell(row[mean], 3, row, best[mean], row[sd]) for mean, sd in pairs]

        total = row["n_ok"] + row["n_failed"] + row["n_skipped"]
        cells = [
            _method(about[row["method"]], row),
            _cell(row["mean_rank"], 1, row, _best(summary, "mean_rank", low=True)),
            *shown(front),
            _cell(row["stability"], 2, row),
            _cell(row["seconds_mean"], 2 if (row["seconds_mean"] or 0) < 10 else 0, row),
            _cell(row["peak_memory_mb"], 0, row),
            f'<td data-value="{row["n_ok"]}">{row["n_ok"]} of {total}</td>',
            *shown(back),
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<table class="sortable comparison"><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table>"
    )


def _head(word: str, hint: str, first: str, sorted_: bool = False) -> str:
    now = f' aria-sort="{first}"' if sorted_ else ""
    return (
        f'<th scope="col" data-first="{first}"{now}>'
        f'<button type="button" title="{escape(hint)}">{escape(word)}</button></th>'
    )


def _method(method: Row, row: Row) -> str:
    hollow, name = " hollow" if method["oracle"] else "", escape(method["name"])
    tag = _tags(method)
    if not row["n_ok"]:
        tag += f"<span class='tag bad'>{'failed' if row['n_failed'] else 'skipped'}</span>"
    return (
        f'<th scope="row" data-value="{name}">'
        f"<span class='dot {escape(method['group'])}{hollow}'></span>{name}{tag}</th>"
    )


def _tags(method: Row) -> str:
    words = ["oracle"] * method["oracle"] + [method["caution"]] * bool(method["caution"])
    return "".join(f"<span class=tag>{escape(word)}</span>" for word in words)


def _cell(
    value: float | None, digits: int, row: Row, best: float | None = None, sd: float | None = None
) -> str:
    if value is None:
        return '<td data-value=""></td>'
    mark = " class=best" if value == best and not row["oracle"] else ""
    spread = "" if sd is None else f" <small>({sd:.{digits}f})</small>"
    shown = round(value, digits) + 0.0  # never "-0.00"
    return f'<td data-value="{value!r}"{mark}>{shown:.{digits}f}{spread}</td>'


def _best(summary: Sequence[Row], column: str, low: bool) -> float | None:
    values = [r[column] for r in summary if r[column] is not None and not r["oracle"]]
    return (min(values) if low else max(values)) if values else None


def _spread(row: Row, column: str) -> str:
    sd = row[f"{column}_sd"]
    return f"{row[f'{column}_mean']:.3f}" + ("" if sd is None else f" ({sd:.3f})")


def _troubles(results: Sequence[Row]) -> str:
    """Reasons of failed and skipped runs and remarks of the others, equal ones together."""
    seen: dict[tuple[str, str, str], list[int]] = {}
    for row in results:
        text = row["reason"] or row["remark"]
        if text:
            what = "remark" if row["status"] == "ok" else row["status"]
            seen.setdefault((row["method"], what, text), []).append(row["run"])
    if not seen:
        return ""
    lines = "".join(
        f"<tr><th scope=row>{escape(method)}</th><td>{what}</td><td>{_runs(runs)}</td>"
        f"<td class=why>{escape(text)}</td></tr>"
        for (method, what, text), runs in sorted(
            seen.items(), key=lambda item: ("failed", "skipped", "remark").index(item[0][1])
        )
    )
    return (
        "<h3>Failures and remarks</h3><div class=scroll><table><thead><tr><th>Method</th>"
        f"<th>What</th><th>Runs</th><th>Why</th></tr></thead><tbody>{lines}</tbody></table></div>"
    )


def _runs(runs: list[int]) -> str:
    if len(runs) > 2 and runs == list(range(runs[0], runs[-1] + 1)):
        return f"{runs[0]} to {runs[-1]}"
    return ", ".join(map(str, runs))


def _explained(summary: Sequence[Row], about: Mapping[str, Row]) -> str:
    items = []
    for row in summary:
        method = about[row["method"]]
        tag = _tags(method)
        text = escape(method["description"] or "An estimator given by you.")
        items.append(f"<dt>{escape(method['name'])}{tag}</dt><dd>{text}</dd>")
    return f"<dl>{''.join(items)}</dl>"


def _columns(summary: Sequence[Row]) -> str:
    shown = [s for s in SCORES if f"{s[0]}_mean" in summary[0]]
    items = [
        f"<li><b>{escape(word)}</b>: {escape(hint)}.</li>"
        for _, word, hint in (OTHERS[0], *shown, *OTHERS[1:])
    ]
    return f"<ul>{''.join(items)}</ul>"


def _settings(settings: Row, command: str | None) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in settings["versions"].items())
    text = (
        f"Random state {settings['random_state']}; limits of a run: {settings['max_seconds']:g} s and "
        f"{settings['max_memory']:g} GiB; {settings['n_jobs']} process(es) at a time. {versions}."
    )
    again = f"<pre>{escape(command)}</pre>" if command else ""
    return f"<p>{escape(text)}</p>{again}"
