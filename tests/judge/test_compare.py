"""A comparison survives its methods, its limits and its own interruption."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import DBSCAN, KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

import manyview as mv
from browser import visit
from conftest import blobs
from manyview import metrics
from manyview.app import processes
from manyview.app.compare import runs
from manyview.app.compare.comparison import mean_ranks, seed_of, stability
from manyview.app.compare.methods import GROUPS, resolve, settings_of
from manyview.app.compare.runs import RunStore
from manyview.app.report.page import asset
from manyview.baselines import BestSingleView, ConcatViews, paper_methods
from manyview.io.child import environment
from manyview.io.writing import MARKER

SCORES = ["acc", "nmi", "precision", "recall", "f_score", "ari"]
EVIL = "<script>alert(1)</script>"

#: Cheap methods for the children, in a module they can import. Every call leaves a line.
FAKES = '''
import os, sys, time
import numpy as np
from sklearn.base import BaseEstimator

class Fake(BaseEstimator):
    """Does as told."""
    def __init__(self, what="labels", random_state=None):
        self.what = what
        self.random_state = random_state
    def fit_predict(self, views):
        with open(os.environ["FAKE_CALLS"], "a") as file:
            file.write(f"{self.what} {self.random_state}\\n")
        n = len(next(iter(views.values())))
        if self.what == "raise":
            raise RuntimeError(f"no\\nluck with {self.random_state % 1}")
        if self.what == "memory error" and not os.path.exists(os.environ["FAKE_CALLS"] + ".mended"):
            raise MemoryError
        if self.what == "exit":
            os._exit(3)
        if self.what == "sleep":
            time.sleep(100)
        if self.what == "memory":
            held = np.ones(2**26)
            time.sleep(100)
        if self.what == "nap":
            time.sleep(0.4)
        if self.what == "wrong":
            return np.zeros(n + 1)
        print('{"event": "result"}')
        return np.random.default_rng(self.random_state).integers(3, size=n)

class Relabels(Fake):
    def relabel(self, random_state=None):
        with open(os.environ["FAKE_CALLS"], "a") as file:
            file.write(f"relabel {random_state}\\n")
        return np.random.default_rng(random_state).integers(3, size=60)

class Costly(Fake):
    def estimate_cost(self, n_samples, n_views):
        return {"seconds": 7200.0 + time.time() % 1, "bytes": 9.0 * 2**30}
'''


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """The fakes, the log of their calls, and a cheap way to read it."""
    folder = tmp_path_factory.mktemp("fakes")
    (folder / "fakes.py").write_text(FAKES)
    log = folder / "calls"
    sys.path.insert(0, str(folder))
    os.environ["FAKE_CALLS"] = str(log)
    yield lambda: log.read_text().split("\n")[:-1] if log.exists() else []
    sys.path.remove(str(folder))
    del os.environ["FAKE_CALLS"]


def every_kind():
    import fakes

    return {
        EVIL: fakes.Fake(),
        "raise": fakes.Fake("raise"),
        "exit": fakes.Fake("exit"),
        "sleep": fakes.Fake("sleep"),
        "memory": fakes.Fake("memory"),
        "wrong": fakes.Fake("wrong"),
        "relabels": fakes.Relabels(),
        "costly": fakes.Costly(),
        "unsendable": lambda seed: Unsendable(),
        "unmakeable": lambda seed: 1 / 0,
        "of the script": fakes.Fake(of_the_script),
        "best": BestSingleView(KMeans(3, n_init=1)),
    }


class Unsendable:
    def fit_predict(self, views): ...
    def __reduce__(self):
        raise TypeError("stays here")


def of_the_script(): ...


of_the_script.__module__ = "__main__"
sys.modules["__main__"].of_the_script = of_the_script

ASKED = {
    "n_clusters": 3,
    "n_runs": 2,
    "max_seconds": 3.0,
    "max_memory": 0.45,
    "random_state": 5,
    "progress": False,
}


@pytest.fixture(scope="module")
def found(world, tmp_path_factory):
    out = tmp_path_factory.mktemp("whole")
    ballast = np.ones(60_000_000)  # 480 MB of ours, which must not count as a child's
    result = mv.compare(*blobs(), **ASKED, methods=every_kind(), n_jobs=2, out=out)
    del ballast
    return result, out


def rows(result, method):
    return result.table[result.table["method"] == method]


def test_the_table_has_a_row_per_method_and_run(found):
    table = found[0].table
    assert len(table) == 2 * len(every_kind())
    assert list(table["method"].unique()) == list(every_kind())
    assert set(SCORES) < set(table) and set(table["status"]) == {"ok", "failed", "skipped"}
    ok = table[table["status"] == "ok"]
    assert (ok["reason"] == "").all() and ok["seconds"].gt(0).all()
    assert ok["peak_memory_mb"].between(50, 450).all()
    other = table[table["status"] != "ok"]
    assert other[[*SCORES, "seconds", "peak_memory_mb"]].isna().all(axis=None)
    assert (other["reason"] != "").all()


def test_scores_are_those_of_the_labels(found):
    _, y = blobs()
    row = rows(found[0], EVIL).iloc[1]
    expected = metrics.scores(y, found[0].labels[EVIL][1])
    assert {name: row[name] for name in SCORES} == pytest.approx(expected)
    assert row["n_found"] == 3


@pytest.mark.parametrize(
    "method, status, reason",
    [
        ("raise", "failed", r"RuntimeError: no luck with 0"),
        ("exit", "failed", r"its process ended with exit code 3"),
        ("wrong", "failed", r"it gave labels of shape \(61,\) for 60 samples"),
        ("unsendable", "failed", r"cannot be sent to a process of its own: TypeError: stays here"),
        ("unmakeable", "failed", r"it could not be made: ZeroDivisionError: division by zero"),
        (
            "costly",
            "skipped",
            r"about 2\.0 h, above max_seconds=3 \(3 s\) and about 9\.0 GiB, above",
        ),
    ],
)
def test_what_goes_wrong_is_a_row_with_the_reason(found, method, status, reason):
    mine = rows(found[0], method)
    assert list(mine["status"]) == [status] * 2
    assert mine["reason"].str.contains(reason).all(), list(mine["reason"])


@pytest.mark.parametrize(
    "method, reason",
    [
        ("sleep", "stopped after 3 s, the limit (max_seconds)"),
        ("memory", "stopped when it held 0.45 GiB of memory, the limit (max_memory)"),
    ],
)
def test_a_run_over_a_limit_is_stopped_and_its_method_not_tried_again(found, method, reason):
    mine = rows(found[0], method)
    assert list(mine["status"]) == ["failed", "skipped"]
    assert list(mine["reason"]) == [reason, f"not tried: the first run was {reason}"]


def test_what_a_script_defines_goes_along(found):
    pytest.importorskip("cloudpickle")
    mine = rows(found[0], "of the script")
    assert list(mine["status"]) == ["ok", "ok"], list(mine["reason"])


def test_run_r_has_the_same_seed_for_every_method(found, world):
    table = found[0].table
    assert table.groupby("run")["seed"].nunique().eq(1).all()
    assert seed_of(5, 0) == table["seed"][0] and seed_of(5, 1) == table["seed"][1]
    assert len({seed_of(s, r) for s in range(20) for r in range(20)}) == 400
    assert f"labels {seed_of(5, 1)}" in world()


def test_a_method_that_relabels_is_fitted_once(found, world):
    calls = world()
    assert rows(found[0], "relabels")["status"].eq("ok").all()
    # Relabels() itself is one of the fits whose log line says "labels" under run 0's seed.
    assert sum(call.startswith("relabel ") for call in calls) == 2
    for r in range(2):
        expected = np.random.default_rng(seed_of(5, r)).integers(3, size=60)
        assert np.array_equal(found[0].labels["relabels"][r], expected)


def test_an_oracle_is_marked_and_pushes_nobody_down(found):
    summary = found[0].summary.set_index("method")
    assert summary["oracle"].sum() == 1 and summary.loc["best", "oracle"]
    assert rows(found[0], "best")["remark"].str.contains("chosen by truth").all()
    best = summary[summary["n_ok"].gt(0) & ~summary["oracle"]]["mean_rank"]
    # Three give the same labels, and share the ranks 1 to 3.
    assert best.min() == 2 and summary.loc["best", "mean_rank"] == 1
    without_result = summary["n_ok"] == 0
    assert summary[without_result]["mean_rank"].isna().all()
    assert list(without_result) == sorted(without_result)


def test_empty_where_nothing_can_be_computed():
    assert np.isnan(stability([])) and np.isnan(stability([np.arange(3)]))
    assert stability([np.array([0, 0, 1]), np.array([1, 1, 0])]) == 1
    means = np.array([[0.9, 0.2], [0.5, 0.2], [np.nan, np.nan], [1.0, 1.0]])
    ranks = mean_ranks(means, np.array([False, False, False, True]))
    assert ranks[:2] == pytest.approx([1.25, 1.75]) and np.isnan(ranks[2]) and ranks[3] == 1


def test_interrupted_and_resumed_by_one_process_gives_the_same(found, world, tmp_path, monkeypatch):
    some = {name: every_kind()[name] for name in (EVIL, "raise", "relabels", "costly", "best")}
    n_written, write = 0, RunStore.write

    def interrupted(self, key, record):
        nonlocal n_written
        write(self, key, record)
        n_written += "status" in record
        if n_written == 4:
            raise KeyboardInterrupt

    before = len(world())
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(runs.RunStore, "write", interrupted)
        mv.compare(*blobs(), **ASKED, methods=some, n_jobs=1, out=tmp_path)
    stored = {p.name: p.read_bytes() for p in (tmp_path / "runs").glob("*.json")}
    again = mv.compare(*blobs(), **ASKED, methods=some, n_jobs=1, out=tmp_path)
    assert all((tmp_path / "runs" / name).read_bytes() == stored[name] for name in stored)
    calls = world()[before:]
    # Two runs of the first, one fit that is relabeled twice: nothing is done twice. What failed is
    # tried again, so that its first run is.
    assert len(calls) == 2 + (2 + 1) + 1 + 2
    for one, other in ((again.table, found[0].table), (again.summary, found[0].summary)):
        other = other[other["method"].isin(some)].reset_index(drop=True)
        # Ranks depend on who else is there.
        columns = [c for c in one if not c.startswith(("seconds", "peak_memory", "mean_rank"))]
        assert len(one) == len(other) > 4
        pd.testing.assert_frame_equal(one[columns], other[columns])


def test_what_is_stored_serves_other_questions_on_the_same_data(found, world):
    import fakes

    result, out = found
    before = world()
    views, _ = blobs()
    files = sorted((out / "runs").glob("*.json"))
    mine = {"my method": fakes.Fake()}
    unlabeled = mv.compare(views, **ASKED, methods=mine, out=out)
    assert world() == before
    assert "acc" not in unlabeled.table
    assert unlabeled.summary["mean_rank"].isna().all()
    assert np.array_equal(unlabeled.labels["my method"][0], result.labels[EVIL][0])
    wider = {**ASKED, "n_runs": 1, "max_seconds": 0.5}
    mv.compare(views, **wider, methods={"sleep": fakes.Fake("sleep")}, out=out)
    assert world() == before  # a narrower limit asks for no new attempt
    views[0] = views[0] + 1
    other = mv.compare(views, **{**ASKED, "n_runs": 1}, methods=mine, out=out)
    assert len(world()) == len(before) + 1 and len(other.table) == 1
    assert set(files) < set((out / "runs").glob("*.json"))


def test_deleted_and_damaged_files_are_run_again(found, world, tmp_path):
    import fakes

    _, out = found
    (tmp_path / "runs").mkdir()
    mine = {"m": fakes.Fake()}
    for path in (out / "runs").glob("*.json"):
        (tmp_path / "runs" / path.name).write_bytes(path.read_bytes())
    paths = [p for p in (tmp_path / "runs").glob("*") if json.loads(p.read_text()).get("run") == 1]
    evil = next(p for p in paths if json.loads(p.read_text())["method"] == EVIL)
    evil.write_text(evil.read_text()[:50])
    before = len(world())
    again = mv.compare(*blobs(), **ASKED, methods=mine, out=tmp_path)
    assert world()[before:] == [f"labels {seed_of(5, 1)}"]
    assert np.array_equal(again.labels["m"], found[0].labels[EVIL])


def test_what_failed_is_tried_again_and_what_succeeded_is_not(world, tmp_path):
    import fakes

    methods = {"hungry": fakes.Fake("memory error"), "fine": fakes.Fake("fine")}

    def ask():
        return mv.compare(*blobs(), **ASKED, methods=methods, out=tmp_path).table

    before = len(world())
    assert set(ask().query("method == 'hungry'")["reason"]) == {"MemoryError"}
    mended = Path(os.environ["FAKE_CALLS"] + ".mended")
    mended.touch()
    assert ask()["status"].eq("ok").all()
    assert ask()["status"].eq("ok").all()
    mended.unlink()
    calls = [call.rsplit(" ", 1)[0] for call in world()[before:]]
    assert calls.count("memory error") == 4 and calls.count("fine") == 2


def test_other_code_of_yours_is_another_method(world, tmp_path):
    import fakes

    def ask():
        asked = {**ASKED, "n_runs": 1}
        return mv.compare(*blobs(), **asked, methods={"m": fakes.Fake("code")}, out=tmp_path).labels

    before = len(world())
    first, same = ask()["m"][0], ask()["m"][0]
    assert np.array_equal(first, same) and len(world()) == before + 1
    file = Path(fakes.__file__)
    file.write_text(FAKES.replace("integers(3, size=n)", "integers(3, size=n) * 0"))
    try:
        assert len(np.unique(ask()["m"][0])) == 1 < len(np.unique(first))
    finally:
        file.write_text(FAKES)


def test_seeds_reach_every_part_of_a_given_estimator():
    def made(seed):
        pipe = make_pipeline(PCA(2), KMeans(3))
        mine = {"pipe": pipe, "top": KMeans(3), "none": DBSCAN()}
        return {m.name: m.make(seed) for m in resolve(mine, 3)}

    one, same, other = made(3), made(3), made(4)
    assert one["top"].random_state == 3
    for name in ("pca__random_state", "kmeans__random_state"):
        seeds = [m["pipe"].get_params()[name] for m in (one, same, other)]
        assert seeds[0] == seeds[1] != seeds[2] and seeds[0] is not None


def test_processes_share_the_cores(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "available_cores", lambda: 8)
    asked = []
    monkeypatch.setattr(processes, "_Child", lambda *given: asked.append(given[-1]))
    for n_jobs in (1, 2, 3, 8, 20):
        processes.Pool(tmp_path, n_jobs)._new(True)
    processes.Pool(tmp_path, 2)._new(False)
    assert asked == [None, 4, 2, 1, 1, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert [environment(n)["OMP_NUM_THREADS"] for n in (3, None)] == ["3", "7"]


def test_where_memory_cannot_be_watched_it_is_said(monkeypatch):
    monkeypatch.setattr(processes, "_resident_gib", lambda pid: 0.0)
    with pytest.warns(UserWarning, match="max_memory=4 only skips methods"):
        mv.compare(*blobs(), methods=["ConcatK-z"], n_runs=1, progress=False)


def test_as_many_clusters_as_classes_unless_told():
    views, y = blobs()
    asked = {"methods": ["ConcatK-z"], "n_runs": np.int32(1), "progress": False}
    found = mv.compare(views, y, **asked, max_seconds=np.float32(60), max_memory=np.int64(4))
    assert found.settings["n_clusters"] == 3 and found.table["n_found"].tolist() == [3]
    assert json.dumps({k: v for k, v in found.settings.items() if k != "views"})
    found = mv.compare(views, y, n_clusters=np.int64(4), **asked)
    assert found.settings["n_clusters"] == 4 and found.table["n_found"].tolist() == [4]
    assert mv.compare(views, **asked).settings["n_clusters"] == 8


def ended_within(seconds, module, mark):
    """Whether all processes of a module whose environment holds the mark are gone in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        alive = 0
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                started = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            alive += module.encode() in started and mark.encode() in started
        if not alive:
            return True
        time.sleep(0.1)
    return False


@pytest.mark.slow
def test_killed_midway_nothing_is_left_running_and_nothing_is_repeated(world, tmp_path):
    import fakes

    script = tmp_path / "script.py"  # without a __main__ guard, as people write them
    script.write_text(
        textwrap.dedent(f"""
        import manyview as mv, fakes
        from conftest import blobs
        mv.compare(*blobs(), n_clusters=3, n_runs=3, methods={{"nap": fakes.Fake("nap")}},
                   out={str(tmp_path / "out")!r}, progress=False)
        """)
    )
    before = len(world())
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, str(script)], env=env)
    deadline = time.monotonic() + 60
    while not list((tmp_path / "out").glob("runs/*.json")) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = len(list((tmp_path / "out").glob("runs/*.json")))
    assert done in (1, 2)
    assert ended_within(20, "manyview.app.processes", os.environ["FAKE_CALLS"])
    stored = {json.loads(p.read_text())["run"] for p in (tmp_path / "out").glob("runs/*.json")}
    result = mv.compare(
        *blobs(),
        n_clusters=3,
        n_runs=3,
        methods={"nap": fakes.Fake("nap")},
        out=tmp_path / "out",
        progress=False,
        n_jobs=2,
    )
    calls = world()[before:]
    assert all(calls.count(f"nap {seed_of(0, r)}") == 1 for r in stored)
    for r in range(3):
        expected = np.random.default_rng(seed_of(0, r)).integers(3, size=60)
        assert np.array_equal(result.labels["nap"][r], expected)
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_settings_tell_methods_apart_and_nothing_else():
    def of(estimator):
        return json.dumps(settings_of(estimator))

    a = of(ConcatViews(KMeans(3, init=np.eye(3)), scale="standard"))
    assert a == of(ConcatViews(KMeans(3, init=np.eye(3)), scale="standard"))
    assert a != of(ConcatViews(KMeans(3, init=np.eye(3) + 1), scale="standard"))
    assert a != of(ConcatViews(KMeans(4, init=np.eye(3)), scale="standard"))
    graph = mv.extend.Graph
    assert of(mv.WMNMF(regularizer=graph())) == of(mv.WMNMF(regularizer=graph()))
    assert of(mv.WMNMF(regularizer=graph())) != of(mv.WMNMF(regularizer=graph(mutual=True)))
    assert of(mv.WMNMF(callback=print)) != of(mv.WMNMF())


def test_names_and_sets_of_methods():
    def names(methods):
        return [method.name for method in resolve(methods, 3)]

    for every in ("all", "paper", "honest", "omics"):
        assert {"RobustWMNMF", "WM-NMF"} <= set(names(every)) <= set(names("all"))
    assert set(names("paper")) == {"RobustWMNMF", *paper_methods(3)}
    assert {"SNF", "NEMO", "PIntMF", "ConcatLeiden"} <= set(names("omics"))
    assert names(["WM-NMF", "honest", "WMNMF"])[0] == "WM-NMF" and names(["WMNMF"]) == ["WM-NMF"]
    style = asset("comparison.css")  # every group has a dot of its color
    assert all(f".{group} {{ --c:" in style for group in GROUPS)
    own = resolve(["SNF", {"WM-NMF": mv.WMNMF(4), "x": KMeans(2)}], 3)
    assert [method.group for method in own] == ["omics", "proposed", "yours"]


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"n_runs": 0}, "n_runs must be a whole number of at least 1, got 0"),
        ({"n_clusters": 61}, "n_clusters=61 is more than the number of samples"),
        ({"max_seconds": 0}, "max_seconds must be a number above 0, got 0"),
        ({"methods": "W-NMF"}, "there is no method 'W-NMF'; known are .*WM-NMF"),
        ({"methods": [KMeans()]}, "pass estimators as a dict"),
        ({"methods": {"a": 3}}, "method 'a' must be an estimator"),
        ({"y": [1, 2]}, "y has 2 labels for 60 samples"),
    ],
)
def test_bad_questions_are_answered_by_a_sentence(change, sentence):
    views, y = blobs()
    with pytest.raises(ValueError, match=sentence):
        mv.compare(views, **{"y": y, "progress": False, **change})


def test_a_file_is_no_folder(found, tmp_path):
    (tmp_path / "file").write_text("mine")
    for ask in (lambda out: mv.compare(*blobs(), methods=["ConcatK-z"], out=out), found[0].save):
        with pytest.raises(ValueError, match="is a file; name a folder"):
            ask(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_characters_that_do_things_are_shown_and_not_done(tmp_path):
    views, y = blobs(n=24)
    name = "a\x00b\x1b[31m\nc\u202ed\ud800"
    found = mv.compare(
        {f"v{name}": views[0]},
        y,
        methods={name: mv.baselines.SumOfGraphs(3)},
        n_runs=1,
        progress=False,
    )
    assert found.table["status"].tolist() == ["ok"]
    with warnings.catch_warnings(action="error"):
        # matplotlib warns of characters it has no shape for
        found.save(tmp_path, command=name)
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    assert not set(page) & set("\x00\x1b\u202e")
    assert page.count(r"a\x00b\x1b[31m\nc\u202ed\ud800") >= 4


def test_the_files_say_everything_and_escape_it(found, tmp_path):
    result, _ = found
    result.methods[1]["description"] = EVIL
    written = result.save(tmp_path, command=f"manyview compare {EVIL}")
    assert {p.name for p in tmp_path.iterdir()} == {MARKER, *(p.name for p in written)}
    page = (tmp_path / "comparison.html").read_text()
    assert EVIL not in page and page.count("&lt;script&gt;alert(1)&lt;/script&gt;") >= 4
    assert page.count("<script>") == 1
    for needle in ("http://", "https://", "src=", "@import"):
        body = page.replace("http://www.w3.org/", "").replace("http://purl.org/", "")
        body = body.replace("http://creativecommons.org/", "").replace(
            "https://matplotlib.org/", ""
        )
        assert needle not in body
    for text in ("max_seconds=3 (3 s)", "oracle", "no luck with 0", "prefers-color-scheme: dark"):
        assert text in page
    table = pd.read_csv(tmp_path / "results.csv")
    assert page.count('class="small csv"') == 1
    assert len(table) == len(result.table) and table["acc"].isna().sum() == 16
    assert (tmp_path / "comparison.png").read_bytes().startswith(b"\x89PNG")
    assert len(pd.read_csv(tmp_path / "summary.csv")) == len(every_kind())


def test_a_method_whose_cost_cannot_be_told_is_still_a_row():
    views, _ = blobs(n=24)
    methods = {"bad": mv.baselines.MLRSSC(3, kind="bad"), "good": mv.baselines.SumOfGraphs(3)}
    table = mv.compare(views, n_clusters=3, methods=methods, n_runs=1, progress=False).table
    rows = {row["method"]: row for _, row in table.iterrows()}
    assert rows["bad"]["status"] == "failed" and "kind" in rows["bad"]["reason"]
    assert rows["good"]["status"] == "ok"


def test_a_browser_opens_the_page_without_a_word(found, tmp_path):
    found[0].save(tmp_path)
    press = """(() => { const head = document.querySelectorAll('.comparison th button')[2];
      head.click(); return head.closest('th').getAttribute('aria-sort'); })()"""
    seen = visit((tmp_path / "comparison.html").read_text(), press)
    assert (seen.errors, seen.requests, seen.value) == ([], [], "descending")
