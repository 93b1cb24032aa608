"""The Dask cluster a fit runs on: the user's, or one started here; and what to do when it is gone.

Nothing here knows the mathematics. Values live on workers as futures; `Cluster.keep` gives a value a
lineage of its own (it can be made again from the scheduler), `Cluster.result` waits for one without
ever hanging on a cluster that has no workers left.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: Seconds without any worker after which a fit gives up.
PATIENCE = 30.0
#: Seconds between two checks for workers.
BEAT = 2.0


class ClusterLost(RuntimeError):
    """The Dask cluster can no longer finish the fit."""


def distributed() -> Any:
    """The package, or a sentence that says how to get it."""
    try:
        import dask.array  # noqa: F401
        import distributed
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"engine='dask' needs the package {error.name!r}; pip install 'manyview[dask]'"
        ) from error
    return distributed


class Cluster:
    """The current `distributed.Client`, or a local cluster of one process per core for this fit alone."""

    def __init__(self) -> None:
        package = distributed()
        self._own: Any = None
        self._folder: Path | None = None
        self.client = current_client()
        if self.client is None:
            self._own = _local_cluster(package)
            self.client = package.Client(self._own)
        try:
            with saying_if_lost(self.client):
                self.client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError as error:
            self.close()
            raise ClusterLost(
                f"the Dask cluster at {self.client.scheduler.address} has had no worker for "
                f"{PATIENCE:g} s; start its workers and fit again ({SHORT})"
            ) from error

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def close(self) -> None:
        if self._own is not None:
            self.client.close()
            self._own.close()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def new_folder(self) -> Path:
        """A folder all workers can read, removed with this object; `dask.config` says where."""
        if self._folder is None:
            import dask

            where = dask.config.get("temporary-directory", None)
            self._folder = Path(tempfile.mkdtemp(prefix="manyview-", dir=where))
            with saying_if_lost(self.client):
                blind = [
                    who for who, sees in self.client.run(self._folder.exists).items() if not sees
                ]
            if blind:
                raise ValueError(
                    f"views in memory are handed to workers as files, and {len(blind)} workers (the "
                    f"first is {blind[0]}) do not see the folder {self._folder}; set Dask's "
                    "'temporary-directory' to one that all machines share, or pass dask arrays"
                )
        return Path(tempfile.mkdtemp(dir=self._folder))

    def homes(self, n_blocks: int) -> list[str]:
        """A worker for every block, neighboring blocks together."""
        with saying_if_lost(self.client):
            workers = sorted(workers_of(self.client))
        if not workers:
            raise ClusterLost(f"all Dask workers are gone; {REMEDY}")
        return [workers[b * len(workers) // n_blocks] for b in range(n_blocks)]

    def where(self, futures: list[Any], homes: list[str]) -> list[str]:
        """Where the values are now; at home if nowhere."""
        with saying_if_lost(self.client):
            held = self.client.who_has(futures)
        return [
            (held.get(future.key) or [home])[0] for future, home in zip(futures, homes, strict=True)
        ]

    def task(self, home: str | None, work: Callable, *args: Any) -> Any:
        """work(*args), not yet begun; at home if that worker is still there when it is.

        Tasks and futures may be among the arguments.
        """
        import dask

        place = {} if home is None else {"workers": [home], "allow_other_workers": True}
        with dask.annotate(**place):
            return dask.delayed(work, pure=False)(*args)

    def keep(self, value: Any, home: str | None = None) -> Any:
        """A task whose value is one of this process: the scheduler can always make it again."""
        return self.task(home, _itself, value)

    def begin(self, *groups: list[Any]) -> list[list[Any]]:
        """Futures of some lists of tasks, all begun in one message."""
        with warnings.catch_warnings(), saying_if_lost(self.client):
            # Dask would rather have large values scattered: they would then be lost with a worker.
            warnings.filterwarnings("ignore", message="Sending large graph")
            tasks = [task for group in groups for task in group]
            futures = iter(self.client.compute(tasks, optimize_graph=False))
        return [[next(futures) for _ in group] for group in groups]

    def result(self, future: Any) -> Any:
        return wait_for(self.client, future)

    def results(self, tasks: list[Any]) -> list[Any]:
        """The values of tasks not yet begun."""
        return [self.result(future) for future in self.begin(tasks)[0]]


def current_client() -> Any:
    """The user's `distributed.Client`, if there is one."""
    try:
        import distributed

        client = distributed.get_client()
    except (ModuleNotFoundError, ValueError):
        return None
    if client.asynchronous:  # in the thread of its event loop: its answers are coroutines
        raise RuntimeError(
            "the current Dask client is asynchronous, and a fit needs a synchronous one; fit in another "
            "thread, as in: await asyncio.to_thread(model.fit, views), or use a Client made without "
            "asynchronous=True"
        )
    return client


def workers_of(client: Any) -> list[str]:
    try:
        return list(client.nthreads())
    except OSError:  # the scheduler does not answer
        return []


@contextmanager
def saying_if_lost(client: Any) -> Iterator[None]:
    """What Dask raises when the scheduler or the client is gone, as a sentence."""
    package = distributed()
    if client.status in ("closing", "closed"):  # older versions raise a bare Exception for that
        raise ClusterLost(f"the Dask client is {client.status}; {REMEDY}")
    lost = [
        package.CancelledError,
        package.comm.CommClosedError,
        getattr(package.client, "ClosedClientError", None),
    ]
    try:
        yield
    except package.KilledWorker as error:
        raise ClusterLost(_killed(client, error)) from error
    except tuple(error for error in lost if error is not None) as error:
        why = f"{type(error).__name__}: {error}".split()
        raise ClusterLost(f"the Dask cluster gave up ({' '.join(why)}); {REMEDY}") from error


def _killed(client: Any, error: BaseException) -> str:
    """A task that ended several workers one after the other: nearly always for want of memory."""
    try:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
    except (OSError, TypeError):  # gone, or of a version without this argument
        workers = []
    limits = [worker.get("memory_limit") or 0 for worker in workers]
    least = f" (the smallest may take {min(limits) / 2**30:.3g} GiB)" if any(limits) else ""
    return (
        "the same task ended several Dask workers, which happens when it takes more memory than a "
        f"worker has{least}: give workers more memory (memory_limit=, fewer per machine), start more of "
        "them, or pass dask arrays in smaller blocks of rows; then fit with the same settings: a fit "
        f"with checkpoint= continues from there. Dask said: {' '.join(str(error).split())[:300]}"
    )


def wait_for(client: Any, future: Any) -> Any:
    """The value of a future, or a sentence if the cluster cannot make it any more."""
    package = distributed()
    alone_since = None
    with saying_if_lost(client):
        # Not by result(timeout=...): a task may raise a TimeoutError of its own.
        while not future.done():
            try:
                package.wait(future, timeout=BEAT)
            except TimeoutError:
                if workers_of(client):
                    alone_since = None
                elif alone_since is None:
                    alone_since = time.monotonic()
                elif time.monotonic() - alone_since > PATIENCE:
                    raise ClusterLost(
                        f"all Dask workers are gone (none for {PATIENCE:g} s; {SHORT}); {REMEDY}"
                    ) from None
        return future.result()


def _local_cluster(package: Any) -> Any:
    """One process per core of this machine, not reachable from elsewhere."""
    import dask

    # A worker with nothing to do would take blocks from another, and carry them over.
    with dask.config.set({"distributed.scheduler.work-stealing": False}):
        try:
            # Threads inside a worker would share its interpreter: one each.
            return package.LocalCluster(
                threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0"
            )
        except RuntimeError as error:
            raise ClusterLost(
                f"a local Dask cluster could not be started ({error}); in a script, the fit must be "
                "under 'if __name__ == \"__main__\":', since workers import it; or start a Client first"
            ) from error


SHORT = "as happens when tasks need more memory than workers have"
REMEDY = "start workers again and fit with the same settings: a fit with checkpoint= continues from there"


def _itself(value: Any) -> Any:
    return value
