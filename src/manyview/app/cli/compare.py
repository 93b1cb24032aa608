"""`manyview compare`: files in, tables, a picture and a page out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.markup import escape
from rich.table import Table

from manyview.app.compare.comparison import Comparison, check_request, compare
from manyview.app.compare.labels import ids_in, read_labels
from manyview.app.compare.save import FILES, plain_rows
from manyview.app.compare.store import KIND
from manyview.app.files import Reading, read_views
from manyview.app.report import printable
from manyview.io.guard import unpacking_limit
from manyview.io.writing import claimed
from manyview.plot import pyplot

from .common import Voice, caught_warnings

#: What becomes of empty cells: few of the methods take them.
MISSING = ("error", "drop")


def run_compare(
    files: Sequence[str],
    labels: Path | None,
    out: Path,
    methods: str,
    settings: dict[str, Any],
    voice: Voice,
    reading: Reading,
    force: bool = False,
    missing: str = "error",
) -> bool:
    """Read, compare, write to ``out``, and print the summary; ``settings`` are those of `compare`.

    A folder that holds something
    else than a comparison is refused, unless ``force``; files of others are never written over. Whether
    any run gave a result.
    """
    pyplot()  # hours of work must not end with the news that matplotlib is missing
    if missing not in MISSING:
        raise ValueError(f"--missing must be {' or '.join(MISSING)}, got {missing!r}")
    names = [name.strip() for name in methods.split(",") if name.strip()]
    check_request(names, settings["n_clusters"], settings["scale"])
    with claimed(out, KIND, force=force, goes_on=True) as place:
        place.check(FILES)
        known = [] if labels is None else [ids_in(labels)]
        data = read_views(files, known=known, missing=missing, **vars(reading))
        y = None if labels is None else read_labels(labels, data)
        for note in data.told:
            voice.note(printable(note))
        with caught_warnings() as warned:
            found = compare(
                data.views, y, methods=names, out=out, progress=voice.speaks, **settings
            )
        voice.warn(warned)
        command = _command(files, labels, out, methods, settings, reading, missing)
        written = found.save(out, command=command)
    voice.show(_summary(found))
    voice.show(*(_shown(line) for line in found.troubles))
    listed = [path.name for path in written]
    voice.show(f"Results in [bold]{_shown(out)}/[/bold]: {', '.join(listed)}")
    voice.result(
        {
            "out": str(out),
            "files": listed,
            "n_samples": found.settings["n_samples"],
            "summary": plain_rows(found.summary),
            "troubles": found.troubles,
            "notes": data.told,
            "warnings": warned,
        }
    )
    return bool((found.table["status"] == "ok").any())


def _command(
    files: Sequence[str],
    labels: Path | None,
    out: Path,
    methods: str,
    settings: dict[str, Any],
    reading: Reading,
    missing: str,
) -> str:
    """What to type to do it again, every setting spelled out."""
    words = ["manyview", "compare", *files, *reading.words()]
    words += ["--labels", str(labels)] if labels is not None else []
    words += ["--clusters", str(settings["n_clusters"]), "--out", str(out), "--methods", methods]
    words += ["--runs", str(settings["n_runs"]), "--seed", str(settings["random_state"])]
    words += ["--jobs", str(settings["n_jobs"])]
    words += ["--missing", missing] if missing != "error" else []
    words += ["--scale", settings["scale"]] if settings["scale"] else []
    words += ["--max-seconds", f"{settings['max_seconds']:g}"]
    words += ["--max-memory", f"{settings['max_memory']:g}"]
    allowed = unpacking_limit()
    words += ["--max-unpacked", f"{allowed:g}"] if allowed is not None else []
    return shlex.join(words)


def _summary(found: Comparison) -> Table:
    truth = "acc_mean" in found.summary
    shown = {"acc": "ACC", "nmi": "NMI", "ari": "ARI"} if truth else {}
    # As narrow as a terminal of 80 columns: the other spreads are in summary.csv.
    title = "Mean (sd) over runs" + (", best mean rank first" if truth else "")
    table = Table(title=title, box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("method", no_wrap=True)
    for heading in (*(("rank",) if truth else ()), *shown.values(), "stab.", "seconds", "runs"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in found.summary.to_dict("records"):
        name = (
            _shown(row["method"]) + ("*" if row["oracle"] else "") + ("†" if row["shifted"] else "")
        )
        means = [_number(row[f"{column}_mean"], 3) for column in shown]
        sd = _number(row["acc_sd"], 3) if truth else ""
        if sd:
            means[0] += f" ({sd})"
        total = row["n_ok"] + row["n_failed"] + row["n_skipped"]
        last = [_number(row["stability"], 2), _number(row["seconds_mean"], 2)]
        rank = [_number(row["mean_rank"], 1)] if truth else []
        table.add_row(name, *rank, *means, *last, f"{row['n_ok']}/{total}")
    remarks = []
    if found.summary["oracle"].any():
        remarks.append("* oracle: chose its view by the true classes, as in the paper")
    if found.summary["shifted"].any():
        remarks.append("† features moved to start at 0: it takes no negative numbers")
    table.caption = "\n".join(remarks) or None
    return table


def _shown(text: Any) -> str:
    """Text for the terminal, where control characters and [brackets] would do something."""
    return escape(printable(text))


def _number(value: float, digits: int) -> str:
    return "" if value != value else f"{value:.{digits}f}"
