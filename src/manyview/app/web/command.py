"""`manyview app`: where the page listens, and that it is served until Ctrl-C."""

from __future__ import annotations

import ipaddress
import os
import secrets
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from manyview.app.options import AppRequest
from manyview.io.writing import take_lock

from . import server
from .runs import FitLimits

#: Nobody else's machine can reach it.
HERE = "127.0.0.1"
#: Shorter passwords are guessed.
SHORTEST = 10
#: Said of a page that other machines can reach.
CLEAR = (
    "Whoever has this address and the password can use it. What is sent can be read on the way: on a "
    "network that you do not trust, use ssh -L instead."
)


@dataclass(frozen=True)
class Place:
    """An address, the names that lead there, and the password (none on this machine alone)."""

    number: str
    names: tuple[str, ...]
    port: int
    password: str = ""

    def listen(self) -> socket.socket:
        """A socket there, bound; a sentence where it cannot be."""
        family = socket.AF_INET6 if ":" in self.number else socket.AF_INET
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            listening.bind((self.number, self.port))
            listening.listen(128)  # a browser that is quicker than the server waits
        except OSError as error:
            listening.close()
            given = f"--port {self.port}" if self.port else f"--address {self.number}"
            raise ValueError(f"{given} cannot be used ({error.strerror}); leave it out") from None
        return listening


def place_of(address: str, port: int, ask: Callable[[], str]) -> Place:
    """The place of an address or a name of this machine; ``ask`` gives the password it then needs."""
    if address in (HERE, "localhost"):
        return Place(HERE, (HERE, "localhost"), port)
    try:
        number = str(socket.getaddrinfo(address, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError):
        raise ValueError(f"--address {address!r} is no address or name of this machine") from None
    if ipaddress.ip_address(number.partition("%")[0]).is_unspecified:
        raise ValueError(
            f"--address {address} means every network of this machine; name the address of one of them"
        )
    password = ask()
    if len(password) < SHORTEST:
        raise ValueError(
            f"--address {address} needs a password of at least {SHORTEST} characters, got {len(password)}: "
            "set the variable MANYVIEW_PASSWORD, or type it when asked"
        )
    shown = f"[{number}]" if ":" in number else number
    return Place(number, tuple(dict.fromkeys((shown, address.lower()))), port, password)


def run_app(ask: AppRequest, voice: Any) -> None:
    """Serve until interrupted; the address is printed."""
    serve(ask, place_of(ask.address, ask.port, _password), typer.echo)


def _password() -> str:
    known = os.environ.get("MANYVIEW_PASSWORD", "")
    if known or not sys.stdin.isatty():
        return known
    return typer.prompt("A password for the page", hide_input=True, confirmation_prompt=True)


def serve(ask: AppRequest, place: Place, say: Callable[[str], Any]) -> None:
    """Serve until interrupted; ``say`` is told the address."""
    limits = FitLimits(3600 * ask.max_hours, int((ask.max_memory or 0) * 2**30))
    ask.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = ask.folder.resolve()
    with open(folder / ".lock", "ab", opener=_not_a_link) as lock:
        if take_lock(lock) is False:
            raise ValueError(f"another manyview app uses {folder}; name another folder by --folder")
        listening = place.listen()
        token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
        most = int(ask.max_upload * 2**30)
        app, _ = server.make_app(
            folder, token, port, limits, most, names=place.names, password=place.password
        )
        address = f"http://{place.names[0]}:{port}/{token}/"
        reach = CLEAR if place.password else "Only this machine can reach it."
        say(f"The page: {address}\nRuns are in {folder}/. {reach} Ctrl-C ends it.")
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
