"""Both estimators compute what the reference implementations beside this file compute."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import manyview as mv


def reference(name):
    spec = importlib.util.spec_from_file_location(
        f"reference_{name}", Path(__file__).parent / f"{name}.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


robust, wmnmf = reference("robust"), reference("wmnmf")


def made(n_views, seed, n=120, K=3):
    """Views of different width and clearness, one of them without clusters; nonnegative."""
    rng = np.random.default_rng(seed)
    y = rng.integers(K, size=n)
    views = []
    for s in range(n_views):
        m = int(rng.integers(4, 25))
        centers = rng.uniform(size=(K, m)) * (s != 2)
        views.append(np.abs(centers[y] + rng.normal(scale=0.15 + 0.1 * s, size=(n, m))) + 0.01)
    return views


def close(found, expected, share=1e-7, name=""):
    found, expected = np.asarray(found), np.asarray(expected)
    atol = share * np.abs(expected).max()
    np.testing.assert_allclose(found, expected, rtol=share, atol=atol, err_msg=name)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_views", [2, 3, 4, 5, 6])
def test_robust_computes_what_the_reference_computes(n_views, seed):
    views = made(n_views, seed, n=120 if seed else 45)
    model = mv.RobustWMNMF(3, scale=None, random_state=seed).fit(views)
    expected = robust.fit(views, 3, seed)
    # In the order of the computation: the first attribute that differs names the stage.
    for name, key in {
        "redundancy_": "rho",
        "split_half_": "h",
        "cluster_structure_": "structure",
        "cluster_structure_error_": "structure_error",
        "view_weights_": "alpha",
        "sample_weights_": "w",
        "sample_agreement_": "g",
    }.items():
        close(getattr(model, name), expected[key], name=name)
    close(model.graph_.toarray(), expected["S"])
    # The vectors of equal eigenvalues may be turned: P counts by its products only.
    close(model.embedding_ @ model.embedding_.T, expected["P"] @ expected["P"].T, 1e-6)
    close(model.history_["objective"], expected["J"], 1e-6)
    close(model.consensus_, expected["consensus"], 1e-5)
    for s in range(n_views):
        close(model.components_[s], expected["U"][s].T, 1e-5)
    assert (model.labels_ == expected["labels"]).all()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("n_views", [2, 3, 6])
@pytest.mark.parametrize("recipe", ["reproducing", "printed"])
@pytest.mark.filterwarnings("ignore::manyview._types.CollapseWarning")
def test_wmnmf_computes_what_the_reference_computes(n_views, seed, recipe):
    views = [X / X.sum(axis=1).mean() for X in made(n_views, seed)]
    if recipe == "printed":
        views = [X / X.sum() for X in views]
        model = mv.WMNMF.as_printed(3, random_state=seed).fit(views)
        expected = wmnmf.fit(views, 3, seed, **wmnmf.PRINTED)
        assert 1 < model.n_iter_ < 200
    else:
        model = mv.WMNMF(3, random_state=seed).fit(views)
        expected = wmnmf.fit(views, 3, seed)
    close(model.view_weights_, expected["alpha"])
    close(model.sample_weights_, expected["w"])
    close(model.history_["objective"], expected["objective"])
    close(model.consensus_, expected["consensus"], 1e-6)
    for s in range(n_views):
        close(model.components_[s], expected["U"][s].T, 1e-6)
    assert (model.labels_ == expected["labels"]).all()
