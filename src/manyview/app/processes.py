"""Child processes that do runs, a few at a time, each run held to a time and a memory limit.

A child is a Python program that calls `main`, not multiprocessing: scripts then need no ``if __name__ ==
"__main__"``. Jobs go in by stdin, events come back by stdout as lines of JSON. The function that is named
with a job does it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import queue
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from manyview.baselines.mlrssc import duration
from manyview.engines.threads import available_cores
from manyview.io.child import end, environment

#: How often, in seconds, running children are held against the limits.
POLL = 0.1
#: Seconds a child may take to start and read the data; a fit's own clock starts afterwards.
START = 300.0
#: The program of every child; not -m, which complains about a module that is imported already.
PROGRAM = "from manyview.app.processes import main; main()"
#: GiB that a child may hold when it has done a task and still be given another.
MOST_KEPT = 1.0


@dataclass(frozen=True)
class RunLimits:
    """Most a run may take: seconds, and GiB of memory."""

    seconds: float
    memory: float

    def said(self) -> dict[str, float]:
        return {"max_seconds": self.seconds, "max_memory": self.memory}


class Job(Protocol):
    """Runs that share one process."""

    @property
    def runs(self) -> tuple[int, ...]: ...
    #: Whether BLAS may use its threads.
    @property
    def threads(self) -> bool: ...
    #: Full name of the function the child calls with the unpickled job; it answers one result per run.
    @property
    def function(self) -> str: ...
    def packed(self, folder: Path) -> bytes: ...


T = TypeVar("T", bound=Job)


def sent(estimator: Any) -> bytes:
    """An estimator for a process of ours. What a script or notebook defines goes along with it.

    Such bytes go from one of our processes to another and are kept nowhere.
    """
    try:
        packed = pickle.dumps(estimator)
        if b"__main__" not in packed:
            return packed
    except (pickle.PicklingError, AttributeError, TypeError):  # a function inside a function
        pass
    try:
        import cloudpickle
    except ImportError:
        raise ValueError(
            "its class or a function of it is defined in the script or notebook being run: pip install "
            "'manyview[app]' brings cloudpickle, which can send it; or move it to a file and import it"
        ) from None
    return cloudpickle.dumps(estimator)


class Pool:
    """Children that wait for another task, and where all of them report."""

    def __init__(self, folder: Path, n_jobs: int):
        self.folder, self.n_jobs = folder, n_jobs
        self.inbox: queue.Queue[tuple[_Child, dict[str, Any] | None]] = queue.Queue()
        self.idle: list[_Child] = []

    def start(self, n: int) -> None:
        """Begin to start children; they import what they need while something else is done."""
        self.idle += [self._new(False) for _ in range(min(n, self.n_jobs))]

    def take(self, task: Job) -> _Child:
        """A child for a task: one that waits, or a new one."""
        for child in self.idle:
            if child.threaded == task.threads:
                self.idle.remove(child)
                return child
        return self._new(task.threads)

    def close(self) -> None:
        while self.idle:
            self.idle.pop().end()

    def _new(self, threaded: bool) -> _Child:
        # BLAS threads of all children together are no more than there are cores.
        each = None if self.n_jobs == 1 else max(1, available_cores() // self.n_jobs)
        return _Child(threaded, self.folder, self.inbox, each if threaded else 1)


def run_tasks(
    tasks: Sequence[T], folder: Path, n_jobs: int, limits: RunLimits, pool: Pool | None = None
) -> Generator[tuple[T, int, dict[str, Any]], None, None]:
    """Yield (task, run, record) as runs end; children still at work are ended with the iteration.

    The record of a run that was ended by a limit has the entry "limits". Every task has a new child,
    unless a ``pool`` is given: its children do one task after the other.
    """
    kept, pool = pool is not None, pool or Pool(folder, n_jobs)
    waiting, children = deque(tasks), set[_Child]()
    try:
        while waiting or children:
            while waiting and len(children) < n_jobs:
                task = waiting.popleft()
                try:
                    job = task.packed(folder)
                except Exception as error:  # an estimator that cannot be sent
                    reason = f"it cannot be sent to a process of its own: {reason_of(error)}"
                    for run in task.runs:
                        yield task, run, {"status": "failed", "reason": reason}
                    continue
                child = pool.take(task)
                child.begin(task, job)
                children.add(child)
            try:
                child, event = pool.inbox.get(timeout=POLL)
            except queue.Empty:
                pass
            else:
                if child in children:
                    for run, record in child.take(event):
                        yield child.task, run, record
                    if child.finished:
                        children.discard(child)
                        if kept and child.may_go_on(limits):
                            pool.idle.append(child)
                        else:
                            child.end()
                elif event is None and child in pool.idle:
                    pool.idle.remove(child)
            for child in list(children):
                stopped = child.over(limits)
                if stopped is not None:
                    children.discard(child)
                    child.end()
                    yield child.task, child.left[0], stopped
                    for run in child.left[1:]:
                        yield child.task, run, not_tried(stopped["reason"])
    finally:
        for child in children:
            child.end()


def not_tried(reason: str) -> dict[str, Any]:
    """The record of a run whose method was stopped at a limit before."""
    return {"status": "skipped", "reason": f"not tried: the first run was {reason}"}


class _Child:
    """A process that does one task after the other."""

    def __init__(self, threaded: bool, folder: Path, inbox: queue.Queue, threads: int | None):
        #: Whether BLAS may use more threads than one.
        self.threaded = threaded
        self.task: Any = None
        self.left: list[int] = []
        self.finished = False
        self._inbox = inbox
        self._since: float | None = None
        self._fitting = self._over = False
        self._complaints = folder / f"stderr-{id(self)}"
        with self._complaints.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=environment(threads, current_folder=True),
                # A session of its own: Ctrl-C reaches only us, and we end the child ourselves.
                start_new_session=True,
            )
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def begin(self, task: Any, job: bytes) -> None:
        """Give it a task; in a thread, since it may not listen yet."""
        self.task, self.left = task, list(task.runs)
        self.finished = self._fitting = False
        self._since = time.monotonic()
        threading.Thread(target=self._send, args=(task.function, job), daemon=True).start()

    def take(self, event: dict[str, Any] | None) -> list[tuple[int, dict[str, Any]]]:
        """Finished runs an event brings; ``None`` is the end of the process."""
        if event is None:
            self.finished = self._over = True
            code = self._process.wait()
            record = {"status": "failed", "reason": self._ended(code)}
            # A process that ended before its first run would end again; after, others may do better.
            later = record | ({"untried": True} if self._fitting else {})
            return [(run, later if place else record) for place, run in enumerate(self.left)]
        kind = event.pop("event")
        if kind == "done":
            self.finished = True
            return []
        if kind == "result":
            return [(self.left.pop(0), event)]
        self._fitting = kind == "started"
        self._since = time.monotonic() if self._fitting else None
        return []

    def may_go_on(self, limits: RunLimits) -> bool:
        """Whether it lives and does not hold so much that the next run would be charged for it."""
        held = _resident_gib(self._process.pid)
        return not self._over and held < min(MOST_KEPT, limits.memory / 2)

    def over(self, limits: RunLimits) -> dict[str, Any] | None:
        """The record of the run under way if this child has passed a limit, or nothing."""
        if not self.left or self._since is None:
            return None
        took = time.monotonic() - self._since
        if not self._fitting:
            reason = f"its process did not start within {duration(START)}"
            return {"status": "failed", "reason": reason} if took > START else None
        if took > limits.seconds:
            reason = f"stopped after {limits.seconds:g} s, the limit (max_seconds)"
        elif _resident_gib(self._process.pid) > limits.memory:
            reason = f"stopped when it held {limits.memory:g} GiB of memory, the limit (max_memory)"
        else:
            return None
        return {"status": "failed", "reason": reason, "limits": limits.said()}

    def end(self) -> None:
        end(self._process)
        self._process.wait()
        self._thread.join()

    def _send(self, function: str, job: bytes) -> None:
        """A message is its length in eight bytes, and the name of the function and the job."""
        message = pickle.dumps((function, job))
        to = self._process.stdin
        assert to is not None
        with contextlib.suppress(OSError, ValueError):  # the child may go at any moment
            to.write(len(message).to_bytes(8, "big") + message)
            to.flush()  # left open: its closing tells the child that we are gone

    def _listen(self) -> None:
        """Hand on every event; in a thread, as it waits for the child."""
        to, back = self._process.stdin, self._process.stdout
        assert to is not None and back is not None
        with contextlib.suppress(OSError, ValueError):
            for line in back:
                self._inbox.put((self, json.loads(line)))
        for pipe in (to, back):
            with contextlib.suppress(OSError):
                pipe.close()
        self._inbox.put((self, None))

    def _ended(self, code: int) -> str:
        lines = self._complaints.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"its process ended {how}" + (f": {lines[-1].strip()}" if lines else "")


def memory_is_watched() -> bool:
    """Whether this system tells how much memory another process holds."""
    return _resident_gib(os.getpid()) > 0


def _resident_gib(pid: int) -> float:
    """Memory a process holds now; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**30


# In the child process -------------------------------------------------------------------------


def main() -> None:
    """Do the jobs that come in, one after the other, until the sender has gone."""
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a method prints must not be taken for an event
    jobs: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=listen, args=(jobs,), daemon=True).start()

    def tell(**event: Any) -> None:
        print(json.dumps(event), file=events, flush=True)

    while True:
        name, job = pickle.loads(jobs.get())
        module, _, function = name.rpartition(".")
        forget_peak()
        getattr(importlib.import_module(module), function)(pickle.loads(job), tell)
        tell(event="done")


def reason_of(error: BaseException) -> str:
    """One line: the kind of error unless it is the usual one, and what it says."""
    text = " ".join(str(error).split())
    kind = type(error).__name__
    if not text:
        return kind
    return text if kind == "ValueError" else f"{kind}: {text}"


def forget_peak() -> None:
    """Let the peak of memory begin anew, where the system can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_mb() -> float | None:
    """Most memory this process held so far, in MB of 2^20 bytes; None where it is not counted."""
    try:
        # Not getrusage: on Linux its peak survives exec and would include the parent's.
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 1024


def listen(jobs: queue.SimpleQueue[bytes]) -> None:
    """Hand on what the parent sends. It never closes our stdin while it lives: its end is our end."""
    while True:
        length = int.from_bytes(_received(8), "big")
        jobs.put(_received(length))


def _received(n: int) -> bytes:
    # Unbuffered: a thread waiting inside a buffered reader makes the interpreter abort at its end.
    pieces = []
    while n:
        piece = os.read(0, min(n, 2**20))
        if not piece:
            os._exit(1)
        pieces.append(piece)
        n -= len(piece)
    return b"".join(pieces)
