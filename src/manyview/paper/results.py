"""What `manyview reproduce` left: its manifest, its tables as frames, and how runs are compared."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit
from scipy.stats import ttest_ind

from manyview.io.writing import read_csv

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
#: Columns that hold words, even where a word looks like a number.
WORDS = {
    "dataset", "method", "view", "of_view", "scenario", "step", "scheme", "axis", "remark", "cell",
    "settings", "versions", "rescale", "tuning", "reading", "update",
}  # fmt: skip
AGREES, PARTLY, UNDECIDED, DIFFERS = "agrees", "partly", "undecided", "does not agree"
#: Below what any score can show: keeps 0.96 - 0.94 within 0.02, and a tie from being above.
TINY = 1e-9


class Results:
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


class Interval(NamedTuple):
    """A mean, and the half width of its 95 % interval: infinite for one value, which tells nothing."""

    mean: float
    margin: float
    n: int

    def __str__(self) -> str:
        margin = "(one run)" if self.n < 2 else f"± {self.margin:.3f}"
        return f"{signed(self.mean)} {margin}"


def interval(values: Iterable[float]) -> Interval:
    found = pd.Series(list(values), dtype=float)
    n = len(found)
    margin = math.inf if n < 2 else float(stdtrit(n - 1, 0.975)) * float(found.sem())
    return Interval(float(found.mean()), margin, n)


def paired(rows: pd.DataFrame, others: pd.DataFrame, column: str) -> Interval:
    """Of the differences between runs of the same number, which had the same seed."""
    mine, theirs = (frame.groupby("run")[column].last() for frame in (rows, others))
    return interval((mine - theirs).dropna())


def apart(values: Iterable[float], others: Iterable[float]) -> Interval:
    """Of the difference of two means of different runs, by Welch's rule."""
    a, b = np.asarray(list(values), float), np.asarray(list(others), float)
    gap = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Interval(gap, math.inf, 1)
    with warnings.catch_warnings():  # of runs that are all the same
        warnings.simplefilter("ignore")
        low, high = ttest_ind(a, b, equal_var=False).confidence_interval(0.95)
    return Interval(gap, float(np.nan_to_num((high - low) / 2)), len(a) + len(b))


class Rule(NamedTuple):
    """Where the mean has to lie."""

    low: float
    high: float

    def __call__(self, found: Interval) -> str:
        """Whether the whole interval lies there, or wholly elsewhere, or neither."""
        bottom, top = found.mean - found.margin, found.mean + found.margin
        if found.n < 2:
            return UNDECIDED
        if self.low <= bottom and top <= self.high:
            return AGREES
        return DIFFERS if top < self.low or bottom > self.high else UNDECIDED


ABOVE, BELOW = Rule(TINY, math.inf), Rule(-math.inf, -TINY)


def within(tolerance: float) -> Rule:
    return Rule(-tolerance - TINY, tolerance + TINY)


def together(outcomes: Iterable[str]) -> str:
    """Of a claim with several parts: partly, where some surely hold and others surely do not."""
    found = set(outcomes)
    if found == {AGREES}:
        return AGREES
    if DIFFERS in found:
        return PARTLY if AGREES in found else DIFFERS
    return UNDECIDED


def listed(names: Iterable[str], at_most: int | None = None) -> str:
    """a, b and c; only their number where there are more than ``at_most``."""
    names = list(names)
    if at_most is not None and len(names) > at_most:
        return f"{len(names)} of them"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def told(each: Mapping[str, str], parts: str) -> str:
    """For how many parts of a claim it holds, and which are the others."""
    if len(each) == 1:
        (outcome,) = each.values()
        return {AGREES: "Clearly so.", DIFFERS: "Clearly not so."}.get(outcome, "Not clear.")
    n = sum(outcome == AGREES for outcome in each.values())
    if n == len(each):
        return f"Clearly so for all {n} {parts}."
    said = f"Clearly so for {n or 'none'} of {len(each)} {parts}"
    for words, outcome in (("not so for", DIFFERS), ("not clear for", UNDECIDED)):
        names = [name for name, found in each.items() if found == outcome]
        said += f"; {words} {listed(names, 6)}" if names else ""
    return f"{said}."
