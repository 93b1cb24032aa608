"""Runs of the page: folders with tables, answers and results, and the processes that read and fit them.

``<home>/<id>/about.json`` says what a run is; ``tables/`` holds what was uploaded, ``run/`` what `manyview
fit` wrote. Nothing is kept anywhere else, so that a killed server loses nothing.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyview.app.files import KINDS
from manyview.app.options import command_line, command_words
from manyview.io.child import end, environment
from manyview.io.limits import free_memory
from manyview.io.writing import write_whole

from .answers import Unfit, Word, checked, file_name, replaces, request

ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
#: Fits at the same time: two tabs, and a machine that still answers.
MOST_FITS = 2
LOOK_SECONDS = 120
STAGES = "stages.txt"
#: What a run can be, and how the page says it.
STATES = {
    "draft": "not started",
    "running": "running",
    "done": "finished",
    "failed": "failed",
    "cancelled": "cancelled",
}
EMPTY: dict[str, Any] = {"tables": [], "clinical": None, "sets": None, "words": [], "clusters": "auto",
                         "state": "draft", "problem": "", "started": 0, "ended": 0}  # fmt: skip
#: Files of which a run has one at most.
SINGLE = ("clinical", "sets")
LOST = "The server stopped during this run. Start the run again."


class NotThere(LookupError):
    """No run, table or report of this name."""


@dataclass(frozen=True)
class FitLimits:
    """What a fit may take: seconds, and bytes of memory (0: what there is)."""

    seconds: float = 6 * 3600
    memory: int = 0

    def room(self) -> int:
        """Bytes of address space; libraries reserve some that they never use."""
        free = self.memory or free_memory()
        return 0 if math.isinf(free) else int(free) + 4 * 2**30


class Runs:
    """All runs below one private folder, and the fits that are under way."""

    def __init__(self, home: Path, limits: FitLimits):
        self.home, self.limits = home, limits
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = threading.RLock()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._cancelled: set[str] = set()
        self._seen: dict[str, tuple[Any, dict[str, Any]]] = {}

    # Folders: what is stored of a run ----------------------------------------------------------

    def new(self) -> str:
        """An empty draft."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(3)}"
        with _or_nothing(self.home / name):
            (self.home / name / "tables").mkdir(parents=True)
            self._write(name, EMPTY)
        return name

    def listed(self) -> list[dict[str, Any]]:
        """What is stored of all runs, newest first; a damaged one is so in its own row alone."""
        found: list[dict[str, Any]] = []
        for name in sorted(filter(ID.fullmatch, os.listdir(self.home)), reverse=True):
            try:
                found.append({"name": name, **self.read(name)})
            except NotThere as error:
                row = {"name": name, "state": "damaged", "problem": str(error)}
                found.append({**EMPTY, **row})
        return found

    def folder(self, name: str) -> Path:
        """Where a run is; other names lead nowhere."""
        folder = self.home / name
        if not ID.fullmatch(name) or folder.is_symlink() or not folder.is_dir():
            raise NotThere("There is no such run; it may have been removed.")
        return folder

    def read(self, name: str) -> dict[str, Any]:
        """What is stored of a run."""
        with self._lock:
            try:
                about = EMPTY | json.loads((self.folder(name) / "about.json").read_bytes())
                if about["state"] not in STATES:
                    raise ValueError(f"{about['state']!r} is no state of a run")
                return about | {"words": [checked(*word) for word in about["words"]]}
            except (OSError, ValueError, TypeError) as error:
                raise NotThere(
                    f"The folder {name} is damaged ({type(error).__name__}: {error}); repair it, or "
                    "remove the run."
                ) from None

    @contextmanager
    def changing(self, name: str, draft: bool = False) -> Iterator[dict[str, Any]]:
        """What is stored of a run, to be changed and written; one at a time."""
        with self._lock:
            about = self.read_draft(name) if draft else self.read(name)
            yield about
            self._write(name, about)

    def read_draft(self, name: str) -> dict[str, Any]:
        """What is stored of a run that has not started; others are refused."""
        about = self.read(name)
        if about["state"] != "draft":
            raise Unfit(
                "Tables can be changed only before the run starts. Use “Change and run again”."
            )
        return about

    def remove(self, name: str) -> None:
        self.cancel(name)
        with self._lock:
            shutil.rmtree(self.folder(name))

    def copy(self, name: str, word: Word | None = None) -> str:
        """A new draft with the tables and answers of a run, and perhaps one more answer."""
        about, new = self.read(name), self.new()
        with _or_nothing(self.home / new):
            for table in _tables(about):
                place = self.folder(name) / "tables" / table["file"]
                shutil.copy2(place, self.home / new / "tables")
            with self.changing(new) as fresh:
                fresh.update(
                    {k: about[k] for k in ("tables", "clinical", "sets", "words", "clusters")}
                )
                fresh["words"] += [word] if word else []
        return new

    def archive(self, name: str) -> Path:
        """Tables, results and the command as one .zip."""
        command, run = fit_command(self.read(name)), self.folder(name) / "run"
        if not (run / "run.json").is_file():
            raise NotThere("This run has no results to download.")
        path = self.folder(name) / f"archive-{secrets.token_hex(6)}.zip"
        with _or_nothing(path), zipfile.ZipFile(path, "x", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(filter(Path.is_file, run.rglob("*"))):
                archive.write(file, f"manyview-{name}/{file.relative_to(run).as_posix()}")
            for table in _tables(self.read(name)):
                file = self.folder(name) / "tables" / table["file"]
                archive.write(file, f"manyview-{name}/tables/{table['file']}")
            archive.writestr(f"manyview-{name}/command.txt", command + "\n")
        return path

    def _write(self, name: str, about: dict[str, Any]) -> None:
        write_whole(self.home / name / "about.json", json.dumps(about, indent=1).encode())

    # Drafts: tables and answers ----------------------------------------------------------------

    def keep(self, name: str, arrived: Path, shown: str, kind: str) -> str:
        """A file that has arrived whole gets its name and place: a view, or the one of its kind."""
        with self.changing(name, draft=True) as about:
            if kind in SINGLE and about[kind]:
                self._forget(name, about[kind])
                about[kind] = None
            kinds = (".gmt",) if kind == "sets" else KINDS
            file = file_name(shown, [table["file"] for table in _tables(about)], kinds)
            table = {"file": file, "shown": shown[-80:]}
            if kind in SINGLE:
                about[kind] = table
            else:
                about["tables"] = [*about["tables"], table]
            os.replace(arrived, self.home / name / "tables" / file)
        return file

    def to_clinical(self, name: str, file: str) -> None:
        """Make a table of a draft the clinical one; what was the clinical table is a view again."""
        with self.changing(name, draft=True) as about:
            mine = [table for table in about["tables"] if table["file"] == file]
            if not mine:
                raise NotThere("There is no such table; it may have been removed.")
            others = [table for table in about["tables"] if table not in mine]
            about["tables"] = [*others, *filter(None, [about["clinical"]])]
            about.update(clinical=mine[0], words=[])

    def rename(self, name: str, names: Mapping[str, str]) -> None:
        """Name clusters of a finished run, and make its report anew."""
        if self.state(name)["state"] != "done":
            raise Unfit("Clusters can be named once the run is finished.")
        words = [word for number, text in names.items() for word in ("--names", f"{number}={text}")]
        process = self._popen(self.folder(name), ["report", "run", *words])
        try:
            code = process.wait(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            end(process)
            raise Unfit("The report could not be written again in time.") from None
        if code:
            raise Unfit(_complaint(self.folder(name) / "log.txt", code))

    def drop(self, name: str, file: str) -> None:
        """Forget a table of a draft, and the answers."""
        with self.changing(name, draft=True) as about:
            gone = [table for table in _tables(about) if table["file"] == file]
            if not gone:
                raise NotThere("There is no such table; it may have been removed.")
            about["tables"] = [table for table in about["tables"] if table not in gone]
            about.update({kind: None for kind in SINGLE if about[kind] in gone})
            about["words"] = []
            self._forget(name, gone[0])

    def answer(self, name: str, word: Word) -> None:
        """Add an answer to a question about the tables."""
        with self.changing(name, draft=True) as about:
            about["words"] = [*(w for w in about["words"] if not replaces(word, w)), word]

    def look(self, name: str) -> dict[str, Any]:
        """What is understood of the tables of a draft; asked once for each change."""
        about = self.read(name)
        if not about["tables"]:
            return about
        folder = self.folder(name)
        asked = {key: about[key] for key in ("tables", *SINGLE, "words")} | {"clusters": "auto"}
        paths = [folder / "tables" / table["file"] for table in _tables(about)]
        state = asked, [path.stat().st_mtime_ns if path.is_file() else 0 for path in paths]
        if self._seen.get(name, (None,))[0] != state:
            self._seen[name] = state, self._looked(folder, asked)
        return about | {"seen": self._seen[name][1]}

    def _looked(self, folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            done = subprocess.run(
                self._program("look"),
                input=json.dumps(asked).encode(),
                capture_output=True,
                timeout=LOOK_SECONDS,
                cwd=folder,
                env=environment(),
            )
            return json.loads(done.stdout)
        except subprocess.TimeoutExpired:
            problem = f"the tables could not be read within {LOOK_SECONDS} seconds"
        except ValueError:
            problem = (
                "the tables could not be read: their reader ended, perhaps because memory ran out"
            )
        return {"views": [], "notes": [], "problem": problem, "choices": []}

    def _program(self, *words: str) -> list[str]:
        program = [sys.executable, "-P", "-m", "manyview.app.web.worker"]
        return [*program, str(self.limits.room()), *words]

    def _forget(self, name: str, table: dict[str, str]) -> None:
        (self.home / name / "tables" / table["file"]).unlink(missing_ok=True)

    # Fits ----------------------------------------------------------------------------------------

    def start(self, name: str, number: str) -> None:
        """Fit in a process of its own."""
        with self._lock:
            if name in self._running:
                return
            if len(self._running) >= MOST_FITS:
                raise Unfit(f"{MOST_FITS} runs are under way; wait for one of them, or cancel it.")
            with self.changing(name, draft=True) as about:
                if not about["tables"]:
                    raise Unfit("There is no table yet: drop one for each view.")
                about["clusters"] = number
                words = ["fit", *command_words(request(about))]
                about.update(state="running", started=time.time())
            self._running[name] = process = self._popen(self.folder(name), words)
        threading.Thread(target=self._watch, args=(name, process), daemon=True).start()

    def _popen(self, folder: Path, words: list[str]) -> subprocess.Popen[bytes]:
        extra = {"MANYVIEW_STAGES": str(folder / STAGES), "COLUMNS": "100", "NO_COLOR": "1"}
        with open(folder / "log.txt", "wb") as log:
            return subprocess.Popen(
                self._program(*words),
                stdin=subprocess.PIPE,  # ends when this process does, and the fit with it
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment() | extra,
                start_new_session=True,  # what it starts can be ended with it
            )

    def _watch(self, name: str, process: subprocess.Popen[bytes]) -> None:
        problem = ""
        try:
            code = process.wait(timeout=self.limits.seconds)
        except subprocess.TimeoutExpired:
            problem = f"It was stopped after {self.limits.seconds / 3600:g} hours, the limit (--max-hours)."
            end(process)
            code = process.wait()
        with self._lock:
            with (
                contextlib.suppress(LookupError, OSError),  # removed meanwhile
                self.changing(name) as about,
            ):
                cancelled = name in self._cancelled
                state = "cancelled" if cancelled else "done" if code == 0 else "failed"
                problem = problem or _complaint(self.folder(name) / "log.txt", code)
                problem = "" if state == "done" else problem
                about.update(state=state, problem=problem, ended=time.time())
            self._running.pop(name, None)
            self._cancelled.discard(name)

    def cancel(self, name: str) -> None:
        """End a fit; a second cancel changes nothing."""
        with self._lock:
            process = self._running.get(name)
            if process is not None:
                self._cancelled.add(name)
                end(process)
        if process is not None:
            process.wait()

    def cancel_all(self) -> None:
        for name in list(self._running):
            self.cancel(name)

    def state(self, name: str) -> dict[str, Any]:
        """The progress of a run; one whose server ended is reported as lost."""
        with self._lock:
            about = self.read(name)
            if about["state"] == "running" and name not in self._running:
                done = (self.folder(name) / "run" / "run.json").is_file()
                about |= {"state": "done"} if done else {"state": "failed", "problem": LOST}
                self._write(name, about)
        about["stages"] = []  # until the fit has written the first
        with contextlib.suppress(OSError):
            text = (self.folder(name) / STAGES).read_text(encoding="utf-8", errors="replace")
            about["stages"] = text.splitlines()
        return about


def fit_command(about: dict[str, Any]) -> str:
    """What to type to make a run, in its folder."""
    return command_line("fit", request(about))


def _tables(about: dict[str, Any]) -> list[dict[str, str]]:
    """Every file of a run, the clinical table and the gene sets last."""
    return [*about["tables"], *filter(None, (about[kind] for kind in SINGLE))]


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


def _complaint(log: Path, code: int) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = [
        line for line in text.splitlines() if line.startswith(("manyview fit", "manyview report"))
    ]
    if lines:
        return lines[-1][:2000]
    return f"Its process ended with status {code}" + (
        ", perhaps because memory ran out." if code < 0 else "."
    )
