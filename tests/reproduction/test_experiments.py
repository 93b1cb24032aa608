"""Experiments: cells survive a kill, share what is equal, and compute what they say."""

import csv
import json
from collections import Counter
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import manyview as mv
from conftest import blobs
from manyview import baselines
from manyview.app.processes import run_tasks
from manyview.maths.solvers import Multiplicative
from manyview.paper import command, costs, experiments, tasks
from manyview.paper.command import PORTION, portioned
from manyview.paper.costs import BETA, P
from manyview.paper.experiments import ALONE, EXPERIMENTS, SLOW, Cell, Experiment, Options, grid
from manyview.paper.tables import STARTS
from manyview.paper.tasks import Rounds
from manyview.paper.texts import DIGITS
from manyview.wmnmf import Problem, Settings, run


def table(path):
    """Rows without the columns of time."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]


def reproduce(names, out, **settings):
    given = {"replications": 1, "seed": 0, "jobs": 2, "data": None, "linear_mlrssc": "skip"}
    return command.run_reproduce(names, out, **(given | settings), console=Console(quiet=True))


def lihc_files(folder, kind):
    """Small files of 24 samples in two classes, with negative values, as `load_lihc` takes them."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    ids = [f"TCGA-{i:02d}" for i in range(24)]
    y = np.arange(24) % 2
    for name, m in (("expression", 12), ("cnv", 10), ("methylation", 8)):
        X = np.round(rng.normal(size=(2, m))[y] + 0.3 * rng.normal(size=(24, m)), 3)
        frame = pd.DataFrame(X, index=ids, columns=[f"{name}{j}" for j in range(m)])
        save(frame, folder / f"{name}.{kind}")
    save(pd.DataFrame({"label": y}, index=ids), folder / f"labels.{kind}")
    return folder


def save(frame, path):
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",")


def test_lihc_runs_whole_from_all_three_formats(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    found, written = {}, set()

    def watched(portions, folder, *args):
        for event in run_tasks(portions, folder, *args):
            written.update(path.name.split("-")[0] for path in folder.iterdir())
            yield event

    monkeypatch.setattr(command, "run_tasks", watched)
    for kind in ("csv", "tsv", "parquet"):
        data = lihc_files(tmp_path / kind, kind)
        assert reproduce(["lihc"], tmp_path / "out", data=data) == 0
        found[kind] = table(tmp_path / "out" / "lihc.csv")
    assert found["csv"] == found["tsv"] == found["parquet"]
    assert [row["method"] for row in found["csv"]] == list(experiments.OMICS_METHODS)
    assert written == {"stderr", "mark"}  # a killed run must not leave the user's data anywhere
    best = {row["method"]: float(row["acc"]) for row in found["csv"]}
    assert best["WM-NMF"] > 0.9 and best["RobustWMNMF"] > 0.9
    entry = json.loads((tmp_path / "out" / "reproduction.json").read_text())["experiments"][0]
    assert "24 samples, 2 classes" in entry["about"] and "--data" in entry["command"]


def test_bad_questions_are_answered_by_a_sentence(tmp_path):
    for names, change, sentence in (
        (["digit"], {}, "there is no experiment 'digit'; known are all, digits"),
        (["lihc"], {}, "needs your own files"),
        (["p"], {"linear_mlrssc": "no"}, "--linear-mlrssc is one of auto"),
    ):
        with pytest.raises(ValueError, match=sentence):
            reproduce(names, tmp_path / "out", **change)
    assert not (tmp_path / "out").exists()


def test_a_cell_that_fails_is_told_and_not_kept(tmp_path, monkeypatch):
    bad = Cell("fitting.score", {"dataset": "no such", "method": "ConcatK", "seed": 0})
    experiment = Experiment("bad", "Bad", "", lambda options: [bad])
    monkeypatch.setitem(EXPERIMENTS, "bad", experiment)
    assert reproduce(["bad"], tmp_path) == 1
    entry = json.loads((tmp_path / "reproduction.json").read_text())["experiments"][0]
    assert entry["reasons"] == ["there is no dataset 'no such' here"] and entry["files"] == []
    assert not list((tmp_path / "runs").glob("*.json"))


def test_equal_cells_of_several_experiments_are_one():
    options = Options(10)
    sweeps_ = [cell for e in ("p", "beta", "k") for cell in EXPERIMENTS[e].cells(options)]
    assert len(sweeps_) == 3 * 2 * 5 * 10 and len({cell.key for cell in sweeps_}) == 2 * 13 * 10
    table_ = {cell.key for cell in EXPERIMENTS["digits"].cells(options)}
    assert len(table_ & {cell.key for cell in sweeps_}) == 10
    tuned = {cell.key for cell in EXPERIMENTS["mlrssc"].cells(Options(10, linear_mlrssc="full"))}
    assert len(tuned) == 2 * 4 * 10 and len(table_ & tuned) == 4 * 10  # the defaults
    assert {s for _, s in Options(3).seeds()} < {s for _, s in Options(20).seeds()}
    defaults = mv.WMNMF().get_params()
    assert all((defaults[name] or 10) == value for name, value in experiments.DEFAULTS.items())


def test_every_method_of_the_paper_is_in_the_digits_table():
    cells = EXPERIMENTS["digits"].cells(Options(1))
    assert [c.labels["method"] for c in cells] == list(DIGITS)
    assert {c.labels["dataset"] for c in cells} == {"digits"}
    # The paper used the methods' defaults: so do we.
    assert {c.settings["tuning"] for c in cells if "MLRSSC" in c.labels["method"]} == {"default"}
    for method in tasks.MLRSSC:
        made = tasks.make(method, 10, 0, {})
        own = mv.baselines.MLRSSC(10, kind=made.kind, kernel=made.kernel, n_init=1, random_state=0)
        assert made.get_params() == own.get_params()


@pytest.mark.parametrize(
    "extent, linear", [("full", {"digits"}), ("small", {"digits-50"}), ("skip", set())]
)
def test_tuned_mlrssc_is_shown_beside_its_defaults_on_the_same_digits(extent, linear):
    cells = EXPERIMENTS["mlrssc"].cells(Options(20, linear_mlrssc=extent))
    for tuning in ("default", "digits"):
        mine = [c for c in cells if c.labels["tuning"] == tuning]
        for methods, datasets in ((experiments.LINEAR, linear), (experiments.KERNEL, {"digits"})):
            found = [c for c in mine if c.labels["method"] in methods]
            assert {c.labels["dataset"] for c in found} == datasets
            assert len(found) == 2 * 20 * len(datasets)
    slow = {c.labels["method"] for c in cells if c.phase == SLOW}
    assert slow == (set(experiments.LINEAR) if extent == "full" else set())
    assert all(portion.threads == (portion.cells[0].phase == SLOW) for portion in portioned(cells))


def test_wmnmf_has_more_runs_where_its_failures_are_counted():
    for name in ("digits", "honest"):
        cells = EXPERIMENTS[name].cells(Options(20))
        of = Counter(c.labels["method"] for c in cells)
        assert of.pop("WM-NMF") == 80 and set(of.values()) == {20}
    seeds = [c.settings["seed"] for c in EXPERIMENTS["seeds"].cells(Options(20))]
    assert seeds == [seed for _, seed in Options(20).pooled()] and len(set(seeds)) == 80
    assert seeds[:20] == [seed for _, seed in Options(20).seeds()]
    assert Options(3).pooled() == Options(3).seeds()  # a first look is no count of failures


@pytest.mark.parametrize("replications", [1, 3, 20])
def test_running_times_are_repeated_alone_and_reach_the_ends(replications):
    cells = experiments.runtime(Options(replications))
    assert {c.phase for c in cells} == {ALONE}
    for axis, values in (("N", experiments.N_SAMPLES), ("n_v", experiments.N_VIEWS)):
        ours = [c for c in cells if c.labels["axis"] == axis and c.labels["method"] == "manyview"]
        points = sorted({c.labels["value"] for c in ours})
        assert len(ours) == 3 * len(points) and len({c.key for c in ours}) == len(ours)
        assert (points[0], points[-1]) == (min(values), max(values)) and len(points) >= 3


def test_start_up_is_over_before_the_clock_starts(monkeypatch):
    order = []
    lap = costs._Clock.lap
    monkeypatch.setattr(costs, "warm_up", lambda: order.append("small fit"))
    monkeypatch.setattr(costs._Clock, "lap", lambda self: order.append("lap") or lap(self))
    (row,) = costs.ours(120, 2, 20, 0)[""]
    assert order == ["small fit"] + 4 * ["lap"]
    assert list(row) == [f"seconds_{part}" for part in ("graph", "start", "loop", "labels")]
    order.clear()
    monkeypatch.setattr(costs._Clock, "lap", lambda self: order.append("lap") or len(order))
    # Four laps for each view: of 2, 3, 4 and of 6, 7, 8 the medians are 3 and 7.
    assert costs.numpy(120, 2, 20, 0)[""] == [{"seconds_loop": (3 + 7) * 60.0}]


def test_portions_keep_groups_whole_and_lose_nothing():
    cells = grid(Options(7), "digits", ["MultiNMF1", "P-KMLRSSC", "ConcatK", "WM-NMF"])
    portions = portioned(cells)
    assert sorted(c.key for p in portions for c in p.cells) == sorted(c.key for c in cells)
    shared = [p for p in portions if any(c.group for c in p.cells)]
    assert len(shared) == 1 and sum(c.group != "" for c in shared[0].cells) == 7
    for portion in portions:
        costs = [c.cost for c in portion.cells]
        assert len(costs) == 1 or portion in shared or sum(costs) <= PORTION


def test_rounds_are_those_of_the_estimator():
    views, _ = blobs(n=90)
    fit = Rounds(views, 3, seed=5)
    *_, last = fit.each(2)
    model = mv.WMNMF(3, random_state=5).fit(views)
    assert np.array_equal(fit.labels(last.factors), model.labels_)
    assert last.factors.alpha == pytest.approx(model.view_weights_, rel=1e-9)


def test_plain_numpy_does_the_same_iteration():
    fit = Rounds(blobs()[0], 3, seed=0)
    s, start = 1, fit.start
    A = fit.terms[s].A.toarray()
    a = float(start.alpha[s] ** P)
    args = (A, A.sum(axis=1), start.consensus, start.w[:, s], a, BETA)
    U, V = costs.plain_iteration(fit.Xs[s], start.U[s], start.V[s], *args)
    problem = Problem(fit.Xs, fit.terms, Multiplicative())
    ours = run(problem, start, Settings(P, BETA, 1, 1, rescale=False)).factors
    np.testing.assert_allclose(U, ours.U[s], rtol=1e-9)
    np.testing.assert_allclose(V, ours.V[s], rtol=1e-9)


class Counted(float):
    """A number that counts what is done with it."""

    done: ClassVar[Counter] = Counter()

    def __add__(self, other):
        return self._next("additions", float(self) + float(other))

    def __mul__(self, other):
        return self._next("multiplications", float(self) * float(other))

    def __truediv__(self, other):
        return self._next("divisions", float(self) / float(other))

    def __pow__(self, power):
        assert power == 2
        return self._next("multiplications", float(self) ** 2)

    __radd__, __rmul__ = __add__, __mul__

    def _next(self, kind, value):
        self.done[kind] += 1
        return Counted(value)


@pytest.mark.parametrize(("n", "m", "k"), [(7, 5, 3), (6, 2, 4), (4, 9, 1)])
def test_operations_are_those_of_an_iteration_that_counts_them(rng, n, m, k):
    def array(*shape):
        values = [Counted(v) for v in rng.random(int(np.prod(shape))) + 0.1]
        return np.array(values, dtype=object).reshape(shape)

    Counted.done.clear()
    V = array(n, k)
    costs.plain_iteration(array(n, m), array(m, k), V, array(n, n), array(n), V, array(n), 0.5, 0.1)
    both = zip(costs.of_U(n, m, k), costs.of_V(n, m, k, n * n), strict=True)
    told = dict(zip(costs.KINDS, map(sum, both), strict=True))
    assert told == dict(Counted.done)
    sparse = costs.of_V(n, m, k, 3 * n)
    less = np.subtract(costs.of_V(n, m, k, n * n), sparse).tolist()
    assert less == [(n * n - 3 * n) * k] * 2 + [0]


def test_readings_are_those_of_the_estimator(monkeypatch):
    views, labels = blobs(n=90)
    small = mv.datasets.Dataset("small", dict(zip("abc", views, strict=True)), labels, "")
    monkeypatch.setattr(tasks, "load", lambda name: small)
    rows = tasks.readings("small", 5)[""]
    for row, (method, connect) in zip(rows, tasks.READINGS.values(), strict=True):
        model = mv.WMNMF(3, assign_labels=method, connect=connect, random_state=5)
        found = mv.metrics.scores(labels, model.fit_predict(small.views))
        assert {name: row[name] for name in found} == found
        assert 1 <= row["parts"] <= 3 and row["smallest_part"] >= 20


def test_scale_escapes_through_the_graph_term_only():
    fit = Rounds(blobs()[0], 3, seed=0)
    *_, last = fit.each(1)
    at = {t: tasks._at(fit, last.factors, t) for t in (1.0, 4.0)}
    for term in ("reconstruction", "consensus"):
        assert at[4.0][term] == pytest.approx(at[1.0][term], rel=1e-6)
    assert at[4.0]["regularizer"] == pytest.approx(at[1.0]["regularizer"] / 16)
    assert at[1.0]["objective"] == pytest.approx(last.history["objective"][-1])


def test_noise_goes_where_it_is_said_to_go(rng):
    views = {"a": np.abs(rng.normal(size=(50, 4))), "b": np.abs(rng.normal(size=(50, 3)))}
    some, noisy = tasks.corrupted(views, "some observations", "a", np.random.default_rng(0))
    assert np.array_equal((some["a"] != views["a"]).any(axis=1), noisy["a"])
    assert noisy["a"].sum() == 10 and some["b"] is views["b"] and some["a"].min() >= 0
    replaced, noisy = tasks.corrupted(views, "replaced", "b", np.random.default_rng(0))
    assert noisy["b"].all() and (replaced["b"] != views["b"]).all()
    assert (replaced["b"] <= views["b"].max(axis=0)).all() and replaced["a"] is views["a"]
    added, _ = tasks.corrupted(views, "added", "noise", np.random.default_rng(0))
    assert list(added) == ["a", "b", "noise"] and added["noise"].shape == (50, 4)
    assert tasks.corrupted(views, "clean", "", np.random.default_rng(0)) == (views, {})


@pytest.fixture
def small_noise(monkeypatch):
    """The noise study on data that take no time; how many fits were made."""
    views, labels = blobs(n=90)
    small = mv.datasets.Dataset("small", dict(zip("abc", views, strict=True)), labels, "")
    made = []
    make = tasks.make
    monkeypatch.setattr(tasks, "load", lambda name: small)
    monkeypatch.setattr(tasks, "make", lambda *args: made.append(args) or make(*args))
    tasks.clean_fit.cache_clear()
    yield made
    tasks.clean_fit.cache_clear()


@pytest.mark.parametrize("method", experiments.NOISE_METHODS)
def test_weights_are_told_with_noise_and_without(small_noise, method):
    def rows(scenario, view):
        return tasks.weights("small", method, scenario, view, 3, share=0.2, level=3.0)

    (clean,) = rows("clean", "")[""]
    assert clean["of_view"] == "" and clean["alpha"] is None
    noise = (("some observations", "a"), ("replaced", "b"), ("added", "noise"))
    some, replaced, added = (rows(scenario, view)[""][0] for scenario, view in noise)
    assert len(small_noise) == 4  # the fit without noise is made once
    alone = tasks.clean_fit("small", method, 3)
    for row, s in ((some, 0), (replaced, 1)):
        assert row["alpha_before"] == alone.alpha[s]
    assert replaced["w_before"] == alone.w[:, 1].mean()
    draw = np.random.default_rng([3, 1])
    views = tasks.load("small").views
    (noisy,) = tasks.corrupted(views, "some observations", "a", draw)[1].values()
    assert some["w_before"] == alone.w[noisy, 0].mean()
    assert some["w_noisy"] < some["w_before"] and some["w_noisy"] < some["w_clean"]
    assert replaced["w_clean"] is None and 0 <= replaced["w_noisy"] <= 1
    assert added["alpha_before"] == 1 / 4 and added["n_views"] == 4
    assert added["w_noisy"] < added["w_before"]


def test_noisy_views_of_the_synthetic_data_are_held_against_exact_copies(monkeypatch):
    views = {f"view{i}": np.full((3, 1), i) for i in range(1, 7)}
    known = mv.datasets.Dataset("synthetic", views, np.arange(3), "")
    monkeypatch.setattr(tasks, "load", lambda name: known)
    monkeypatch.setattr(tasks, "fit_noise", lambda views, *args: [X[0, 0] for X in views.values()])
    tasks.clean_fit.cache_clear()
    assert tasks.clean_fit("synthetic", "WM-NMF", 0) == [1, 2, 3, 4, 1, 3]
    tasks.clean_fit.cache_clear()


def test_scenarios_of_a_seed_share_a_process():
    for portion in portioned(experiments.noise(Options(10))):
        for group in {cell.group for cell in portion.cells}:
            n = 10 if "digits" in group else 1
            assert sum(cell.group == group for cell in portion.cells) == n


def test_terms_are_told_after_every_iteration():
    rows = tasks.terms("nutrimouse", "recipe", 0)[""]
    assert len(rows) == 1 + 2 * (2 * 30 + 1)
    assert [row["iteration"] for row in rows] == list(range(len(rows)))
    for row in rows:
        parts = [row[term] for term in tasks.TERMS[:3]]
        assert row["objective"] == pytest.approx(sum(parts))
    assert len(tasks.terms("nutrimouse", "one at a time", 0)[""]) == 100


def test_starts_of_k_means_are_those_the_page_tells():
    once, often = STARTS.split(", five times")
    for method, made in baselines.paper_methods(10).items():
        model = made(0)
        model = getattr(model, "estimator", model)
        if not isinstance(model, mv.WMNMF):  # `assign` starts five times
            kind = method[2:].removeprefix("K") if "MLRSSC" in method else method.rstrip("12")
            kind = "spectral" if "Spectral" in method else kind
            assert kind in {1: once, 5: often}[model.n_init], method
