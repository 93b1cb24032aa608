"""Another address than this machine's own: only with a password, and only to who has it."""

import base64

import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("httpx2", reason="needs the extra 'dev'")

from starlette.testclient import TestClient
from test_app import ORIGIN, PORT, TOKEN, open_page
from typer.testing import CliRunner

from manyview.app.cli.app import app
from manyview.app.web import gate
from manyview.app.web.command import place_of

PASSWORD = "correct horse: ü"


def basic(password, user="anyone", kind="Basic"):
    pair = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"authorization": f"{kind} {pair}"}


@pytest.fixture
def client(tmp_path, monkeypatch):
    monkeypatch.setattr(gate, "PAUSE", 0.0)
    with open_page(tmp_path / "home", password=PASSWORD) as client:
        yield client


WRONG = {
    "none": {},
    "empty": basic(""),
    "a part": basic(PASSWORD[:-1]),
    "capitals": basic(PASSWORD.upper()),
    "a blank more": basic(f"{PASSWORD} "),
    "bearer": basic(PASSWORD, kind="Bearer"),
    "hex": {"authorization": f"Basic {PASSWORD.encode().hex()}"},
    "no base64": {"authorization": "Basic ===="},
    "kind only": {"authorization": "Basic"},
    "blank": {"authorization": ""},
    "a cookie": {"cookie": f"password={PASSWORD.encode().hex()}"},
}


@pytest.mark.parametrize("case", WRONG)
def test_without_the_password_nothing_is_answered(client, case):
    for method, path in (("GET", ""), ("POST", "new"), ("GET", "app.js")):
        answer = client.request(method, f"/{TOKEN}/{path}", headers=WRONG[case])
        assert answer.status_code == 401 and answer.headers["www-authenticate"].startswith("Basic")
        assert PASSWORD not in answer.text and not list(client.home.iterdir())


def test_the_password_does_not_replace_the_key_the_name_or_the_origin(client):
    known = basic(PASSWORD)
    assert client.get("/", headers=known).status_code == 403
    assert client.get(f"/{TOKEN}/", headers=known | {"host": "evil.example"}).status_code == 421
    elsewhere = known | {"origin": "https://evil.example"}
    assert client.post(f"/{TOKEN}/new", headers=elsewhere).status_code == 403
    assert client.get(f"/{TOKEN}/", headers=known).status_code == 200
    assert client.get(f"/{TOKEN}/", headers=basic(PASSWORD, user="a")).status_code == 200
    assert client.post(f"/{TOKEN}/new", headers=known).status_code == 303


@pytest.mark.parametrize("right_one", [0, 5, 19])
def test_one_guess_of_an_address_is_looked_at_and_others_are_served(client, monkeypatch, right_one):
    monkeypatch.setattr(gate, "PAUSE", 3600.0)
    browser, stranger = client, TestClient(client.app, ORIGIN, client=("192.0.2.7", 1))
    assert browser.get(f"/{TOKEN}/", headers=basic(PASSWORD)).status_code == 200  # has a cookie now
    same_place = TestClient(client.app, ORIGIN)
    guesses = [f"a wrong one {i}" for i in range(20)]
    guesses.insert(right_one + 1, PASSWORD)  # nothing tells it from the others
    got = [same_place.get(f"/{TOKEN}/", headers=basic(g)).status_code for g in guesses]
    assert got == [401] + [429] * 20
    for known in (browser, stranger):
        assert known.get(f"/{TOKEN}/", headers=basic(PASSWORD)).status_code == 200


def test_many_addresses_together_guess_hardly_more_than_one(client, monkeypatch):
    monkeypatch.setattr(gate, "PAUSE", 3600.0)
    assert client.get(f"/{TOKEN}/", headers=basic(PASSWORD)).status_code == 200
    hosts = [f"2001:db8:0:{i}::{j:x}" for i in range(40) for j in range(3)]
    crowd = [TestClient(client.app, ORIGIN, client=(host, 1)) for host in hosts]
    got = [one.get(f"/{TOKEN}/", headers=basic("a wrong one")).status_code for one in crowd]
    assert got.count(401) == gate.MOST_WRONG and set(got) == {401, 429}
    assert client.get(f"/{TOKEN}/", headers=basic(PASSWORD)).status_code == 200


def test_this_machine_alone_needs_no_password():
    for address in ("127.0.0.1", "localhost"):
        place = place_of(address, PORT, lambda: pytest.fail("asked"))
        assert (place.number, place.password) == ("127.0.0.1", "")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [*((a, "every network") for a in ("0.0.0.0", "::", "0")),
     *((a, "is no address or name") for a in ("no such name.", "1.2.3.4.5", "a" * 300)),
     ("192.0.2.1", "--address .* cannot be used")],
)  # fmt: skip
def test_addresses_that_are_none_of_this_machine_are_sentences(address, sentence):
    with pytest.raises(ValueError, match=sentence):
        place_of(address, 0, lambda: PASSWORD).listen()


@pytest.mark.parametrize("password", ["", "short"])
def test_the_command_wants_a_password_for_another_address(tmp_path, password):
    asked = ["app", "--no-browser", "--folder", str(tmp_path / "runs"), "--address", "127.0.0.2"]
    done = CliRunner().invoke(app, asked, env={"MANYVIEW_PASSWORD": password})
    assert done.exit_code == 2 and "needs a password of at least 10 characters" in done.output
    assert not (tmp_path / "runs").exists()


def test_another_address_is_its_own_name():
    place = place_of("127.0.0.2", 0, lambda: PASSWORD)
    assert place.names == ("127.0.0.2",) and place.password == PASSWORD
    assert place_of("::1", 0, lambda: PASSWORD).names[0] == "[::1]"
