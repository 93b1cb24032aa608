"""Connections of those who may not ask do not keep out who may; and how the browser is opened."""

import contextlib
import http.client
import os
import socket
import threading

import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("uvicorn", reason="needs the extra 'app'")

from manyview.app.options import AppRequest
from manyview.app.web import command, gate, server

TOKEN = "k" * 32
HERE = "127.0.0.1"
BEGINNINGS = {
    "nothing": b"",
    "half a line": b"GET /",
    "half the headers": b"GET / HTTP/1.1\r\nHost: x\r\nX-",
    "a body without the key": b"POST /x/new HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\na=",
    "a body without an end": b"POST /x/new HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na",
    "an upgrade": b"GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x00",
}


@contextlib.contextmanager
def answering(home):
    """The port of a page that is served in a thread."""
    listening = command.listen(0)
    port = listening.getsockname()[1]
    running = server.server_of(server.make_app(home, TOKEN, port)[0])
    thread = threading.Thread(target=running.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield port
    finally:
        running.should_exit = True
        thread.join()


@contextlib.contextmanager
def opened(port, beginnings):
    with contextlib.ExitStack() as stack:
        made = []
        for beginning in beginnings:
            connection = socket.create_connection((HERE, port), 30)
            made.append(stack.enter_context(connection))
            with contextlib.suppress(OSError):  # closed already
                made[-1].sendall(beginning)
        yield made


def owner_is_served(port):
    connection = http.client.HTTPConnection(HERE, port, timeout=30)
    connection.request("GET", f"/{TOKEN}/")
    status = connection.getresponse().status
    connection.close()
    return status == 200


def is_closed_while_it_sends(connection):
    """Whether the server closes it, although more bytes come all the time."""
    connection.settimeout(0.05)
    for _ in range(600):
        try:
            connection.sendall(b"a")
            if connection.recv(10_000) == b"":
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False


def test_any_number_of_idle_connections_leaves_room_for_the_owner(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "MOST_WAITING", 40)
    with answering(tmp_path) as port, opened(port, list(BEGINNINGS.values()) * 14):
        assert all(owner_is_served(port) for _ in range(3))
        assert len(gate.Connection.waiting) <= 40


def test_a_connection_that_does_not_ask_is_closed(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "PATIENCE", 0.2)
    with answering(tmp_path) as port, opened(port, BEGINNINGS.values()) as made:
        assert all(is_closed_while_it_sends(connection) for connection in made)
    assert not gate.Connection.waiting


@pytest.mark.parametrize("end", [None, KeyboardInterrupt, SystemExit])
def test_the_key_is_in_a_private_file_and_not_on_a_command_line(tmp_path, monkeypatch, end):
    shown, said = [], []

    class Served:
        def run(self, sockets):
            (socket,) = sockets
            socket.close()
            (page,) = tmp_path.glob("*.html")
            assert shown == [page.as_uri()]
            assert os.name != "posix" or page.stat().st_mode & 0o777 == 0o600
            address = said[0].split()[2]
            assert len(address) > 40 and address in page.read_text() and address not in shown[0]
            if end:
                raise end

    monkeypatch.setattr(command.webbrowser, "open", shown.append)
    monkeypatch.setattr(server, "server_of", lambda app: Served())
    monkeypatch.setattr(command.signal, "signal", lambda *given: None)
    with contextlib.suppress(KeyboardInterrupt, SystemExit):
        command.serve(AppRequest(folder=tmp_path), said.append)
    assert shown and not list(tmp_path.glob("*.html"))


def test_a_lock_that_is_a_link_creates_nothing(tmp_path):
    (tmp_path / "runs").mkdir()
    try:
        (tmp_path / "runs" / ".lock").symlink_to(tmp_path / "made")
    except OSError:
        pytest.skip("no links here")
    with pytest.raises(OSError):
        command.serve(AppRequest(folder=tmp_path / "runs"), str)
    assert not (tmp_path / "made").exists()
