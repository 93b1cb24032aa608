"""The page of a run: every panel drawn, nothing unescaped, no network, small enough to send."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import manyview as mv
from browser import visit
from conftest import blobs
from manyview.app.report.fit import fit_page
from manyview.app.run import write_run
from manyview.plot._draw import short

EVIL = "<script>alert(1)</script>"
#: Its value stands nowhere else in a page.
TEMPLATE = "{{7919*7907}}"

LOOK = """(async () => {
  const tabs = [...document.querySelectorAll('a[href], button:not([hidden]), [tabindex="0"], summary')];
  const unreachable = tabs.filter(e => e.tabIndex < 0);
  const csv = document.querySelectorAll('button.csv');
  const plots = [...document.querySelectorAll('.plot, .chart')];
  return JSON.stringify({
    drawn: plots.length,
    empty: plots.filter(p => !p.querySelector('svg circle, svg path, svg image')).map(
      p => p.getAttribute('aria-label')),
    sections: [...document.querySelectorAll('main section h2')].map(h => h.textContent),
    tables: document.querySelectorAll('table').length, csv: csv.length,
    unreachable: unreachable.length, wide: document.documentElement.scrollWidth,
    text: document.body.innerText})})()"""


def make(tmp_path, model, views, **how):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        model.fit(views)
    return write_run(model, views, tmp_path / "run", **({"stability_runs": 2} | how))


def named(name, n=48, seed=0):
    """Views whose every name is ``name`` or holds it."""
    views, _ = blobs(n=n, seed=seed)
    ids = [f"{name}{i}" for i in range(n)]
    return {
        f"{name}{s}": pd.DataFrame(
            X, index=ids, columns=[f"{name}{'x' * 200}{j}" for j in range(X.shape[1])]
        )
        for s, X in enumerate(views)
    }


@pytest.mark.parametrize("case", ["robust", "paper", "missing", "one view"])
def test_every_panel_is_drawn_without_a_word(case, tmp_path):
    views = [X.copy() for X in blobs(n=48)[0]]
    model = mv.RobustWMNMF(3, random_state=0) if case != "paper" else mv.WMNMF(3, random_state=0)
    if case == "missing":
        for X in views:
            X[0] = np.nan
        views[1][5:12] = np.nan
    views = views[:1] if case == "one view" else views
    out = make(tmp_path, model, views)
    page = (out / "report.html").read_text(encoding="utf-8")
    size = {"width": 390, "phone": True, "dark": True} if case == "missing" else {}
    seen = visit(page, LOOK, **size)
    assert seen.errors == [] and seen.requests == []
    found = json.loads(seen.value)
    assert found["empty"] == [] and found["drawn"] == {"one view": 7, "paper": 9}.get(case, 10)
    assert (
        len(found["sections"]) == (9 if case in ("one view", "paper") else 10)
        and found["unreachable"] == 0
    )
    assert found["csv"] == found["tables"] >= 9
    assert found["wide"] <= size.get("width", 1200)
    assert "NaN" not in found["text"] and "undefined" not in found["text"]


@pytest.mark.parametrize(
    "name", [EVIL, "\"'`><img src=x onerror=alert(1)>", "Ω漢字\u202e\x07", TEMPLATE]
)
def test_names_are_only_ever_text(name, tmp_path):
    info = dict.fromkeys(("command", "title", "alignment"), name)
    info |= {"inputs": [{"path": name, name: name}], "warnings": [name]}
    model = mv.RobustWMNMF(3, random_state=0)
    out = make(tmp_path, model, named(name), info=info, settings={name: name})
    page = (out / "report.html").read_text(encoding="utf-8")
    assert not re.search(r"<script>alert|<img|[\x00-\x08\x0b-\x1f\u202e]", page)
    if name == TEMPLATE:
        assert f"<h1>{TEMPLATE}</h1>" in page and str(7919 * 7907) not in page
    if name == EVIL:
        seen = visit(page, LOOK)
        assert seen.errors == [] and seen.requests == [] and EVIL in json.loads(seen.value)["text"]


def test_the_page_of_two_thousand_observations_can_be_sent(tmp_path, monkeypatch, rng):
    monkeypatch.setattr("manyview.app.run.tables.embed2d", lambda V: rng.normal(size=(len(V), 2)))
    y = rng.integers(0, 10, 2000)
    views = [rng.random((10, m))[y] + 0.1 * rng.random((2000, m)) for m in (76, 240, 47, 216)]
    model = mv.WMNMF(10, random_state=0, max_iter=1, inner_iter=2, init="random")
    ids = [f"TCGA-{i:04d}-tumour" for i in range(2000)]
    out = make(tmp_path, model, views, ids=ids, stability_runs=0)
    assert (out / "report.html").stat().st_size < 4_000_000


def test_the_page_is_made_from_the_files_alone(tmp_path):
    out = make(tmp_path, mv.RobustWMNMF(3, random_state=0), blobs()[0])
    for path in out.iterdir():
        if path.name.startswith(("components", "model")):
            path.unlink()
    assert fit_page(out) == (out / "report.html").read_text(encoding="utf-8")


def test_large_data_leave_out_what_is_dear_and_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr("manyview.app.run.evidence.LARGE", 50)
    monkeypatch.setattr("manyview.app.run.evidence.MOST_ROWS", 20)
    monkeypatch.setattr("manyview.app.report.fit.EMBEDDED", 30)
    monkeypatch.setattr("manyview.app.report.charts.DRAWN", 25)
    model = mv.RobustWMNMF(3, random_state=0)
    out = make(tmp_path, model, blobs()[0], stability_runs=None)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "left out of large data" in page and "Stability was not computed" in page
    assert "The first 30; labels.csv has all" in page
    # Distances in z-scored features say nothing about clusters that come from the embedding.
    assert "Silhouette of" not in page and "silhouette" not in pd.read_csv(out / "clusters.csv")
    assert len((out / "labels.csv").read_text().splitlines()) == 61


def words_of(page):
    """The texts of every chart, by its name."""
    charts = re.findall(r'class="chart"[^>]*data-name="(\w+)">(<svg.*?</svg>)', page, re.DOTALL)
    return {name: re.findall(r">([^<>]+)</text>", svg) for name, svg in charts}


@pytest.mark.parametrize(
    "names",
    [["x" * 30 + "1", "x" * 30 + "2", "x" * 12 + "y" * 40 + "x" * 17 + "1"], ["1", "20", "3"]],
)
def test_views_stay_apart_in_figures_whatever_they_are_called(names, tmp_path):
    views = dict(zip(names, blobs(n=48)[0], strict=True))
    out = make(tmp_path, mv.RobustWMNMF(3, random_state=0), views, stability_runs=0)
    found = words_of((out / "report.html").read_text(encoding="utf-8"))
    shown = {short(name) for name in names}
    assert len(shown) == 3
    for name in ("view_weights", "agreement", "redundancy", "reliance", "cluster_view_weights"):
        assert shown <= set(found[name]), name


def without_most_views():
    """Three views of which some samples have one: 6 the first, 3 the third."""
    views = dict(zip(("rna", "protein", "counts"), blobs(n=60)[0], strict=True))
    views = {name: X.copy() for name, X in views.items()}
    views["counts"] = np.round(np.exp(1.6 * views["counts"]))
    views["protein"][:9] = views["counts"][:6] = views["rna"][6:9] = np.nan
    return views


def test_the_page_speaks_apart_of_observations_in_one_view(tmp_path):
    model = mv.RobustWMNMF(3, random_state=0)
    out = make(tmp_path, model, without_most_views(), stability_runs=0)
    np.testing.assert_array_equal(model.reliance_[:6], np.tile([1.0, 0, 0], (6, 1)))
    np.testing.assert_array_equal(model.reliance_[6:9], np.tile([0, 0, 1.0], (3, 1)))
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "9 of 60 samples have only one view" in page
    assert "6 by “rna”, 3 by “counts”" in page and "guess" not in page
    departures = pd.read_csv(out / "sample_weights.csv")["departure"]
    assert (departures[:9] == 0).all()  # to lack views is not unusual


def test_the_page_says_what_was_given_and_what_was_decided(tmp_path):
    asked = {"rna": 2, "protein": 2, "counts": 1}
    model = mv.RobustWMNMF(3, random_state=0, view_weights=asked)
    out = make(tmp_path, model, without_most_views(), stability_runs=0)
    page = (out / "report.html").read_text(encoding="utf-8")
    assert (
        "The weights were set by the user" in page
        and "View weights (set by the user): rna 0.40" in page
    )
    assert "“counts” (counts)" in page and "counts log-transformed" in page
    assert "Redundancy of views" in page
    bars = words_of(page)["view_weights"]
    assert {"used", "learned", "40%", "20%"} <= set(bars)
    assert {f"{weight:.0%}" for weight in model.learned_view_weights_} <= set(bars)
    said = json.loads((out / "run.json").read_text())
    assert said["weights_are"] == "given" and said["logarithms"] == {"counts": "counts"}


def test_a_batch_comes_before_everything_in_the_report(tmp_path):
    views, truth = blobs(n=60)
    model = mv.RobustWMNMF(3, random_state=0).fit(views)
    batch = [f"b{t}" for t in truth]

    def page(name, clinical, **how):
        out = write_run(model, views, tmp_path / name, clinical=clinical, stability_runs=0, **how)
        return (out / "report.html").read_text("utf-8")

    first = page("a", {"batch": batch, "age": list(range(60))})
    assert first.index("Batch effect") < first.index('class="clusters"')
    assert "fit(views, batch=clinical[&#39;batch&#39;])" in first
    assert "No warnings" not in first
    # Regressed out before, and followed all the same: another remedy.
    adjusted = page("b", {"batch": batch}, adjusted=["batch"])
    assert (
        "Its effect was removed before the fit" in adjusted and "fit(views, batch" not in adjusted
    )
    # The same column without a name that says what it is: no alarm, and no all-clear.
    unnamed = page("c", {"ward": batch})
    assert "Batch effect" not in unnamed
    assert "nearly coincide" in unnamed and "No warnings" not in unnamed
    assert "Batch effect" not in page("d", {"batch": [f"b{i % 2}" for i in range(60)]})
