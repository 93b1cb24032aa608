"""The page of a run with a clinical table: panels, the switch of the map, figures and text to take away."""

import base64
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import manyview as mv
from browser import visit
from manyview.app.run import write_run
from manyview.app.run.evidence import feature_tests
from manyview.app.run.folder import add_meaning
from manyview.app.run.meaning import known, meaning
from manyview.app.run.tables import heatmap
from manyview.io.writing import read_csv
from manyview.views.views import as_views

READ = "cohort.csv: read"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    data = mv.datasets.make_cohort(80, n_features=(80, 80, 40), random_state=0)
    views = data.frames()
    model = mv.RobustWMNMF(4, random_state=0).fit(views)
    out = tmp_path_factory.mktemp("meaning") / "run"
    write_run(
        model,
        views,
        out,
        clinical=data.clinical_frame().iloc[::-1],  # in another order: ids decide
        time="os_months",
        event="dead",
        truth=data.labels.tolist(),
        adjusted=["batch"],
        stability_runs=2,
        figures=True,
        info={"alignment": [READ]},
    )
    return out, model, data


@pytest.fixture(scope="module")
def page(run):
    return (run[0] / "report.html").read_text(encoding="utf-8")


def test_the_panels_are_there_and_drawn(page):
    look = """JSON.stringify({
      titles: [...document.querySelectorAll('main section h2')].map(h => h.textContent),
      empty: [...document.querySelectorAll('.plot, .chart')].filter(p => !p.querySelector(
        '.scatterlayer path, svg path, svg image')).map(p => p.dataset.name),
      names: [...document.querySelectorAll('.plot, .chart')].map(p => p.dataset.name),
      saving: document.querySelectorAll('.saving:not([hidden]) button').length,
      switch: [...document.querySelector('.switch select').options].map(o => o.textContent),
      wide: document.documentElement.scrollWidth})"""
    for how in ({}, {"width": 390, "phone": True, "dark": True}):
        seen = visit(page, look, **how)
        assert seen.errors == [] and seen.requests == []
        found = json.loads(seen.value)
        assert found["empty"] == [] and found["wide"] <= how.get("width", 1200)
        assert {
            "survival",
            "clinical",
            "classes",
            "heatmap",
            "consensus",
            "leave_view_out",
            "map",
        } <= set(found["names"])
        assert found["saving"] == 3 * len(found["names"])
    assert {"Survival", "Clinical columns by cluster",
            "Comparison with the known classes", "Methods, to copy"} <= set(found["titles"])  # fmt: skip
    assert found["switch"][:3] == ["cluster", "class", "age"]
    assert {"confidence", "reliance on mutation", "stage"} <= set(found["switch"])
    assert "t-SNE (perplexity" in page


def test_every_colouring_shows_every_observation(page, run):
    colour = """(async () => { const box = document.querySelector('.switch select'), found = [];
      const plot = document.querySelector('[data-name=map]');
      for (const option of box.options) { box.value = option.value; box.dispatchEvent(new Event('change'));
        found.push(plot.data.reduce((n, trace) => n + trace.x.length, 0)); }
      return JSON.stringify(found) })()"""
    seen = visit(page, colour)
    assert seen.errors == [] and set(json.loads(seen.value)) == {80}


def test_a_figure_is_saved_as_svg_and_png_on_white(page):
    ask = """manyview.image(document.querySelector('[data-name=survival]'), 'KIND')"""
    svg = visit(page, ask.replace("KIND", "svg") + ".then(a => decodeURIComponent(a))", dark=True)
    assert svg.errors == []
    text = svg.value.split(",", 1)[1]
    ElementTree.fromstring(text)
    assert "at risk" in text and "background: #fff" in text
    png = visit(page, ask.replace("KIND", "png"))
    assert base64.b64decode(png.value.split(",")[1]).startswith(b"\x89PNG")


def test_a_figure_is_printed_alone(page):
    seen = visit(
        page,
        """(() => { manyview.leaveOnly(document.querySelector('[data-name=survival]'));
      const shown = [...document.querySelectorAll('main *')].filter(e => e.checkVisibility());
      return JSON.stringify({plots: shown.filter(e => e.matches('.plot, .chart')).map(e => e.dataset.name),
        words: shown.filter(e => e.matches('h2, p, table, figcaption')).length,
        title: document.title}) })()""",
        media="print",
    )
    found = json.loads(seen.value)
    assert seen.errors == []
    assert found == {"plots": ["survival"], "words": 0, "title": "survival"}


def test_the_methods_paragraph_says_what_was_done(page, run):
    text = re.sub(r"\s+", " ", page.split('class="copied"')[1].split("</section>")[0])
    for words in ("RobustWMNMF", "80 observations", "zeros and ones aside): batch", "log-rank test",
                  "9999 permutations", "Kaplan E. L., Meier P.", "Benjamini", f"manyview {mv.__version__}",
                  "2 refits", "numpy"):  # fmt: skip
        assert words in text, words
    cited = {int(n) for group in re.findall(r"\[([\d,]+)\]", text) for n in group.split(",")}
    assert cited == set(range(1, 1 + text.count("<li>")))
    tested = [row["test"] for row in read_csv(run[0] / "clinical_tests.csv") if row["test"] != "–"]
    assert f"{len(tested)} clinical columns were compared" in text


def test_the_findings_come_before_how_the_files_were_read(page):
    short = page.split('id="short"')[1].split("</section>")[0]
    assert short.index("4 clusters of") < short.index("Survival differs")
    assert short.index("Survival differs") < short.index("How the files were read")


def test_figures_are_files_too(run):
    out, *_ = run
    files = {p.name for p in (out / "figures").iterdir()}
    names = {name.split(".")[0] for name in files}
    assert {"map", "survival", "clinical", "classes", "heatmap", "consensus"} <= names
    assert files == {f"{name}.{kind}" for name in names for kind in ("svg", "png", "pdf")}
    starts = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}
    for path in (out / "figures").iterdir():
        assert path.read_bytes().startswith(starts[path.suffix[1:]])
    listed = json.loads((out / "run.json").read_text(encoding="utf-8"))["files"]
    assert "figures/survival.pdf" in listed and len(set(listed)) == len(listed)


@pytest.mark.parametrize(
    ("figure", "words"),
    [
        ("survival", ("log-rank p", "time (months)")),
        ("map", ("t-SNE (perplexity",)),
        ("heatmap", ("class: ", "stage: ", "batch", "reliance on")),
    ],
)
def test_figures_say_what_the_page_says(run, figure, words):
    root = ElementTree.fromstring((run[0] / "figures" / f"{figure}.svg").read_text("utf-8"))
    text = " ".join("".join(t.itertext()) for t in root.iter("{http://www.w3.org/2000/svg}text"))
    for word in words:
        assert word in text, word


def test_the_bars_of_the_heat_map_follow_a_later_comparison(run, tmp_path):
    out, *_ = run
    again = tmp_path / "run"
    shutil.copytree(out, again)
    add_meaning(again, {"ward": ["north", "south"] * 40}, notes=[READ])
    short = (again / "report.html").read_text("utf-8").split('id="short"')[1].split("</section>")[0]
    assert short.count(READ) == 1
    drawn = (again / "figures" / "heatmap.svg").read_text("utf-8")
    assert "ward: north" in drawn and "stage: " not in drawn
    assert "stage: " in (out / "figures" / "heatmap.svg").read_text("utf-8")


def test_leading_features_are_tested_with_and_without_their_view(run):
    _, model, data = run
    views = as_views(data.frames(), allow_missing=True)
    found, without, why = feature_tests(model, views, model.labels_, refits=True)
    assert why == "" and [view.view for view in without.views] == list(data.views)
    assert found["q_without_view"].dropna().between(0, 1).all()
    ids = np.array(data.sample_names)
    table, about = heatmap(views, model.labels_, np.ones(80), ids, found.to_dict("records"))
    assert len(table) == 80 and len(about) <= 60
    assert table["cluster"].tolist() == sorted(model.labels_.tolist())
    means = table[[item["heading"] for item in about]].mean()
    np.testing.assert_allclose(means, 0, atol=1e-8)
    alone = as_views([data.views["expression"]])
    one = np.zeros(80, dtype=int)
    assert feature_tests(model, alone, one, refits=True)[2] == "there is one cluster only"


def test_what_cannot_be_compared_after_the_fit_is_a_sentence():
    labels = np.array([0] * 5 + [-1] * 5)
    given = known([str(i) for i in range(10)], {"t": [None] * 5 + [1] * 5, "e": [1] * 10}, "t", "e")
    found = meaning(labels, [str(i) for i in range(10)], given)
    assert "no observation has a label, a time and an event" in found.about["survival"]["problem"]
    with pytest.raises(ValueError, match="event is given, name time"):
        known(["a"], {"e": [1]}, None, "e")
    with pytest.raises(ValueError, match="has 2 rows for 3 observations"):
        known(["a", "b", "c"], {"x": [1, 2]})
