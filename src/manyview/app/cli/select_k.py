"""`manyview select-k`: how many clusters the files hold, and why."""

from __future__ import annotations

import io
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.markup import escape
from rich.table import Table

from manyview.app.files import Reading, read_views
from manyview.app.run.tables import selection_table
from manyview.io.writing import claimed, csv_of_dicts
from manyview.plot import pyplot
from manyview.robust import RobustWMNMF
from manyview.selection import select_n_clusters
from manyview.wmnmf import WMNMF

from .choice import candidates_for, reasons
from .common import Voice, caught_warnings

#: Whose number of clusters, or rank, is asked for.
MODELS = {"robust": RobustWMNMF, "wmnmf": WMNMF}
FILES = ("selection.csv", "selection.png", "selection.json")


def run_select_k(
    files: Sequence[str],
    out: Path,
    smallest: int,
    largest: int | None,
    methods: str,
    method: str,
    reading: Reading,
    seed: int,
    force: bool,
    voice: Voice,
) -> dict[str, Any]:
    """Read, judge every candidate, write selection.csv, .png and .json to ``out``."""
    if method not in MODELS:
        raise ValueError(f"--method must be robust or wmnmf, got {method!r}")
    with claimed(out, "select-k", force=force) as place:
        place.check(FILES)
        found, record = _chosen(files, smallest, largest, methods, method, reading, seed, voice)
        place.put(_contents(found, record))
    voice.show(*_shown(found), f"Results in [bold]{escape(str(out))}/[/bold]: {', '.join(FILES)}")
    voice.result(record | {"out": str(out), "files": sorted(FILES)})
    return record


def _chosen(
    files: Sequence[str],
    smallest: int,
    largest: int | None,
    methods: str,
    method: str,
    reading: Reading,
    seed: int,
    voice: Voice,
) -> tuple[Any, dict[str, Any]]:
    """The choice, and what there is to remember of it."""
    if largest is not None and largest < smallest:
        raise ValueError(f"--to {largest} is less than --from {smallest}; raise it")
    names = tuple(name.strip() for name in methods.split(",") if name.strip())
    with voice.busy("reading the files") as tell:
        data = read_views(files, missing="allow", **vars(reading))
        for note in data.told:
            voice.note(note)
        tried = candidates_for(data, smallest) if largest is None else range(smallest, largest + 1)
        tell(f"trying {min(tried)} to {max(tried)} clusters")
        with caught_warnings() as warned:
            found = select_n_clusters(
                data.collection(),
                tried,
                "all" if names == ("all",) else names,
                model=MODELS[method](),
                random_state=seed,
            )
    record = {
        "n_clusters": found.n_clusters,
        "found": found.found,
        "runner_up": found.runner_up,
        "doubtful": found.doubtful,
        "reasons": found.reasons,
        "votes": found.votes,
        "method": method,
        "notes": data.told,
        "warnings": warned,
        "seed": seed,
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
        csv_of_dicts(selection_table(found)),
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
