"""`manyview select-k`: how many clusters the files hold, and why."""

from __future__ import annotations

import json

import numpy as np
from rich.markup import escape
from rich.table import Table

from manyview.app.files import read_views
from manyview.app.options import SelectRequest, command_line
from manyview.app.run.record import selection_record
from manyview.engines.numpy.presence import present_rows
from manyview.io.safe_csv import csv_bytes
from manyview.io.writing import claimed
from manyview.plot import pyplot
from manyview.plot._draw import file_of
from manyview.robust import RobustWMNMF
from manyview.selection import Selection, select_n_clusters, usual_candidates
from manyview.wmnmf import WMNMF

from .terminal import Voice, caught_warnings

METHODS = {"robust": RobustWMNMF, "wmnmf": WMNMF}
FILES = ("selection.csv", "selection.json", "selection.png")


def run_select_k(ask: SelectRequest, voice: Voice) -> None:
    """Read, judge every candidate, write selection.csv, .png and .json."""
    if ask.largest is not None and ask.largest < ask.smallest:
        raise ValueError(f"--to {ask.largest} is less than --from {ask.smallest}; raise it")
    with (
        claimed(ask.out, "select-k", force=ask.force) as place,
        voice.busy("reading the files") as tell,
    ):
        place.check(FILES)
        data = read_views(ask.files, missing="allow", **vars(ask.reading))
        voice.note(*data.told)
        if ask.largest is not None:
            tried = [*range(ask.smallest, ask.largest + 1)]
        else:  # those that are usual for as many samples as have data
            n = int(np.any([present_rows(X) for X in data.views.values()], axis=0).sum())
            tried = [K for K in usual_candidates(n) if ask.smallest <= K] or [ask.smallest]
        tell(f"trying {min(tried)} to {max(tried)} clusters")
        with caught_warnings() as warned:
            found = select_n_clusters(
                data.collection(),
                tried,
                model=METHODS[ask.method](),
                random_state=ask.seed,
            )
        record = selection_record(found) | {
            "method": ask.method,
            "notes": data.told,
            "warnings": warned,
            "seed": ask.seed,
            "inputs": data.inputs,
            "command": command_line("select-k", ask),
        }
        table = csv_bytes(list(found.table), zip(*found.table.values(), strict=True))
        text = json.dumps(record, indent=1, ensure_ascii=False).encode("utf-8", "backslashreplace")
        place.put(dict(zip(FILES, (table, text, _picture(found)), strict=True)))
    voice.show(_scores(found), *reasons(found))
    voice.finish(record | {"out": str(ask.out), "files": list(FILES)})


def reasons(selection: Selection) -> list[str]:
    """A choice of the number of clusters and its reasons, for the terminal."""
    answer = selection.answer if selection.found else f"No number stands out: {selection.answer}"
    return [f"[bold]{escape(answer)}[/bold]", *(f"- {escape(why)}" for why in selection.reasons)]


def _picture(found: Selection) -> bytes:
    figure = found.figure()
    picture = file_of(figure, "png", dpi=130, facecolor="white")
    pyplot().close(figure)
    return picture


def _scores(found: Selection) -> Table:
    columns = found.table
    names = [name for name in columns if name not in ("n_clusters", "chosen")]
    table = Table("clusters", *names, title="Score of each number of clusters")
    for i, k in enumerate(columns["n_clusters"]):
        mark = " ←" if columns["chosen"][i] else ""
        scores = ("" if np.isnan(columns[name][i]) else f"{columns[name][i]:.3f}" for name in names)
        table.add_row(f"{k}{mark}", *scores)
    return table
