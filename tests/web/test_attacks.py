"""The attack list of docs/app.md: each try, and what it gets."""

import gzip
import re
import threading
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("httpx2", reason="needs the extra 'dev'")

import httpx2
from test_app import (
    ORIGIN,
    PORT,
    TOKEN,
    draft,
    folder_of,
    open_page,
    slow,
    table,
    upload,
    wait,
    with_tables,  # fmt: skip
)

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def looking(tmp_path):
    with open_page(tmp_path / "home", most_bytes=2**20) as client:
        (tmp_path / "secret.txt").write_text("SECRET")
        yield client


@pytest.fixture
def client(looking, monkeypatch):
    """A page that understands every table: most tries are not about what is in them."""
    seen = {"views": [], "samples": 30, "notes": [], "problem": "", "choices": []}
    monkeypatch.setattr(looking.runs, "_looked", lambda folder, asked: dict(seen))
    return looking


def held(client):
    """Every file below the home and beside it."""
    return sorted(str(p) for p in client.home.parent.rglob("*") if p.is_file())


#: name → method, path, headers, status.
ASKED = {
    "no token": ("GET", "/", {}, 404),
    "a wrong token": ("GET", f"/{'x' * 32}/", {}, 404),
    "a part of the token": ("GET", f"/{TOKEN[:-1]}/", {}, 404),
    "the token in capitals": ("GET", f"/{TOKEN.upper()}/", {}, 404),
    "a forged Host (DNS rebinding)": ("GET", f"/{TOKEN}/", {"host": f"evil.example:{PORT}"}, 400),
    "a Host with a user in front": ("GET", f"/{TOKEN}/", {"host": f"evil@127.0.0.1:{PORT}"}, 400),
    "a form of no origin": ("POST", f"/{TOKEN}/new", {"origin": ""}, 403),
    "a form of another site": ("POST", f"/{TOKEN}/new", {"origin": "https://evil.example"}, 403),
    "a form of a sandboxed frame": ("POST", f"/{TOKEN}/new", {"origin": "null"}, 403),
    "a form of another port here": ("POST", f"/{TOKEN}/new", {"origin": "http://127.0.0.1:80"}, 403),
    "another method": ("DELETE", f"/{TOKEN}/", {}, 405),
    "a preflight request": ("OPTIONS", f"/{TOKEN}/new", {"origin": "https://evil.example"}, 405),
    "a change by GET": ("GET", f"/{TOKEN}/new", {}, 404),
    "up out of the assets": ("GET", f"/{TOKEN}/..%2f..%2fsecret.txt", {}, 404),
    "up out of the runs": ("GET", f"/{TOKEN}/r/..%2f..%2fsecret.txt", {}, 404),
    "a run of dots": ("GET", f"/{TOKEN}/r/%2e%2e/report", {}, 404),
    "a run with a null byte": ("GET", f"/{TOKEN}/r/20260101-000000-aaaaaa%00/report", {}, 404),
    "a run that is none": ("GET", f"/{TOKEN}/r/20260101-000000-aaaaaa/zip", {}, 404),
    "a template of ours": ("GET", f"/{TOKEN}/run.html", {}, 404),
}  # fmt: skip


@pytest.mark.parametrize("attack", ASKED)
def test_requests_that_are_refused(client, attack):
    method, path, headers, status = ASKED[attack]
    before = held(client)
    answer = client.request(method, path, headers=headers)
    assert answer.status_code == status
    assert "SECRET" not in answer.text and TOKEN not in answer.text.replace(f"/{TOKEN}/", "")
    assert held(client) == before
    assert "access-control-allow-origin" not in answer.headers
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]


NAMES = {
    "up and out": "../../../evil.csv",
    "up and out, of Windows": "..\\..\\evil.csv",
    "an absolute path": "/etc/cron.d/evil.csv",
    "a drive": "C:\\evil.csv",
    "a null byte": "evil\0.csv",
    "an option": "--out=evil.csv",
    "a view of another name": "a=/etc/passwd.csv",
    "markup": f"{HOSTILE}.csv",
    "text that turns around": "\u202evsc.exe.csv",
    "a very long name": "x" * 5000 + ".csv",
    "only dots": "....csv",
    "a sheet": "book.xlsx:..\\..\\x.csv",
    "a new line": "a\r\nSet-Cookie: x=1.csv",
}


@pytest.mark.parametrize("attack", NAMES)
def test_hostile_names_become_names_of_ours(client, attack):
    run = draft(client)
    answer = upload(client, run, NAMES[attack], table())
    assert answer.status_code == 200
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,50}\.csv", answer.text)
    folder = folder_of(client, run) / "tables"
    assert [p.name for p in folder.iterdir()] == [answer.text]
    assert [p for p in held(client) if "evil" in Path(p).name and folder != Path(p).parent] == []
    page = client.get(run).text
    assert HOSTILE not in page and "\u202e" not in page and "30 samples in" in page


def test_kinds_that_are_not_read_are_not_kept(client):
    run = draft(client)
    before = held(client)
    for name in ("x.zip", "x.tar.gz", "x.exe", "x.html", "x.csv.zip", "x", "", ".csv/"):
        assert upload(client, run, name, b"PK\x03\x04").status_code == 400
    assert held(client) == before


def test_too_large_a_table_is_refused_by_its_claim_and_by_its_bytes(client):
    run = draft(client)
    before = held(client)
    assert upload(client, run, "a.csv", b"x" * (2**20 + 1)).status_code == 413

    def unannounced():  # no content-length tells how much is coming
        for _ in range(40):
            yield b"1," * 2**15

    assert upload(client, run, "a.csv", unannounced()).status_code == 413
    assert held(client) == before


@pytest.mark.parametrize(
    ("name", "size", "status"),
    [("a.csv", "100", 200), ("a.csv", "2097152", 413), ("a.csv", "9" * 5000, 200), ("a.zip", "1", 400),
     ("a.csv", "-1", 200), ("a.csv", "\u0663", 200)],
)  # fmt: skip
def test_a_browser_may_ask_before_it_sends(client, name, size, status):
    run = draft(client)
    before = held(client)
    answer = client.get(f"{run}/room", params={"name": name, "size": size})
    assert answer.status_code == status and held(client) == before


def test_a_packed_bomb_is_a_sentence(looking):
    client, run = looking, draft(looking)
    bomb = gzip.compress(b"id,a\n" + b"0" * (400 * 2**20))
    assert len(bomb) < 2**20 and upload(client, run, "bomb.csv.gz", bomb).status_code == 200
    page = client.get(run).text
    assert 'role="alert"' in page and '<h2 id="how">' not in page


def test_text_of_tables_is_escaped(looking):
    client, run = looking, draft(looking)
    rows = table().decode().replace("f0_0", HOSTILE).replace("s3,", f"{HOSTILE},")
    upload(client, run, "a.csv", rows.encode())
    assert HOSTILE not in client.get(run).text
    upload(client, run, "b.csv", f"id,{HOSTILE}\ns1,{HOSTILE}\n".encode())
    page = client.get(run).text
    assert HOSTILE not in page and "onerror" in page


ANSWERS = [
    ("out", "/etc"),
    ("match", ""),
    ("drop", "x" * 300),
    ("drop", "a\0b"),
    (HOSTILE, HOSTILE),
]
NUMBERS = ["-1", "0", "1e9", "3; rm -rf /", "$(id)", "99999", "", "٣"]


def test_answers_and_numbers_that_were_not_offered_are_refused(client):
    run = with_tables(client)
    for option, value in ANSWERS:
        answer = client.post(f"{run}/answer", data={"option": option, "value": value})
        assert answer.status_code == 400 and HOSTILE not in answer.text
    for number in NUMBERS:
        answer = client.post(f"{run}/fit", data={"clusters": "number", "number": number})
        assert answer.status_code == 400
    assert client.get(f"{run}/state").json()["state"] == "draft"


def test_a_long_form_is_refused(client):
    run = with_tables(client)
    assert client.post(f"{run}/answer", data={"option": "x" * 10**6}).status_code == 413
    fields = "&".join(f"a{i}=1" for i in range(100))
    assert client.post(f"{run}/answer", content=fields).status_code == 400


def test_files_that_are_not_listed_cannot_be_left_out(client):
    run = with_tables(client)
    before = held(client)
    for file in ("../about.json", "../../../secret.txt", "/etc/passwd", ""):
        assert client.post(f"{run}/drop", data={"file": file}).status_code == 404
    assert held(client) == before


def test_cancels_and_removals_at_the_same_time_do_no_harm(client):
    run, process = slow(client)
    statuses = []

    def ask(what):
        statuses.append(client.post(f"{run}/{what}").status_code)

    threads = [threading.Thread(target=ask, args=(w,)) for w in ["cancel"] * 6 + ["again"] * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [303] * 8 and process.poll() is not None
    assert wait(client, run)["state"] == "cancelled"


def test_a_second_start_is_no_second_process(client):
    run, process = slow(client)
    client.post(f"{run}/fit", data={"clusters": "3"})
    assert list(client.runs._running.values()) == [process]
    assert upload(client, run, "late.csv", table()).status_code == 400


def test_a_lost_connection_keeps_nothing(client):
    run = draft(client)
    before = held(client)

    def broken():
        yield b"id,a\n"
        raise httpx2.WriteError("gone")

    with pytest.raises(httpx2.WriteError):
        upload(client, run, "a.csv", broken())
    assert held(client) == before


def test_every_page_says_what_may_be_loaded(client):
    run = with_tables(client)
    for path in (f"/{TOKEN}/", run, f"/{TOKEN}/app.css", f"/{TOKEN}/app.js"):
        answer = client.get(path)
        assert answer.status_code == 200
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert not re.search(r"(src|href|action)=.?(https?:)?//", answer.text)
    assert ORIGIN not in client.get(run).text
