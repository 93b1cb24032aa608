"""The page of a run with a clinical table: panels, the switch of the map, figures and text to take away."""

import base64
import json
import re
import shutil
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import manyview as mv
from browser import visit
from manyview.app.options import cluster_names
from manyview.app.report.fit import fit_page
from manyview.app.run import evidence, write_run
from manyview.app.run.evidence import OtherViews, feature_tests
from manyview.app.run.features import heatmap, leading_features
from manyview.app.run.folder import add_meaning, name_clusters, page_of_tables
from manyview.app.run.meaning import known, meaning
from manyview.io.safe_csv import read_csv
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


def test_what_names_an_element_is_there(page):
    """Every reference of a section or a link to an element leads to one."""
    named = set(re.findall(r' id="([^"]+)"', page))
    referred = set(re.findall(r' (?:aria-labelledby=|href=)"#?([^":]+)"', page))
    assert "map-title" in referred and referred <= named


def test_the_panels_are_there_and_drawn(page):
    look = """JSON.stringify({
      titles: [...document.querySelectorAll('main section h2')].map(h => h.textContent),
      empty: [...document.querySelectorAll('.plot, .chart')].filter(p => !p.querySelector(
        'svg circle, svg path, svg image')).map(p => p.dataset.name),
      names: [...document.querySelectorAll('.plot, .chart')].map(p => p.dataset.name),
      saving: document.querySelectorAll('.saving:not([hidden]) button[data-kind]').length,
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
            "hazards",
            "map",
        } <= set(found["names"])
        assert found["saving"] == 3 * len(found["names"])
    assert {"Survival", "Clinical columns", "Known classes", "Does fusion help?",
            "Methods and references"} <= set(found["titles"])  # fmt: skip
    assert found["switch"][:3] == ["cluster", "class", "age"]
    assert {"confidence", "reliance on mutation", "stage"} <= set(found["switch"])
    assert "t-SNE (perplexity" in page


def test_every_coloring_shows_every_observation(page, run):
    color = """(async () => { const box = document.querySelector('.switch select'), found = [];
      const seen = name => [...document.querySelectorAll(`[data-name=map] ${name}`)];
      for (const option of box.options) { box.value = option.value; box.dispatchEvent(new Event('change'));
        found.push(seen('circle').filter(c => c.getAttribute('fill')
          && c.style.display !== 'none').length); }
      return JSON.stringify(found) })()"""
    seen = visit(page, color)
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
    for words in ("RobustWMNMF", "80 samples", "zeros and ones aside): batch", "log-rank test",
                  "9999 permutations", "Kaplan E. L., Meier P.", "Benjamini", f"manyview {mv.__version__}",
                  "2 refits", "numpy"):  # fmt: skip
        assert words in text, words
    cited = {int(n) for group in re.findall(r"\[([\d,]+)\]", text) for n in group.split(",")}
    assert cited == set(range(1, 1 + text.count("<li>")))
    tested = [row["test"] for row in read_csv(run[0] / "clinical_tests.csv") if row["test"] != "–"]
    assert f"{len(tested)} clinical columns were compared" in text


def test_the_first_screen_says_what_each_cluster_is(page, run):
    out, model, _data = run
    cards = page.split('class="clusters"')[1].split('class="first')[0].split("<article")[1:]
    named = read_csv(out / "cluster_features.csv")
    hazards = [
        row for row in read_csv(out / "survival_cox.csv") if row["reference"] == "all others"
    ]
    assert len(cards) == 4 and len(hazards) == 4
    for k, card in enumerate(cards):
        text = re.sub(r"<[^>]+>|\s+", " ", card)
        assert f" {(model.labels_ == k).sum()} samples" in re.sub(r"\s+", " ", text)
        first = [row for row in named if row["cluster"] == str(k) and row["rank"] == "1"]
        assert first and all(row["feature"] in card for row in first)
        assert f"{float(hazards[k]['hazard_ratio']):.2f} (" in text
    assert page.index('class="clusters"') < page.index("How the files were read")


def test_names_of_clusters_are_everywhere(run, tmp_path):
    again = tmp_path / "run"
    shutil.copytree(run[0], again)
    with pytest.raises(ValueError, match="there is no cluster 7"):
        name_clusters(again, {"7": "x"})
    name_clusters(again, {"1": "<b>Luminal"})
    page = page_of_tables(again).read_text("utf-8")
    assert "&lt;b&gt;Luminal</span>" in page and "<b>Luminal" not in page
    drawn = (again / "figures" / "survival.svg").read_text("utf-8")
    assert "1 &lt;b&gt;Luminal" in drawn
    name_clusters(again, cluster_names(["1="]))
    assert "Luminal" not in page_of_tables(again).read_text("utf-8")


def test_fusion_is_compared_with_every_view_alone_and_left_out(run):
    out, model, data = run
    rows = {row["views"]: row for row in read_csv(out / "fusion.csv")}
    labels = read_csv(out / "fusion_labels.csv")
    outcomes = {row["views"]: row for row in read_csv(out / "fusion_outcomes.csv")}
    assert set(rows) == set(outcomes) == set(labels[0]) - {"id"} and len(rows) == 7
    assert [int(row["all views"]) for row in labels] == model.labels_.tolist()
    for name, row in rows.items():
        own = np.array([int(found[name]) for found in labels])
        both = own >= 0
        assert adjusted_rand_score(own[both], model.labels_[both]) == pytest.approx(
            float(row["agreement"])
        )
        assert adjusted_rand_score(own[both], np.array(data.labels)[both]) == pytest.approx(
            float(outcomes[name]["ari:class"])
        )


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
        ("heatmap", ("class", "Stage II", "batch", "expression", "altered (1)")),
        ("hazards", ("ratio (95% interval)",)),
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
    wards = known(list(map(str, range(80))), {"ward": ["north", "south"] * 40})
    add_meaning(again, wards, notes=[READ])
    assert (again / "report.html").read_text("utf-8").count(READ) == 1
    drawn = (again / "figures" / "heatmap.svg").read_text("utf-8")
    assert "north" in drawn and "Stage II" not in drawn
    assert "Stage II" in (out / "figures" / "heatmap.svg").read_text("utf-8")


def test_leading_features_are_tested_with_and_without_their_view(run):
    _, model, data = run
    views = as_views(data.frames(), allow_missing=True)
    others = OtherViews(model, views, 4)
    found, without, why, tested = feature_tests(model, views, model.labels_, others)
    assert why == "" and tested == 80 and [view.view for view in without.views] == list(data.views)
    assert found["q_without_view"].dropna().between(0, 1).all()
    ids = np.array(data.sample_names)
    named, _ = leading_features(views, model.labels_, found.to_dict("records"))
    table, about = heatmap(views, model.labels_, np.ones(80), ids, named)
    assert len(table) == 80 and len(about) <= 60
    assert table["cluster"].tolist() == sorted(model.labels_.tolist())
    own = [item["heading"] for item in about if item["kind"] == "numbers"]
    np.testing.assert_allclose(table[own].mean(), 0, atol=1e-8)
    alone = as_views([data.views["expression"]])
    one = np.zeros(80, dtype=int)
    assert feature_tests(model, alone, one, None)[2] == "there is one cluster only"


def test_large_data_are_tested_in_a_part_that_has_every_cluster(monkeypatch):
    """Among 2,000 samples, 5 make up a cluster: a plain draw of 500 misses it in 1 of 4."""
    labels = np.repeat([0, 1, 2], [1500, 495, 5])
    X = np.random.default_rng(0).normal(size=(2000, 6)) + 4 * (labels[:, None] == [0, 1, 2] * 2)
    views = as_views({"rna": X - X.min()})
    whole, _, why, everyone = feature_tests(None, views, labels, None)
    assert (why, everyone) == ("there is one view only", 2000)
    monkeypatch.setattr(evidence, "TESTED", 600 * 6)
    part, without, why, tested = feature_tests(None, views, labels, None)
    assert 600 <= tested < 700 and without is None and "12,000 numbers" in why
    for table in (whole, part):  # the features that make each cluster
        first = table.groupby("cluster")["feature"].agg(lambda names: set(names[:2]))
        assert [first[k] for k in range(3)] == [{f"rna_{k}", f"rna_{k + 3}"} for k in range(3)]
    monkeypatch.setattr(evidence, "FEWEST_MEMBERS", 0)
    assert feature_tests(None, views, labels, None)[3] == 600


def test_the_page_says_that_features_were_tested_in_a_part(run, tmp_path):
    again = tmp_path / "run"
    shutil.copytree(run[0], again)
    about = json.loads((again / "run.json").read_text("utf-8"))
    assert about["n_tested"] == 80 and not about["batches_aligned"]
    about |= {"n_tested": 60, "batches_aligned": True, "settings": {"batch": ["plate <1>"]}}
    (again / "run.json").write_text(json.dumps(about), "utf-8")
    text = fit_page(again)
    assert text.count("(in 60 samples drawn at random") == 2
    assert "Batches (“plate &lt;1&gt;”) were aligned" in text and "as in Harmony" in text


def test_what_cannot_be_compared_after_the_fit_is_a_sentence():
    labels = np.array([0] * 5 + [-1] * 5)
    given = known([str(i) for i in range(10)], {"t": [None] * 5 + [1] * 5, "e": [1] * 10}, "t", "e")
    found = meaning(labels, [str(i) for i in range(10)], given)
    assert "no sample has a label, a time and an event" in found.about["survival"]["problem"]
    with pytest.raises(ValueError, match="event is given, name time"):
        known(["a"], {"e": [1]}, None, "e")
    with pytest.raises(ValueError, match="has 2 rows for 3 samples"):
        known(["a", "b", "c"], {"x": [1, 2]})
