"""What was run, how often, where, when and for how long."""

from __future__ import annotations

import json
import shlex

from .formats import Table
from .read import Results, Row

#: Columns that are the same for all experiments in most folders, and then said once in a sentence.
WHERE = ("Finished", "Machine", "Versions", "Code")


def runs_in_words(results: Results, experiment: str) -> str:
    """The fewest and the most runs of anything in an experiment; empty where nothing is drawn."""
    least, most = (results.experiments[experiment]["runs"][key] for key in ("least", "most"))
    if not most:
        return ""
    return str(most) if least == most else f"{least} to {most}"


def basis(results: Results, experiment: str) -> str:
    """The command behind a claim, and on how many seeds it rests."""
    if experiment not in results.experiments:
        return ""
    words = shlex.split(results.experiments[experiment]["command"])
    # Where the results lie and how many processes ran decide nothing.
    for option in ("--out", "--jobs"):
        if option in words:
            del words[words.index(option) : words.index(option) + 2]
    runs = runs_in_words(results, experiment)
    return f"{shlex.join(words)}: {runs or 'no'} seed{'s' * (runs != '1')}"


def settings_of(results: Results, experiment: str) -> list[str]:
    """What the cells of an experiment were given, and the parameters of each method: all values seen."""
    common: dict[str, dict[str, None]] = {}
    params: dict[str, dict[str, dict[str, None]]] = {}
    for name in results.experiments[experiment]["files"]:
        table = name.removesuffix(".csv").removeprefix(experiment).removeprefix("-")
        rows = results.rows(experiment, table)
        for text in dict.fromkeys(row["settings"] for row in rows):
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
    most = max((entry["replications"] for entry in results.experiments.values()), default=0)
    return f"up to {most} runs" if most > 1 else "one run"


def how(results: Results) -> str:
    """Sentences on the whole."""
    found = [f"{column}: {value}." for column, value in common(results).items() if value]
    found.append(
        f"{results.manifest['cpu_seconds'] / 60:.0f} minutes of processor time in all, one thread per "
        "process; what experiments share was computed, and is counted, once."
    )
    found += [
        f"{entry['method']} on all digits took {entry['minutes']:.1f} minutes by the clock."
        for entry in results.manifest["slow"]
    ]
    found.append(
        "Every row of the CSV files beside this page has its seed and settings; the same command goes on "
        "where it was interrupted."
    )
    return " ".join(found)


def made(results: Results) -> Table:
    """A row per experiment."""
    rows = [
        [
            name,
            runs_in_words(results, name),
            e["cells"],
            round(e["cpu_seconds"] / 60, 1),
            *_where(e),
        ]
        for name, e in results.experiments.items()
    ]
    columns = ("Experiment", "Runs", "Cells", "Processor minutes", *WHERE)
    caption = "Where and when; minutes of cells that several experiments share are in each of them"
    kept = [i for i, column in enumerate(columns) if column not in common(results)]
    rows = [[row[i] for i in kept] for row in rows]
    return Table("provenance", caption, [columns[i] for i in kept], rows)


def _where(entry: Row) -> list[str]:
    """When (to the minute), on which machine, by which versions and code."""
    day, _, hour = entry["finished"].partition("T")
    machine = entry["machine"]
    place = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}"
    versions = ", ".join(f"{name} {version}" for name, version in entry["versions"].items())
    return [f"{day} {hour[:5]} UTC", place, versions, entry["code"]]


def common(results: Results) -> dict[str, str]:
    """Of `WHERE`, what is the same for all experiments."""
    every = [_where(entry) for entry in results.experiments.values()]
    return {
        column: values[0]
        for column, values in zip(WHERE, zip(*every, strict=True), strict=False)
        if len(set(values)) == 1
    }
