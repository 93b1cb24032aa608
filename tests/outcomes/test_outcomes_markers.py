"""Features that mark clusters: equal to SciPy feature by feature, calibrated where that is claimed."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats
from sklearn.cluster import KMeans

import manyview as mv
from manyview.outcomes import markers
from manyview.outcomes.mark import binary_tests, rank_tests


def data(n=45, m=12, seed=0):
    rng = np.random.default_rng(seed)
    return np.arange(n) % 3, rng.normal(size=(n, m))


def test_rank_tests_equal_scipys_with_ties_and_missing_values():
    codes, X = data()
    X[:, 4:8] = X[:, 4:8].round()
    X[::7, 8] = np.nan
    found = rank_tests(X, codes, 3)
    for k in range(3):
        for j in range(X.shape[1]):
            inside, outside = X[codes == k, j], X[codes != k, j]
            inside, outside = inside[~np.isnan(inside)], outside[~np.isnan(outside)]
            theirs = stats.mannwhitneyu(inside, outside, method="asymptotic")
            z = stats.norm.isf(np.array([found.p_value[k, j], theirs.pvalue]) / 2)
            # Ties of a few values make the grid of ranks coarse.
            assert z[0] == pytest.approx(z[1], abs=0.6 if 4 <= j < 8 else 0.2)
            effect = 2 * theirs.statistic / (len(inside) * len(outside)) - 1
            assert found.effect[k, j] == pytest.approx(effect)
            assert found.inside[k, j] == pytest.approx(inside.mean())
            assert found.outside[k, j] == pytest.approx(outside.mean())


def test_binary_tests_equal_fishers_with_missing_values():
    codes, X = data()
    X = (X > 0.8).astype(float)
    X[::5, 2] = np.nan
    found, ranks = binary_tests(X, codes, 3), rank_tests(X, codes, 3)
    for k in range(3):
        for j in range(X.shape[1]):
            there = ~np.isnan(X[:, j])
            table = [
                [(X[there & own, j] == v).sum() for v in (1, 0)] for own in (codes == k, codes != k)
            ]
            assert found.p_value[k, j] == pytest.approx(stats.fisher_exact(table).pvalue, rel=1e-7)
    np.testing.assert_allclose(found.effect, ranks.effect, atol=1e-12)  # one meaning for all kinds


def test_kinds_are_found_or_told():
    codes, X = data()
    rng = np.random.default_rng(1)
    views = {
        "rna": X,
        "mutation": (X > 1).astype(int),
        "reads": rng.poisson(20, X.shape),
        "grades": rng.integers(0, 4, X.shape),
    }
    found = markers(codes, views)
    assert [v.kind for v in found.views] == ["continuous", "binary", "counts", "continuous"]
    assert markers(codes, views, kinds={"grades": "counts"}).views[3].kind == "counts"
    for kinds, words in (
        ({"dna": "counts"}, "which is no view"),
        ({"rna": "integers"}, "must be one of"),
        ({"rna": "binary"}, "view 'rna' is not binary"),
        ({"rna": "counts"}, "negative values and cannot be counts"),
    ):
        with pytest.raises(ValueError, match=words):
            markers(codes, views, kinds=kinds)


def test_deep_sequencing_of_a_cluster_marks_nothing():
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 3
    depth = np.where(codes == 1, 4, 1)[:, None]
    X = rng.poisson(30 * depth, (90, 200))
    found = markers(codes, {"reads": X})
    assert (found.views[0].q_value <= 0.05).mean() < 0.01
    raw = markers(codes, {"reads": X}, kinds={"reads": "continuous"})
    assert (raw.views[0].q_value <= 0.05).mean() > 0.9


def test_sparse_and_dense_views_give_the_same():
    codes, _ = data(60)
    X = np.random.default_rng(0).poisson(0.7, (60, 40)) * 7.0
    X[:, 0] = 1  # no empty row
    for kind in ("counts", "continuous"):
        dense = markers(codes, {"a": X}, kinds={"a": kind}).views[0]
        sparse = markers(codes, {"a": sp.csr_array(X)}, kinds={"a": kind}).views[0]
        for name in ("effect", "p_value", "inside", "outside"):
            np.testing.assert_allclose(getattr(dense, name), getattr(sparse, name), atol=1e-12)


def test_planted_features_lead_and_say_their_direction():
    codes, X = data(90, 50)
    X[codes == 1, 7] += 3
    X[codes == 2, 9] -= 3
    names = [f"g{j}" for j in range(50)]
    found = markers(codes, {"rna": pd.DataFrame(X, columns=names)})
    leading = {
        (r["cluster"], r["feature"], r["direction"]) for r in found.top(1).to_dict("records")
    }
    assert {(1, "g7", "up"), (2, "g9", "down")} <= leading
    assert all(d == "down" for d in found.top(5, direction="down", max_q=None)["direction"])
    assert len(found.full_table) == 3 * 50
    assert len(found.top(2, max_q=None)) == 6
    view = found.views[0]
    expected = stats.false_discovery_control(view.p_value.ravel()).reshape(view.p_value.shape)
    np.testing.assert_allclose(view.q_value, expected)  # over features and clusters
    with pytest.raises(ValueError, match="direction must be"):
        found.top(direction="sideways")


def test_constant_features_and_small_clusters_are_told_and_not_tested():
    codes, X = data()
    X[:, 0] = 5
    codes[:2] = 8
    found = markers(codes, {"rna": X})
    view = found.views[0]
    assert np.isnan(view.p_value[:, 0]).all() and np.isnan(view.p_value[3]).all()
    assert not np.isnan(view.effect[3, 1:]).any() and not np.isnan(view.p_value[:3, 1:]).any()
    text = " ".join(found.notes)
    assert "1 feature with one value only" in text and "fewer than 3 members: 8" in text
    alone = markers(np.zeros(45, int), {"rna": X})
    assert "one cluster only" in " ".join(alone.notes) and len(alone.table) == 0


def test_p_values_of_the_data_that_made_the_clusters_are_called_descriptive():
    codes, X = data()
    found = markers(codes, [X])
    assert any("The same data found the clusters" in n for n in found.notes)
    assert "with an effect of 0.5 or more" in repr(found) and "q ≤" not in repr(found)
    for table in found.tables.values():
        assert list(table)[-2:] == ["p_descriptive", "q_descriptive"]


def test_ids_are_matched():
    codes, X = data()
    ids = [f"P{i}" for i in range(len(X))]
    frame = pd.DataFrame(X, index=ids)
    whole = markers(pd.Series(codes, ids), {"a": frame})
    moved = markers(pd.Series(codes, ids), {"a": frame.sample(frac=1, random_state=0)})
    np.testing.assert_allclose(whole.views[0].effect, moved.views[0].effect)
    numbered = frame.reset_index(drop=True).sample(frac=1, random_state=0)
    mixed = markers(pd.Series(codes), {"a": numbered})  # by the numbers pandas gave
    np.testing.assert_array_equal(mixed.views[0].p_value, whole.views[0].p_value)
    part = markers(pd.Series(codes, ids), {"a": frame.iloc[5:]})
    assert part.sizes.sum() == 40 and "5 labeled samples" in " ".join(part.notes)
    with pytest.raises(ValueError, match="share no id"):
        markers(pd.Series(codes, range(100, 145)), {"a": frame})
    with pytest.raises(ValueError, match="labels has 3 entries and views has 45"):
        markers([0, 1, 2], [X])


# --- clusters found without the view --------------------------------------------------------------


def test_leaving_the_view_out_makes_p_values_honest():
    """Three clusters in two views, none in the third: only there p-values must be uniform."""
    rng = np.random.default_rng(0)
    codes = np.arange(90) % 3
    clear = [rng.normal(size=(90, 20)) + 4 * rng.normal(size=(3, 20))[codes] for _ in range(2)]
    views = {"a": clear[0], "b": clear[1], "noise": rng.normal(size=(90, 400))}
    model = mv.RobustWMNMF(3, random_state=0).fit(views)
    found = markers(model, views, leave_view_out=True)
    noise = found.views[2]
    assert noise.agreement > 0.9 and (noise.q_value[~np.isnan(noise.q_value)] > 0.05).mean() > 0.99
    assert abs((noise.p_value <= 0.05).mean() - 0.05) < 0.02
    assert (found.views[0].q_value <= 0.05).mean() > 0.5
    assert any("found without that view" in note for note in found.notes)


def test_double_dipping_is_real_and_leaving_the_view_out_mends_it():
    """Clusters cut out of pure noise have markers; on clusters of another view they vanish."""
    rng = np.random.default_rng(3)
    views = {"a": rng.normal(size=(80, 6)), "b": rng.normal(size=(80, 6))}
    labels = KMeans(3, n_init=3, random_state=0).fit_predict(views["a"])
    dipped = markers(labels, {"a": views["a"]}).views[0]
    model = mv.baselines.ConcatViews(KMeans(3, n_init=3, random_state=0)).fit(views)
    honest = markers(model, views, leave_view_out=True)
    assert (dipped.p_value <= 0.01).mean() > 0.3
    assert np.mean([(v.p_value <= 0.01).mean() for v in honest.views]) < 0.06


def test_leaving_out_a_view_that_another_repeats_is_called_descriptive():
    """Clusters of noise still follow the view that is left out, through its copy."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    views = {"a": X, "copy": X + 0.05 * rng.normal(size=X.shape), "c": rng.normal(size=(200, 20))}
    with pytest.warns(UserWarning, match="near-duplicates"):
        model = mv.RobustWMNMF(3, random_state=0).fit(views)
        found = markers(model, views, leave_view_out=True)
    assert (found.views[0].q_value <= 0.05).any()
    assert any("'a' and 'copy' are near-duplicates" in note for note in found.notes)


def test_what_leaving_a_view_out_needs():
    codes, X = data()
    with pytest.raises(ValueError, match="needs a fitted model"):
        markers(codes, [X, X], leave_view_out=True)
    model = mv.RobustWMNMF(3, random_state=0).fit([X])
    with pytest.raises(ValueError, match="at least two views"):
        markers(model, [X], leave_view_out=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"zero_rows": {"b": "observed"}},
        {"scale": {"a": "none", "b": "sqrt", "c": "none"}},
        {"view_weights": {"a": 2.0, "b": 1.0, "c": 1.0}},
        {"view_weights": [2.0, 1.0, 1.0]},
    ],
)
def test_settings_of_single_views_go_with_the_view_that_is_left_out(settings):
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1], 20)
    views = {name: rng.normal(5, 1, (40, 6)) + 4 * truth[:, None] for name in "abc"}
    model = mv.RobustWMNMF(2, random_state=0, **settings).fit(views)
    found = markers(model, views, leave_view_out=True)
    assert [view.agreement for view in found.views] == [1.0, 1.0, 1.0]


def test_a_model_that_splits_columns_is_understood():
    codes, X = data(60, 12)
    X[:, :6] += 4 * codes[:, None]
    X[:, 6:] -= 4 * codes[:, None]
    model = mv.RobustWMNMF(3, views=[6, 6], random_state=0).fit(X)
    found = markers(model, X, leave_view_out=True)
    assert [len(v.features) for v in found.views] == [6, 6]
    assert min(v.agreement for v in found.views) > 0.9


@given(
    hnp.arrays(float, (12, 5), elements=st.sampled_from([-1.0, 0.0, 0.0, 0.0, 1.0, 2.5])),
    hnp.arrays(int, 12, elements=st.integers(-1, 2)),
)
def test_ranks_of_sparse_features_are_those_of_dense_ones(X, codes):
    dense = rank_tests(X, codes, 3)
    sparse = rank_tests(sp.csc_array(X), codes, 3)
    for name, expected in dense._asdict().items():
        np.testing.assert_allclose(getattr(sparse, name), expected, atol=1e-12, err_msg=name)
