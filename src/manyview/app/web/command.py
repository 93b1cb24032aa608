"""`manyview app`: the page on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import signal
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from manyview.io.writing import take_lock

from .jobs import Limits
from .place import Place

#: Said of a page that other machines can reach.
CLEAR = (
    "Whoever has this address and the password can use it. What is sent can be read on the way: on a "
    "network that you do not trust, use ssh -L instead."
)


def run_app(
    folder: Path,
    place: Place,
    most_bytes: int,
    limits: Limits,
    browse: bool,
    say: Callable[[str], None],
) -> None:
    """Serve until interrupted; ``say`` is told the address."""
    try:
        from . import server
    except ModuleNotFoundError as error:
        if (error.name or "manyview").split(".")[0] == "manyview":
            raise
        raise ModuleNotFoundError(
            f"manyview app needs {error.name}: pip install 'manyview[app]'", name=error.name
        ) from error
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = folder.resolve()
    with open(folder / ".lock", "ab", opener=_not_a_link) as lock:
        if take_lock(lock) is False:
            raise ValueError(f"another manyview app uses {folder}; name another folder by --folder")
        listening = place.listen()
        token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
        app, _ = server.make_app(
            folder, token, port, limits, most_bytes, names=place.names, password=place.password
        )
        address = f"http://{place.names[0]}:{port}/{token}/"
        reach = CLEAR if place.password else "Only this machine can reach it."
        say(f"The page: {address}\nRuns are in {folder}/. {reach} Ctrl-C ends it.")
        with _redirect(folder, address) if browse else nullcontext() as page:
            if page:
                webbrowser.open(page)
            server.server_of(app).run(sockets=[listening])


@contextmanager
def _redirect(folder: Path, address: str) -> Iterator[str]:
    """A file that only this user can read and that leads to the address.

    The browser is given the file, because every user of the machine can read its command line.
    """
    handle, name = tempfile.mkstemp(prefix="open-", suffix=".html", dir=folder)  # mode 0600
    try:
        with open(handle, "w", encoding="utf-8") as file:
            file.write(
                f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={address}">'
                f'<title>manyview</title><a href="{address}">Open the page of manyview</a>\n'
            )
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # removes the file, too
        yield Path(name).as_uri()
    finally:
        Path(name).unlink(missing_ok=True)


def _not_a_link(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o600)
