"""Sources of rows: what all of them do alike, wherever the rows are."""

import numpy as np
import pytest
import scipy.sparse as sp

import manyview as mv
from conftest import blobs
from manyview import WMNMF
from manyview.engines.numpy.rows import rows_of
from manyview.engines.numpy.sources import InMemory, Scaled, UnitRows, as_source, is_streamed
from manyview.extend import RowSource
from manyview.maths.solvers import SOLVERS
from manyview.nonnegative import NonnegativeScaling


class Somewhere(RowSource):
    """Rows of an array that is not to be asked for as a whole."""

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.sparse = X, X.shape, X.dtype, sp.issparse(X)
        self.most = 0

    def read(self, rows):
        start, stop, _ = rows.indices(self.shape[0])
        self.most = max(self.most, stop - start)
        return self.X[start:stop]


def sources(X, tmp_path):
    np.save(tmp_path / "x.npy", X)
    one = NonnegativeScaling(1.0)
    return {
        "memory": InMemory(X),
        "sparse": InMemory(sp.csr_array(X)),
        "file": mv.on_disk(tmp_path / "x.npy"),
        "own": Somewhere(X),
        "own, sparse": Somewhere(sp.csr_array(X)),
        "scaled": Scaled(X, one, X.dtype),
        "scaled file": Scaled(mv.on_disk(tmp_path / "x.npy"), one, X.dtype),
        "scaled own": Scaled(Somewhere(X), one, X.dtype),
        "unit rows": UnitRows(X, np.ones(len(X))),
    }


def test_every_source_reads_the_same_rows_and_makes_the_same_pass(tmp_path):
    rng = np.random.default_rng(0)
    X, U, V = rng.random((40, 6)), rng.random((6, 3)), rng.random((40, 3))
    for name, source in sources(X, tmp_path).items():
        assert as_source(source) is source
        assert is_streamed(source) == (name.split()[-1] in ("file", "own") or "own" in name), name
        assert source.shape == X.shape and source.dtype == X.dtype
        part = source.read(slice(3, 11))
        assert sp.issparse(part) == source.sparse, name
        part = part.toarray() if source.sparse else part
        np.testing.assert_allclose(part, X[3:11], err_msg=name)
        rows = rows_of(source, SOLVERS["multiplicative"]())
        expected = ((X - V @ U.T) ** 2).sum(axis=1)
        np.testing.assert_allclose(rows.all_residuals(U, V), expected, rtol=1e-9, err_msg=name)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_rows_of_an_own_source_come_in_the_order_asked_for(make, monkeypatch):
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 50)
    X = np.random.default_rng(0).random((60, 5))
    source, rows = Somewhere(make(X)), np.array([7, 3, 59, 3, 40])
    for chosen in (rows, np.array([], dtype=int)):
        taken = source[chosen]
        np.testing.assert_array_equal(taken.toarray() if source.sparse else taken, X[chosen])
    assert source.most <= 10
    mask = X[:, 0] > 0.5
    taken = source[mask]
    np.testing.assert_array_equal(taken.toarray() if source.sparse else taken, X[mask])


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_fit_on_an_own_source_is_that_on_its_file(solver, tmp_path, monkeypatch):
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 300)
    views, _ = blobs(n=120)
    own = {f"v{s}": Somewhere(X) for s, X in enumerate(views)}
    for s, X in enumerate(views):
        np.save(tmp_path / f"v{s}.npy", X)
    files = {name: mv.on_disk(tmp_path / f"{name}.npy") for name in own}
    here, there = (WMNMF(3, solver=solver, random_state=0).fit(data) for data in (own, files))
    np.testing.assert_array_equal(here.consensus_, there.consensus_)
    np.testing.assert_array_equal(here.labels_, there.labels_)
    np.testing.assert_array_equal(here.predict(own), there.predict(files))
    with pytest.raises(ValueError, match="cannot be saved"):
        here.save(tmp_path / "m.npz")


def test_a_source_without_read_or_with_holes_is_told_so():
    class Unfinished(RowSource):
        shape, dtype = (30, 4), np.dtype(float)

    with pytest.raises(NotImplementedError, match=r"Unfinished must define read\(rows\)"):
        WMNMF(3).fit([Unfinished(), Unfinished()])
    X = np.ones((30, 4))
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="a Somewhere: rows 0 to 29 hold 1 NaN"):
        WMNMF(3).fit([Somewhere(X), np.ones((30, 4))])
