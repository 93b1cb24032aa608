"""Who may ask: only pages that we served ourselves, with the token, and the password if there is one.

Who may not is answered and disconnected at once, so that nobody can keep the owner out.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import secrets
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from ipaddress import ip_address
from typing import Any, ClassVar

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from uvicorn.protocols.http.h11_impl import H11Protocol

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Any, Any], Awaitable[None]]

#: Nothing from elsewhere, no inline script or style, no form to elsewhere, in nobody's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # Not "no-referrer": browsers would then send forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


#: Seconds after a wrong password in which its address may give no other, and so many addresses at once.
PAUSE, MOST_WRONG = 1.0, 10
#: Seconds that a connection may be open without a request, and so many of those at once.
PATIENCE, MOST_WAITING = 10.0, 160
#: Connections that are accepted before the next reading; fewer, so that none gives way before it is read.
AT_ONCE = 32


def address_of(client: tuple[str, int] | None) -> str:
    """Whom limits count as one: an address, or of IPv6 the 64 bits that one network has."""
    host = client[0].partition("%")[0] if client else ""
    return ip_address(host).exploded[:19] if ":" in host else host


class Connection(H11Protocol):
    """A connection that is closed unless it asks soon, and before that if there are too many.

    Bytes that are no whole request do not prolong it. Where too many wait, the address with most of
    them loses its oldest: one address cannot close the connections of another.
    """

    waiting: ClassVar[dict[Connection, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.address = address_of(self.client)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self.transport.is_closing() or (self.cycle and not self.cycle.response_complete):
            self._stop_waiting()
        elif self not in self.waiting:
            self.waiting[self] = self.loop.call_later(PATIENCE, self.transport.close)
            if len(self.waiting) > MOST_WAITING:
                most = Counter(other.address for other in self.waiting).most_common(1)[0][0]
                oldest = next(other for other in self.waiting if other.address == most)
                oldest._stop_waiting()
                oldest.transport.close()

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


class Gate:
    """Refuses what does not come from our own page; gives every answer its headers."""

    def __init__(self, app: App, token: str, hosts: Iterable[str], password: str = ""):
        self.app, self.token, self.hosts = app, token.encode(), frozenset(hosts)
        self.password = password.encode()
        self._wrong: dict[str, float] = {}  # when an address has last given a wrong password
        self._known = secrets.token_urlsafe(
            24
        )  # a cookie of browsers that have given the right one

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            return
        refusal = self._refusal(scope) or self._refusal_of_password(scope)
        if refusal is not None:
            status, sentence = refusal
            also = {"connection": "close"}
            if status == 401:
                also["www-authenticate"] = 'Basic realm="manyview", charset="UTF-8"'
            await PlainTextResponse(sentence, status, HEADERS | also)(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                if self.password:
                    path = f"/{self.token.decode()}"
                    cookie = f"known={self._known}; Path={path}; HttpOnly; SameSite=Strict"
                    headers.append("set-cookie", cookie)
            await send(message)

        # Whole files only: parts of them cost more than they are worth.
        parts = (b"range", b"if-range")
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in parts]

        await self.app(scope, receive, with_headers)

    def _refusal_of_password(self, scope: Scope) -> tuple[int, str] | None:
        asked = HTTPConnection(scope)
        if not self.password:
            return None
        if "authorization" not in asked.headers:
            return 401, "The page asks for the password; the name does not matter."
        now, address = time.monotonic(), address_of(scope.get("client"))
        self._wrong = {other: at for other, at in self._wrong.items() if now - at < PAUSE}
        known = secrets.compare_digest(
            asked.cookies.get("known", "").encode(), self._known.encode()
        )
        if not known and (address in self._wrong or len(self._wrong) >= MOST_WRONG):
            return (
                429,
                "A wrong password was given a moment ago; wait a second, then load the page again.",
            )
        kind, _, given = asked.headers["authorization"].partition(" ")
        pair = b""
        with contextlib.suppress(binascii.Error, ValueError):
            pair = base64.b64decode(given, validate=True)
        right = secrets.compare_digest(pair.partition(b":")[2], self.password)
        if right and kind.lower() == "basic":
            return None
        self._wrong[address] = now
        return 401, "That is not the password; the name does not matter."

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return 421, "This page answers only to the name in the address that it has printed."
        first = scope["path"].split("/")[1] if "/" in scope["path"] else ""
        if not secrets.compare_digest(first.encode(), self.token):
            return 403, "Open the address that manyview app has printed: it holds the key."
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "Only GET and POST are answered."
        # The file that opens the browser counts as another site; its page is no frame and no script.
        shown = headers.get("sec-fetch-mode") == "navigate", headers.get("sec-fetch-dest")
        opened = scope["path"] == f"/{first}/" and shown == (True, "document")
        site = headers.get("sec-fetch-site", "none")
        if site not in ("same-origin", "none") and not (opened and scope["method"] == "GET"):
            return 403, "Another site has asked for this; it is not answered."
        if scope["method"] == "POST" and headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return 403, "Only our own page may change something here."
        return None
