"""What comes from the browser: names of files and answers, what of them is taken, and the fit they make."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from manyview.app.files import KINDS
from manyview.app.files.text import split_suffix
from manyview.app.options import FitRequest, Many, options_in, request_of

#: Options that the page offers as buttons.
OFFERED = {"match", "transpose", "as-view", "drop", "decimal", "header", "drop-text", "one-hot",
           "event", "adjust", "batch", "keep-normals", "tumors", "zero-rows", "time",
           "labels"}  # fmt: skip
#: Answers about columns of the clinical table, chosen together.
COLUMNS = ("time", "event", "labels")
#: Their types; those of the type bool have no value.
OPTIONS = {
    name: kind
    for item, kind in options_in(FitRequest)
    if (name := item.name.replace("_", "-")) in OFFERED
}
LONGEST = 40
_SUFFIX = re.compile(r"(\.[a-z0-9]{1,8}){1,2}")

Word = tuple[str, str]


class Unfit(ValueError):
    """Something from the browser that is not taken; the text says why."""


def file_name(given: str, taken: Iterable[str] = (), kinds: Iterable[str] = KINDS) -> str:
    """A name of our own for an uploaded file: letters, digits, hyphens, and a kind that we read."""
    last = re.split(r"[\\/]", given)[-1]
    stem, kind = split_suffix(last)
    suffix = last[len(stem) :].lower()
    if kind not in kinds or not _SUFFIX.fullmatch(suffix):
        raise Unfit(
            f"{last[:LONGEST] or 'a file without a name'}: files of this kind are not read; "
            f"they may be {', '.join(kinds)}"
        )
    plain = re.sub(r"[^A-Za-z0-9_]+", "-", last[: len(stem)]).strip("-_")[:LONGEST] or "table"
    known = {name.split(".")[0].lower() for name in taken}
    number, found = 2, plain
    while found.lower() in known:
        number, found = number + 1, f"{plain}-{number}"
    return found + suffix


def choices(problem: str) -> list[Word]:
    """The options that a sentence about files offers, to be shown as buttons."""
    found: list[Word] = []
    try:
        parts = shlex.split(problem.replace("'", '"') if problem.count("'") % 2 else problem)
    except ValueError:
        parts = problem.split()
    for here, after in zip(parts, [*parts[1:], ""], strict=True):
        name = here.strip(".,;:()").removeprefix("--")
        chosen = name not in OPTIONS or name in ("time", "labels")  # these have a form of their own
        if not here.strip("(").startswith("--") or chosen:
            continue
        value = "" if OPTIONS[name] is bool else after.rstrip(".,;:)")
        if (value or OPTIONS[name] is bool) and (name, value) not in found:
            found.append((name, value))
    return found


def shown(sentence: str) -> str:
    """A sentence about files without its advice for the command line, which the page has as buttons."""
    advice = re.search(
        r"(\S[.;:]) (?:(?![.;:] ).)*--(?:" + "|".join(OPTIONS) + r"|labels)\b", sentence
    )
    return sentence if advice is None else sentence[: advice.end(1)].rstrip(";:")


def checked(name: str, value: str) -> Word:
    """An answer from the browser, refused unless it is one of ours."""
    if name not in OPTIONS or bool(value) == (OPTIONS[name] is bool):
        raise Unfit(f"{name[:LONGEST]!r} is no option for reading files")
    if name == "zero-rows" and value.rpartition("=")[2] not in ("missing", "observed"):
        raise Unfit("a row of zeros is missing or observed")
    if len(value) > 200 or any(ord(c) < 32 for c in value):
        raise Unfit(f"the value of --{name} is too long, or not text")
    return name, value


def replaces(new: Word, old: Word) -> bool:
    """Whether an answer takes the place of an earlier one."""
    if new[0] == "zero-rows" == old[0]:  # one for each view
        return new[1].rpartition("=")[0] == old[1].rpartition("=")[0]
    return new == old or (new[0] == old[0] and OPTIONS[new[0]] != Many)


def clusters(text: str) -> str:
    """How many clusters, as `manyview fit` takes it."""
    text = text.strip()
    if text in ("auto", "communities"):
        return text
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= 1000:
        raise Unfit(
            f"the number of clusters must be 1 to 1000, auto or communities; got {text[:20]!r}"
        )
    return str(int(text))


def request(about: Mapping[str, Any]) -> FitRequest:
    """A run as `manyview fit` takes it, in the folder of its tables."""
    found: dict[str, Any] = {
        "files": [f"tables/{table['file']}" for table in about["tables"]],
        "clusters": about["clusters"],
        "out": Path("run"),
    }
    if about["clinical"]:
        found["clinical"] = f"tables/{about['clinical']['file']}"
    if about.get("sets"):
        found["gene_sets"] = f"tables/{about['sets']['file']}"
    for name, value in about["words"]:
        key = name.replace("-", "_")
        if name == "labels":
            if about["clinical"]:
                found[key] = f"{found['clinical']}:{value}"
            continue
        if OPTIONS[name] == Many:
            found[key] = [*found.get(key, ()), value]
        elif name == "zero-rows" and key in found:
            found[key] += f",{value}"
        else:
            found[key] = value or True
    return request_of(FitRequest, found)
