"""Spreadsheets, files of R and Feather files, read by a process of their own."""

from __future__ import annotations

import zipfile
from dataclasses import replace
from pathlib import Path
from shlex import quote

from manyview.datasets._tables import split_suffix
from manyview.engines.files.formats import PROGRAM
from manyview.io.guard import TooLarge, check_archive, check_pyarrow
from manyview.io.guard.apart import Refused, read_apart
from manyview.io.guard.packed import TEXT_BYTES

from .text import Sentence, Text

SPREADSHEETS = (".xlsx", ".xls", ".xlsm", ".xlsb", ".ods")
R_FILES = (".rds", ".rda", ".rdata")
#: Suffix → the kind of reader.
APART = dict.fromkeys(SPREADSHEETS, "spreadsheet") | dict.fromkeys(R_FILES, "r")
APART |= {".feather": "feather"}
#: Kinds that hold several tables, of which file:name is one.
SEVERAL = (*SPREADSHEETS, *R_FILES)
#: First bytes of what Excel writes; anything else so called is text that some program has named .xls.
EXCEL = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0", b"\x09\x08", b"\x09\x04", b"\x09\x02")


def tables_in(path: Path, inside: str | None = None) -> tuple[dict[str, bytes], list[str]]:
    """The tables of a file as CSV, by name, and what there is to remark."""
    kind = APART[split_suffix(path.name)[1]]
    if kind == "feather":
        check_pyarrow()
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                check_archive(archive, path.stat().st_size)
        head, parts = read_apart(PROGRAM, path, kind, inside, TEXT_BYTES)
    except zipfile.BadZipFile as error:
        raise Sentence(f"{path.name} is damaged ({error}); save it again") from None
    except Refused as error:
        raise Sentence(f"{path.name} {_with_path(str(error), path)}") from None
    except TooLarge:
        raise
    except ValueError as error:
        raise Sentence(f"{path.name} could not be read ({error})") from None
    found = dict(zip(head["tables"], map(bytes, parts), strict=True))
    return found, [f"{path.name}: {remark}" for remark in head["remarks"]]


def texts_of(path: Path, inside: str | None = None) -> dict[str, Text]:
    """The tables of a file by name, or the one that is named; "" is the only one."""
    if split_suffix(path.name)[1] == ".xls":
        with path.open("rb") as file:
            start = file.read(8)
        if start and not start.startswith(EXCEL):
            note = f"{path.name} is text and no Excel file; it is read as text"
            return {"": replace(Text.of_file(path, ".txt"), notes=[note])}
    found, remarks = tables_in(path, inside)
    named = path.name if inside is None else f"{path.name}:{inside}"
    if len(found) == 1:
        return {"": Text.of_bytes(named, next(iter(found.values())), remarks)}
    texts = {}
    for name, data in found.items():
        texts[name] = Text.of_bytes(f"{path.name}:{name}", data, remarks)
        remarks = []  # once
    return texts


def _with_path(sentence: str, path: Path) -> str:
    """The sentence with the file's own name in the command that it proposes."""
    before, found, name = sentence.rpartition("FILE:")
    return f"{before}{quote(f'{path}:{name}')}" if found else sentence
