"""A grid search over the number of clusters is told that the score favours the largest."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import manyview as mv
from conftest import blobs
from manyview.methods import scored


@pytest.fixture(autouse=True)
def nothing_scored_before(monkeypatch):
    monkeypatch.setattr(scored, "_SCORED", {})


@pytest.mark.parametrize("model", [mv.RobustWMNMF, mv.WMNMF])
def test_a_grid_search_over_clusters_is_warned_once(model):
    views, _ = blobs(n=24)
    widths = [X.shape[1] for X in views]
    search = GridSearchCV(model(views=widths, random_state=0), {"n_clusters": [2, 3, 4]}, cv=2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        search.fit(np.hstack(views))
    assert sum("favours the largest" in str(w.message) for w in told) == 1


def test_scores_of_one_number_are_not_warned_about():
    views, _ = blobs(n=24)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in (0, 1):
            mv.RobustWMNMF(3, random_state=seed).fit(views).score(views)
