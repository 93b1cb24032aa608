"""A grid search over the number of clusters is told that the score favors the largest."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import manyview as mv
from conftest import blobs


@pytest.mark.parametrize("model", [mv.RobustWMNMF, mv.WMNMF])
def test_a_grid_search_over_clusters_is_warned_once(model):
    views, _ = blobs(n=24)
    widths = [X.shape[1] for X in views]
    search = GridSearchCV(model(views=widths, random_state=0), {"n_clusters": [2, 3, 4]}, cv=2)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("default")
        search.fit(np.hstack(views))
    assert sum("favors the largest" in str(w.message) for w in told) == 1


@pytest.mark.parametrize("model", [mv.RobustWMNMF, mv.WMNMF])
def test_scores_outside_a_search_over_numbers_are_not_warned_about(model):
    views, _ = blobs(n=24)
    with warnings.catch_warnings(action="error"):
        for k in (3, 4):
            model(k, random_state=0).fit(views).score(views)
            model(k).set_params(random_state=1).fit(views).score(views)


def test_one_search_leaves_nothing_behind_for_another():
    views, _ = blobs(n=24)
    searched = mv.RobustWMNMF(random_state=0).set_params(n_clusters=3).fit(views)
    with pytest.warns(UserWarning, match="favors the largest"):
        searched.score(views)
    with warnings.catch_warnings(action="error"):
        clone(searched).fit(views).score(views)
