"""The same views in every form that users hold give the same fit, and what is said of them is heard."""

import numpy as np
import pytest
import scipy.sparse as sp

import manyview as mv
from conftest import blobs

DATA = mv.datasets.make_synthetic(60, n_clusters=3, noisy_views=(), random_state=0)
NAMES = list(DATA.views)


def fitted(X, **settings):
    return mv.RobustWMNMF(3, random_state=0, **settings).fit(X)


def two_levels(mixed=False):
    """One DataFrame; the first level of its columns names the views."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.concat(DATA.frames(), axis=1)
    places = np.arange(frame.shape[1])
    return frame.iloc[:, np.r_[places[::2], places[1::2]]] if mixed else frame


@pytest.mark.parametrize("mixed", [False, True])
def test_a_first_level_of_columns_names_the_views(mixed):
    frame = two_levels(mixed)
    model = fitted(frame)
    assert list(model.view_names_in_) == NAMES
    parts = fitted({name: frame[name] for name in NAMES})
    np.testing.assert_array_equal(model.consensus_, parts.consensus_)
    np.testing.assert_array_equal(model.predict(frame), model.predict(DATA.frames()))


def test_views_of_a_first_level_are_chosen_and_may_be_fewer_at_predict():
    frame = two_levels()
    model = fitted(frame, views=NAMES[:2])
    np.testing.assert_array_equal(
        model.consensus_, fitted(DATA.frames(), views=NAMES[:2]).consensus_
    )
    assert (model.predict(frame[NAMES[:1]]) >= 0).all()
    with pytest.raises(ValueError, match="first column level"):
        fitted(frame, views=[10, 20])


def test_names_given_with_a_list_are_the_names_of_the_views():
    arrays = list(DATA.views.values())
    named = fitted(arrays, views=NAMES, view_weights=dict.fromkeys(NAMES, 1))
    assert list(named.view_names_in_) == NAMES
    np.testing.assert_array_equal(named.predict(arrays), named.predict(DATA.views))


@pytest.mark.parametrize(
    "views", [NAMES[:1], [*NAMES, "more"], [NAMES[0]] * len(NAMES), dict.fromkeys(NAMES, 3),
              set(NAMES), NAMES[0], 3]
)  # fmt: skip
def test_names_that_do_not_fit_a_list_are_refused(views):
    with pytest.raises(ValueError, match="views"):
        fitted(list(DATA.views.values()), views=views)


@pytest.mark.parametrize("estimator", [mv.RobustWMNMF, mv.WMNMF])
@pytest.mark.parametrize(
    "settings, said",
    [
        ({"n_jobs": 0}, "n_jobs"),
        ({"device": "cuda"}, "device='cuda' is for engine='torch'"),
        ({"device": "cuda", "engine": "dask"}, "device='cuda' is for engine='torch'"),
        ({"device": "no such"}, "device='no such'"),
    ],
)
def test_settings_that_could_have_no_effect_are_refused(estimator, settings, said):
    with pytest.raises(ValueError, match=said):
        estimator(3, **settings).fit(DATA.views)


def one_array(kind, X):
    if kind == "frame":
        return pytest.importorskip("pandas").DataFrame(
            X, columns=[f"g{j}" for j in range(X.shape[1])]
        )
    return sp.csr_array(X) if kind == "sparse" else X


@pytest.mark.parametrize("kind", ["array", "frame", "sparse"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_dict_names_the_views_of_one_array(kind, listed, tmp_path):
    parts, _ = blobs()
    X = one_array(kind, np.hstack(parts))
    names = np.arange(19) if kind != "frame" else X.columns
    views = {"rna": 8, "meth": 5, "cnv": 6}
    if listed:  # in any order; what no list names is not used
        views = {"cnv": list(names[13:]), "rna": list(names[:8])}
    expected = dict(zip(("rna", "meth", "cnv"), parts, strict=True))
    model = mv.RobustWMNMF(3, views=views, random_state=0).fit(X)
    assert list(model.view_names_in_) == list(views)
    alone = mv.RobustWMNMF(3, random_state=0).fit({name: expected[name] for name in views})
    if kind != "sparse":  # whose views are scaled as counts are
        np.testing.assert_array_equal(model.consensus_, alone.consensus_)
    again = mv.load(model.save(tmp_path / "m.npz"))
    assert again.views == views
    np.testing.assert_array_equal(again.predict(X[:20]), model.predict(X[:20]))
    weighed = mv.RobustWMNMF(3, views=views, view_weights=dict.fromkeys(views, 1), random_state=0)
    assert (weighed.fit(X).view_weights_ == 1 / len(views)).all()
