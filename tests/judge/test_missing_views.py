"""Missing views in baselines and comparisons, several datasets in one table, and how views are removed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.cluster import KMeans
from sklearn.preprocessing import StandardScaler

import manyview as mv
from manyview.baselines import NEMO, SNF, ConcatViews, KNNSpectral, MultiNMF, PIntMF, SumOfGraphs

DATA = mv.datasets.make_synthetic(90, n_clusters=3, noisy_views=(), random_state=0)
ACCEPT = {
    "NEMO": NEMO(3, random_state=0),
    "SNF": SNF(3, random_state=0),
    "PIntMF": PIntMF(3, random_state=0),
    "SumOfGraphs": SumOfGraphs(3, random_state=0),
}


# ------------------------------------------------------------------------------------------ removing


@pytest.mark.parametrize("pattern", ["random", "unequal", "single"])
def test_as_many_views_are_removed_as_asked_and_everyone_keeps_one(pattern):
    found = mv.datasets.remove_views(DATA, 0.4, pattern=pattern, seed=1)
    has = np.column_stack([~np.isnan(X).all(axis=1) for X in found.values()])
    assert has.any(axis=1).all()
    lacking, n_views = (~has).sum(axis=0), has.shape[1]
    if pattern == "single":
        assert sorted(np.unique(has.sum(axis=1))) == [1, n_views]
        assert (has.sum(axis=1) == 1).sum() == 36
    else:
        assert lacking.sum() == round(0.4 * has.size)
    if pattern == "unequal":
        assert (np.diff(lacking) > 0).all()
    for name, X in found.items():  # what is left is untouched, and so is the input
        rows = ~np.isnan(X).any(axis=1)
        np.testing.assert_array_equal(X[rows], DATA.views[name][rows])
    again = mv.datasets.remove_views(DATA.views, 0.4, pattern=pattern, seed=1)
    assert all(np.array_equal(again[name], found[name], equal_nan=True) for name in found)


def test_missing_views_are_counted_and_sparse_views_become_dense():
    views = {"a": sp.csr_array(np.eye(20)), "b": np.ones((20, 3))}
    found = mv.datasets.remove_views(views, 0.25, seed=0)
    table = mv.datasets.missing_views(found)
    assert table["samples"].sum() == 20 and table["missing"].sum() == 10
    assert table["samples"].is_monotonic_decreasing
    frames = {"a": pd.DataFrame(np.ones((4, 2)), index=list("wxyz")),
              "b": pd.DataFrame(np.ones((3, 2)), index=list("xyz"))}  # fmt: skip
    assert mv.datasets.missing_views(frames)["missing"].sum() == 1


def test_shares_that_cannot_be_removed_are_refused():
    with pytest.raises(ValueError, match=r"must be between 0 and 0\.5"):
        mv.datasets.remove_views({"a": np.ones((9, 2)), "b": np.ones((9, 2))}, 0.6)
    with pytest.raises(ValueError, match="pattern must be one of"):
        mv.datasets.remove_views(DATA, 0.1, pattern="blocks")
    with pytest.raises(ValueError, match="missing already"):
        mv.datasets.remove_views(mv.datasets.remove_views(DATA, 0.1), 0.1)
    with pytest.warns(UserWarning, match="no sample connects two views"):
        mv.datasets.remove_views(
            {"a": np.ones((9, 2)), "b": np.ones((9, 2))}, 1.0, pattern="single"
        )


def test_a_split_keeps_the_views_of_a_sample_together():
    views = {"a": np.arange(40.0)[:, None], "b": pd.DataFrame({"x": np.arange(40.0)})}
    y = np.repeat([0, 1], 20)
    train, test, y_train, y_test = mv.datasets.split_samples(views, y, seed=3)
    assert len(y_test) == 10 and y_test.sum() == 5
    for part, labels in ((train, y_train), (test, y_test)):
        rows = part["a"].ravel().astype(int)
        np.testing.assert_array_equal(part["b"]["x"], rows)
        np.testing.assert_array_equal(y[rows], labels)


# ----------------------------------------------------------------------------------------- baselines


@pytest.mark.parametrize("name", ACCEPT)
def test_missing_views_are_accepted_whatever_the_order_of_samples(name):
    views = mv.datasets.remove_views(DATA, 0.25, seed=0)
    model = ACCEPT[name]
    labels = model.fit_predict(views)
    assert model.__sklearn_tags__().input_tags.allow_nan
    assert mv.metrics.accuracy(DATA.labels, labels) >= 0.95
    if name in ("NEMO", "SNF"):
        order = np.random.default_rng(0).permutation(90)
        moved = ACCEPT[name].fit({v: X[order] for v, X in views.items()}).affinity_
        np.testing.assert_allclose(
            moved, NEMO(3).fit(views).affinity_[np.ix_(order, order)] if name == "NEMO"
            else SNF(3).fit(views).affinity_[np.ix_(order, order)], rtol=1e-6, atol=1e-12
        )  # fmt: skip


def test_nemo_averages_over_the_views_that_both_samples_have():
    a, b = DATA.views["view1"], DATA.views["view2"].astype(float).copy()
    b[60:] = np.nan
    both = NEMO(3, n_neighbors=5).fit({"a": a, "b": b}).affinity_
    alone = NEMO(3, n_neighbors=5).fit({"a": a}).affinity_
    second = NEMO(3, n_neighbors=5).fit({"b": b[:60]}).affinity_
    np.testing.assert_allclose(both[60:], alone[60:])
    np.testing.assert_allclose(both[:60, :60], (alone[:60, :60] + second) / 2)


def test_sum_of_graphs_counts_votes_among_shared_views():
    a, b = DATA.views["view1"], DATA.views["view2"].astype(float).copy()
    b[60:] = np.nan
    model = SumOfGraphs(3).fit({"a": a, "b": b})
    alone = SumOfGraphs(3).fit({"a": a}).affinity_matrix_.toarray()
    found = model.affinity_matrix_.toarray()
    np.testing.assert_allclose(found[60:], 2 * alone[60:])
    np.testing.assert_array_equal(np.unique(found), [0, 1, 2])


def test_multinmf_predicts_missing_views_of_data_that_have_its_form():
    """X_s = V W_s exactly: the consensus of a sample, found without a view, gives that view."""
    rng = np.random.default_rng(0)
    V, profiles = rng.dirichlet(np.full(3, 0.3), 60), rng.dirichlet(np.full(12, 0.5), (3, 3))
    whole = {f"view{s}": V @ W for s, W in enumerate(profiles)}
    views = mv.datasets.remove_views(whole, 0.25, seed=1)
    model = MultiNMF(3, scale=None, max_iter=10, inner_iter=100, random_state=0).fit(views)
    assert model.__sklearn_tags__().input_tags.allow_nan
    for s, (name, X) in enumerate(whole.items()):
        lost = np.isnan(views[name][:, 0])
        assert np.isnan(model.coefficients_[s][lost]).all()
        found = model.consensus_ @ model.components_[s]
        found /= found.sum(axis=1, keepdims=True)  # up to the scale of the view
        error, spread = (found - X)[lost], (X - X.mean(axis=0))[lost]
        assert np.linalg.norm(error) < 0.05 * np.linalg.norm(spread)


def test_concatenation_says_that_it_fills_in_feature_means():
    views = mv.datasets.remove_views(DATA, 0.25, seed=0)
    views["view1"][~np.isnan(views["view1"][:, 0]), 0] = 5.0
    views["view1"][np.flatnonzero(~np.isnan(views["view1"][:, 1]))[0], 0] = np.nan
    model = ConcatViews(Recorder(), scale="standard")
    with pytest.warns(UserWarning) as caught:
        model.fit(views)
    text = " ".join(str(w.message) for w in caught)
    assert "missing views were replaced by the feature means: 'view1' (" in text
    assert "view 'view1': 1 missing values were replaced by the mean of their feature" in text
    view = views["view2"]
    start = views["view1"].shape[1]
    expected = StandardScaler().fit_transform(view)
    expected[np.isnan(view)] = 0
    found = model.estimator_.seen[:, start : start + view.shape[1]]
    np.testing.assert_allclose(found, expected, atol=1e-12)


class Recorder(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None):
        self.seen, self.labels_ = X, np.arange(len(X)) % 3
        return self


def test_samples_without_a_view_and_wrong_advice():
    nobody = {"a": np.full((9, 2), 1.0), "b": np.full((9, 2), 2.0)}
    for X in nobody.values():
        X[3] = np.nan
    for fit in (NEMO(2).fit, lambda v: mv.compare(v, methods=["NEMO"], n_clusters=2)):
        with pytest.raises(ValueError, match=r"1 of 9 samples have no view \(the first is row 3\)"):
            fit(nobody)
    with pytest.raises(
        ValueError, match=r"KNNSpectral clusters one matrix, got 2 views; use ConcatV"
    ):
        KNNSpectral(2).fit({"a": np.ones((5, 2)), "b": np.ones((5, 2))})
    with pytest.raises(ValueError, match="missing='allow'"):
        mv.WMNMF(2).fit({"a": np.array([[1.0, np.nan], [2, 3], [1, 1]])})
    with pytest.raises(ValueError, match=r"(?s)3D array .*one view per slice"):
        mv.RobustWMNMF(2).fit(np.ones((2, 5, 3)))
    three = PIntMF(2, random_state=0).fit([np.array([[0.0, 1], [0, 1.1], [5, 9]])])
    assert sorted(np.bincount(three.labels_)) == [1, 2]


# --------------------------------------------------------------------------------------- comparisons


class NoNumber(ClusterMixin, BaseEstimator):
    def fit(self, X, y=None): ...


@pytest.fixture(scope="module")
def bench():
    other = mv.datasets.make_synthetic(60, n_clusters=2, noisy_views=(), random_state=1)
    incomplete = mv.datasets.remove_views(DATA, 0.25, seed=0), DATA.labels
    methods = {
        "ours": mv.RobustWMNMF(7, max_iter=5),
        "NEMO": NEMO,
        "K|means_z": lambda k, seed: ConcatViews(
            KMeans(k, n_init=2), scale="standard", random_state=seed
        ),
        "needs all": mv.baselines.MLRSSC(7, max_iter=2),
        "WM-NMF": mv.WMNMF(7, missing="allow", max_iter=2, inner_iter=5),
    }
    return mv.compare_datasets(
        {"a & b": incomplete, "whole": other}, methods, seeds=2, metric="acc"
    )


def test_methods_that_need_complete_views_are_not_applicable(bench):
    table = bench.table.set_index(["dataset", "method"])
    lost = table.sort_index().loc[("a & b", "needs all")]
    assert set(lost["status"]) == {"not applicable"}
    assert set(lost["reason"]) == {"it needs complete views"}
    assert (table.drop(("a & b", "needs all"))["status"] == "ok").all()
    first = bench.comparisons["a & b"]
    assert first.settings["missing"] and first.troubles == [
        "needs all: not applicable: it needs complete views"
    ]
    assert set(table.loc["whole"]["n_found"]) == {2}  # the number of classes of each dataset


def test_the_table_of_several_datasets(bench):
    summary = bench.summary()
    runs = bench.table.query("dataset == 'whole' and method == 'NEMO'")["acc"]
    row = summary.query("dataset == 'whole' and method == 'NEMO'").iloc[0]
    assert (row["mean"], row["sd"]) == (runs.mean(), runs.std())
    ranks = summary.groupby("dataset")["rank"].sum()
    assert ranks["whole"] == 15 and ranks["a & b"] == 10
    text = bench.to_markdown()
    assert "n/a" in text and "K\\|means_z" in text and max(map(len, text.split("\n"))) < 80
    bench.metric = "ari"
    latex = bench.to_latex()
    bench.metric = "acc"
    assert (
        latex.split("\\toprule")[1].startswith("\nARI & ")
        and "a \\& b" in latex
        and "means\\_z" in latex
        and latex.count("\\\\") == 6
    )


def test_tests_are_paired_by_dataset_and_corrected(bench):
    with pytest.warns(UserWarning, match="2 datasets: the smallest possible p-value is 0.5"):
        found = bench.tests("NEMO")
    assert list(found["n"]) == [2, 2, 1, 2] and (found["p_holm"] >= found["p"]).all()
    centers = found[["low", "high"]].mean(axis=1, skipna=False)
    np.testing.assert_allclose(centers, found["difference"].where(found["n"] > 1))
    with pytest.raises(ValueError, match="there is no method 'x'"):
        bench.tests("x")


def test_signed_rank_is_exact_and_holm_is_monotone():
    from scipy.stats import wilcoxon

    from manyview.app.compare.benchmark import holm, signed_rank

    rng = np.random.default_rng(0)
    for n in (5, 9):
        d = rng.standard_normal(n)
        assert signed_rank(d) == pytest.approx(wilcoxon(d, method="exact").pvalue)
    assert signed_rank(np.zeros(4)) == 1
    np.testing.assert_allclose(
        holm(np.array([0.04, 0.01, np.nan, 0.03])), [0.06, 0.03, np.nan, 0.06]
    )


@pytest.mark.parametrize(
    ("methods", "sentence"),
    [
        ({"x": NoNumber}, "the class NoNumber has no parameter n_clusters"),
        ({"x": dict}, r"the class dict has no fit_predict"),
        ({"x": 3}, "must be an estimator with fit_predict"),
    ],
)
def test_classes_that_do_not_fit_are_refused_before_anything_runs(methods, sentence):
    with pytest.raises(ValueError, match=sentence):
        mv.compare_datasets({"a": DATA}, methods)


def test_datasets_need_classes():
    with pytest.raises(ValueError, match="dataset 'a' must be"):
        mv.compare_datasets({"a": DATA.views})
    with pytest.raises(ValueError, match="metric must be one of"):
        mv.compare_datasets({"a": DATA}, metric="recall")


# ------------------------------------------------------------------------------- parts of your own


class Rows(mv.extend.RowSource):
    def __init__(self, **says):
        self.X = np.random.default_rng(0).random((30, 5))
        vars(self).update(says)

    def read(self, rows):
        return self.X[rows]


@pytest.mark.parametrize(
    ("says", "sentence"),
    [
        ({"shape": (30, 5)}, "Rows has no dtype; set self.dtype"),
        (
            {"shape": (30, 6), "dtype": np.dtype(float)},
            r"returned shape \(1, 5\).* but shape is \(30, 6\)",
        ),
        ({"shape": (30, 5), "dtype": np.dtype(int)}, "use float32 or float64"),
        (
            {"shape": (30, 5), "dtype": np.dtype("f4")},
            "float64, sparse=False, but .* dtype float32",
        ),
    ],
)
def test_a_data_source_that_contradicts_itself_is_refused(says, sentence):
    with pytest.raises(ValueError, match=f"view 'a': .*{sentence}"):
        mv.WMNMF(2).fit({"a": Rows(**says)})
    assert (
        mv.WMNMF(2, max_iter=1).fit({"a": Rows(shape=(30, 5), dtype=np.dtype(float))}).labels_.size
    )


class MyGraph:
    """Ties the two samples of every pair: made for one view only."""

    def __init__(self, n, sign=1.0):
        self.L, self.sign = np.kron(np.eye(n // 2), [[1.0, -1], [-1, 1]]), sign

    def prepare(self, X, view):
        if len(X) != len(self.L):
            raise ValueError("other samples")
        return self

    def value(self, V):
        return float((V * (self.L @ V)).sum())

    def split(self, V):
        return self.sign * np.maximum(-self.L, 0) @ V, np.maximum(self.L, 0) @ V

    def link(self, X_new, V):
        return None


class Unlinked(MyGraph):
    link = None


def test_a_regularizer_for_one_view_is_checked_on_that_view():
    X = np.random.default_rng(0).random((10, 4))
    mv.extend.check_regularizer(MyGraph(10), X=X)
    with pytest.raises(
        AssertionError, match=r"not a sum over rows \(of half .* add link\(X_new, V\)"
    ):
        mv.extend.check_regularizer(Unlinked(10), X=X)
    with pytest.raises(AssertionError, match="not half the gradient"):
        mv.extend.check_regularizer(MyGraph(10, sign=2.0), X=X)
    with pytest.raises(AssertionError, match="it has shape"):
        mv.extend.check_regularizer(MyGraph(10), X=X[0])


class ByName:
    """One regularizer for all views, which goes by their names."""

    def __init__(self, parts):
        self.parts = parts

    def prepare(self, X, view):
        return self.parts[view].prepare(X, view)


def test_each_view_has_its_regularizer_and_new_samples_have_none_without_a_link():
    views, wide = dict(list(DATA.views.items())[:2]), {"max_iter": 2, "random_state": 0}
    same = mv.WMNMF(3, regularizer={"view2": "graph"}, **wide).fit(views)
    assert np.array_equal(same.consensus_, mv.WMNMF(3, **wide).fit(views).consensus_)
    own = mv.WMNMF(3, regularizer={"view1": MyGraph(90), "view2": None}, beta=5.0, **wide).fit(
        views
    )
    assert own.objective_ != same.objective_
    own.predict({name: X[:7] for name, X in views.items()})
    assert np.isfinite(own.score({name: X[:7] for name, X in views.items()}))
    both = {"view1": mv.extend.Graph(), "view2": mv.extend.Sparse()}
    named = mv.WMNMF(3, regularizer=ByName(both), **wide).fit(views)
    each = mv.WMNMF(3, regularizer=both, **wide).fit(views)
    np.testing.assert_array_equal(named.consensus_, each.consensus_)
    with pytest.raises(ValueError, match="regularizer names the view 'view9'"):
        mv.WMNMF(3, regularizer={"view9": None}).fit(views)
