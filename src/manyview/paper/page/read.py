"""The files `manyview reproduce` leaves: what was run, and its tidy tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

from manyview.app.report.text import number
from manyview.io.writing import read_csv

Row = dict[str, Any]

MANIFEST = "reproduction.json"
#: Raised when the files change their meaning.
FORMAT = 2
SCORES = {
    "acc": "ACC",
    "nmi": "NMI",
    "precision": "Precision",
    "recall": "Recall",
    "f_score": "F-score",
    "ari": "ARI",
}
#: Columns of the objective, and their names.
TERMS = {name: name for name in ("objective", "reconstruction", "consensus", "regularizer")}
#: Datasets in words.
DATA = {
    "digits": "digits",
    "synthetic": "synthetic data",
    "lihc": "LIHC",
    "nutrimouse": "nutrimouse",
}
#: Columns that hold words, even where a word looks like a number.
WORDS = {
    "dataset", "method", "view", "of_view", "scenario", "step", "scheme", "axis", "remark",
    "settings", "versions", "rescale", "tuning", "reading", "update",
}  # fmt: skip


class Spread(NamedTuple):
    """Mean and standard deviation of some runs; the latter is None for a single run."""

    mean: float
    sd: float | None
    n: int

    def __str__(self) -> str:
        return two(self.mean) + ("" if self.sd is None else f" ({two(self.sd)})")


class Results:
    """A folder of results."""

    def __init__(self, folder: Path):
        self.folder = folder
        try:
            manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        except OSError:
            raise ValueError(
                f"{folder} has no {MANIFEST}; run `manyview reproduce --out {folder}` first"
            ) from None
        except ValueError as error:
            raise ValueError(
                f"{folder / MANIFEST} cannot be read ({error}); run it again"
            ) from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f"{folder / MANIFEST} is not of format {FORMAT}; run it again")
        self.manifest: dict[str, Any] = manifest
        self.experiments: dict[str, Row] = {e["name"]: e for e in manifest["experiments"]}
        self._tables: dict[str, list[Row]] = {}

    def rows(self, experiment: str, table: str = "", **wanted: Any) -> list[Row]:
        """Rows of a table, of those with the values wanted; none if it was not run."""
        name = f"{experiment}{'-' if table else ''}{table}.csv"
        if name not in self.experiments.get(experiment, {}).get("files", ()):
            return []
        if name not in self._tables:
            self._tables[name] = _read(self.folder / name)
        rows = self._tables[name]
        return [row for row in rows if all(row.get(k) == v for k, v in wanted.items())]


def spread(rows: Iterable[Row], column: str) -> Spread | None:
    values = [row[column] for row in rows if isinstance(row.get(column), int | float)]
    if not values:
        return None
    return Spread(mean(values), stdev(values) if len(values) > 1 else None, len(values))


def grouped(rows: Iterable[Row], key: str | Callable[[Row], Any]) -> dict[Any, list[Row]]:
    """Rows by the value of a column, in the order of first appearance."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key] if isinstance(key, str) else key(row), []).append(row)
    return found


def two(value: float) -> str:
    """Two decimals without the leading zero, as the paper prints them."""
    text = f"{round(value, 2) + 0.0:.2f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def _read(path: Path) -> list[Row]:
    try:
        return [{k: _value(k, v) for k, v in row.items()} for row in read_csv(path)]
    except OSError:
        raise ValueError(f"{path} is missing though {MANIFEST} names it; run it again") from None


def _value(column: str, text: str | None) -> Any:
    if not text:
        return None if column not in WORDS else ""
    if column in WORDS:
        return text
    return number(text)
