"""`manyview app`: the page's routes, who may ask for them, and where they are served.

Only this machine can reach the page, only its own pages have the key in their addresses, and only they may
change something.
"""

from __future__ import annotations

import contextlib
import errno
import json
import secrets
import socket
import time
import webbrowser
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import typer
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import (
    FileResponse,
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
)
from starlette.routing import Mount, Route
from uvicorn import Config, Server

from manyview.app.files import KINDS
from manyview.app.options import AppRequest
from manyview.datasets import load_nutrimouse, make_cohort
from manyview.datasets._dataset import tables_of
from manyview.io.limits import size_text
from manyview.io.safe_csv import read_csv
from manyview.io.writing import claimed

from . import pages
from .answers import COLUMNS, Unfit, checked, clusters, file_name
from .runs import FitLimits, NotThere, Runs

HERE = "127.0.0.1"
#: Longest body of a form.
FORM_BYTES = 16_384
ASSETS = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
MADE: dict[str, Callable[[], Any]] = {"cohort": make_cohort, "nutrimouse": load_nutrimouse}
#: Nothing from elsewhere, no inline script or style, no form to elsewhere, in no other frame.
HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src "
    "'self'; frame-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    # Not "no-referrer": browsers would then send forms with the origin "null".
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
#: The report runs its own scripts, in an opaque origin.
REPORT = {
    "content-security-policy": "sandbox allow-scripts allow-downloads; frame-ancestors 'self'; "
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:",
}
#: The fields of a form, or what is behind the "?" of an address.
Fields = Mapping[str, str]


class TooMuch(Unfit):
    """A table over the limit."""


@dataclass
class Page:
    """The handlers: each takes the name of a run and the fields; and what they share."""

    runs: Runs
    base: str
    most_bytes: int

    def routes(self) -> list[Route]:
        ofs = (self.drop, self.answer, self.forget, self.fit, self.cancel, self.again, self.remove,
               self.columns, self.clinical, self.names)  # fmt: skip
        changes = {f"/r/{{name}}/{to.__name__}": to for to in ofs}
        changes |= {"/new": self.new, "/sample": self.sample}
        shown = {f"/r/{{name}}/{to.__name__}": to for to in (self.state, self.report, self.room)}
        shown |= {"/": self.home, "/r/{name}": self.run, "/r/{name}/zip": self.archive}
        shown |= {"/{name}": self.asset}
        return [
            Route("/r/{name}/table", self.table, methods=["POST"]),
            *(Route(path, in_thread(to), methods=["POST"]) for path, to in changes.items()),
            *(Route(path, in_thread(to), methods=["GET"]) for path, to in shown.items()),
        ]

    # What is shown -------------------------------------------------------------------------------

    def home(self, name: str, given: Fields) -> Response:
        return HTMLResponse(pages.home(self.base, self.runs.listed(), str(self.runs.home)))

    def asset(self, name: str, given: Fields) -> Response:
        if name not in ASSETS:
            raise NotThere("There is no such page.")
        return Response(pages.asset(name), media_type=ASSETS[name])

    def run(self, name: str, given: Fields) -> Response:
        about = self.runs.state(name)
        if about["state"] == "draft":
            about = self.runs.look(name)
        folder = self.runs.folder(name)
        if about["state"] == "done":
            about["batches"] = batches(folder / "run" / "run.json")
            about["named"] = named_clusters(folder / "run")
        limit = size_text(self.most_bytes)
        return HTMLResponse(pages.run(self.base, name, about, str(folder), limit))

    def state(self, name: str, given: Fields) -> Response:
        about = self.runs.state(name)
        seconds = round(time.time() - (about["started"] or time.time()))
        known = {"state": about["state"], "stages": about["stages"], "seconds": seconds}
        return JSONResponse(known)

    def report(self, name: str, given: Fields) -> Response:
        path = self.runs.folder(name) / "run" / "report.html"
        if not path.is_file():
            raise NotThere("This run has no report.")
        return FileResponse(path, media_type="text/html", headers=REPORT)

    def archive(self, name: str, given: Fields) -> Response:
        path = self.runs.archive(name)
        gone = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, filename=f"manyview-{name}.zip", background=gone)

    # Tables --------------------------------------------------------------------------------------

    async def table(self, request: Request) -> Response:
        """A table, as the body of the request: written as it comes, under a name of our own."""
        name, asked = request.path_params["name"], request.query_params
        given, size = asked.get("name", ""), 0
        wanted = {"name": given, "size": request.headers.get("content-length", "")}
        self.room(name, wanted | {"kind": asked.get("kind", "view")})
        path = self.runs.folder(name) / "tables" / f"part-{secrets.token_hex(8)}"
        try:
            with open(path, "xb") as out:
                async for piece in request.stream():
                    size += len(piece)
                    self._check_size(size)
                    await run_in_threadpool(out.write, piece)
            if size == 0:
                raise Unfit("The file is empty.")
            return PlainTextResponse(self.runs.keep(name, path, given, asked.get("kind", "view")))
        finally:
            path.unlink(missing_ok=True)

    def room(self, name: str, given: Fields) -> Response:
        """Whether a table may come; a browser that is refused while it sends does not hear why."""
        self.runs.read_draft(name)
        kinds = (".gmt",) if given.get("kind") == "sets" else KINDS
        file_name(given.get("name", ""), kinds=kinds)  # a kind that we do not read is refused
        size = given.get("size", "")
        self._check_size(int(size) if size.isdecimal() and len(size) < 20 else 0)
        return PlainTextResponse("It may come.")

    def _check_size(self, size: int) -> None:
        if size > self.most_bytes:
            raise TooMuch(
                f"The file is larger than {size_text(self.most_bytes)}, the limit of this page "
                "(manyview app --max-upload); large files are better read in place by manyview fit."
            )

    # Changes -------------------------------------------------------------------------------------

    def new(self, name: str, given: Fields) -> Response:
        return self._to(self.runs.new())

    def sample(self, name: str, given: Fields) -> Response:
        made = MADE.get(given.get("which", ""))
        if made is None:
            raise Unfit("There are no such sample tables.")
        name = self.runs.new()
        for file, content in tables_of(made()).items():
            if file.endswith(".csv") and file != "labels.csv":
                path = self.runs.folder(name) / "tables" / f"part-{file}"
                path.write_bytes(content)
                self.runs.keep(name, path, file, "clinical" if file == "clinical.csv" else "view")
        return self._to(name)

    def drop(self, name: str, given: Fields) -> Response:
        self.runs.drop(name, given.get("file", ""))
        return self._to(name)

    def answer(self, name: str, given: Fields) -> Response:
        self.runs.answer(name, checked(given.get("option", ""), given.get("value", "")))
        return self._to(name)

    def columns(self, name: str, given: Fields) -> Response:
        """Which columns of the clinical table are time, event and known classes; "" is none chosen."""
        words = [checked(key, given[key]) for key in COLUMNS if given.get(key)]
        with self.runs.changing(name, draft=True) as about:
            about["words"] = [w for w in about["words"] if w[0] not in COLUMNS] + words
        return self._to(name)

    def clinical(self, name: str, given: Fields) -> Response:
        self.runs.to_clinical(name, given.get("file", ""))
        return self._to(name)

    def names(self, name: str, given: Fields) -> Response:
        """Name the clusters of a finished run."""
        named = {k: " ".join(v.split())[:60] for k, v in given.items() if k.isdecimal()}
        if named:
            self.runs.rename(name, named)
        return self._to(name)

    def forget(self, name: str, given: Fields) -> Response:
        with self.runs.changing(name, draft=True) as about:
            about["words"] = []
        return self._to(name)

    def fit(self, name: str, given: Fields) -> Response:
        asked = given.get("clusters", "")
        self.runs.start(name, clusters(given.get("number", "") if asked == "number" else asked))
        return self._to(name)

    def cancel(self, name: str, given: Fields) -> Response:
        self.runs.cancel(name)
        return self._to(name)

    def again(self, name: str, given: Fields) -> Response:
        """A new draft of the same tables, perhaps with the batches of one more column aligned."""
        word = checked("batch", given["batch"]) if "batch" in given else None
        return self._to(self.runs.copy(name, word))

    def remove(self, name: str, given: Fields) -> Response:
        self.runs.remove(name)
        return RedirectResponse(f"{self.base}/", 303)

    def _to(self, name: str) -> Response:
        return RedirectResponse(f"{self.base}/r/{name}", 303)

    # Failures ------------------------------------------------------------------------------------

    def failed(self, request: Request, error: Exception) -> Response:
        """A failure as a sentence: a page for forms, text for scripts."""
        status, sentence = 400, str(error)
        if isinstance(error, NotThere):
            status = 404
        elif isinstance(error, TooMuch):
            status = 413
        elif isinstance(error, ClientDisconnect):
            sentence = "The connection was lost; nothing was kept."
        elif isinstance(error, OSError):
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            status = 507 if full else 500
            sentence = (
                "The disk is full; nothing was kept." if full else f"It failed: {error.strerror}."
            )
        if request.scope["path"].endswith(("/table", "/room", "/state")):
            return PlainTextResponse(sentence, status)
        return HTMLResponse(pages.problem(self.base, sentence), status)


def in_thread(handler: Callable[[str, Fields], Response]) -> Callable[[Request], Any]:
    """A handler that may wait for files and processes, for the loop that may not."""

    async def answer(request: Request) -> Response:
        given: Fields = request.query_params
        if request.method == "POST":
            body = b""
            async for piece in request.stream():
                body += piece
                if len(body) > FORM_BYTES:
                    raise TooMuch("The form is too long.")
            try:
                fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
            except ValueError:
                raise Unfit("The form could not be read.") from None
            given = {name: values[-1] for name, values in fields.items()}
        return await run_in_threadpool(handler, request.path_params.get("name", ""), given)

    return answer


class Gate:
    """Only our own page may change something; every answer gets its headers."""

    def __init__(self, app: Any):
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def with_headers(message: Any) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app, asked = self.app, Headers(scope=scope) if scope["type"] == "http" else Headers()
        ours = [f"http://{asked.get('host')}"]
        if scope.get("method") == "POST" and asked.getlist("origin") != ours:
            app = PlainTextResponse("Requests from other pages are refused.", 403)
        await app(scope, receive, with_headers)


def batches(path: Path) -> list[str]:
    """Technical columns that the clusters of a finished run follow, whose batches were not aligned."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        found = [f["column"] for f in about["clinical"]["followed"] if f["technical"]]
        removed = [*about["adjusted"], *about["settings"].get("batch", [])]
        return [str(column) for column in found if column not in removed]
    except (OSError, ValueError, TypeError, KeyError):  # none, or of another version
        return []


def named_clusters(run: Path) -> list[tuple[str, str]]:
    """Numbers of the clusters of a finished run, and the names that they have."""
    try:
        names = json.loads((run / "run.json").read_text(encoding="utf-8")).get("names") or {}
        rows = read_csv(run / "clusters.csv")
        return [(row["cluster"], str(names.get(row["cluster"], ""))) for row in rows][:20]
    except (OSError, ValueError, KeyError, AttributeError):
        return []


def make_app(
    home: Path, token: str, limits: FitLimits | None = None, most_bytes: int = 2**30
) -> tuple[Starlette, Runs]:
    """The application, and its runs."""
    runs = Runs(home, limits or FitLimits())

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(runs.cancel_all)

    page = Page(runs, f"/{token}", most_bytes)
    failures: Any = dict.fromkeys((NotThere, Unfit, ClientDisconnect, OSError), page.failed)
    app = Starlette(
        routes=[Mount(page.base, routes=page.routes())],
        lifespan=life,
        exception_handlers=failures,
        middleware=[
            Middleware(Gate),
            # No other name may be pointed at this machine (DNS rebinding).
            Middleware(TrustedHostMiddleware, allowed_hosts=[HERE, "localhost"]),
        ],
    )
    return app, runs


def run_app(ask: AppRequest, voice: Any) -> None:
    """Serve until interrupted; the address is printed."""
    limits = FitLimits(3600 * ask.max_hours, int((ask.max_memory or 0) * 2**30))
    ask.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with claimed(ask.folder, "app", mixed=True) as place, socket.socket() as listening:
        try:
            listening.bind((HERE, ask.port))
            listening.listen(128)  # a browser that is quicker than the server waits
        except OSError as error:
            raise ValueError(
                f"--port {ask.port} cannot be used ({error.strerror}); leave it out"
            ) from None
        token = secrets.token_urlsafe(24)
        app, _ = make_app(place.path, token, limits, int(ask.max_upload * 2**30))
        address = f"http://{HERE}:{listening.getsockname()[1]}/{token}/"
        typer.echo(
            f"The page: {address}\nRuns are in {place.path}/. Only this machine can reach it. "
            "Ctrl-C ends it."
        )
        if ask.browser:
            webbrowser.open(address)
        # Addresses hold the token: they are not logged. A browser may never read the end of an answer.
        quiet: Any = {"log_level": "error", "access_log": False, "timeout_graceful_shutdown": 5}
        Server(Config(app, ws="none", **quiet)).run(sockets=[listening])
