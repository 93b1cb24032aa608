"""Runs of the page as folders: tables as they were dropped, answers, and what `manyview fit` wrote.

``<home>/<id>/about.json`` says what a run is; ``tables/`` holds what was uploaded, ``run/`` the results.
Nothing is kept anywhere else, so that a killed server loses nothing. A folder may come from somebody else:
`Folders.folder` and `Folders.read` check it at every use.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any

from manyview.io.writing import write_whole

from .words import (
    Unfit,
    checked,
    clusters,
    file_name,
    is_ours,
)

ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
MOST_TABLES = 30
MOST_RUNS = 1000
#: Bytes of an about.json: ours have a few hundred.
MOST_BYTES = 2**20
#: Bytes that stay free on the disk, whatever is uploaded.
SPARE = 2**27
#: What a wrong value in an about.json raises.
WRONG = (ValueError, TypeError, LookupError, ArithmeticError, RecursionError)
#: What a run can be, and how the page says it.
STATES = {
    "draft": "not started",
    "running": "running",
    "done": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
}


class NotThere(LookupError):
    """No run, table or report of this name."""


class Damaged(NotThere):
    """A run with something in its folder that no page has put there."""


class Folders:
    """All runs below one private folder."""

    def __init__(self, home: Path):
        self.home = home
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.lock = RLock()

    def new(self) -> str:
        """An empty draft."""
        with self.lock:
            if len(self.all()) >= MOST_RUNS:
                raise Unfit(f"there are {MOST_RUNS} runs in {self.home}; remove some first")
            name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
            folder = self.home / name
            about: dict[str, Any] = {"tables": [], "clinical": None, "words": [], "problem": ""}
            with _or_nothing(folder):
                folder.mkdir(mode=0o700)
                (folder / "tables").mkdir()
                self.write(name, about | {"state": "draft", "clusters": "auto"})
            return name

    def _place(self, name: str) -> Path:
        """Where a run is, whatever is in it; names of no run lead nowhere."""
        folder = self.home / name
        if not ID.fullmatch(name) or folder.is_symlink() or not folder.is_dir():
            raise NotThere("There is no such run; it may have been removed.")
        return folder

    def folder(self, name: str) -> Path:
        """Where a run is; it holds files and folders only: a link could lead to any file of the user."""
        folder = self._place(name)
        waiting = [str(folder)]
        while waiting:
            try:
                with os.scandir(waiting.pop()) as entries:
                    for entry in entries:
                        junction = getattr(entry, "is_junction", bool)()  # Windows, Python 3.12
                        if entry.is_dir(follow_symlinks=False) and not junction:
                            waiting.append(entry.path)
                        elif not entry.is_file(follow_symlinks=False) and os.path.lexists(entry):
                            raise _damaged(name, f"{entry.name} is a link or no file")
            except FileNotFoundError:  # a fit that is under way moves its files
                continue
            except OSError as error:
                raise _damaged(name, error) from None
        return folder

    def read(self, name: str) -> dict[str, Any]:
        """What is stored of a run, checked."""
        with self.lock:
            try:
                with open(self.folder(name) / "about.json", "rb") as file:
                    text = file.read(MOST_BYTES + 1)
                if len(text) > MOST_BYTES:
                    raise ValueError("about.json is too long")
                return _checked(json.loads(text))
            except NotThere:
                raise
            except (OSError, *WRONG) as error:
                raise _damaged(name, error) from None

    def runs(self) -> list[dict[str, Any]]:
        """All runs, newest first; a damaged one is so in its own row alone."""
        found: list[dict[str, Any]] = []
        for name in self.all():
            try:
                found.append({"name": name, **self.read(name)})
            except Damaged as error:
                row = {"tables": [], "clusters": "", "problem": str(error)}
                found.append({"name": name, "state": "damaged", **row})
            except NotThere:  # removed meanwhile
                continue
        return found

    def write(self, name: str, about: dict[str, Any]) -> None:
        write_whole(self.home / name / "about.json", json.dumps(about, indent=1).encode())

    def change(self, name: str, work: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Read, let ``work`` change it, write; one at a time."""
        with self.lock:
            about = self.read(name)
            work(about)
            self.write(name, about)
            return about

    def all(self) -> list[str]:
        """The runs there are, newest first."""
        with os.scandir(self.home) as entries:
            found = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
        return sorted(filter(ID.fullmatch, found), reverse=True)

    def remove(self, name: str) -> None:
        with self.lock:
            shutil.rmtree(self._place(name))

    def check_draft(self, name: str) -> dict[str, Any]:
        about = self.read(name)
        if about["state"] != "draft":
            raise Unfit(
                "Tables can be changed only before the run starts. Use “Change and run again”."
            )
        return about

    def check_room(self, wanted: int) -> None:
        """Refuse what the disk cannot hold."""
        free = shutil.disk_usage(self.home).free
        if wanted + SPARE > free:
            raise Unfit(
                f"The disk of {self.home} has {free // 2**20} MiB left, which is too little; "
                "nothing was kept."
            )

    def keep(self, name: str, arrived: Path, shown: str, clinical: bool) -> str:
        """A table that has arrived whole gets its name and its place in the list."""
        names: list[str] = []

        def add(about: dict[str, Any]) -> None:
            if about["state"] != "draft" or len(about["tables"]) >= MOST_TABLES:
                raise Unfit(f"A run takes up to {MOST_TABLES} tables, before it starts.")
            if clinical:
                _forget(self.home / name, about["clinical"])
                about["clinical"] = None
            kept = [*about["tables"], *filter(None, [about["clinical"]])]
            names.append(file_name(shown, [table["file"] for table in kept]))
            table = {"file": names[0], "shown": shown[-80:]}
            if clinical:
                about["clinical"] = table
            else:
                about["tables"].append(table)
            os.replace(arrived, self.home / name / "tables" / names[0])

        self.change(name, add)
        return names[0]

    def drop(self, name: str, file: str) -> None:
        """Forget a table of a draft."""
        self.check_draft(name)

        def leave(about: dict[str, Any]) -> None:
            gone = [t for t in about["tables"] if t["file"] == file]
            if about["clinical"] and about["clinical"]["file"] == file:
                gone, about["clinical"] = [about["clinical"]], None
            if not gone:
                raise NotThere("There is no such table; it may have been removed.")
            about["tables"] = [t for t in about["tables"] if t["file"] != file]
            about["words"] = []
            _forget(self.home / name, gone[0])

        self.change(name, leave)

    def copy(self, name: str) -> str:
        """A new draft with the tables and answers of a run."""
        about, new = self.read(name), self.new()
        kept = {k: about[k] for k in ("tables", "clinical", "words", "clusters")}
        with _or_nothing(self.home / new):
            for table in [*about["tables"], *filter(None, [about["clinical"]])]:
                shutil.copy2(
                    self.folder(name) / "tables" / table["file"], self.home / new / "tables"
                )
            self.change(new, lambda fresh: fresh.update(kept))
        return new

    def archive(self, name: str, command: str) -> Path:
        """Results as one .zip beside them."""
        run = self.folder(name) / "run"
        if not (run / "run.json").is_file():
            raise NotThere("This run has no results to download.")
        path = self.folder(name) / f"archive-{secrets.token_hex(6)}.zip"
        with _or_nothing(path), zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(filter(Path.is_file, run.rglob("*"))):
                archive.write(file, f"manyview-{name}/{file.relative_to(run).as_posix()}")
            archive.writestr(f"manyview-{name}/command.txt", command + "\n")
        return path


def _checked(about: Any) -> dict[str, Any]:
    """What is stored of a run, and nothing else: each value is one that a page of ours can have written."""

    def table(stored: Any) -> dict[str, str]:
        if not is_ours(stored["file"]):
            raise ValueError(f"{stored['file']!r} is no file name of ours")
        return {"file": stored["file"], "shown": str(stored["shown"])[-80:]}

    def seconds(key: str) -> float:
        value = float(about.get(key, 0))
        if not 0 <= value < 2**33:
            raise ValueError(f"{value} is no time")
        return value

    if about["state"] not in STATES:
        raise ValueError(f"{about['state']!r} is no state of a run")
    known = {
        "state": about["state"],
        "tables": [table(stored) for stored in about["tables"]],
        "clinical": None if about["clinical"] is None else table(about["clinical"]),
        "words": [checked(str(name), str(value)) for name, value in about["words"]],
        "clusters": clusters(str(about["clusters"])),
        "problem": str(about["problem"]),
        "started": seconds("started"),
        "ended": seconds("ended"),
    }
    json.dumps(known, ensure_ascii=False).encode()  # refuses lone surrogates
    return known


def _damaged(name: str, why: Any) -> Damaged:
    what = f"{type(why).__name__}: {why}" if isinstance(why, Exception) else why
    return Damaged(
        f"The folder {name} is damaged ({what[:200]}). Nothing in it is used; repair it, or remove the run."
    )


@contextmanager
def _or_nothing(path: Path) -> Iterator[None]:
    """What cannot be made whole, as on a full disk, is not there at all."""
    try:
        yield
    except OSError:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        raise


def _forget(folder: Path, table: dict[str, str] | None) -> None:
    if table is not None:
        (folder / "tables" / table["file"]).unlink(missing_ok=True)
