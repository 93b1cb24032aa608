"""`manyview app`: the page on this machine, until Ctrl-C."""

from __future__ import annotations

import secrets
import socket
import webbrowser
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from manyview.io.writing.locks import take_lock

from .jobs import Limits

#: The only address: nobody else's machine can reach it.
ADDRESS = "127.0.0.1"


def run_app(
    folder: Path,
    port: int,
    most_bytes: int,
    limits: Limits,
    browse: bool,
    say: Callable[[str], None],
) -> None:
    """Serve until interrupted; ``say`` is told the address."""
    try:
        uvicorn = import_module("uvicorn")
        server = import_module("manyview.web.server")
    except ModuleNotFoundError as error:
        if (error.name or "manyview").split(".")[0] == "manyview":
            raise
        raise ModuleNotFoundError(
            f"manyview app needs {error.name}: pip install 'manyview[web]'", name=error.name
        ) from error
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(folder / ".lock", "ab") as lock:
        if take_lock(lock) is False:
            raise ValueError(f"another manyview app uses {folder}; name another folder by --folder")
        _serve(uvicorn, server, folder.resolve(), port, most_bytes, limits, browse, say)


def _serve(
    uvicorn: Any,
    server: Any,
    folder: Path,
    port: int,
    most_bytes: int,
    limits: Limits,
    browse: bool,
    say: Callable[[str], None],
) -> None:
    listening = _listen(port)
    token, port = secrets.token_urlsafe(24), listening.getsockname()[1]
    app, _ = server.make_app(folder, token, port, limits, most_bytes)
    address = f"http://{ADDRESS}:{port}/{token}/"
    say(
        f"The page: {address}\nRuns are in {folder}/. Only this machine can reach it. Ctrl-C ends it."
    )
    if browse:
        webbrowser.open(address)
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # addresses hold the token
        server_header=False,
        limit_concurrency=64,
        h11_max_incomplete_event_size=16_384,
        timeout_keep_alive=10,
        ws="none",
    )
    uvicorn.Server(config).run(sockets=[listening])


def _listen(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.bind((ADDRESS, port))
    except OSError as error:
        listening.close()
        raise ValueError(
            f"--port {port} cannot be used ({error.strerror}); leave it out to get a free one"
        ) from None
    return listening
