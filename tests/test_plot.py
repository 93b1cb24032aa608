"""Figures: every one draws into the Axes it is given and says what the model says."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

import manyview as mv
from conftest import blobs
from manyview import plot
from manyview.plot.heatmap import CATEGORIES, PAIRS
from manyview.plot.meaning import draw_enrichment, enrichment_lines

DRAWINGS = {
    "embedding": plot.embedding,
    "view_weights": plot.view_weights,
    "sample_weights": plot.sample_weights,
    "convergence": plot.convergence,
    "top_features": lambda model, ax=None: plot.top_features(model, 0, 1, ax=ax),
}


@pytest.fixture(scope="module", params=["robust", "paper", "missing", "one view"])
def model(request):
    views = [X.copy() for X in blobs(n=30)[0]]
    if request.param == "paper":
        return mv.WMNMF(3, random_state=0).fit(views)
    if request.param == "missing":
        views[0][:2] = views[1][:2] = views[2][:2] = np.nan
        with pytest.warns(UserWarning, match="missing in every view"):
            return mv.RobustWMNMF(3, random_state=0).fit(views)
    return mv.RobustWMNMF(3, random_state=0).fit(
        views[:1] if request.param == "one view" else views
    )


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.mark.parametrize("name", DRAWINGS)
def test_a_figure_is_drawn_into_the_given_axes(name, model):
    figure, (left, right) = plt.subplots(1, 2)
    assert DRAWINGS[name](model, ax=right) is right
    assert right.has_data() and not left.has_data()
    figure.canvas.draw()


def test_without_axes_the_current_ones_are_used():
    model = mv.RobustWMNMF(3, random_state=0).fit(blobs(n=30)[0])
    for draw in DRAWINGS.values():
        ax = plt.figure().gca()
        assert draw(model) is ax


def test_what_is_drawn_is_what_was_found():
    X, y = blobs(n=30)
    X[0][:, 3] += 5 * (y == 1)
    frames = {"a $x$": pd.DataFrame(X[0], columns=[f"f{j}$_" for j in range(8)]), "b": X[1]}
    model = mv.RobustWMNMF(3, random_state=0).fit(frames)
    ax = plot.view_weights(model, ax=plt.figure().gca())
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], model.view_weights_)
    assert [t.get_text() for t in ax.get_yticklabels()] == ["a $x$", "b"]
    (image,) = plot.sample_weights(model, ax=plt.figure().gca()).images
    np.testing.assert_allclose(np.sort(image.get_array().ravel()), np.sort(model.reliance_.ravel()))
    lines = plot.convergence(model, ax=plt.figure().gca()).lines
    np.testing.assert_allclose(lines[0].get_ydata(), model.history_["objective"])
    cluster = int(np.bincount(model.labels_[y == 1]).argmax())
    ax = plot.top_features(model, "a $x$", cluster, n=2, ax=plt.figure().gca())
    assert ax.get_yticklabels()[0].get_text() == "f3$_"
    ax.figure.canvas.draw()


def test_bad_questions_get_a_sentence():
    model = mv.RobustWMNMF(3, random_state=0).fit(blobs(n=30)[0])
    with pytest.raises(ValueError, match="view must be one of"):
        plot.top_features(model, "rna", 0)
    with pytest.raises(ValueError, match="component must be from 0 to 2"):
        plot.top_features(model, 0, 3)
    with pytest.raises(ValueError, match="kind must be"):
        plot.sample_weights(model, kind="other")


# --- what clusters mean --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cohort():
    data = mv.datasets.make_cohort(80, n_features=(80, 80, 40), random_state=0)
    model = mv.RobustWMNMF(4, random_state=0).fit(data.frames())
    return data, model


@pytest.fixture(scope="module")
def meanings(cohort):
    """Every figure of what clusters mean, as a function of the Axes and of labels."""
    data, model = cohort
    table = data.clinical_frame()
    found = mv.outcomes.survival(model, table["os_months"], table["dead"], permutations=99)
    clinic = mv.outcomes.enrichment(model, table[["age", "sex", "stage", "batch"]])
    classes = mv.outcomes.crosstab(model, table["subtype"])
    marked = mv.outcomes.markers(model, data.frames(), leave_view_out=True)
    sure = mv.stability(model, data.frames(), n_runs=2, random_state=0)
    genes = list(data.frames()["expression"].columns)
    sets = {"first": genes[:20], "all others": genes[20:]}
    pathways = mv.outcomes.gene_sets(model, data.frames(), sets)
    bars = {"sex": data.clinical["sex"], "age": data.clinical["age"]}
    return {
        "survival": lambda **how: plot.survival(found, **how),
        "enrichment": lambda **how: plot.enrichment(clinic, **how),
        "gene_sets": lambda **how: plot.gene_sets(pathways, max_q=None, **how),
        "crosstab": lambda **how: plot.crosstab(classes, **how),
        "leave_view_out": lambda **how: plot.leave_view_out(marked, **how),
        "consensus": lambda **how: plot.consensus(sure, **how),
        "agreement": lambda **how: plot.agreement(model, **how),
        "heatmap": lambda labels=None, **how: plot.heatmap(
            model, data.frames(), marked, annotations=bars, names=labels, **how
        ),
        "embedding by class": lambda labels=None, **how: plot.embedding(
            model, color=data.labels, name="subtype", **how
        ),
        "embedding by age": lambda labels=None, **how: plot.embedding(
            model, color=data.clinical["age"], name="age", **how
        ),
    }


MEANINGS = ("survival", "enrichment", "gene_sets", "crosstab", "leave_view_out", "consensus", "agreement",
            "heatmap", "embedding by class", "embedding by age")  # fmt: skip


@pytest.mark.parametrize("name", MEANINGS)
def test_a_figure_of_meaning_is_drawn_into_the_given_axes(name, meanings):
    figure, (left, right) = plt.subplots(1, 2)
    assert meanings[name](ax=right) is right
    assert right.has_data() and not left.has_data()
    figure.canvas.draw()


@pytest.mark.parametrize("name", [n for n in MEANINGS if not n.startswith("embedding")])
def test_users_names_are_used_and_are_no_formulas(name, meanings):
    ax = meanings[name](ax=plt.figure().gca(), labels={0: "a $cluster$", "expression": "RNA $x$"})
    ax.figure.canvas.draw()
    words = [t.get_text() for t in ax.figure.findobj(matplotlib.text.Text)]
    assert any("$" in word for word in words)


def test_curves_and_numbers_at_risk_are_those_found(cohort):
    data, _model = cohort
    table = data.clinical_frame()
    found = mv.outcomes.survival(
        data.labels, table["os_months"].to_numpy(), table["dead"].to_numpy()
    )
    ax = plot.survival(found, ax=plt.figure().gca(), colors={"A": "red"}, labels={"A": "first"})
    lines = [line for line in ax.lines if line.get_label().startswith("first")]
    np.testing.assert_allclose(lines[0].get_ydata(), found.curves[0].steps()["survival"])
    assert lines[0].get_color() == "red"
    words = [t.get_text() for t in ax.texts]
    assert found.test.permutations == 9999 and found.p_value == 0.0001
    assert ax.get_title(loc="left") == "log-rank p ≤ 0.0001"
    for curve in found.curves:
        assert str(curve.n) in words  # at time 0 all are at risk
    with pytest.raises(ValueError, match="colors has 1 entries for 4 groups"):
        plot.survival(found, ax=ax, colors=["red"])


def test_a_heat_map_is_sorted_by_cluster_and_says_so(cohort):
    data, model = cohort
    marked = mv.outcomes.markers(model, data.frames())
    ax = plot.heatmap(model, data.frames(), marked, n=1, ax=plt.figure().gca())
    blocks = [image.get_array() for image in ax.images if image.get_array().shape[0] > 1]
    assert [block.shape[1] for block in blocks] == [80] * 3  # a block for each view
    assert all(len(block) <= 4 for block in blocks)
    written = [text.get_text() for text in ax.texts]
    clusters, sizes = np.unique(model.labels_, return_counts=True)
    for k, size in zip(clusters, sizes, strict=True):
        assert {f"{k} ({size})", str(k)} & set(written)
    assert set(data.views) <= set(written)
    with pytest.raises(ValueError, match="labels has 3 entries"):
        plot.heatmap([0, 1, 1], data.frames(), marked)


def test_texts_of_a_heat_map_never_overlap(cohort):
    data, model = cohort
    marked = mv.outcomes.markers(model, data.frames())
    table = data.clinical_frame()
    table["ward"] = [f"ward {i % 11}" for i in range(80)]
    bars = {name: table[name].tolist() for name in ("age", "sex", "stage", "batch", "ward")}
    figure = plt.figure(figsize=(9, 9))
    ax = plot.heatmap(
        model, data.frames(), marked, annotations=bars, ax=figure.add_axes((0, 0, 1, 1))
    )
    figure.canvas.draw()
    boxes = [text.get_window_extent().padded(-0.5) for text in ax.texts]
    for i, one in enumerate(boxes):
        assert not any(one.overlaps(other) for other in boxes[:i]), ax.texts[i].get_text()


def test_no_bar_of_the_heat_map_looks_like_a_cluster():
    """Colors of levels keep away from those of the first six clusters."""
    clusters = np.array([to_rgb(color) for color in plot.COLORS[:6]])
    for row in (*CATEGORIES, *PAIRS):
        for color in row:
            assert np.linalg.norm(clusters - to_rgb(color), axis=1).min() > 0.25, color


def test_names_on_a_map_hide_few_dots():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 600)
    points = np.array([(0, 0), (6, 0), (0, 6)])[codes] + rng.normal(size=(600, 2))
    span = np.ptp(points, axis=0).max()
    for place, _ in plot.model.label_places(points, codes).values():
        assert (np.abs(points - place) < 0.02 * span).all(axis=1).sum() <= 6


def test_rare_levels_are_folded_and_nothing_significant_is_cut():
    cells, q = [], {}
    for c in range(60):
        q[f"c{c}"] = 0.01 if c >= 15 else 0.9
        for level, count in (("a", 90), ("b", 100), ("c", 1), ("d", 2)):
            cells += [
                {"column": f"c{c}", "level": level, "cluster": k, "count": count, "share": count / 193,
                 "residual": 0.1, "median": None}
                for k in (0, 1)
            ]  # fmt: skip
    lines = enrichment_lines(cells, q)
    assert len(lines) == 3 * 60 and lines[2][1] == "2 rare levels"
    assert [row["count"] for row in lines[2][2]] == [3, 3]
    ax = plt.figure().gca()
    draw_enrichment(ax, cells, q)
    assert len(ax.images[0].get_array()) == 3 * 45 and {line[0] for line in lines[: 3 * 45]} == {
        name for name in q if q[name] < 0.05
    }


def test_missing_views_are_drawn_by_combination():
    data = mv.datasets.make_synthetic(60, n_clusters=3, noisy_views=(), random_state=0)
    table = mv.datasets.missing_views(mv.datasets.remove_views(data, 0.3, seed=0))
    figure, (left, right) = plt.subplots(1, 2)
    assert plot.missing_views(table, ax=right) is right and not left.has_data()
    figure.canvas.draw()
    assert [t.get_text() for t in right.get_xticklabels()] == list(data.views)
    assert [int(t.get_text()) for t in right.get_yticklabels()] == list(table["samples"])
    drawn = right.collections[0].get_array().reshape(len(table), -1)
    np.testing.assert_array_equal(drawn, table[list(data.views)].to_numpy())


def test_an_overview_is_there_for_any_data(model):
    figure = plot.overview(model)
    figure.canvas.draw()
    with pytest.raises(ValueError, match="belong together"):
        plot.overview(model, images=np.zeros((30, 4)))
    with pytest.raises(ValueError, match="color has 2 values"):
        plot.embedding(model, color=[1, 2])


def test_markers_of_all_views_say_nothing_about_views_left_out(cohort):
    data, model = cohort
    with pytest.raises(ValueError, match="leave_view_out=True"):
        plot.leave_view_out(mv.outcomes.markers(model, data.frames()))


def test_a_missing_view_is_blank_and_an_annotation_may_be_called_cluster(cohort):
    from manyview.plot.heatmap import NUMBERS, Bar, Block, draw_heatmap
    from manyview.plot.model import draw_weights

    values = np.array([[0.6, 0.4], [1.0, np.nan], [0.2, 0.8]])
    _, ax = plt.subplots()
    draw_weights(ax, values, np.array([0, 0, 1]), ["a", "b"])
    drawn = np.ma.getmaskarray(ax.images[0].get_array())
    assert drawn.sum() == 1 and drawn[1].any()  # the cell of view b only
    _, ax = plt.subplots()
    block = Block("v", NUMBERS, ["f", "g"], np.zeros((2, 4)))
    draw_heatmap(ax, [block], np.array([0, 0, 1, 1]), [Bar("cluster", list("xyxy"))])
    own, theirs = (image.get_array()[0] for image in ax.images[:2])
    assert (own[0] == own[1]).all() and (own[1] != own[2]).any()
    assert (theirs[0] != theirs[1]).any()
