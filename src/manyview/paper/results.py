"""What `manyview reproduce` wrote: its manifest and tables; and numbers as the paper prints them."""

from __future__ import annotations

import json
import math
import tomllib
from importlib import resources
from pathlib import Path
from typing import Any

import pandas as pd

from manyview.io.safe_csv import read_csv

MANIFEST = "reproduction.json"
#: Raised when the files change their meaning.
FORMAT = 3
#: The texts of the reproduction, and the numbers the paper reports.
TEXTS: dict[str, Any] = tomllib.loads(
    resources.files(__package__).joinpath("assets", "texts.toml").read_text(encoding="utf-8")
)
#: By method, six pairs of mean and standard deviation; NaN where the paper gives none.
DIGITS: dict[str, list[list[float]]] = TEXTS["published"]["digits"]
LIHC: dict[str, list[list[float]]] = TEXTS["published"]["lihc"]
SCORES = {
    "acc": "ACC",
    "nmi": "NMI",
    "precision": "Precision",
    "recall": "Recall",
    "f_score": "F-score",
    "ari": "ARI",
}
#: Columns that hold words, even where a word looks like a number.
WORDS = {
    "dataset", "method", "view", "of_view", "scenario", "step", "scheme", "axis", "remark", "cell",
    "settings", "versions", "rescale", "tuning", "reading", "variant", "cut_off",
}  # fmt: skip


class Reproduction:
    """A folder of results."""

    def __init__(self, folder: Path):
        self.folder = folder
        path = folder / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            raise ValueError(
                f"{folder} has no {MANIFEST}; run `manyview reproduce --out {folder}` first"
            ) from None
        except ValueError as error:
            raise ValueError(f"{path} cannot be read ({error}); run it again") from None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError(f"{path} is not of format {FORMAT}; run it again")
        self.manifest: dict[str, Any] = manifest
        self.experiments: dict[str, dict[str, Any]] = {
            e["name"]: e for e in manifest["experiments"]
        }
        self._tables: dict[str, pd.DataFrame] = {}

    def rows(self, experiment: str, table: str = "", **wanted: Any) -> pd.DataFrame:
        """Rows of a table that have the values wanted; an empty frame if it was not run."""
        name = f"{experiment}{'-' if table else ''}{table}.csv"
        if name not in self.experiments.get(experiment, {}).get("files", ()):
            return pd.DataFrame()
        if name not in self._tables:
            self._tables[name] = _read(self.folder / name)
        return where(self._tables[name], **wanted)


def _read(path: Path) -> pd.DataFrame:
    try:
        frame = pd.DataFrame(read_csv(path))
    except OSError:
        raise ValueError(f"{path} is missing though {MANIFEST} names it; run it again") from None
    for column in set(frame) - WORDS:
        frame[column] = pd.to_numeric(frame[column], errors="coerce")
    return frame


def where(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    for column, value in wanted.items():
        frame = frame[frame[column] == value] if column in frame else frame[:0]
    return frame


def grouped(frame: pd.DataFrame, by: str) -> dict[Any, pd.DataFrame]:
    """Rows by the value of a column, in the order of first appearance."""
    return dict(list(frame.groupby(by, sort=False))) if by in frame else {}


def two(value: float) -> str:
    """Two decimals without the leading zero, as the paper prints them."""
    text = f"{round(value, 2) + 0.0:.2f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value: float, digits: int = 3) -> str:
    """With its sign, and never "-0.00"."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def spread(values: pd.Series) -> str:
    """Mean and, for several runs, the standard deviation, as the paper prints them."""
    return in_print(values.mean(), values.std())


def in_print(mean: float, sd: float) -> str:
    return two(mean) + ("" if math.isnan(sd) else f" ({two(sd)})")
