"""Where the page listens: on this machine alone, or on an address that was named, with a password."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass

#: Nobody else's machine can reach it.
HERE = "127.0.0.1"
#: Shorter passwords are guessed.
SHORTEST = 10


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
