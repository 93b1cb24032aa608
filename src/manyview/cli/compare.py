"""`manyview compare`: files in, tables, a picture and a page out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from manyview.compare import Comparison, compare
from manyview.data.read import read_views
from manyview.io.guard import unpacking_limit
from manyview.io.writing import claimed
from manyview.judge.comparison.labels import read_labels
from manyview.judge.comparison.store import KIND
from manyview.output.comparison.save import FILES
from manyview.output.report import printable
from manyview.plot import _pyplot


def run_compare(
    files: Sequence[str],
    labels: Path | None,
    out: Path,
    methods: str,
    settings: dict[str, Any],
    console: Console,
    reading: dict[str, Any] | None = None,
    force: bool = False,
) -> bool:
    """Read, compare, write to ``out``, and print the summary; ``settings`` are those of `compare`.

    ``reading`` says how: the index, transpose and header of `read_views`. A folder that holds something
    else than a comparison is refused, unless ``force``; files of others are never written over. Whether
    any run gave a result.
    """
    _pyplot()  # hours of work must not end with the news that matplotlib is missing
    reading = reading or {}
    with claimed(out, KIND, force=force, goes_on=True) as place:
        place.check(FILES)
        data = read_views(files, **reading)
        y = None if labels is None else read_labels(labels, data)
        for note in data.told:
            console.print(_shown(note), highlight=False)
        names = [name.strip() for name in methods.split(",") if name.strip()]
        found = compare(data.views, y, methods=names, out=out, **settings)
        command = _command(files, labels, out, methods, settings, reading)
        written = found.save(out, command=command)
    console.print(_summary(found))
    _say_troubles(found, console)
    listed = ", ".join(path.name for path in written)
    console.print(f"Results in [bold]{_shown(out)}/[/bold]: {listed}", highlight=False)
    return bool((found.table["status"] == "ok").any())


def _command(
    files: Sequence[str],
    labels: Path | None,
    out: Path,
    methods: str,
    settings: dict[str, Any],
    reading: dict[str, Any],
) -> str:
    """What to type to do it again, every setting spelled out."""
    words = ["manyview", "compare", *files]
    words += [
        word for name, given in reading.items() for item in given for word in (f"--{name}", item)
    ]
    words += ["--labels", str(labels)] if labels is not None else []
    words += ["--clusters", str(settings["n_clusters"]), "--out", str(out), "--methods", methods]
    words += ["--runs", str(settings["n_runs"]), "--seed", str(settings["random_state"])]
    words += ["--jobs", str(settings["n_jobs"])]
    words += ["--max-seconds", f"{settings['max_seconds']:g}"]
    words += ["--max-memory", f"{settings['max_memory']:g}"]
    allowed = unpacking_limit()
    words += ["--max-unpacked", f"{allowed:g}"] if allowed is not None else []
    return shlex.join(words)


def _summary(found: Comparison) -> Table:
    truth = "acc_mean" in found.summary
    shown = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"} if truth else {"silhouette": "silhouette"}
    # As narrow as a terminal of 80 columns: the other spreads are in summary.csv.
    title = "Mean (sd) over runs, best mean rank first"
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading in ("rank", *shown.values(), "stab.", "seconds", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.summary.to_dict("records"):
        name = _shown(row["method"]) + ("*" if row["oracle"] else "")
        means = [_number(row[f"{column}_mean"], 3) for column in shown]
        sd = _number(row[f"{next(iter(shown))}_sd"], 3)
        means[0] += f" ({sd})" if sd else ""
        total = row["n_ok"] + row["n_failed"] + row["n_skipped"]
        last = [_number(row["stability"], 2), _number(row["seconds_mean"], 2)]
        table.add_row(name, _number(row["mean_rank"], 1), *means, *last, f"{row['n_ok']}/{total}")
    if found.summary["oracle"].any():
        table.caption = "* oracle: chose its view by the true classes, as in the paper"
    return table


def _shown(text: Any) -> str:
    """Text for the terminal, where control characters and [brackets] would do something."""
    return escape(printable(text))


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"


def _say_troubles(found: Comparison, console: Console) -> None:
    for row in found.summary.to_dict("records"):
        kinds = [f"{row[f'n_{kind}']} {kind}" for kind in ("failed", "skipped") if row[f"n_{kind}"]]
        if kinds:
            console.print(
                f"{_shown(row['method'])}: {', '.join(kinds)}: {_shown(row['reason'])}",
                highlight=False,
            )
