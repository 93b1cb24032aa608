"""K for `WMNMF` itself: planted ranks come back, nothing is found where nothing is."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import manyview as mv
from manyview.app.cli.app import app
from manyview.selection import NoClustersWarning, bicv, own_curves
from manyview.views.views import as_views


def planted(K, seed=0, n=150, widths=(20, 15)):
    """Every cluster has a profile of its own in every view."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % K
    return {
        f"view{s}": np.abs(2 * rng.gamma(1.0, size=(K, m))[y] + 0.3 * rng.standard_normal((n, m)))
        for s, m in enumerate(widths)
    }


def no_clusters(seed=0, n=90, widths=(20, 15)):
    """Every sample has the same profile, and noise."""
    rng = np.random.default_rng(seed)
    return {
        f"view{s}": np.abs(rng.gamma(2.0, size=m) + 0.3 * rng.standard_normal((n, m)))
        for s, m in enumerate(widths)
    }


@pytest.mark.parametrize("K", [3, 5])
def test_the_planted_rank_comes_back(K):
    model = mv.WMNMF(7, random_state=3)
    before = model.get_params()
    found = mv.select_n_clusters(planted(K), range(2, 7), model=model, random_state=0)
    assert found.n_clusters == K and found.found
    assert model.get_params() == before and not hasattr(model, "labels_")


def test_the_unit_of_a_view_does_not_matter():
    views = planted(3, n=60)
    other = views | {"view0": 1000 * views["view0"]}
    one, same = (
        own_curves(as_views(v), mv.WMNMF(), [1, 3], 1, np.random.default_rng(0))
        for v in (views, other)
    )
    np.testing.assert_allclose(one, same, rtol=1e-6)


def test_nothing_is_found_where_there_is_nothing():
    with pytest.warns(NoClustersWarning, match="No candidate predicts"):
        found = mv.select_n_clusters(no_clusters(), [2, 3], model=mv.WMNMF(), random_state=0)
    assert found.n_clusters == 1 and not found.found


def test_unseen_entries_are_not_looked_at():
    """Only the entries that are told may change the score; the fits must not know them."""
    Xs = [np.asarray(X) for X in planted(3, n=60).values()]
    scores = bicv(Xs, mv.WMNMF(), [1, 3], np.random.default_rng(0))
    assert scores[1] < 0.5 < scores[0]
    # Noise cannot be told: a fit that had seen it would do better than the means.
    rng = np.random.default_rng(1)
    noise = [1 + rng.random(X.shape) for X in Xs]
    assert (bicv(noise, mv.WMNMF(), [1, 6], np.random.default_rng(0)) > 0.95).all()


def test_the_models_own_settings_are_used():
    views = {name: X - X.mean() for name, X in planted(3).items()}
    with pytest.raises(ValueError, match="negative"):
        mv.select_n_clusters(views, [2, 3], model=mv.WMNMF())
    found = mv.select_n_clusters(
        views, [2, 3, 4], model=mv.WMNMF(scale="minmax"), max_samples=90, random_state=0
    )
    assert "90 of the 150 samples" in found.reasons[0]


@pytest.mark.parametrize(
    "asked, sentence",
    [
        ({"candidates": [20, 30]}, "allow a rank of at most 10, less than every candidate"),
        ({"max_samples": 3}, "max_samples must be an integer of at least 10"),
        ({"model": mv.baselines.MultiNMF()}, "or a WMNMF, got MultiNMF"),
    ],
)
def test_bad_questions_are_answered_by_a_sentence(asked, sentence):
    with pytest.raises((ValueError, TypeError), match=sentence):
        mv.select_n_clusters(planted(3), **({"model": mv.WMNMF()} | asked))


def test_the_command_asks_for_the_rank_of_the_papers_method(tmp_path):
    files = []
    for name, X in planted(3, n=90).items():
        files.append(str(tmp_path / f"{name}.csv"))
        rows = [",".join(["id", *(f"{name}_{j}" for j in range(X.shape[1]))])]
        rows += [",".join([f"s{i}", *(f"{x:.4f}" for x in row)]) for i, row in enumerate(X)]
        (tmp_path / f"{name}.csv").write_text("\n".join(rows) + "\n")
    out = tmp_path / "choice"
    words = ["select-k", *files, "--to", "4", "--transpose", "none", "--out", str(out)]
    words += ["--method", "wmnmf"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    record = json.loads((out / "selection.json").read_text())
    assert (record["n_clusters"], record["method"]) == (3, "wmnmf")
    result = CliRunner().invoke(app, [*words[:-1], "nmf"])
    assert result.exit_code == 2 and "--method must be one of robust, wmnmf" in result.output
