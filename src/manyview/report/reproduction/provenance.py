"""What was run, how often, where, when and for how long; older folders know less of it."""

from __future__ import annotations

import json
from typing import Any

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
    return str(most) if least == most else f"{least} to {most}"


def settings_of(results: Results, experiment: str) -> str:
    """Every setting its cells had, with the values it took; many values only counted."""
    found: dict[str, dict[str, None]] = {}
    for name in results.experiments[experiment]["files"]:
        table = name.removesuffix(".csv").removeprefix(experiment).removeprefix("-")
        for text in dict.fromkeys(
            r.get("settings") or "{}" for r in results.rows(experiment, table)
        ):
            for key, value in json.loads(text).items():
                found.setdefault(key, {})[_said(value)] = None
    parts = [f"{key} {_counted(key, [v for v in values if v])}" for key, values in found.items()]
    return "; ".join(part for part in parts if not part.endswith(" "))


def _said(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{k}={v}" for k, v in value.items())
    return str(value)


def _counted(key: str, values: list[str]) -> str:
    if key == "seed" and len(values) > 1:
        return f"{values[0]} and {len(values) - 1} more"
    return ", ".join(values) if len(values) <= 20 else f"({len(values)} values)"


def lead_runs(results: Results) -> str:
    most = max((runs_of(results, name)[1] for name in results.experiments), default=0)
    return f"up to {most} runs" if most > 1 else "one run"


def how(results: Results) -> list[str]:
    """Sentences on the whole."""
    m = results.manifest
    found = []
    if m.get("finished"):
        found.append(f"Last finished {m['finished']}.")
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
        known = {
            key: e.get(key) or results.manifest.get(key)
            for key in ("machine", "versions", "finished")
        }
        cpu = e.get("cpu_seconds")
        rows.append(
            [
                name,
                runs_in_words(runs_of(results, name)),
                e.get("cells"),
                None if cpu is None else round(cpu / 60, 1),
                known["finished"] or "",
                machine_of(known),
                versions_of(known),
                e.get("code") or "",
            ]
        )
    columns = (
        "Experiment", "Runs", "Cells", "Processor minutes", "Finished", "Machine", "Versions", "Code",
    )  # fmt: skip
    caption = "Where and when; minutes of cells that several experiments share are in each of them"
    return Table("provenance", caption, columns, rows)
