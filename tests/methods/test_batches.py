"""Batches: aligned in every view, whatever types each of them has, and samples of unseen batches."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import manyview as mv
from manyview.datasets import make_single_cells
from manyview.metrics import scores
from manyview.outcomes.mark import fitted_without
from manyview.views.views import as_views

ABSENT = np.ones((2, 6))
ABSENT[1, 0] = ABSENT[0, 3] = 0
ROTATED = np.ones((3, 6))
ROTATED[0, 1] = ROTATED[1, 0] = ROTATED[2, 4] = 0


def cells(n=500, **changed):
    """Log-normalized genes (sparse) and CLR proteins with batches, and their types."""
    options = {"n_features": {"rna": 300}, "n_batches": 2, "random_state": 0, **changed}
    data = make_single_cells(n, 6, **options)
    rna = sp.csr_array(data.views["rna"])
    rna = sp.csr_array(rna.multiply(1e4 / np.asarray(rna.sum(axis=1)).reshape(-1, 1)))
    rna.data = np.log1p(rna.data)
    adt = np.log1p(data.views["adt"])
    views = {"rna": rna, "adt": adt - adt.mean(axis=1, keepdims=True)}
    return views, data.labels, np.array(data.clinical["batch"])


def fitted(views, batch=None, n_clusters=6):
    return mv.RobustWMNMF(n_clusters, random_state=0).fit(views, batch=batch)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"batch_effect": 1.0},
        {"batch_types": ABSENT},
        {"n_batches": 3, "batch_types": ROTATED, "n": 700},
    ],
    ids=["two", "strong", "types of one batch", "three, each lacking a type"],
)
def test_types_are_found_across_batches_and_types_of_one_batch_stay_apart(options):
    views, types, batch = cells(**options)
    model = fitted(views, batch)
    assert scores(types, model.labels_)["ari"] > 0.97
    excess = scores(batch, model.labels_)["nmi"] - scores(batch, types)["nmi"]
    assert abs(excess) < 0.02
    np.testing.assert_array_equal(model.predict(views, batch=batch), model.labels_)
    # Without it the batches are what is found.
    assert scores(types, fitted(views).labels_)["ari"] < 0.9


def test_cells_of_an_unseen_batch_find_their_types():
    views, types, batch = cells(700, n_batches=3)
    old = batch != "batch2"
    model = fitted({name: X[old] for name, X in views.items()}, batch[old])
    new = {name: X[~old] for name, X in views.items()}
    found = model.predict(new, batch=["another"] * (~old).sum())
    of = {k: np.bincount(types[old][model.labels_ == k]).argmax() for k in range(6)}
    assert np.mean([of[k] == t for k, t in zip(found, types[~old], strict=True)]) > 0.97
    with pytest.raises(ValueError, match=r"fitted with batch=: pass predict\(X, batch="):
        model.predict(new)
    with pytest.warns(UserWarning, match=r"fewer than 30 samples: 'few' \(3\)"):
        model.predict({name: X[:3] for name, X in new.items()}, batch=["few"] * 3)


def test_batches_with_few_common_types_are_told_and_subsets_are_not():
    apart = np.ones((2, 6))
    apart[0, ::2] = apart[1, 1::2] = 0
    for effect in (0.5, 1.0):
        views, types, batch = cells(batch_types=apart, batch_effect=effect)
        with pytest.warns(
            UserWarning, match=r"only \d\d% of batch 'batch\d' and larger batches have"
        ):
            model = fitted(views, batch)
        assert scores(types, model.labels_)["ari"] < 0.9  # what the warning is for
    part = np.ones((2, 6))
    part[1, [0, 2, 3, 4]] = 0
    views, types, batch = cells(batch_types=part)  # a warning would be an error
    assert scores(types, fitted(views, batch).labels_)["ari"] > 0.97


def test_an_unseen_batch_of_other_types_is_told():
    apart = np.ones((3, 6))
    apart[:2, ::2] = apart[2, 1::2] = 0
    views, _, batch = cells(900, n_batches=3, batch_types=apart)
    old = batch != "batch2"
    model = fitted({name: X[old] for name, X in views.items()}, batch[old], 3)
    with pytest.warns(UserWarning, match="of batch 'batch2' and the samples of the fit have a"):
        model.predict({name: X[~old] for name, X in views.items()}, batch=batch[~old])


def test_batches_without_effect_change_no_cluster_and_noise_follows_no_batch(rng):
    views, _, batch = cells(batch_effect=0)
    assert scores(fitted(views).labels_, fitted(views, batch).labels_)["ari"] > 0.99
    batch = np.arange(200) % 2
    noise = [rng.normal(size=(200, m)) + 2 * rng.normal(size=(2, m))[batch] for m in (40, 25)]
    assert scores(batch, fitted(noise, batch, 3).labels_)["nmi"] < 0.03


def test_names_of_batches_order_of_rows_unobserved_entries_and_files(rng, tmp_path):
    views, types, batch = cells(300)
    views = {"rna": views["rna"].toarray(), "adt": views["adt"].copy()}
    views["adt"][rng.random(views["adt"].shape) < 0.05] = np.nan
    views["rna"][:20] = np.nan
    names = [f"c{i}" for i in range(300)]
    frames = {name: pd.DataFrame(X, index=names) for name, X in views.items()}
    model = fitted(frames, pd.Series(batch, index=names).iloc[::-1])
    assert scores(types, model.labels_)["ari"] > 0.95
    np.testing.assert_array_equal(model.labels_, fitted(views, batch).labels_)
    # Refits align batches as the fit does, whatever the order of the rows.
    assert mv.stability(model, frames, n_runs=2, random_state=0).score > 0.95
    turned = {name: frame.iloc[::-1] for name, frame in frames.items()}
    found = fitted_without(model, as_views(turned, allow_missing=True, allow_negative=True), 0, 6)
    np.testing.assert_array_equal(found[::-1], fitted({"adt": frames["adt"]}, batch).labels_)
    view, rows = model._geometry[1], np.arange(0, 300, 7)
    np.testing.assert_array_equal(view.rows(rows).unit_sums().X, view.unit_sums().X[rows])
    with pytest.raises(ValueError, match="the batch of every sample: pass the views of the fit"):
        mv.stability(model, {name: frame[:200] for name, frame in frames.items()}, n_runs=2)
    renamed = fitted(views, [int(name[-1]) for name in batch])
    np.testing.assert_array_equal(model.labels_, renamed.labels_)
    again = mv.load(model.save(tmp_path / "m.npz"))
    np.testing.assert_array_equal(
        again.predict(views, batch=batch), model.predict(views, batch=batch)
    )
    for number in (int, float):  # 1.0 is batch 1
        own = pd.Series([number(name[-1]) for name in batch])
        np.testing.assert_array_equal(
            renamed.predict_proba(views, batch=own), model.predict_proba(views, batch=batch)
        )


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ([1] * 30, "all samples are of the batch '1'; leave batch out"),
        ([1, 2] * 14, r"one value for each of 30 samples, got shape \(28,\)"),
        ([*"ab" * 14, "a", None], "1 samples have no batch.*first is 29"),
        ([*"ab" * 14, "a", pd.NA], "1 samples have no batch.*first is 29"),
    ],
)
def test_batches_that_cannot_be_used_are_refused(batch, sentence, rng):
    with pytest.raises(ValueError, match=sentence):
        fitted([rng.normal(size=(30, 4))], batch, 2)


def test_relations_and_other_engines_are_refused(rng):
    X, batch = rng.normal(size=(30, 4)), [0, 1] * 15
    links = mv.GraphView(sp.csr_array(np.ones((30, 30)) - np.eye(30)))
    with (
        pytest.warns(UserWarning, match="fewer than 30"),
        pytest.raises(ValueError, match="'view1' is no table of features"),
    ):
        fitted([X, links], batch, 2)
    with pytest.raises(ValueError, match="engine='dask' aligns no batches"):
        mv.RobustWMNMF(2, engine="dask").fit([X], batch=batch)
