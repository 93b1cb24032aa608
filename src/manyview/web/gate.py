"""Who may ask: only pages that we served ourselves, with the token, and the password if there is one."""

from __future__ import annotations

import asyncio
import base64
import binascii
import secrets
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

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


#: Seconds between two wrong passwords, of everybody together.
PAUSE = 1.0


class Gate:
    """Refuses what does not come from our own page; gives every answer its headers."""

    def __init__(self, app: App, token: str, hosts: Iterable[str], password: str = ""):
        self.app, self.token, self.hosts = app, token.encode(), frozenset(hosts)
        self.password, self._guessing = password.encode(), asyncio.Lock()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":  # no web sockets here
            return
        refusal = self._refusal(scope)
        asked = {}
        if refusal is None and not self._knows_password(scope):
            refusal = 401, "The page asks for the password; the name does not matter."
            asked = {"www-authenticate": 'Basic realm="manyview", charset="UTF-8"'}
            if "authorization" in Headers(scope=scope):
                async with self._guessing:  # one wrong guess at a time
                    await asyncio.sleep(PAUSE)
        if refusal is not None:
            answer = PlainTextResponse(refusal[1], refusal[0], HEADERS | asked)
            await answer(scope, receive, send)
            return

        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self.app(scope, receive, with_headers)

    def _knows_password(self, scope: Scope) -> bool:
        if not self.password:
            return True
        kind, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        try:
            pair = base64.b64decode(given, validate=True)
        except (binascii.Error, ValueError):
            return False
        right = secrets.compare_digest(pair.partition(b":")[2], self.password)
        return right and kind.lower() == "basic"

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
        site = headers.get("sec-fetch-site", "none" if scope["method"] != "POST" else "same-origin")
        if site not in ("same-origin", "none"):
            return 403, "Another site has asked for this; it is not answered."
        if scope["method"] == "POST" and headers.getlist("origin") != [f"http://{hosts[0]}"]:
            return 403, "Only our own page may change something here."
        return None
