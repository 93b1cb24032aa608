"""`manyview app`: where the page listens, and that it is served until Ctrl-C."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer

from manyview.app.options import AppRequest
from manyview.io.writing import take_lock

from . import server
from .runs import FitLimits

#: Nobody else's machine can reach it.
HERE = "127.0.0.1"


def listen(port: int) -> socket.socket:
    """A socket of this machine alone, bound; a sentence where it cannot be."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((HERE, port))
        listening.listen(128)  # a browser that is quicker than the server waits
    except OSError as error:
        listening.close()
        raise ValueError(f"--port {port} cannot be used ({error.strerror}); leave it out") from None
    return listening


def run_app(ask: AppRequest, voice: Any) -> None:
    """Serve until interrupted; the address is printed."""
    serve(ask, typer.echo)


def serve(ask: AppRequest, say: Callable[[str], Any]) -> None:
    """Serve until interrupted; ``say`` is told the address."""
    limits = FitLimits(3600 * ask.max_hours, int((ask.max_memory or 0) * 2**30))
    ask.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = ask.folder.resolve()
    with open(folder / ".lock", "ab", opener=_not_a_link) as lock:
        if take_lock(lock) is False:
            raise ValueError(f"another manyview app uses {folder}; name another folder by --folder")
        listening = listen(ask.port)
        token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
        app, _ = server.make_app(folder, token, port, limits, int(ask.max_upload * 2**30))
        address = f"http://{HERE}:{port}/{token}/"
        say(
            f"The page: {address}\nRuns are in {folder}/. Only this machine can reach it. Ctrl-C ends it."
        )
        with _redirect(folder, address) if ask.browser else nullcontext() as page:
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
