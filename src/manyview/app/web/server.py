"""The routes of the page: each asks the folders or the jobs, and answers with a page or a redirect."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
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
from manyview.datasets._files import tables_of
from manyview.io.guard.limits import size_text

from . import gate, pages
from .folders import Folders, NotThere
from .jobs import FitLimits, Jobs, command_line
from .words import Unfit, checked, clusters, file_name, replaces

#: Longest body of a form; longest wait for the next piece of a table, in seconds.
FORM_BYTES, PATIENCE = 16_384, 30.0
KINDS = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
MADE: dict[str, Callable[[], Any]] = {"cohort": make_cohort, "nutrimouse": load_nutrimouse}
#: The report runs its own scripts, which it names by their digests, in an origin of nobody.
REPORT = {
    "content-security-policy": "sandbox allow-scripts allow-downloads; frame-ancestors 'self'; "
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:",
}


class TooMuch(Unfit):
    """A table over the limit."""


@dataclass
class Page:
    """The handlers, and what they share."""

    folders: Folders
    jobs: Jobs
    base: str
    most_bytes: int

    def routes(self) -> list[Route]:
        run = "/r/{name}"
        shown = [("/", self.home), (run, self.run), (f"{run}/state", self.state),
                 (f"{run}/report", self.report), (f"{run}/zip", self.archive), (f"{run}/room", self.room),
                 ("/{asset}", self.asset)]  # fmt: skip
        changes = [("/new", self.new), ("/sample", self.sample), (f"{run}/table", self.table)]
        forms = (
            self.drop,
            self.answer,
            self.forget,
            self.fit,
            self.cancel,
            self.again,
            self.remove,
        )
        changes += [(f"{run}/{to.__name__}", to) for to in forms]
        return [
            *(Route(path, told(self.base, to), methods=["POST"]) for path, to in changes),
            *(Route(path, told(self.base, to), methods=["GET"]) for path, to in shown),
        ]

    async def home(self, request: Request) -> Response:
        runs = await run_in_threadpool(self.folders.runs)
        return HTMLResponse(pages.home(self.base, runs, str(self.folders.home)))

    async def asset(self, request: Request) -> Response:
        name = request.path_params["asset"]
        if name not in KINDS:
            raise NotThere("There is no such page.")
        return Response(pages.asset(name), media_type=KINDS[name])

    async def new(self, request: Request) -> Response:
        return self._to(self.folders.new())

    async def sample(self, request: Request) -> Response:
        which = (await form(request)).get("which", "")
        if which not in MADE:
            raise Unfit("There are no such sample tables.")
        return self._to(await run_in_threadpool(self._sample, which))

    def _sample(self, which: str) -> str:
        name = self.folders.new()
        for file, content in tables_of(MADE[which]()).items():
            if file.endswith(".csv") and file != "labels.csv":
                path = self.folders.folder(name) / "tables" / f"part-{file}"
                path.write_bytes(content)
                self.folders.keep(name, path, file, file == "clinical.csv")
        return name

    async def run(self, request: Request) -> Response:
        name = request.path_params["name"]
        about = await run_in_threadpool(self.jobs.state, name)
        if about["state"] == "draft":
            about = await run_in_threadpool(self.jobs.look, name)
        folder = self.folders.folder(name)
        if about["state"] == "done":
            about["batches"] = batches(folder / "run" / "run.json")
        text = pages.run(self.base, name, about, str(folder), size_text(self.most_bytes))
        return HTMLResponse(text)

    async def state(self, request: Request) -> Response:
        about = await run_in_threadpool(self.jobs.state, request.path_params["name"])
        seconds = round(time.time() - (about["started"] or time.time()))
        known = {"state": about["state"], "stages": about["stages"], "seconds": seconds}
        return JSONResponse(known)

    async def report(self, request: Request) -> Response:
        path = self.folders.folder(request.path_params["name"]) / "run" / "report.html"
        if not path.is_file():
            raise NotThere("This run has no report.")
        return FileResponse(path, media_type="text/html", headers=REPORT)

    async def archive(self, request: Request) -> Response:
        name = request.path_params["name"]
        command = command_line(self.folders.read(name))
        path = await run_in_threadpool(self.folders.archive, name, command)
        gone = BackgroundTask(path.unlink, missing_ok=True)
        return FileResponse(path, filename=f"manyview-{name}.zip", background=gone)

    async def table(self, request: Request) -> Response:
        """A table, as the body of the request: written as it comes, under a name of our own."""
        name = request.path_params["name"]
        given = request.query_params.get("name", "")
        self._may_come(name, given, request.headers.get("content-length", ""))
        path = self.folders.folder(name) / "tables" / f"part-{secrets.token_hex(8)}"
        clinical = request.query_params.get("kind") == "clinical"
        try:
            with open(path, "xb") as out:
                await self._receive(request, out)
            return PlainTextResponse(self.folders.keep(name, path, given, clinical))
        finally:
            path.unlink(missing_ok=True)

    async def room(self, request: Request) -> Response:
        """Whether a table may come; a browser that is refused while it sends does not hear why."""
        asked = request.query_params
        self._may_come(request.path_params["name"], asked.get("name", ""), asked.get("size", ""))
        return PlainTextResponse("It may come.")

    def _may_come(self, name: str, given: str, size: str) -> None:
        self.folders.check_draft(name)
        file_name(given, ())  # a kind that we do not read is refused
        if size.isdecimal() and len(size) < 20:
            self._check_size(int(size))
            self.folders.check_room(int(size))

    async def _receive(self, request: Request, out: Any) -> None:
        size = 0
        async for piece in patient(request.stream()):
            size += len(piece)
            self._check_size(size)
            if size % 2**24 < len(piece):
                self.folders.check_room(len(piece))
            await run_in_threadpool(out.write, piece)
        if size == 0:
            raise Unfit("The file is empty.")

    def _check_size(self, size: int) -> None:
        if size > self.most_bytes:
            raise TooMuch(
                f"The file is larger than {size_text(self.most_bytes)}, the limit of this page "
                "(manyview app --max-upload); large files are better read in place by manyview fit."
            )

    async def drop(self, request: Request) -> Response:
        name = request.path_params["name"]
        self.folders.drop(name, (await form(request)).get("file", ""))
        return self._to(name)

    async def answer(self, request: Request) -> Response:
        name = request.path_params["name"]
        given = await form(request)
        word = checked(given.get("option", ""), given.get("value", ""))
        self.folders.check_draft(name)

        def add(about: dict[str, Any]) -> None:
            others = [w for w in about["words"] if not replaces(word, tuple(w))]
            if len(others) >= 50:
                raise Unfit("There are more answers than questions: forget them and begin again.")
            about["words"] = [*others, word]

        self.folders.change(name, add)
        return self._to(name)

    async def forget(self, request: Request) -> Response:
        name = request.path_params["name"]
        self.folders.check_draft(name)
        self.folders.change(name, lambda about: about.update(words=[]))
        return self._to(name)

    async def fit(self, request: Request) -> Response:
        name = request.path_params["name"]
        given = await form(request)
        asked = given.get("clusters", "")
        number = clusters(given.get("number", "") if asked == "number" else asked)
        await run_in_threadpool(self.jobs.start, name, number)
        return self._to(name)

    async def cancel(self, request: Request) -> Response:
        name = request.path_params["name"]
        await run_in_threadpool(self.jobs.cancel, name)
        return self._to(name)

    async def again(self, request: Request) -> Response:
        """A new draft of the same tables, perhaps without the effect of one more column."""
        adjust = (await form(request)).get("adjust")
        more = [] if adjust is None else [checked("adjust", adjust)]
        new = await run_in_threadpool(self.folders.copy, request.path_params["name"])
        if more:
            self.folders.change(new, lambda about: about.update(words=[*about["words"], *more]))
        return self._to(new)

    async def remove(self, request: Request) -> Response:
        name = request.path_params["name"]
        await run_in_threadpool(self.jobs.cancel, name)
        await run_in_threadpool(self.folders.remove, name)
        return RedirectResponse(f"{self.base}/", 303)

    def _to(self, name: str) -> Response:
        return RedirectResponse(f"{self.base}/r/{name}", 303)


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
    names: Iterable[str] = ("127.0.0.1", "localhost"),
    password: str = "",
) -> tuple[Any, Jobs]:
    """The application behind its gate, and its jobs; it answers to these names of its machine."""
    folders = Folders(home)
    jobs = Jobs(folders, limits or FitLimits())
    page = Page(folders, jobs, f"/{token}", most_bytes)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        await run_in_threadpool(jobs.end_all)

    app = Starlette(routes=[Mount(f"/{token}", routes=page.routes())], lifespan=life)
    hosts = {f"{name}:{port}" for name in names} | (set(names) if port == 80 else set())
    return gate.Gate(app, token, hosts, password), jobs


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
            proxy_headers=False,  # limits count the addresses of connections
            backlog=gate.AT_ONCE,
            timeout_graceful_shutdown=5,  # a browser may never read the end of an answer
            h11_max_incomplete_event_size=16_384,
        )
    )
