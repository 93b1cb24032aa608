"""What was run, how often, where, when and for how long; older folders know less of it."""

from __future__ import annotations

import json

from .formats import Table
from .read import Results, Row, grouped


def runs_of(results: Results, experiment: str) -> tuple[int, int]:
    """The fewest and the most runs of anything in an experiment; (0, 0) where nothing is drawn."""
    known = results.experiments[experiment].get("runs")
    if known:
        return known["least"], known["most"]
    rows = [row for row in results.rows(experiment) if "run" in row]
    groups = grouped(
        rows, lambda r: tuple(r.get(k) for k in ("dataset", "method", "value", "axis", "scheme"))
    )
    counts = [len(grouped(mine, "run")) for mine in groups.values()]
    return (min(counts), max(counts)) if counts else (0, 0)


def runs_in_words(span: tuple[int, int]) -> str:
    least, most = span
    if not most:
        return ""
    return str(most) if least == most else f"{least} to {most}"


def settings_of(results: Results, experiment: str) -> list[str]:
    """What the cells of an experiment were given, and the parameters of each method: all values seen."""
    common: dict[str, dict[str, None]] = {}
    params: dict[str, dict[str, dict[str, None]]] = {}
    for name in results.experiments[experiment]["files"]:
        table = name.removesuffix(".csv").removeprefix(experiment).removeprefix("-")
        rows = results.rows(experiment, table)
        for text in dict.fromkeys(row.get("settings") or "{}" for row in rows):
            given = json.loads(text)
            own = params.setdefault(given.get("method", ""), {})
            for key, value in (given.pop("params", None) or {}).items():
                own.setdefault(key, {})[str(value)] = None
            for key, value in given.items():
                common.setdefault(key, {})[str(value)] = None
    lines = [_values(common), *(f"{m}: {_values(own)}" for m, own in params.items() if own)]
    return [line for line in lines if line]


def _values(found: dict[str, dict[str, None]]) -> str:
    return "; ".join(_counted(key, [v for v in values if v]) for key, values in found.items())


def _counted(key: str, values: list[str]) -> str:
    if key == "seed" and len(values) > 1:
        return f"{key} {values[0]} and {len(values) - 1} more"
    return f"{key} {', '.join(values)}"


def lead_runs(results: Results) -> str:
    # Repeats of a timing are no runs of a method, unless nothing else is there.
    names = [name for name in results.experiments if name != "runtime"] or [*results.experiments]
    most = max((runs_of(results, name)[1] for name in names), default=0)
    return f"up to {most} runs" if most > 1 else "one run"


def how(results: Results) -> list[str]:
    """Sentences on the whole."""
    m = results.manifest
    found = []
    for column, value in common(results).items():
        found += [f"{column}: {value}."] if value else []
    if m.get("cpu_seconds") is not None:
        found.append(
            f"{m['cpu_seconds'] / 60:.0f} minutes of processor time in all, one thread per process; what "
            "experiments share was computed, and is counted, once."
        )
    for entry in m.get("slow") or ():
        found.append(
            f"{entry['method']} on all digits took {entry['minutes']:.1f} minutes by the clock."
        )
    found.append(
        "Every row of the CSV files beside this page has its seed and settings; the same command goes on "
        "where it was interrupted."
    )
    return found


def _minute(when: str | None) -> str:
    """2026-01-31T12:34:56+00:00 → 2026-01-31 12:34 UTC"""
    if not when:
        return ""
    day, _, hour = when.partition("T")
    return f"{day} {hour[:5]} UTC" if hour.endswith("+00:00") else when


def machine_of(entry: Row) -> str:
    found = entry.get("machine") or {}
    return ", ".join(
        part
        for part in (
            found.get("processor"),
            f"{found['cores']} cores" if found.get("cores") else "",
            found.get("system"),
        )
        if part
    )


def versions_of(entry: Row) -> str:
    return ", ".join(f"{name} {version}" for name, version in (entry.get("versions") or {}).items())


def made(results: Results) -> Table:
    """A row per experiment; what the manifest only knows of the whole is said for each."""
    rows = []
    for name, e in results.experiments.items():
        cpu = e.get("cpu_seconds")
        minutes = None if cpu is None else round(cpu / 60, 1)
        where = _where(results, e)
        rows.append([name, runs_in_words(runs_of(results, name)), e.get("cells"), minutes, *where])
    columns = ("Experiment", "Runs", "Cells", "Processor minutes", *WHERE)
    caption = "Where and when; minutes of cells that several experiments share are in each of them"
    # What is the same for all is said once, in a sentence.
    kept = [i for i, column in enumerate(columns) if column not in common(results)]
    rows = [[row[i] for i in kept] for row in rows]
    return Table("provenance", caption, [columns[i] for i in kept], rows)


WHERE = ("Finished", "Machine", "Versions", "Code")


def _where(results: Results, entry: Row) -> list[str]:
    keys = ("finished", "machine", "versions", "code")
    known = {key: entry.get(key) or results.manifest.get(key) for key in keys}
    code = known["code"]
    return [_minute(known["finished"]), machine_of(known), versions_of(known), str(code or "")]


def common(results: Results) -> dict[str, str]:
    """Of `WHERE`, what is the same for all experiments, or known of none."""
    every = [_where(results, entry) for entry in results.experiments.values()]
    return {
        column: values[0]
        for column, values in zip(WHERE, zip(*every, strict=True), strict=True)
        if len(set(values)) == 1
    }
