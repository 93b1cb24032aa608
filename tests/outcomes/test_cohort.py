"""A second cohort: laws of rescaling, features that are not there, shifts that are told, calibration."""

import numpy as np
import pandas as pd
import pytest

import manyview as mv
from manyview.outcomes import predict_cohort
from manyview.outcomes.cohort import compare_samples


@pytest.fixture(scope="module")
def cohorts():
    """A model of 120 samples, and views of 80 others."""
    data = mv.datasets.make_cohort(
        200, n_features=(80, 80, 40), missing=0, batch_effect=0, random_state=0
    )
    frames = data.frames()
    model = mv.RobustWMNMF(4, random_state=0).fit({n: f.iloc[:120] for n, f in frames.items()})
    return model, {name: frame.iloc[120:] for name, frame in frames.items()}


def test_the_same_features_give_what_predict_gives_and_no_warning(cohorts):
    model, new = cohorts
    found = predict_cohort(model, new)
    np.testing.assert_array_equal(found.labels, model.predict(new))
    np.testing.assert_array_equal(found.confidence, model.predict_proba(new).max(axis=1))
    np.testing.assert_array_equal(found.model.labels_, found.labels)
    assert not found.warnings and not found.features["lacking"].any()
    assert (found.shift["difference"] < 0.1).all() and found.clusters["size"].sum() == 80


def test_features_that_are_not_there_are_unobserved_and_told(cohorts):
    model, new = cohorts
    fewer = new | {"expression": new["expression"].iloc[:, 12:].assign(other=1.0)}
    found = predict_cohort(model, fewer)
    row = found.features.set_index("view").loc["expression"]
    assert (row["present"], row["lacking"], row["not_in_the_fit"]) == (68, 12, 1)
    assert row["share_lacking"] == 0.15
    assert "lacks 12 of its 80 fitted features (15%)" in " ".join(found.warnings)
    holes = new["expression"].copy()
    holes.iloc[:, :12] = np.nan
    same = predict_cohort(model, new | {"expression": holes})
    np.testing.assert_array_equal(same.labels, found.labels)
    np.testing.assert_array_equal(same.confidence, found.confidence)
    strangers = new["expression"].add_prefix("x")
    with pytest.raises(ValueError, match="lacks 80 of its 80 fitted features"):
        predict_cohort(model, new | {"expression": strangers})


def test_a_shifted_cohort_is_told_and_rescaling_undoes_it(cohorts):
    model, new = cohorts
    units = np.random.default_rng(0).uniform(0.2, 3, 80)
    moved = new | {"expression": new["expression"] * units + 5 * units}
    found = predict_cohort(model, moved)
    shift = found.shift.set_index("view")
    assert shift.loc["expression", "p_value"] <= 0.002
    assert shift.loc["expression", "within_clusters"] > 0.5
    (warning,) = found.warnings
    assert "'expression' differs" in warning and "rescale" in warning
    one, other = (predict_cohort(model, views, rescale=True) for views in (new, moved))
    np.testing.assert_array_equal(one.labels, other.labels)
    np.testing.assert_allclose(one.confidence, other.confidence)
    after = other.shift.set_index("view")["after_rescaling"]
    assert after["expression"] < 0.3 * shift.loc["expression", "difference"]
    few = {name: frame.iloc[:8] for name, frame in moved.items()}
    assert "is rescaled by 8 samples" in " ".join(predict_cohort(model, few, rescale=True).notes)


@pytest.fixture(scope="module")
def batches():
    """A model of 160 samples in two batches, 40 new samples of each, and their batches."""
    data = mv.datasets.make_cohort(
        240, n_features=(80, 80, 40), missing=0, batch_effect=0, random_state=1
    )
    frames = {n: f for n, f in data.frames().items() if n != "mutation"}
    batch = np.where(np.arange(240) % 2, "b", "a")
    for frame in frames.values():
        frame.loc[batch == "b"] += 2
    model = mv.RobustWMNMF(4, random_state=0)
    model.fit({n: f.iloc[:160] for n, f in frames.items()}, batch=batch[:160])
    return model, {name: frame.iloc[160:] for name, frame in frames.items()}, batch[160:]


def test_with_batches_the_samples_of_a_batch_are_compared(batches):
    model, new, batch = batches
    found = predict_cohort(model, new, batch=batch)
    np.testing.assert_array_equal(found.labels, model.predict(new, batch=batch))
    assert not found.warnings and found.shift["batch"].tolist() == ["a", "b"] * 2
    stretched = {name: 2 * frame + 5 for name, frame in new.items()}
    warned = " ".join(predict_cohort(model, stretched, batch=batch).warnings)
    assert "new samples of batch 'a' and those of the fit" in warned
    few = {name: frame.iloc[:3] for name, frame in new.items()}  # of "b" one
    assert "of batch 'b' is not compared" in " ".join(
        predict_cohort(model, few, batch=batch[:3]).notes
    )
    with pytest.raises(ValueError, match="leave out rescale"):
        predict_cohort(model, new, batch=batch, rescale=True)
    with pytest.raises(ValueError, match="the batch of every new sample"):
        predict_cohort(model, new)


def test_a_new_batch_may_be_shifted_but_not_stretched(batches):
    model, new, batch = batches
    one = {name: frame[batch == "a"] for name, frame in new.items()}
    shifted = {name: frame + 7 for name, frame in one.items()}
    assert not predict_cohort(model, shifted, batch=["c"] * 40).warnings
    stretched = {name: 3 * frame for name, frame in one.items()}
    warned = predict_cohort(model, stretched, batch=["c"] * 40).warnings
    assert any("the new batch 'c' and the fit by more than a shift" in w for w in warned)


def test_another_mix_of_clusters_differs_in_all_and_not_within_clusters(cohorts):
    model, new = cohorts
    chosen = {name: frame[model.predict(new) == 0] for name, frame in new.items()}
    shift = predict_cohort(model, chosen).shift.set_index("view").loc["expression"]
    assert shift["p_value"] <= 0.01
    assert shift["within_clusters"] < 0.4 * shift["difference"]


def test_cohorts_of_one_population_keep_the_level_and_order_does_not_matter():
    rng, p = np.random.default_rng(0), []
    for _ in range(200):
        X = rng.normal(size=(30, 12)) + rng.normal(size=(30, 1))
        found = compare_samples([X[:18], X[18:]], np.zeros(30, int), rng)
        p.append(found["p_value"])
        assert 0 <= found["difference"] <= 1
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 / 200)
    assert np.mean(np.array(p) <= 0.5) > 0.35
    apart = compare_samples([X, X + 100], None, rng)
    assert apart["difference"] == pytest.approx(1)


def test_what_it_needs(cohorts):
    model, new = cohorts
    with pytest.raises(ValueError, match="takes a RobustWMNMF"):
        predict_cohort(mv.WMNMF(2), new)
    with pytest.raises(ValueError, match="unknown: \\['rna'\\]"):
        predict_cohort(model, {"rna": pd.DataFrame(np.ones((3, 2)))})
    with pytest.raises(ValueError, match="no sample of the cohort has a view that has weight"):
        predict_cohort(model, {name: frame.iloc[:3] * np.nan for name, frame in new.items()})
    placed = predict_cohort(model, {name: frame.iloc[:3] for name, frame in new.items()}).model
    for use in (placed.impute, placed.predict):
        with pytest.raises(ValueError, match="use the model that was fitted"):
            use("expression" if use == placed.impute else new)
