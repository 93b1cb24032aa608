"""Who may ask: only pages that we served ourselves, with the token.

Who may not is answered and disconnected at once, so that nobody can keep the owner out.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any, ClassVar

from starlette.datastructures import Headers, MutableHeaders
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


#: Seconds that a connection may be open without a request, and so many of those at once.
PATIENCE, MOST_WAITING = 10.0, 160
#: Connections that are accepted before the next reading; fewer, so that none gives way before it is read.
AT_ONCE = 32


class Connection(H11Protocol):
    """A connection that is closed unless it asks soon, and before that if there are too many.

    Bytes that are no whole request do not prolong it. Where too many wait, the oldest is closed.
    """

    waiting: ClassVar[dict[Connection, asyncio.TimerHandle]] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
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
                oldest = next(iter(self.waiting))
                oldest._stop_waiting()
                oldest.transport.close()

    def _stop_waiting(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


class Gate:
    """Refuses what does not come from our own page; gives every answer its headers."""

    def __init__(self, app: App, token: str, hosts: Iterable[str]):
        self.app, self.token, self.hosts = app, token.encode(), frozenset(hosts)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            return
        refusal = self._refusal(scope)
        if refusal is not None:
            status, sentence = refusal
            answer = PlainTextResponse(sentence, status, HEADERS | {"connection": "close"})
            await answer(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # Whole files only: parts of them cost more than they are worth.
        parts = (b"range", b"if-range")
        scope["headers"] = [pair for pair in scope["headers"] if pair[0] not in parts]

        await self.app(scope, receive, with_headers)

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
