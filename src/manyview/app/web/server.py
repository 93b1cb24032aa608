"""The routes of the page: each asks the runs, and answers with a page or a redirect."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
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

from manyview.datasets import load_nutrimouse, make_cohort
from manyview.datasets._dataset import tables_of
from manyview.io.limits import size_text

from . import gate, pages
from .answers import Unfit, checked, clusters, file_name
from .runs import FitLimits, NotThere, Runs

#: Longest body of a form; longest wait for the next piece of a table, in seconds.
FORM_BYTES, PATIENCE = 16_384, 30.0
KINDS = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
MADE: dict[str, Callable[[], Any]] = {"cohort": make_cohort, "nutrimouse": load_nutrimouse}
#: The report runs its own scripts, which it names by their digests, in an origin of nobody.
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
        ofs = (self.drop, self.answer, self.forget, self.fit, self.cancel, self.again, self.remove)
        changes = {f"/r/{{name}}/{to.__name__}": to for to in ofs}
        changes |= {"/new": self.new, "/sample": self.sample}
        shown = {f"/r/{{name}}/{to.__name__}": to for to in (self.state, self.report, self.room)}
        shown |= {"/": self.home, "/r/{name}": self.run, "/r/{name}/zip": self.archive}
        shown |= {"/{name}": self.asset}
        return [
            Route("/r/{name}/table", told(self.base, self.table), methods=["POST"]),
            *(
                Route(p, told(self.base, in_thread(to)), methods=["POST"])
                for p, to in changes.items()
            ),
            *(Route(p, told(self.base, in_thread(to)), methods=["GET"]) for p, to in shown.items()),
        ]

    # What is shown -------------------------------------------------------------------------------

    def home(self, name: str, given: Fields) -> Response:
        return HTMLResponse(pages.home(self.base, self.runs.listed(), str(self.runs.home)))

    def asset(self, name: str, given: Fields) -> Response:
        if name not in KINDS:
            raise NotThere("There is no such page.")
        return Response(pages.asset(name), media_type=KINDS[name])

    def run(self, name: str, given: Fields) -> Response:
        about = self.runs.state(name)
        if about["state"] == "draft":
            about = self.runs.look(name)
        folder = self.runs.folder(name)
        if about["state"] == "done":
            about["batches"] = batches(folder / "run" / "run.json")
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
        given, size = asked.get("name", ""), request.headers.get("content-length", "")
        self.room(name, {"name": given, "size": size})
        path = self.runs.folder(name) / "tables" / f"part-{secrets.token_hex(8)}"
        try:
            with open(path, "xb") as out:
                await self._receive(request, out)
            clinical = asked.get("kind") == "clinical"
            return PlainTextResponse(self.runs.keep(name, path, given, clinical))
        finally:
            path.unlink(missing_ok=True)

    def room(self, name: str, given: Fields) -> Response:
        """Whether a table may come; a browser that is refused while it sends does not hear why."""
        self.runs.read_draft(name)
        file_name(given.get("name", ""))  # a kind that we do not read is refused
        size = given.get("size", "")
        if size.isdecimal() and len(size) < 20:
            self._check_size(int(size))
            self.runs.check_room(int(size))
        return PlainTextResponse("It may come.")

    async def _receive(self, request: Request, out: Any) -> None:
        size = 0
        async for piece in patient(request.stream()):
            size += len(piece)
            self._check_size(size)
            if size % 2**24 < len(piece):
                self.runs.check_room(len(piece))
            await run_in_threadpool(out.write, piece)
        if size == 0:
            raise Unfit("The file is empty.")

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
                self.runs.keep(name, path, file, file == "clinical.csv")
        return self._to(name)

    def drop(self, name: str, given: Fields) -> Response:
        self.runs.drop(name, given.get("file", ""))
        return self._to(name)

    def answer(self, name: str, given: Fields) -> Response:
        self.runs.answer(name, checked(given.get("option", ""), given.get("value", "")))
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
        """A new draft of the same tables, perhaps without the effect of one more column."""
        word = checked("adjust", given["adjust"]) if "adjust" in given else None
        return self._to(self.runs.copy(name, word))

    def remove(self, name: str, given: Fields) -> Response:
        self.runs.remove(name)
        return RedirectResponse(f"{self.base}/", 303)

    def _to(self, name: str) -> Response:
        return RedirectResponse(f"{self.base}/r/{name}", 303)


def in_thread(handler: Callable[[str, Fields], Response]) -> Callable[[Request], Any]:
    """A handler that may wait for files and processes, for the loop that may not."""

    async def answer(request: Request) -> Response:
        given = await form(request) if request.method == "POST" else request.query_params
        return await run_in_threadpool(handler, request.path_params.get("name", ""), given)

    return answer


def told(base: str, handler: Callable[[Request], Awaitable[Response]]) -> Any:
    """A handler whose failures are sentences: a page for forms, text for scripts."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except NotThere as error:
            status, sentence = 404, str(error)
        except TooMuch as error:
            status, sentence = 413, str(error)
        except Unfit as error:
            status, sentence = 400, str(error)
        except TimeoutError:
            status, sentence = 408, "Nothing more came within 30 seconds; nothing was kept."
        except ClientDisconnect:
            status, sentence = 400, "The connection was lost; nothing was kept."
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            status = 507 if full else 500
            sentence = (
                "The disk is full; nothing was kept." if full else f"It failed: {error.strerror}."
            )
        if request.scope["path"].endswith(("/table", "/room", "/state")):
            return PlainTextResponse(sentence, status)
        return HTMLResponse(pages.problem(base, sentence), status)

    return answer


def batches(path: Path) -> list[str]:
    """Technical columns that the clusters of a finished run follow, and that were not adjusted for."""
    try:
        about = json.loads("" if path.is_symlink() else path.read_text(encoding="utf-8"))
        found = [f["column"] for f in about["clinical"]["followed"] if f["technical"]]
        return [str(column) for column in found if column not in about["adjusted"]]
    except (OSError, ValueError, TypeError, KeyError):  # none, or of another version
        return []


async def form(request: Request) -> dict[str, str]:
    """The fields of a form, which are few and short."""
    body = b""
    async for piece in patient(request.stream()):
        body += piece
        if len(body) > FORM_BYTES:
            raise TooMuch("The form is too long.")
    try:
        fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
    except ValueError:
        raise Unfit("The form could not be read.") from None
    return {name: values[-1] for name, values in fields.items()}


async def patient(stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The pieces, each of which must come within a time."""
    while True:
        try:
            yield await asyncio.wait_for(anext(stream), PATIENCE)
        except StopAsyncIteration:
            return


def make_app(
    home: Path,
    token: str,
    port: int,
    limits: FitLimits | None = None,
    most_bytes: int = 2**30,
) -> tuple[Any, Runs]:
    """The application behind its gate, and its runs."""
    runs = Runs(home, limits or FitLimits())

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(runs.cancel_all)

    page = Page(runs, f"/{token}", most_bytes)
    app = Starlette(routes=[Mount(page.base, routes=page.routes())], lifespan=life)
    names = ("127.0.0.1", "localhost")
    hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    return gate.Gate(app, token, hosts), runs


def server_of(app: Any) -> Server:
    """What answers, with limits for those who may not ask."""
    return Server(
        Config(
            app,
            http=gate.Connection,
            ws="none",
            log_level="error",  # anybody can cause warnings
            access_log=False,  # addresses hold the token
            server_header=False,
            proxy_headers=False,
            backlog=gate.AT_ONCE,
            timeout_graceful_shutdown=5,  # a browser may never read the end of an answer
            h11_max_incomplete_event_size=16_384,
        )
    )
