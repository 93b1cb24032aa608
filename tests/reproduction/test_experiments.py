"""Experiments: cells survive a kill, share what is equal, and compute what they say."""

import json
from collections import Counter
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import manyview as mv
from conftest import blobs
from made_up_results import table
from manyview.app.processes import run_tasks
from manyview.maths.solvers import Multiplicative
from manyview.paper import command, costs, experiments, tasks
from manyview.paper.command import PORTION, portioned
from manyview.paper.costs import BETA, P
from manyview.paper.experiments import EXPERIMENTS, Cell, Experiment, Options, grid
from manyview.paper.lihc import load_lihc
from manyview.paper.results import DIGITS
from manyview.paper.tasks import Rounds
from manyview.wmnmf import Loop


def reproduce(names, out, **settings):
    given = {"replications": 1, "seed": 0, "jobs": 2, "data": None}
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
    assert written == {"stderr"}  # a killed run must not leave the user's data anywhere
    best = {row["method"]: float(row["acc"]) for row in found["csv"]}
    assert best["WM-NMF"] > 0.9 and best["RobustWMNMF"] > 0.9
    (tmp_path / "csv" / "cnv.csv").rename(tmp_path / "csv" / "mirna_gene.csv")
    with pytest.raises(ValueError, match="must have one table of copy_number, with cnv or copy"):
        reproduce(["lihc"], tmp_path / "out", data=tmp_path / "csv")
    entry = json.loads((tmp_path / "out" / "reproduction.json").read_text())["experiments"][0]
    assert "24 samples, 2 classes" in entry["about"] and "--data" in entry["command"]


def test_lihc_reads_public_files_as_they_are(tmp_path):
    """Features in rows, barcodes of aliquots, tumors and normal tissue, probes with empty cells."""
    rng = np.random.default_rng(0)
    ids = [f"TCGA-DD-A{i:03d}-{kind}A" for kind, n in (("01", 20), ("11", 8)) for i in range(n)]
    y = np.array([name.endswith("11A") for name in ids])
    labels = pd.DataFrame({"sample": ids, "label": np.where(y, "normal", "tumor")})
    labels.to_csv(tmp_path / "labels.csv", index=False)
    names = {"rna": "-11R-A131-07", "cnv": "-11D-A12X-01", "methylation450": "-11D-A12Y-05"}
    for name, ending in names.items():
        X = rng.normal(size=(30, 2))[:, y.astype(int)] + rng.normal(size=(30, 28))
        frame = pd.DataFrame(X, [f"cg{j:08d}" for j in range(30)], [f"{i}{ending}" for i in ids])
        if name == "cnv":
            frame = frame.iloc[:, 1:]
        if name == "methylation450":
            frame.iloc[:5, 2:9] = np.nan
            frame = frame.iloc[:, ::-1]
        frame.to_csv(tmp_path / f"TCGA-LIHC.{name}.tsv.gz", sep="\t", index_label="probe")
    data = load_lihc(tmp_path, n_features=26)
    assert [X.shape for X in data.views.values()] == [(27, 26), (27, 26), (27, 25)]
    assert "5 features of methylation have empty cells" in data.description
    short = [name[:16] for name in data.sample_names]
    assert sorted(short) == sorted(ids[1:])
    of = dict(zip(labels["sample"], labels["label"], strict=True))
    assert [of[name] for name in short] == data.labels.tolist()
    X = pd.read_csv(tmp_path / "TCGA-LIHC.rna.tsv.gz", sep="\t", index_col=0)
    first = data.feature_names["expression"][0]
    assert data.views["expression"][3, 0] == X.loc[first, short[3] + names["rna"]]
    frame = pd.read_csv(tmp_path / "TCGA-LIHC.cnv.tsv.gz", sep="\t", index_col=0)
    tumors = frame[[name for name in frame if "-01A" in name]]
    tumors.to_csv(tmp_path / "TCGA-LIHC.cnv.tsv.gz", sep="\t")
    with pytest.raises(
        ValueError, match="19 samples have a label and are in all three files, with 1 class"
    ):
        load_lihc(tmp_path)


def test_bad_questions_are_answered_by_a_sentence(tmp_path):
    for name, sentence in (
        ("digit", "there is no experiment 'digit'; known are all, digits"),
        ("lihc", "needs your own files"),
    ):
        with pytest.raises(ValueError, match=sentence):
            reproduce([name], tmp_path / "out")
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
    sweeps_ = [cell for e in experiments.SWEEPS for cell in EXPERIMENTS[e].cells(options)]
    assert len(sweeps_) == 3 * 2 * 5 * 10 and len({cell.key for cell in sweeps_}) == 2 * 13 * 10
    table_ = {cell.key for cell in EXPERIMENTS["digits"].cells(options)}
    assert len(table_ & {cell.key for cell in sweeps_}) == 10
    printed = {cell.key for cell in EXPERIMENTS["printed"].cells(options)}
    assert len(printed) == 7 * 10 and len(table_ & printed) == 10  # the recipe
    tuned = {cell.key for cell in EXPERIMENTS["mlrssc"].cells(options)}
    assert len(tuned) == 2 * 4 and len(table_ & tuned) == 2  # the defaults of the kernel variants
    assert {s for _, s in Options(3).seeds()} < {s for _, s in Options(20).seeds()}
    defaults = mv.WMNMF().get_params()
    assert all((defaults[name] or 10) == value for name, value in experiments.DEFAULTS.items())


def test_the_printed_variants_differ_from_the_recipe_in_what_they_say():
    variants = experiments._printed()
    assert variants["recipe"] == {} and all(len(variants[v]) == 1 for v in list(variants)[1:4])
    alone = list(variants.values())[1:5]
    assert dict(item for choice in alone for item in choice.items()) == variants["printed"]
    printed = mv.WMNMF(3, **variants["printed"]).get_params()
    assert printed == mv.WMNMF.as_printed(3).get_params()


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


def test_tuned_mlrssc_is_shown_with_its_defaults_on_the_same_digits():
    cells = EXPERIMENTS["mlrssc"].cells(Options(20))
    for tuning in ("default", "digits"):
        mine = [c for c in cells if c.labels["tuning"] == tuning]
        for methods, data in ((experiments.LINEAR, "digits-50"), (experiments.KERNEL, "digits")):
            found = [c for c in mine if c.labels["method"] in methods]
            assert {c.labels["dataset"] for c in found} == {data}
            assert all(len(c.settings["seeds"]) == 20 for c in found)


def test_wmnmf_has_more_runs_where_its_failures_are_counted():
    for name in ("digits", "honest"):
        cells = [c for c in EXPERIMENTS[name].cells(Options(20)) if "seed" in c.settings]
        of = Counter(c.labels["method"] for c in cells)
        assert of.pop("WM-NMF") == 80 and set(of.values()) == {20}
    seeds = [c.settings["seed"] for c in EXPERIMENTS["seeds"].cells(Options(20))]
    assert seeds == [seed for _, seed in Options(20).seeds(times=4)] and len(set(seeds)) == 80
    assert seeds[:20] == [seed for _, seed in Options(20).seeds()]
    assert Options(3).seeds(times=4) == Options(3).seeds()  # a first look is no count of failures


@pytest.mark.parametrize("replications", [1, 3, 20])
def test_running_times_are_repeated_alone_and_reach_the_ends(replications):
    cells = experiments.runtime(Options(replications))
    assert all(c.alone for c in cells)
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


def test_portions_lose_nothing_and_are_short():
    cells = grid(Options(7), "digits", ["MultiNMF1", "P-KMLRSSC", "ConcatK", "WM-NMF"])
    portions = portioned(cells)
    assert sorted(c.key for p in portions for c in p.cells) == sorted(c.key for c in cells)
    for portion in portions:
        assert len(portion.cells) == 1 or sum(c.cost for c in portion.cells) <= PORTION


def test_mlrssc_is_fitted_once_for_all_seeds(monkeypatch):
    made = []
    find = mv.baselines.MLRSSC.find_affinity
    monkeypatch.setattr(
        mv.baselines.MLRSSC, "find_affinity", lambda self, X: made.append(1) or find(self, X)
    )
    rows = tasks.relabeled("nutrimouse", "P-KMLRSSC", [3, 4])[""]
    assert len(made) == 1 and [row["seed"] for row in rows] == [3, 4]
    known = tasks.load("nutrimouse")
    for row in rows:
        alone = tasks.make("P-KMLRSSC", 2, row["seed"], {}).fit(known.views)
        assert row["acc"] == mv.metrics.scores(known.labels, alone.labels_)["acc"]
        assert "iterations" in row["remark"]


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
    loop = Loop(fit.Xs, fit.terms, Multiplicative(), P, BETA, 1, 1, rescale=False)
    ours = loop.run(start).factors
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
        assert row["smallest_part"] >= 20 and row["cut_off"] is False


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
    some, noisy = tasks.corrupted(views, "some samples", "a", np.random.default_rng(0))
    assert np.array_equal((some["a"] != views["a"]).any(axis=1), noisy["a"])
    assert noisy["a"].sum() == 10 and some["b"] is views["b"] and some["a"].min() >= 0
    replaced, noisy = tasks.corrupted(views, "replaced", "b", np.random.default_rng(0))
    assert noisy["b"].all() and (replaced["b"] != views["b"]).all()
    assert (replaced["b"] <= views["b"].max(axis=0)).all() and replaced["a"] is views["a"]
    added, _ = tasks.corrupted(views, "added", "noise", np.random.default_rng(0))
    assert list(added) == ["a", "b", "noise"] and added["noise"].shape == (50, 4)
    assert tasks.corrupted(views, "clean", "", np.random.default_rng(0)) == (views, {})


@pytest.mark.parametrize("method", experiments.NOISE_METHODS)
def test_weights_are_measured_with_noise_and_without(method, monkeypatch):
    views, labels = blobs(n=90)
    small = mv.datasets.Dataset("small", dict(zip("abc", views, strict=True)), labels, "")
    monkeypatch.setattr(tasks, "load", lambda name: small)
    rows = tasks.weights("small", method, 3, share=0.2, level=3.0)[""]
    kinds = ["clean", *3 * ["some samples"], *3 * ["replaced"], "added"]
    assert [row["scenario"] for row in rows] == kinds
    alone = tasks.make(method, 3, 3, {}).fit(small.views)
    for s, row in enumerate(rows[4:7]):  # replaced whole
        assert row["alpha_before"] == alone.view_weights_[s] and row["w_clean"] is None
        assert row["w_before"] == alone.sample_weights_[:, s].mean()
    draw = np.random.default_rng([3, 1])
    noisy_views, noisy = tasks.corrupted(small.views, "some samples", "a", draw)
    model = tasks.make(method, 3, 3, {}).fit(noisy_views)
    assert rows[1]["alpha"] == model.view_weights_[0]
    assert rows[1]["w_noisy"] == model.sample_weights_[noisy["a"], 0].mean()
    assert rows[1]["w_before"] == alone.sample_weights_[noisy["a"], 0].mean()
    assert rows[-1]["alpha_before"] == 1 / 4


def test_terms_are_told_after_every_iteration():
    rows = tasks.terms("nutrimouse", "recipe", 0)[""]
    assert len(rows) == 1 + 2 * (2 * 30 + 1)
    assert [row["iteration"] for row in rows] == list(range(len(rows)))
    for row in rows:
        parts = [row[term] for term in tasks.TERMS[:3]]
        assert row["objective"] == pytest.approx(sum(parts))
    assert len(tasks.terms("nutrimouse", "one at a time", 0)[""]) == 100
