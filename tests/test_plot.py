"""Figures: every one draws into the Axes it is given and says what the model says."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import manyview as mv
from conftest import blobs
from manyview import plot

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


@pytest.mark.parametrize("name", DRAWINGS)
def test_without_axes_the_current_ones_are_used(name):
    model = mv.RobustWMNMF(3, random_state=0).fit(blobs(n=30)[0])
    ax = plt.figure().gca()
    assert DRAWINGS[name](model) is ax


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
