"""Laws of the files we write: nothing of others is touched, and whoever is killed leaves old or new."""

import csv
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("typer")
from typer.testing import CliRunner

import manyview as mv
from conftest import blobs
from made_up_results import make_up
from manyview.app.cli.app import app
from manyview.io.safe_csv import csv_bytes, exact_text, read_csv, safe_text
from manyview.io.writing import (
    HELD,
    MARKER,
    FolderInUse,
    claimed,
    is_stage,
    is_whole,
    left_behind,
    manifest,
    random_name,
    write_whole,
)

ENV = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def held(folder):
    """Everything in a folder: content, and where links lead."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


def hidden(folder):
    return {path.name for path in folder.iterdir() if path.name.startswith(".")}


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """A killed process loses nothing that the system has; only a power cut would."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


@pytest.fixture
def data(tmp_path):
    views, _ = blobs(n=24)
    for name, X in zip("ab", views, strict=False):
        frame = pd.DataFrame(X, index=[f"s{i}" for i in range(24)])
        frame.to_csv(tmp_path / f"{name}.csv", index_label="id")
    return [tmp_path / "a.csv", tmp_path / "b.csv"]


def commands(data, out):
    """Every command that writes into a folder, as quick as can be."""
    few = ["--clusters", 3, "--out", out]
    return {
        "fit": ["fit", *data, *few, "--no-report"],
        "select-k": ["select-k", *data, "--to", 3, "--out", out],
        "compare": ["compare", *data, *few, "--runs", 1, "--methods", "ConcatK-z"],
        "datasets": ["datasets", "--out", out],
        "demo": ["demo", "--runs", 1, "--out", out],
        "reproduce": ["reproduce", "operations", "--replications", 1, "--jobs", 1, "--out", out],
    }


KINDS = ["fit", "select-k", "compare", "datasets", "demo", "reproduce"]
#: A file of every command that a stranger may have under the same name.
SAME_NAME = {
    "fit": "run.json",
    "select-k": "selection.csv",
    "compare": "results.csv",
    "datasets": "nutrimouse/labels.csv",
    "demo": "digits.csv",
    "reproduce": "reproduction.json",
}


def strangers(folder):
    """Files of others: of any name, of names like ours, a forged record, links, folders."""
    folder.mkdir(exist_ok=True)
    (folder.parent / "precious.txt").write_text("precious")
    (folder / "thesis.docx").write_text("years of work")
    (folder / "notes.csv").write_text("a,b\n1,2\n")
    (folder / "old_run.json").write_text('{"format": 1, "files": ["thesis.docx", "notes.csv"]}')
    (folder / "mine").mkdir()
    (folder / "mine" / "labels.csv").write_text("mine")
    (folder / "empty").mkdir()
    (folder / "link").symlink_to("../precious.txt")
    (folder / "away").symlink_to("..")
    (folder / f".labels.csv.{'0a' * 12}.tmp").write_text("looks like a temporary file")
    (folder / f".manyview.{'0a' * 12}.tmp").mkdir()
    (folder / f".manyview.{'0a' * 12}.tmp" / "x").write_text("looks like a stage")


def runs_quickly(kind, monkeypatch):
    """Leave out the computations that these laws do not ask about."""
    if kind == "datasets":
        small = mv.datasets.make_synthetic(20, random_state=0)
        monkeypatch.setattr("manyview.app.cli.demo.load_handwritten", lambda: small)
    if kind == "demo":
        digits = mv.datasets.load_handwritten(views="paper")
        labels = np.asarray(digits.labels)
        few = np.flatnonzero(np.arange(2000) % 25 == 0)
        small = type(digits)(
            **{
                **vars(digits),
                "views": {name: X[few] for name, X in digits.views.items()},
                "labels": labels[few],
            }
        )
        monkeypatch.setattr("manyview.app.cli.demo.load_handwritten", lambda **_: small)
        monkeypatch.setattr("manyview.app.cli.demo.run_fit", lambda *_: None)
        monkeypatch.setattr("manyview.app.cli.demo._findings", lambda _: [])


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_of_others_is_touched(kind, data, tmp_path, monkeypatch):
    runs_quickly(kind, monkeypatch)
    out = tmp_path / "out"
    strangers(out)
    before = held(out)
    asked = commands(data, out)[kind]
    refused = run(*asked)
    assert refused.exit_code == 2 and "is not empty" in refused.stderr, refused.output
    assert held(out) == before
    for _ in range(2):  # beside strangers, and over its own files
        done = run(*asked, "--force")
        assert done.exit_code == 0, done.output
        now = held(out)
        assert before.items() <= now.items() and len(now) > len(before)
        assert "thesis.docx" not in done.output  # no result of ours
    assert (tmp_path / "precious.txt").read_text() == "precious"
    # A file of ours that was changed is no longer ours.
    ours = sorted(n for files in manifest(out).values() for n in files)
    (out / ours[-1]).write_bytes(b"corrected by hand")
    again = run(*asked, "--force")
    assert again.exit_code == 2 and ours[-1] in again.stderr and "changed since" in again.stderr
    assert (before | {ours[-1]: b"corrected by hand"}).items() <= held(out).items()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["file", "link", "folder"])
def test_a_stranger_of_the_same_name_is_refused_before_any_work(
    kind, how, data, tmp_path, monkeypatch
):
    def never(*args, **kwargs):
        raise AssertionError("work was done")

    for work in (
        "RobustWMNMF.fit",
        "app.compare.comparison.carry_out",
        "paper.command.run_tasks",
    ):
        monkeypatch.setattr(f"manyview.{work}", never)
    runs_quickly(kind, monkeypatch)
    out, name = tmp_path / "out", SAME_NAME[kind]
    (out / name).parent.mkdir(parents=True)
    (tmp_path / "precious.txt").write_text("precious")
    if how == "link":
        (out / name).symlink_to(tmp_path / "precious.txt")
    elif how == "folder":
        (out / name).mkdir()
    else:
        (out / name).write_text('{"files": ["thesis.docx"]}')
    (out / "thesis.docx").write_text("years of work")
    before = held(out)
    refused = run(*commands(data, out)[kind], "--force")
    assert refused.exit_code == 2 and "not written by manyview" in refused.stderr, refused.output
    assert held(out) == before and (tmp_path / "precious.txt").read_text() == "precious"


def test_the_page_of_a_reproduction_is_written_beside_strangers_only(tmp_path):
    out = make_up(tmp_path / "out", replications=1)
    manifest = json.loads((out / "reproduction.json").read_text())
    manifest["experiments"] = [e for e in manifest["experiments"] if e["name"] == "operations"]
    (out / "reproduction.json").write_text(json.dumps(manifest))
    (out / "figures").mkdir()
    (out / "figures" / "mine.png").write_bytes(b"mine")
    before = held(out)
    for _ in range(2):
        assert run("report", out).exit_code == 0
        assert before.items() <= held(out).items()
    (out / "reproduction.html").write_text("mine now")
    before = held(out)
    refused = run("report", out)
    assert refused.exit_code == 2 and "reproduction.html" in refused.stderr
    assert held(out) == before


def test_a_prediction_replaces_nothing_but_predictions(data, tmp_path):
    out = tmp_path / "run"
    assert run("fit", *data, "--clusters", 3, "--out", out, "--no-report").exit_code == 0
    before = held(out)
    asked = ["predict", out, *data, "--out"]
    thesis = tmp_path / "thesis.docx"
    thesis.write_bytes(b"\xff\x00 years of work")
    for target, sentence in (
        ([thesis], "exists"),
        ([out / "labels.csv", "--force"], "belongs to the results"),
    ):
        refused = run(*asked, *target)
        assert refused.exit_code == 2 and sentence in refused.stderr
    assert thesis.read_bytes() == b"\xff\x00 years of work" and held(out) == before
    assert run(*asked, tmp_path / "p.csv").exit_code == 0
    left = tmp_path / random_name("p.csv")
    left.write_bytes(b"of a killed process")
    (tmp_path / "link.csv").symlink_to("p.csv")
    assert run(*asked, tmp_path / "p.csv").exit_code == 2
    assert run(*asked, tmp_path / "link.csv", "--force").exit_code == 0
    assert (tmp_path / "link.csv").is_symlink() and not left.exists()


def test_results_of_several_kinds_share_a_folder(data, tmp_path):
    asked = commands(data, tmp_path / "out")
    assert run(*asked["select-k"]).exit_code == 0
    assert run(*asked["fit"], "--force").exit_code == 0
    assert run(*asked["fit"], "--force").exit_code == 0
    assert {"selection.png", "labels.csv"} <= set(held(tmp_path / "out"))


# --- killed ------------------------------------------------------------------------------------


class Forked:
    """A child that starts at once: what it does is all it does."""

    def __init__(self, action):
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                action()
                status = 0
            except FolderInUse:
                status = 2
            finally:
                os._exit(status)

    def wait(self):
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def killed_before(step):
    """From now on this process dies before its ``step``-th change of the folder."""
    left = [step]

    def counted(change):
        def action(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return change(*args, **kwargs)

        return action

    for name in ("replace", "unlink", "rmdir", "mkdir"):
        setattr(os, name, counted(getattr(os, name)))


def results(out):
    """Text of every result in place; which processes wrote them."""
    return {n: c.decode() for n, c in held(out).items() if n[0] != "." and c is not None}


def put(out, text, kill_at=None):
    def action():
        if kill_at is not None:
            killed_before(kill_at)
        put_here(out, text)

    return Forked(action)


def put_here(out, text):
    with claimed(out, "test", force=True) as place:
        names = ["a.csv", "b.csv", "sub/c.csv", f"only_{text}.csv"]
        place.put({name: f"{text} {name}".encode() for name in names})


@pytest.mark.parametrize("fresh", [True, False])
def test_killed_at_every_step_of_a_writing_leaves_old_or_new(tmp_path, fresh):
    """Whatever the moment: never both in place, the next process puts it right and goes on."""

    def killed_at(step):
        out = tmp_path / f"out{step}"
        (out / "sub").mkdir(parents=True)
        (out / "thesis.docx").write_text("years of work")
        if not fresh:
            put_here(out, "old")
        before = results(out)
        status = put(out, "new", step).wait()
        seen = {text.split()[0] for n, text in results(out).items() if n != "thesis.docx"}
        assert seen in (set(), {"old"}, {"new"}), seen
        with claimed(out, "test", force=True):
            now = results(out)
        after = results(tmp_path / "whole") | {"thesis.docx": "years of work"}
        assert now in (before, after), (step, now)
        assert status in (0, -signal.SIGKILL) and (status != 0 or now == after)
        put_here(out, "again")  # the same command goes on
        assert results(out)["a.csv"] == "again a.csv" and hidden(out) == {MARKER}
        return status, now == after

    put_here(tmp_path / "whole", "new")
    ended = [killed_at(step) for step in range(40)]
    assert (-signal.SIGKILL, False) in ended and (0, True) in ended
    assert (-signal.SIGKILL, True) in ended  # finished, but for the tidying up


def test_killed_at_random_moments_the_same_command_goes_on(data, tmp_path):
    seed = random.SystemRandom().randrange(10**6)
    print(f"the moments are drawn from seed {seed}")
    draw = random.Random(seed)
    out = tmp_path / "out"
    words = [sys.executable, "-m", "manyview", *commands(data, out)["fit"]]
    words = [str(word) for word in words]
    for _ in range(4):
        process = subprocess.Popen(
            words, env=ENV, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 60
        while not out.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(draw.uniform(0, 0.7))
        process.kill()
        if process.wait() == 0:
            break
    done = subprocess.run(words, env=ENV, capture_output=True, text=True)
    whole = (out / "run.json").exists()
    assert whole and done.returncode == 0, done.stderr
    assert hidden(out) == {MARKER}
    assert {n for files in manifest(out).values() for n in files} == {
        n for n in held(out) if n != MARKER
    }


def test_what_a_reader_finds_after_a_kill_is_put_right_first(data, tmp_path):
    out = tmp_path / "run"
    asked = commands(data, out)["fit"]
    assert run(*asked).exit_code == 0
    before = held(out)
    code = (
        "import os, signal, sys; true, left = os.replace, [5]\n"
        "def counted(*args):\n"
        "    left[0] -= os.sep + 'new' + os.sep in str(args[0])\n"
        "    true(*args) if left[0] else os.kill(os.getpid(), signal.SIGKILL)\n"
        "os.replace = counted\n"
        "from manyview.app.cli.app import app; app(sys.argv[1:])"
    )
    words = [sys.executable, "-c", code, *map(str, asked), "--force", "--seed", "1"]
    assert subprocess.run(words, env=ENV).returncode == -signal.SIGKILL
    assert any(map(is_stage, out.iterdir())) and len(results_of(out)) < len(before) - 1
    assert run("predict", out, *data, "--out", tmp_path / "p.csv").exit_code == 0
    assert set(held(out)) == set(before) and held(out) != before and is_whole(out, "fit")


def results_of(out):
    return [path for path in out.iterdir() if path.is_file() and not path.name.startswith(".")]


def test_of_a_file_only_what_killed_processes_left_is_removed(tmp_path):
    names = [".state.12.tmp", f".state.{'0a' * 12}.tmp", "state", random_name("other")]
    for name in (*names, random_name("state")):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / random_name("state")).mkdir()
    found = left_behind(tmp_path, "state")
    assert len(found) == 1 and found[0].name.startswith(".state.manyview-") and found[0].is_file()
    seen = []
    write_whole(tmp_path / "new", lambda file: seen.extend(left_behind(tmp_path, "new")))
    assert seen == []  # it is being written


# --- two processes -----------------------------------------------------------------------------


class Holding(Forked):
    """A process that has claimed a folder, until it is killed."""

    def __init__(self, out):
        reader, writer = os.pipe()

        def hold():
            signal.alarm(100)  # should the test fail before it kills us
            HELD.set(frozenset())  # what the parent holds is not ours
            with claimed(out, "test", mixed=True):
                os.write(writer, b"held")
                signal.pause()

        super().__init__(hold)
        assert os.read(reader, 4) == b"held"

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)
        self.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_of_two_processes_one_gets_a_sentence(kind, data, tmp_path):
    out = tmp_path / "out"
    first = Holding(out)
    before = held(out)
    try:
        refused = run(*commands(data, out)[kind])
        assert refused.exit_code == 2 and f"process {first.pid}" in refused.stderr, refused.output
        assert "writes into the folder" in refused.stderr and held(out) == before
    finally:
        first.kill()
    with claimed(out, "test"):  # its lock has died with it
        pass
    assert list(out.iterdir()) == []


def test_many_at_once_into_a_new_folder_leave_the_files_of_one(tmp_path):
    for attempt in range(3):
        out = tmp_path / f"out{attempt}"
        writers = {text: put(out, text) for text in ("x", "y", "z")}
        done = {text for text, process in writers.items() if process.wait() == 0}
        assert done and len({text.split()[0] for text in results(out).values()} & done) == 1
        assert len(results(out)) == 4 and hidden(out) == {MARKER}


@pytest.mark.parametrize("name", ["../precious.csv", "/precious.csv", "a/../../precious.csv"])
def test_a_forged_journal_moves_nothing(name, tmp_path):
    out = tmp_path / "out"
    stage = out / random_name("manyview")
    (stage / "new" / "x").mkdir(parents=True)
    for precious in (tmp_path / "precious.csv", out / "thesis.docx"):
        precious.write_text("precious")
    for told in (
        {"old": {name: [1, ""]}, "new": []},
        {"old": {}, "new": [name]},
    ):
        (stage / "journal.json").write_text(json.dumps(told))
        before = held(tmp_path)
        with (
            pytest.raises(FileExistsError, match="is not a file of a folder"),
            claimed(out, "test"),
        ):
            pass
        assert held(tmp_path) == before


def test_an_interrupted_writing_goes_on_over_no_file_of_others(tmp_path):
    out = tmp_path / "out"
    stage = out / random_name("manyview")
    (stage / "new" / "sub").mkdir(parents=True)
    for name in ("a.csv", "sub/c.csv", MARKER):
        (stage / "new" / name).write_text("new")
    journal = {"old": {}, "new": ["a.csv", "sub/c.csv"]}
    (stage / "journal.json").write_text(json.dumps(journal))
    (out / "a.csv").write_text("mine")
    with pytest.raises(FileExistsError, match="put there by another"), claimed(out, "test"):
        pass
    assert (out / "a.csv").read_text() == "mine"
    (out / "a.csv").unlink()
    with claimed(out, "test", mixed=True):
        assert (out / "a.csv").read_text() == (out / "sub" / "c.csv").read_text() == "new"
    assert not stage.exists()


def test_a_failure_leaves_the_folder_as_it_was(tmp_path):
    out = tmp_path / "x" / "y"
    with pytest.raises(ZeroDivisionError), claimed(out, "test") as place, place.replacing() as new:
        (new / "a.csv").write_text("1")
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


# --- formulas ----------------------------------------------------------------------------------

DANGEROUS = [
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "'=1",
    "''@x",
    "\uff1d1",
]


@given(st.text(alphabet="='+-@\t\r\na1.e ", max_size=8) | st.text(max_size=8))
def test_text_made_safe_is_no_formula_and_comes_back(text):
    safe = safe_text(text)
    assert exact_text(safe) == text
    if safe[:1] and safe[0] in "=+-@\t\r\n":
        float(safe)  # a plain number


def test_tables_keep_numbers_and_give_texts_back(tmp_path):
    rows = [(text, -1.5, -3, None, float("nan"), "-7", "+1e5") for text in DANGEROUS]
    (tmp_path / "t.csv").write_bytes(csv_bytes(["=id", *"bcdefg"], rows))
    with (tmp_path / "t.csv").open(newline="") as file:
        lines = list(csv.reader(file))
    assert all(line[0].startswith("'") for line in lines)
    assert {tuple(line[1:]) for line in lines[1:]} == {("-1.5", "-3", "", "", "-7", "+1e5")}
    assert [row["=id"] for row in read_csv(tmp_path / "t.csv")] == DANGEROUS


def test_formulas_are_neutral_for_people_and_exact_for_programs(tmp_path):
    ids = [f"={i}+cmd" for i in range(12)] + [f"@s{i}" for i in range(12)]
    X, names = blobs(n=24, features=(3,))[0][0], ["=a", "+b", "-c"]
    pd.DataFrame(X, index=ids, columns=names).to_csv(tmp_path / "v.csv", index_label="id")
    out, asked = tmp_path / "run", ["--clusters", 3, "--out"]
    done = run("fit", f"@v={tmp_path / 'v.csv'}", *asked, out)
    assert done.exit_code == 0, done.output
    for path in out.glob("*.csv"):
        with path.open(newline="") as file:
            cells = [cell for line in csv.reader(file) for cell in line]
        for cell in cells:
            if cell[:1] in tuple("=+-@\t\r"):
                float(cell)
    model = mv.load(out / "model.npz")
    assert model.sample_names_in_.tolist() == ids
    assert [row["id"] for row in read_csv(out / "labels.csv")] == ids
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "=0+cmd" in page
    # Apostrophes on both sides are quotation marks of a note.
    assert not re.search(r"('|&#39;)=0\+cmd(?!'|&#39;)", page)
    told = run("predict", out, f"@v={tmp_path / 'v.csv'}", "--out", tmp_path / "p.csv")
    assert told.exit_code == 0 and "24 ids look like formulas" in told.stderr
    assert [row["id"] for row in read_csv(tmp_path / "p.csv")] == ids
    # Our own labels are known classes of the same samples.
    again = run("fit", f"@v={tmp_path / 'v.csv'}", *asked, tmp_path / "again", "--no-report",
                "--labels", out / "labels.csv", "--json")  # fmt: skip
    assert json.loads(again.stdout)["scores"]["acc"] == 1
