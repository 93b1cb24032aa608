"""`manyview select-k`: how many clusters the files hold, and why."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from manyview.app.files import ReadViews, read_views
from manyview.app.options import SelectRequest
from manyview.engines.numpy.presence import present_rows
from manyview.io.writing import claimed, csv_bytes
from manyview.plot import pyplot
from manyview.robust import RobustWMNMF
from manyview.selection import Selection, select_n_clusters, usual_candidates
from manyview.wmnmf import WMNMF

from .terminal import Voice, caught_warnings

#: Whose number of clusters, or rank, is asked for.
MODELS = {"robust": RobustWMNMF, "wmnmf": WMNMF}
FILES = ("selection.csv", "selection.png", "selection.json")


def run_select_k(ask: SelectRequest, voice: Voice) -> None:
    """Read, judge every candidate, write selection.csv, .png and .json."""
    with claimed(ask.out, "select-k", force=ask.force) as place:
        place.check(FILES)
        found, record = _chosen(ask, voice)
        place.put(_contents(found, record))
    where = f"Results in [bold]{escape(str(ask.out))}/[/bold]: {', '.join(FILES)}"
    voice.show(*_shown(found), where)
    voice.result(record | {"out": str(ask.out), "files": sorted(FILES)})


def reasons(selection: Selection) -> list[str]:
    """A choice of the number of clusters and its reasons, for the terminal."""
    answer = selection.answer if selection.found else f"No number stands out: {selection.answer}"
    return [f"[bold]{escape(answer)}[/bold]", *(f"- {escape(why)}" for why in selection.reasons)]


def _candidates(ask: SelectRequest, data: ReadViews) -> Sequence[int]:
    """As asked, or those that are usual for as many samples as have data."""
    if ask.largest is not None:
        return range(ask.smallest, ask.largest + 1)
    here = np.any([present_rows(X) for X in data.views.values()], axis=0)
    usual = usual_candidates(int(here.sum()))
    return [K for K in usual if ask.smallest <= K] or [ask.smallest]


def _chosen(ask: SelectRequest, voice: Voice) -> tuple[Any, dict[str, Any]]:
    """The choice, and what there is to remember of it."""
    if ask.largest is not None and ask.largest < ask.smallest:
        raise ValueError(f"--to {ask.largest} is less than --from {ask.smallest}; raise it")
    names = tuple(name.strip() for name in ask.methods.split(",") if name.strip())
    with voice.busy("reading the files") as tell:
        data = read_views(ask.files, missing="allow", **vars(ask.reading))
        for note in data.told:
            voice.note(note)
        tried = _candidates(ask, data)
        tell(f"trying {min(tried)} to {max(tried)} clusters")
        with caught_warnings() as warned:
            found = select_n_clusters(
                data.collection(),
                tried,
                "all" if names == ("all",) else names,
                model=MODELS[ask.method](),
                random_state=ask.seed,
            )
    record = {
        "n_clusters": found.n_clusters,
        "found": found.found,
        "runner_up": found.runner_up,
        "doubtful": found.doubtful,
        "reasons": found.reasons,
        "votes": found.votes,
        "method": ask.method,
        "notes": data.told,
        "warnings": warned,
        "seed": ask.seed,
        "inputs": data.inputs,
        "command": shlex.join(["manyview", *sys.argv[1:]]),
    }
    return found, record


def _contents(found: Any, record: dict[str, Any]) -> dict[str, bytes]:
    picture = io.BytesIO()
    figure = found.figure()
    figure.savefig(picture, format="png", dpi=130, facecolor="white")
    pyplot().close(figure)
    record_text = json.dumps(record, indent=1, ensure_ascii=False)
    made = (
        csv_bytes(found.table, zip(*found.table.values(), strict=True)),
        picture.getvalue(),
        record_text.encode("utf-8", "backslashreplace"),
    )
    return dict(zip(FILES, made, strict=True))


def _shown(found: Any) -> list[Any]:
    table = Table("clusters", *found.votes, title="Score of each number of clusters")
    candidates = found.scores(next(iter(found.votes)))[0]
    columns = [found.scores(method)[1] for method in found.votes]
    for i, k in enumerate(candidates):
        mark = " ←" if k == found.n_clusters else ""
        scores = ("" if np.isnan(column[i]) else f"{column[i]:.3f}" for column in columns)
        table.add_row(f"{k}{mark}", *scores)
    return [table, *reasons(found)]
