"""Checkpoints: finished stages and the state of the loop, written to disk at intervals.

A fit is a sequence of stages (graphs, starts, loops). A checkpoint holds the results of those that are
done, where the loop is, the state of the random generator, and what was being fitted with which settings.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, is_dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from manyview._types import Matrix, Views
from manyview._version import __version__
from manyview._warn import warn_user
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.numpy.relations import Relation
from manyview.engines.numpy.repeats import row_codes
from manyview.engines.numpy.sources import is_streamed, looking_rows
from manyview.engines.protocols import Remote
from manyview.engines.table import ENGINES
from manyview.engines.threads import Threads, blocks
from manyview.io.writing import left_behind

from .store import read_state, write_state
from .tree import Writer

#: Seconds between two writings, unless asked otherwise by ``checkpoint=(path, seconds)``.
SECONDS = 60.0
#: Parameters that change nothing in the result.
IRRELEVANT = ("checkpoint", "callback", "verbose", "n_jobs")

Result = TypeVar("Result")
#: Files of finished fits that `kept_until_written` is to remove; None if they are not to be kept.
FINISHED: ContextVar[list[Path] | None] = ContextVar("finished", default=None)


@contextmanager
def kept_until_written() -> Iterator[None]:
    """Checkpoints of fits in here go when this block is left without an error, not when the fit ends."""
    finished: list[Path] = []
    before = FINISHED.set(finished)
    try:
        yield
    finally:
        FINISHED.reset(before)
    for path in finished:
        path.unlink(missing_ok=True)


class Checkpoint:
    """Where a fit is, and how it goes on after it was killed. Without a path it keeps nothing."""

    def __init__(self, where: Any, model: Any, views: Views, rng: np.random.Generator):
        self.path, self.seconds = _path_and_seconds(where)
        self.rng, self.written = rng, time.monotonic()
        self.stages: dict[str, Any] = {}
        self._loop: Any = None
        if self.path is None:
            return
        if not ENGINES[model.engine].checkpoints:
            raise ValueError(
                f"engine={model.engine!r} writes no checkpoints, because its state is on its device; leave "
                "out checkpoint, or use another engine"
            )
        folder = self.path.absolute().parent
        if not folder.is_dir():
            raise ValueError(
                f"checkpoint={str(self.path)!r}: the folder {folder} does not exist; create it, or "
                "name another folder"
            )
        if not os.access(folder, os.W_OK | os.X_OK):
            raise ValueError(
                f"checkpoint={str(self.path)!r}: cannot write files in {folder}; name a file in a "
                "folder of your own"
            )
        for left in left_behind(folder, self.path.name):
            left.unlink(missing_ok=True)
        self.identity = identity_of(model, views, rng)
        if self.path.exists():
            files = [X for X in views.matrices if isinstance(X, DiskMatrix)]
            saved = read_state(self.path, "checkpoint", files)
            difference = _difference(saved["identity"], self.identity)
            if difference:
                raise ValueError(
                    f"the checkpoint {self.path} belongs to another fit: {difference}; repeat that fit, or "
                    "remove the file to start a new one"
                )
            self.stages, self._loop = saved["stages"], saved["loop"]
            self.rng.bit_generator.state = saved["random"]

    def keep(self, name: str, compute: Callable[[], Result]) -> Result:
        """The result of a stage: read if it was finished before, computed otherwise."""
        if self.path is None:
            return compute()
        if name not in self.stages:
            result = compute()
            self.stages[name], self._loop = result, None
            if self._due():
                self._write()
        return self.stages[name]

    def forget(self, name: str) -> None:
        """Stages whose names begin so are not needed any more."""
        self.stages = {k: v for k, v in self.stages.items() if not k.startswith(name)}

    def loop(self) -> Any:
        """The state in which the loop that comes now was left, if it was."""
        state, self._loop = self._loop, None
        return state

    def offer(self, state: Callable[[], Any]) -> None:
        """Between two iterations: write if it is time."""
        if self.path is not None and self._due():
            self._loop = state()
            self._write()
            self._loop = None

    def finish(self) -> None:
        """The fit is done: its file goes, or, if its results are not yet written, gets all stages."""
        finished = FINISHED.get()
        if self.path is not None and finished is not None:
            self._write()
            finished.append(self.path)
        elif self.path is not None:
            self.path.unlink(missing_ok=True)

    def _due(self) -> bool:
        return time.monotonic() - self.written >= self.seconds

    def _write(self) -> None:
        assert self.path is not None
        state = {
            "identity": self.identity,
            "stages": self.stages,
            "loop": self._loop,
            "random": self.rng.bit_generator.state,
        }
        try:
            write_state(self.path, "checkpoint", state)
        except OSError as error:
            warn_user(
                f"the checkpoint {self.path} could not be written ({error.strerror or error}); "
                "the fit continues, and the last checkpoint stays"
            )
        self.written = time.monotonic()


def _path_and_seconds(where: Any) -> tuple[Path | None, float]:
    path, seconds = where if isinstance(where, tuple) and len(where) == 2 else (where, SECONDS)
    timed = isinstance(seconds, Real) and not isinstance(seconds, bool) and float(seconds) >= 0
    if not timed or not isinstance(path, str | os.PathLike | None):
        raise ValueError(
            f"checkpoint must be a path, or (path, seconds) with 0 seconds or more, got {where!r}"
        )
    if path is None:
        return None, float(seconds)
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"checkpoint={str(path)!r} is a folder; name a file in it")
    return path, float(seconds)


# --- what is being fitted, with which settings -------------------------------------------------


def identity_of(model: Any, views: Views, rng: np.random.Generator) -> dict[str, Any]:
    settings = {
        name: _as_text(name, value, rng)
        for name, value in model.get_params(deep=False).items()
        if name not in IRRELEVANT
    }
    held = [
        [name, " × ".join(map(str, X.shape)), str(X.dtype), digest(X)]
        for name, X in zip(views.names, views.matrices, strict=True)
    ]
    if views.batch is not None:
        settings["batch"] = hashlib.sha256("\n".join(views.batch).encode()).hexdigest()[:16]
    return {
        "method": type(model).__name__,
        "library": __version__,
        "settings": settings,
        "views": held,
    }


def _as_text(name: str, value: Any, rng: np.random.Generator) -> str:
    """A setting as text that differs where it differs; arrays by their checksum."""
    if name == "random_state" and value is not None and not isinstance(value, Integral):
        state = _as_text("", rng.bit_generator.state, rng)
        return f"{type(value).__name__} in state {hashlib.sha256(state.encode()).hexdigest()[:8]}"
    value = value.item() if isinstance(value, np.generic) else value
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return f"{type(value).__name__} {_as_text(name, values, rng)}"
    writer = Writer()
    try:
        text = json.dumps(writer.value(value))
    except TypeError as error:
        raise ValueError(
            f"a checkpoint cannot store {name}={value!r}, because it is {error}; make it a dataclass of "
            "plain values, use a named setting, or leave checkpoint out"
        ) from None
    sums = [hashlib.sha256(content).hexdigest()[:16] for content in writer.members.values()]
    return " ".join([text, *sums])


def digest(X: Matrix) -> str:
    """A checksum of all rows, from a code of each: whether they are in memory, in a file or on workers.

    Rows of this memory are read on threads, others where they are.
    """
    if isinstance(X, Relation):
        return f"{X.kind} {digest(X.matrix)}"
    if isinstance(X, Remote):
        codes = X.each(row_codes)
    else:
        parts = list(blocks(slice(0, X.shape[0]), looking_rows(X.shape[1])))
        codes = Threads(1 if is_streamed(X) else None).each(lambda b: row_codes(X[b]), parts)
    return hashlib.blake2b(b"".join(part.data for part in codes), digest_size=32).hexdigest()


def _difference(saved: dict[str, Any], now: dict[str, Any]) -> str:
    if saved["method"] != now["method"]:
        return f"it is from {saved['method']}, and this fit is of {now['method']}"
    if saved.get("library") != now["library"]:
        return f"it was made by manyview {saved.get('library')}, and this is {now['library']}"
    for name, value in now["settings"].items():
        if saved["settings"].get(name) != value:
            return f"it has {name}={saved['settings'].get(name)}, and this fit has {name}={value}"
    if len(saved["views"]) != len(now["views"]):
        return f"it has {len(saved['views'])} views, and this fit has {len(now['views'])}"
    for before, after in zip(saved["views"], now["views"], strict=True):
        for word, old, new in zip(("called", "of shape", "of type"), before, after, strict=False):
            if old != new:
                return f"view {after[0]!r} was {word} {old}, and now is {word} {new}"
        if before != after:
            return f"the numbers of view {after[0]!r} have changed"
    return ""
