"""Limits on the memory of unpacked files, and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from numbers import Real
from pathlib import Path

#: Times its size that a file may take in memory, and that rows read one after the other may be in all.
#: Measurements hardly shrink, a table of counts with 2% of them above zero to a 150th; deflate can
#: reach a thousandth.
RATIO, RATIO_BY_ROWS = 250, 1000
#: Bytes that any file may unpack, however small.
ALWAYS = 2**28
#: Bytes that are allowed even if memory is short.
SMALL = 2**24
GIB = 2**30
#: What the user allows instead, in GiB.
ALLOWED: ContextVar[float | None] = ContextVar("allowed", default=None)


class TooLarge(ValueError):
    """The file would take more than it may."""


class BadFile(ValueError):
    """A file that cannot be used; the sentence names it and says everything."""


@contextmanager
def naming(path: Path, what: str, hint: str = "") -> Iterator[None]:
    """Whatever goes wrong with a file in here → a ValueError that names it."""
    try:
        yield
    except ImportError:
        raise
    except BadFile as error:
        raise ValueError(str(error)) from None
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except Exception as error:  # parsers of damaged files raise whatever they stumble over
        why = " ".join(str(error).split())[:300]
        if not isinstance(error, ValueError | OSError):
            why = f"{type(error).__name__}: {why}".removesuffix(": ")
        raise ValueError(f"{path.name} could not be read as {what}: {why}{hint}") from error


@contextmanager
def unpacking_up_to(max_unpacked: float | None) -> Iterator[None]:
    """Allow files this many GiB unpacked; ``None`` leaves the limit as it is."""
    if max_unpacked is None:
        yield
        return
    number = isinstance(max_unpacked, Real) and not isinstance(max_unpacked, bool)
    if not number or not max_unpacked > 0:
        raise ValueError(f"max_unpacked must be a number of GiB above 0, got {max_unpacked!r}")
    before = ALLOWED.set(float(max_unpacked))
    try:
        yield
    finally:
        ALLOWED.reset(before)


def unpacking_limit() -> float | None:
    """What the user allows here, in GiB; ``None`` is the usual rule."""
    return ALLOWED.get()


def room_for(packed: float) -> float:
    """Bytes that a file of ``packed`` bytes may take in memory."""
    allowed = ALLOWED.get()
    if allowed is not None:
        return allowed * GIB
    return min(max(ALWAYS, RATIO * packed), free_memory())


def check_held(wanted: float, packed: float, what: str = "it", so_far: bool = False) -> None:
    """Refuse what would take ``wanted`` bytes of memory, more than a file of ``packed`` bytes may.

    ``so_far``: it may be much more, which only unpacking would tell.
    """
    if wanted <= min(SMALL, ALWAYS):  # thousands of chunks are: no need to check the memory
        return
    room = room_for(packed)
    if wanted > room:
        raise TooLarge(_sentence(what, wanted, packed, room, "in memory", so_far))


def check_claim(wanted: float, packed: float, what: str) -> None:
    """The same of rows that are read one after the other and never held together."""
    allowed = ALLOWED.get()
    room = max(ALWAYS, RATIO_BY_ROWS * packed) if allowed is None else allowed * GIB
    if wanted > room:
        raise TooLarge(_sentence(what, wanted, packed, room, "when read"))


def _sentence(
    what: str, wanted: float, packed: float, room: float, where: str, so_far: bool = False
) -> str:
    enough = gib_text(4 * wanted if so_far else wanted)
    return (
        f"{what} takes {'more than ' * so_far}{size_text(wanted)} {where} and {size_text(packed)} in the "
        f"file; {size_text(room)} is the limit, because a file can be made to fill the memory. If you "
        f"trust the file, raise the limit: max_unpacked={enough} or --max-unpacked {enough} (GiB)"
    )


def gib_text(wanted: float) -> str:
    return f"{math.ceil(100 * wanted / GIB) / 100:g}" if wanted < 1e18 else f"{wanted / GIB:.3g}"


def size_text(n: float) -> str:
    for unit, size in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if n >= size:
            return f"{n / size:.0f} {unit}" if n >= 100 * size else f"{n / size:.3g} {unit}"
    return f"{int(n)} bytes"


def free_memory() -> float:
    """Bytes this process could take; without limit where the system does not say."""
    free = math.inf
    try:
        with open("/proc/meminfo") as lines:
            found = dict(line.split(":") for line in lines)
        free = int(found["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        pass
    return min(free, _free_in_container())


def _free_in_container() -> float:
    """A container has less than its machine."""
    try:
        with (
            open("/sys/fs/cgroup/memory.max") as most,
            open("/sys/fs/cgroup/memory.current") as now,
        ):
            return max(0, int(most.read()) - int(now.read()))
    except (OSError, ValueError):  # no container, or one without a limit
        return math.inf
