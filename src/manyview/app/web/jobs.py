"""Processes of the page: one that looks at tables, one that fits for each run, all with limits."""

from __future__ import annotations

import contextlib
import json
import math
import shlex
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from manyview.io.child import end, environment
from manyview.io.guard.limits import free_memory

from .folders import Folders
from .words import Unfit, arguments

#: Fits at the same time: two tabs, and a machine that still answers.
MOST_FITS = 2
LOOK_SECONDS = 120
STAGES = "stages.txt"
LOST = "The page's server ended while this ran. Nothing is lost but the time: run it again."


@dataclass(frozen=True)
class FitLimits:
    """What a fit may take: seconds, and bytes of memory (0: what there is)."""

    seconds: float = 6 * 3600
    memory: int = 0

    def room(self) -> int:
        """Bytes of address space; libraries reserve some that they never use."""
        free = self.memory or free_memory()
        return 0 if math.isinf(free) else int(free) + 4 * 2**30


class Jobs:
    """Starts, watches and ends the fits of runs."""

    def __init__(self, folders: Folders, limits: FitLimits):
        self.folders, self.limits = folders, limits
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._cancelled: set[str] = set()
        self._seen: dict[str, tuple[Any, dict[str, Any]]] = {}
        self._lock = threading.Lock()

    def look(self, name: str) -> dict[str, Any]:
        """What is understood of the tables of a draft; asked once for each change."""
        about = self.folders.read(name)
        if not about["tables"]:
            return about
        clinical, folder = about["clinical"], self.folders.folder(name)
        asked = {
            "files": [f"tables/{t['file']}" for t in about["tables"]],
            "clinical": f"tables/{clinical['file']}" if clinical else None,
            "words": about["words"],
        }
        paths = [folder / file for file in [*asked["files"], *filter(None, [asked["clinical"]])]]
        state = asked, [path.stat().st_mtime_ns if path.is_file() else 0 for path in paths]
        if self._seen.get(name, (None,))[0] != state:
            self._seen[name] = state, self._looked(folder, asked)
        return about | {"seen": self._seen[name][1]}

    def _program(self) -> list[str]:
        return [sys.executable, "-P", "-m", "manyview.app.web.child", str(self.limits.room())]

    def _looked(self, folder: Path, asked: dict[str, Any]) -> dict[str, Any]:
        try:
            done = subprocess.run(
                [*self._program(), "manyview.app.web.look"],
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
            problem = "the tables could not be read: their reader ended, perhaps for want of memory"
        return {"views": [], "notes": [], "problem": problem, "choices": []}

    def start(self, name: str, clusters: str) -> None:
        """Fit in a process of its own."""
        with self._lock:
            if name in self._running:
                return
            if len(self._running) >= MOST_FITS:
                raise Unfit(f"{MOST_FITS} runs are under way; wait for one of them, or cancel it.")
            about = self.folders.check_draft(name)
            if not about["tables"]:
                raise Unfit("There is no table yet: drop one for each view.")
            command = fit_command(about | {"clusters": clusters})
            folder = self.folders.folder(name)
            self._running[name] = process = self._popen(folder, command)
            try:
                self.folders.change(name, lambda a: a.update(
                    state="running", clusters=clusters, started=time.time()))  # fmt: skip
            except OSError:  # a full disk
                end(self._running.pop(name))
                raise
        threading.Thread(target=self._watch, args=(name, process), daemon=True).start()

    def _popen(self, folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
        told = {"MANYVIEW_STAGES": str(folder / STAGES), "COLUMNS": "100", "NO_COLOR": "1"}
        with open(folder / "log.txt", "wb") as log:
            return subprocess.Popen(
                [*self._program(), "manyview", *command],
                stdin=subprocess.PIPE,  # ends when this process does, and the fit with it
                stdout=log,
                stderr=log,
                cwd=folder,
                env=environment() | told,
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
            cancelled = name in self._cancelled
        with contextlib.suppress(LookupError, OSError):  # removed meanwhile
            folder = self.folders.folder(name)
            problem = problem or _complaint(folder / "log.txt", code)
            state = "cancelled" if cancelled else "done" if code == 0 else "failed"
            self.folders.change(name, lambda a: a.update(
                state=state, problem="" if state == "done" else problem, ended=time.time()))  # fmt: skip
        with self._lock:  # only now: a run that says "running" and is not here has lost its server
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

    def state(self, name: str) -> dict[str, Any]:
        """How far a run is; one whose server ended is told to be lost."""
        known = name in self._running
        about = self.folders.read(name)
        if about["state"] == "running" and not known:
            about = self._lost(name)
        path = self.folders.folder(name) / STAGES
        about["stages"] = []  # until the fit has written the first
        with contextlib.suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
            about["stages"] = file.read(2**16).splitlines()
        return about

    def _lost(self, name: str) -> dict[str, Any]:
        finished = (self.folders.folder(name) / "run" / "run.json").is_file()

        def tell(about: dict[str, Any]) -> None:
            if about["state"] == "running" and name not in self._running:
                about.update(
                    state="done" if finished else "failed", problem="" if finished else LOST
                )

        return self.folders.change(name, tell)

    def end_all(self) -> None:
        for name in list(self._running):
            self.cancel(name)


def fit_command(about: dict[str, Any]) -> list[str]:
    """The arguments of `manyview` that make this run, in the folder of its tables."""
    files = [f"tables/{t['file']}" for t in about["tables"]]
    clinical = about["clinical"]
    known = ["--clinical", f"tables/{clinical['file']}"] if clinical else []
    chosen = ["--clusters", about["clusters"], "--out", "run"]
    return ["fit", *files, *chosen, *known, *arguments(about["words"])]


def command_line(about: dict[str, Any]) -> str:
    """The same as text for a terminal."""
    return shlex.join(["manyview", *fit_command(about)])


def _complaint(log: Path, code: int) -> str:
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = [line for line in text.splitlines() if line.startswith("manyview fit")]
    if lines:
        return lines[-1][:2000]
    return f"Its process ended with status {code}" + (
        ", perhaps for want of memory." if code < 0 else "."
    )
