"""Runs of the page as folders: tables as they were dropped, answers, and what `manyview fit` wrote.

``<home>/<id>/about.json`` says what a run is; ``tables/`` holds what was uploaded, ``run/`` the results.
Nothing is kept anywhere else, so that a killed server loses nothing.
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

from .words import Unfit, file_name

ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
MOST_TABLES = 30
MOST_RUNS = 1000
#: Bytes that stay free on the disk, whatever is uploaded.
SPARE = 2**27


class NotThere(LookupError):
    """No run, table or report of this name."""


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
            about: dict[str, Any] = {
                "state": "draft",
                "tables": [],
                "clinical": None,
                "words": [],
                "seen": None,
            }
            with _or_nothing(folder):
                folder.mkdir(mode=0o700)
                (folder / "tables").mkdir()
                self.write(name, about | {"clusters": "auto", "problem": ""})
            return name

    def folder(self, name: str) -> Path:
        """Where a run is; names of no run lead nowhere."""
        folder = self.home / name
        if not ID.fullmatch(name) or folder.is_symlink() or not (folder / "about.json").is_file():
            raise NotThere("There is no such run; it may have been removed.")
        return folder

    def read(self, name: str) -> dict[str, Any]:
        path = self.folder(name) / "about.json"
        with self.lock:
            try:
                return json.loads(path.read_text(encoding="utf-8"))
            except ValueError:
                raise NotThere(f"{path} is damaged; remove its folder") from None

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
        found = (p for p in self.home.iterdir() if ID.fullmatch(p.name) and not p.is_symlink())
        return sorted((p.name for p in found if (p / "about.json").is_file()), reverse=True)

    def remove(self, name: str) -> None:
        with self.lock:
            shutil.rmtree(self.folder(name))

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
            about["seen"] = None

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
            about["seen"], about["words"] = None, []
            _forget(self.home / name, gone[0])

        self.change(name, leave)

    def copy(self, name: str) -> str:
        """A new draft with the tables and answers of a run."""
        about, new = self.read(name), self.new()
        kept = {k: about[k] for k in ("tables", "clinical", "words", "clusters", "seen")}
        with _or_nothing(self.home / new):
            for table in [*about["tables"], *filter(None, [about["clinical"]])]:
                shutil.copy2(
                    self.folder(name) / "tables" / table["file"], self.home / new / "tables"
                )
            self.change(new, lambda fresh: fresh.update(kept))
        return new

    def archive(self, name: str, command: str) -> Path:
        """Results as one .zip beside them; links are not followed."""
        run = self.folder(name) / "run"
        if not (run / "run.json").is_file():
            raise NotThere("This run has no results to download.")
        path = self.folder(name) / f"archive-{secrets.token_hex(6)}.zip"
        with _or_nothing(path), zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            for place, folders, files in os.walk(run, followlinks=False):
                folders.sort()
                for file in sorted(Path(place) / f for f in files):
                    if not file.is_symlink():
                        archive.write(file, f"manyview-{name}/{file.relative_to(run).as_posix()}")
            archive.writestr(f"manyview-{name}/command.txt", command + "\n")
        return path


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
