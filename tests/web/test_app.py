"""The page of `manyview app`, from tables to a report, and what it does when something is in the way."""

import contextlib
import errno
import io
import json
import subprocess
import sys
import time
import zipfile
from contextvars import Context

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("httpx2", reason="needs the extra 'dev'")

from starlette.testclient import TestClient

from manyview.app.options import AppRequest
from manyview.app.web import answers, server, worker
from manyview.app.web.pages import SAMPLES
from manyview.app.web.runs import FitLimits, fit_command
from manyview.app.web.server import make_app
from manyview.io.writing import files_of

PORT, TOKEN = 8123, "k" * 32
ORIGIN = f"http://127.0.0.1:{PORT}"


@pytest.fixture
def real(tmp_path):
    with open_page(tmp_path / "home") as client:
        yield client


@pytest.fixture
def client(real, monkeypatch):
    """A page that looks at tables in this process, which is quicker."""

    def looked(folder, asked):
        with contextlib.chdir(folder):
            return json.loads(json.dumps(worker.look(answers.request(asked))))

    monkeypatch.setattr(real.runs, "_looked", looked)
    return real


def open_page(home, **settings):
    app, runs = make_app(home, TOKEN, **settings)
    client = TestClient(app, base_url=ORIGIN, headers={"origin": ORIGIN}, follow_redirects=False)
    client.runs, client.home = runs, home
    return client


def draft(client):
    answer = client.post(f"/{TOKEN}/new")
    assert answer.status_code == 303
    return answer.headers["location"]


def upload(client, run, name, content, kind="view"):
    params = {"name": name, "kind": kind}
    return client.post(f"{run}/table", params=params, content=content)


def table(n=30, features=4, seed=0, ids="s{}", sep=","):
    rng = np.random.default_rng(seed)
    X = np.repeat(np.eye(3, features) * 8, n // 3, axis=0) + rng.normal(0, 0.5, (n, features))
    lines = [sep.join(["id", *(f"f{seed}_{j}" for j in range(features))])]
    lines += [sep.join([ids.format(i), *(f"{v:.4f}" for v in row)]) for i, row in enumerate(X)]
    return "\n".join(lines).encode()


def with_tables(client):
    run = draft(client)
    for i, name in enumerate(("genes.csv", "lipids.csv")):
        assert upload(client, run, name, table(seed=i)).status_code == 200
    return run


def folder_of(client, run):
    return client.home / run.rsplit("/", 1)[1]


def stored(client, run):
    return client.runs.read(run.rsplit("/", 1)[1])


def answer(client, run, *answers):
    """Give answers to what is asked of the tables; the page then."""
    for option, value in answers:
        given = client.post(f"{run}/answer", data={"option": option, "value": value})
        assert given.status_code == 303
    return client.get(run).text


def wait(client, run, seconds=120):
    for _ in range(10 * seconds):
        now = client.get(f"{run}/state").json()
        if now["state"] != "running":
            return now
        time.sleep(0.1)
    raise AssertionError(f"still running: {now}")


def test_from_tables_to_the_report_and_back_to_the_command(real):
    client = real
    run = with_tables(client)
    page = client.get(run).text
    assert "30 samples in 2 views" in page and "genes" in page and "lipids" in page
    answer = client.post(f"{run}/fit", data={"clusters": "number", "number": "3"})
    assert answer.status_code == 303
    now = wait(client, run)
    assert now["state"] == "done" and now["stages"][0] == "reading the files"
    page = client.get(run).text
    assert 'sandbox="allow-scripts allow-downloads"' in page
    command = "manyview fit tables/genes.csv tables/lipids.csv --clusters 3 --out run"
    assert command in page and "genes.csv, lipids.csv" in client.get(f"/{TOKEN}/").text
    report = client.get(f"{run}/report")
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "allow-same-origin" not in report.headers["content-security-policy"]
    folder = folder_of(client, run) / "run"
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"{run}/zip").content))
    inside = {name.split("/", 1)[1] for name in archive.namelist()}
    assert set(files_of(folder, "fit")) <= inside and "command.txt" in inside
    assert json.loads((folder / "run.json").read_text())["command"] == command
    assert not list(folder.parent.glob("archive-*"))


def test_columns_gene_sets_and_the_clinical_table_are_chosen(client):
    run = with_tables(client)
    lines = ["id,weeks,gone,kind"] + [f"s{i},{i + 1},{i % 2},k{i // 10}" for i in range(30)]
    assert upload(client, run, "what.csv", "\n".join(lines).encode()).status_code == 200
    assert client.post(f"{run}/clinical", data={"file": "no.csv"}).status_code == 404
    assert client.post(f"{run}/clinical", data={"file": "what.csv"}).status_code == 303
    assert (
        stored(client, run)["clinical"]["file"] == "what.csv"
        and len(stored(client, run)["tables"]) == 2
    )
    chosen = {"time": "weeks", "event": "gone", "labels": "kind"}
    client.post(f"{run}/columns", data=chosen)
    assert upload(client, run, "x.csv", b"a\tb\tf0_1\n", "sets").status_code == 400
    assert upload(client, run, "sets.gmt", b"a\tb\tf0_1\tf0_2\n", "sets").status_code == 200
    page = client.get(run).text
    for words in ("--clinical tables/what.csv", "--labels tables/what.csv:kind", "--time weeks",
                  "--event gone", "--gene-sets tables/sets.gmt", "<option selected>weeks"):  # fmt: skip
        assert words in page, words
    client.post(f"{run}/columns", data={"time": "", "event": "", "labels": "kind"})
    assert stored(client, run)["words"] == [("labels", "kind")]


def test_what_is_wrong_is_a_sentence_with_buttons_that_mend_it(client):
    run = draft(client)
    upload(client, run, "a.csv", table(ids="Mouse-{}"))
    upload(client, run, "b.csv", table(seed=1, ids="mouse-{}"))
    page = client.get(run).text
    assert "share no sample ids as written" in page and '<h2 id="how">' not in page
    assert 'name="option" value="match"' in page and 'value="loose"' in page
    page = answer(client, run, ("match", "loose"))
    assert "30 samples in 2 views" in page and '<h2 id="how">' in page
    client.post(f"{run}/forget")
    assert "share no sample ids" in client.get(run).text


def by_genes(n_genes, first, samples, seed):
    rng = np.random.default_rng(seed)
    lines = [",".join(["", *samples])]  # as R's write.csv leaves the corner
    lines += [
        ",".join([f"g{first + i}", *(f"{v:.3f}" for v in rng.normal(size=len(samples)))])
        for i in range(n_genes)
    ]
    return "\n".join(lines).encode()


def test_samples_in_columns_and_tissues_are_asked_about(client):
    patients = [f"P{i}x" for i in range(12)]
    run = draft(client)
    upload(client, run, "a.csv", by_genes(40, 0, patients, 0))
    upload(client, run, "b.csv", by_genes(40, 37, patients, 1))
    page = client.get(run).text
    assert "share 3 row names" in page and '<h2 id="how">' not in page
    assert "12 samples in 2 views" in answer(client, run, ("transpose", "all"))
    run = draft(client)
    tumors = [f"TCGA-A1-{1000 + i}-01A" for i in range(12)]
    others = ["TCGA-A1-1000-06A", "TCGA-A1-1003-11A"]
    upload(client, run, "rna.csv", by_genes(20, 0, [*tumors, *others], 0))
    page = client.get(run).text
    assert "several tumor samples" in page and 'value="one"' in page and "--" not in page.split(
        "The message on the command line")[0].split('role="alert"')[1]  # fmt: skip
    for word, n in (("one", 12), ("all", 13), ("one", 12)):
        page = answer(client, run, ("tumors", word))
        assert f"{n} samples in 1 view" in page and "1 normal solid tissue (11)" in page
    assert "Use normal tissue and controls, too" in page  # a button, though there is no question
    assert "13 samples in 1 view" in answer(client, run, ("keep-normals", ""))


def test_rows_of_zeros_can_be_values_or_missing(client):
    run = draft(client)
    rows = [[0] * 4] + [[1 + i % 3, i % 2, 5, i] for i in range(29)]
    for name, most in (("counts.csv", 99), ("mutations.csv", 1)):
        lines = [",".join([f"s{i}", *(str(min(v, most)) for v in r)]) for i, r in enumerate(rows)]
        head = "id," + ",".join(name[0] + k for k in "abcd")
        upload(client, run, name, "\n".join([head, *lines]).encode())
    page = client.get(run).text
    assert "counts: 1 sample with zeros only, treated as missing" in page
    assert "mutations: 1 sample with zeros only, treated as values" in page
    for value in ("counts=observed", "mutations=missing", "mutations=observed"):
        assert f'value="{value}"' in page
        page = answer(client, run, ("zero-rows", value))
    assert "counts: 1 sample with zeros only, treated as values" in page
    assert "counts: A row of zeros is a value" in page
    assert (
        "mutations: A row of zeros is missing" not in page.split("Your choices")[1]
    )  # the last counts
    wrong = client.post(f"{run}/answer", data={"option": "zero-rows", "value": "counts=some"})
    assert wrong.status_code == 400
    assert "--zero-rows counts=observed,mutations=observed" in fit_command(stored(client, run))


def test_an_unclear_event_and_a_batch_are_asked_about_and_become_options(client):
    run = with_tables(client)
    rows = "\n".join(f"s{i},{i + 1},{i % 2},b{i % 3},{i % 7}" for i in range(30))
    head = "id,os_months,censored,batch,age\n"
    upload(client, run, "known.csv", (head + rows).encode(), "clinical")
    page = client.get(run).text
    assert 'value="censored=0"' in page and 'value="batch"' in page and "look technical" in page
    assert (
        "30 samples in 2 views" in page and stored(client, run)["clinical"]["file"] == "known.csv"
    )
    given = (("event", "censored=1"), ("event", "censored=0"), ("batch", "batch"))
    page = answer(client, run, *given)
    assert 'value="censored=0"' not in page and "event where censored=0" in page
    assert "look technical" not in page and "Align the batches of “batch”" in page
    command = fit_command(stored(client, run))
    assert " --event censored=0" in command and " --batch batch" in command
    # Another table without these columns: the answers are of no use, and the page says so.
    upload(client, run, "other.csv", b"id,age\ns1,3\ns2,4\n", "clinical")
    page = client.get(run).text
    assert "is no column of the clinical table" in page and "Reset these choices" in page


def test_a_run_that_followed_a_batch_is_run_again_without_it_by_one_button(client):
    run = with_tables(client)
    rows = "\n".join(f"s{i},b{i // 10},{i % 7}" for i in range(30))
    upload(client, run, "known.csv", f"id,batch,age\n{rows}".encode(), "clinical")
    client.post(f"{run}/fit", data={"clusters": "number", "number": "3"})
    assert wait(client, run)["state"] == "done"
    page = client.get(run).text
    assert "The clusters follow “batch”" in page and 'name="batch" value="batch"' in page
    assert "Batch effect" in client.get(f"{run}/report").text
    again = client.post(f"{run}/again", data={"batch": "batch"}).headers["location"]
    assert stored(client, again)["words"] == [("batch", "batch")]
    assert client.post(f"{run}/again", data={"batch": "x" * 300}).status_code == 400
    damaged = folder_of(client, run) / "run" / "run.json"
    for text in ("", "[]", '{"clinical": {"followed": [1]}}', '{"clinical": null}'):
        damaged.write_text(text)
        assert client.get(run).status_code == 200
    answer = client.post(f"{run}/names", data={"0": "x"})
    assert answer.status_code == 400 and "manyview report: " in answer.text
    answer = client.post(f"{again}/names", data={"0": "x"})
    assert answer.status_code == 400 and "once the run is finished" in answer.text


def test_tables_are_left_out_and_runs_removed(client):
    run = with_tables(client)
    client.post(f"{run}/drop", data={"file": "genes.csv"})
    assert "30 samples in 1 view." in client.get(run).text
    folder = folder_of(client, run)
    assert [p.name for p in (folder / "tables").iterdir()] == ["lipids.csv"]
    assert client.post(f"{run}/remove").headers["location"] == f"/{TOKEN}/"
    assert not folder.exists() and client.get(run).status_code == 404


def test_the_samples_are_understood(client):
    for which, told in SAMPLES.items():
        run = client.post(f"/{TOKEN}/sample", data={"which": which}).headers["location"]
        page = client.get(run).text
        assert '<h2 id="how">' in page and 'role="alert"' not in page
        assert f"{told.split()[0]} samples in" in page


def slow(client):
    """A run that has begun and will not end by itself."""
    run = with_tables(client)
    name = run.rsplit("/", 1)[1]
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)"]
    client.runs._popen = lambda folder, command: subprocess.Popen(sleeper, start_new_session=True)
    client.post(f"{run}/fit", data={"clusters": "auto"})
    assert client.get(f"{run}/state").json()["stages"] == []
    return run, client.runs._running[name]


def test_a_run_is_cancelled_once_however_often_it_is_asked(client):
    run, process = slow(client)
    page = client.get(run)  # it has told nothing yet
    assert page.status_code == 200 and "<li>starting</li>" in page.text
    for _ in range(5):
        assert client.post(f"{run}/cancel").status_code == 303
    assert process.poll() is not None
    assert wait(client, run)["state"] == "cancelled"
    again = client.post(f"{run}/again").headers["location"]
    assert again != run and "30 samples in 2 views" in client.get(again).text


def test_time_runs_out_with_a_sentence(tmp_path):
    with open_page(tmp_path / "home", limits=FitLimits(seconds=0.2)) as client:
        run, process = slow(client)
        assert wait(client, run)["state"] == "failed" and process.poll() is not None
        assert "the limit (--max-hours)" in client.get(run).text


def test_more_runs_than_may_be_wait_for_the_others(client, monkeypatch):
    monkeypatch.setattr("manyview.app.web.runs.MOST_FITS", 1)
    slow(client)
    other = with_tables(client)
    answer = client.post(f"{other}/fit", data={"clusters": "3"})
    assert answer.status_code == 400 and "under way" in answer.text


def test_a_killed_server_is_told(tmp_path):
    with open_page(tmp_path / "home") as client:
        run = with_tables(client)
        name = run.rsplit("/", 1)[1]
        with client.runs.changing(name) as about:
            about["state"] = "running"
    with open_page(tmp_path / "home") as client:
        assert client.get(f"{run}/state").json()["state"] == "failed"
        assert "server stopped during this run" in client.get(run).text


def test_a_fit_ends_when_nobody_holds_its_standard_input(client, tmp_path):
    """The system closes the pipe of a server that was killed."""
    serving = ["app", "--no-browser", "--folder", str(tmp_path / "endless")]
    process = client.runs._popen(tmp_path, serving)
    deadline = time.monotonic() + 120
    while "The page" not in (tmp_path / "log.txt").read_text():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.1)
    process.stdin.close()
    assert process.wait(timeout=60) != 0


def test_closing_the_page_ends_its_fits(tmp_path):
    with open_page(tmp_path / "home") as client:
        _, process = slow(client)
    assert process.poll() is not None


def test_a_fit_that_fails_says_why(client):
    run = with_tables(client)
    client.post(f"{run}/fit", data={"clusters": "999"})
    assert wait(client, run)["state"] == "failed"
    assert "manyview fit" in client.get(run).text and "999" in client.get(run).text


@pytest.mark.parametrize("text", ["", "<html>", "[1]", "{}", '{"state": 5}', '{"state": "\ud800"}'])
def test_a_damaged_run_is_so_in_its_own_row_and_can_be_removed(client, text):
    run, other = draft(client), draft(client)
    (folder_of(client, run) / "about.json").write_bytes(text.encode(errors="surrogatepass"))
    page = client.get(f"/{TOKEN}/").text
    assert ("is damaged (" in page) == (text != "{}") and run in page and other in page
    assert client.get(run).status_code == (200 if text == "{}" else 404)
    assert client.post(f"{run}/remove").status_code == 303
    assert not folder_of(client, run).exists() and client.get(other).status_code == 200


def test_one_page_uses_a_folder_and_a_port(tmp_path, monkeypatch):
    said, shown = [], []

    class Served:
        def __init__(self, config):
            self.app = config.app

        def run(self, sockets):
            port = sockets[0].getsockname()[1]
            for folder, sentence in ((tmp_path, "writes into"), (tmp_path / "x", f"--port {port}")):
                ask = AppRequest(folder=folder, port=port, browser=False)
                with pytest.raises(ValueError, match=sentence):
                    Context().run(server.run_app, ask, None)  # as another process would

    monkeypatch.setattr(server, "Server", Served)
    monkeypatch.setattr(server.typer, "echo", said.append)
    monkeypatch.setattr(server.webbrowser, "open", shown.append)
    server.run_app(AppRequest(folder=tmp_path), None)
    assert said[0].split()[2] == shown[0] and shown[0].startswith("http://127.0.0.1:")


@pytest.mark.parametrize("what", ["new", "again", "zip"])
def test_a_disk_that_fills_up_leaves_nothing_half_made(client, monkeypatch, what):
    run = with_tables(client)
    folder = folder_of(client, run)
    (folder / "run").mkdir()
    (folder / "run" / "run.json").write_text("{}")
    before = sorted(client.home.rglob("*"))

    def full(*given, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("manyview.app.web.runs.write_whole", full)
    monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
    ask = client.get if what == "zip" else client.post
    answer = ask(f"/{TOKEN}/new" if what == "new" else f"{run}/{what}")
    assert answer.status_code == 507 and "The disk is full; nothing was kept." in answer.text
    assert sorted(client.home.rglob("*")) == before


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        ("ids 'a-1' . _ differ: one. Add --match loose if so", "ids 'a-1' . _ differ: one."),
        ("it may be headings; say which: --header a=yes or --header a=no", "it may be headings; say which"),
        ("it looks like classes: add --drop x; add --as-view y", "it looks like classes"),
        ("a cell holds -- and --x; nothing else", "a cell holds -- and --x; nothing else"),
    ],
)  # fmt: skip
def test_sentences_are_shown_without_options(problem, told):
    assert answers.shown(problem) == told


@pytest.mark.parametrize(
    ("problem", "offered"),
    [
        ("Add --match loose if they are, --match exact", [("match", "loose"), ("match", "exact")]),
        ("add --as-view 'my view'; --transpose g.", [("as-view", "my view"), ("transpose", "g")]),
        ("x's y: add --drop-text, or --one-hot to", [("drop-text", ""), ("one-hot", "")]),
        ("--out /etc --engine dask --labels f", []),
    ],
)  # fmt: skip
def test_options_in_sentences_become_choices(problem, offered):
    assert answers.choices(problem) == offered


def test_answers_cannot_become_other_options():
    about = {"tables": [], "clinical": None, "clusters": "2"}
    about["words"] = [answers.checked("drop", "--out=/etc")]
    assert fit_command(about).endswith(" --drop=--out=/etc")
    with pytest.raises(answers.Unfit):
        answers.checked("out", "/etc")
