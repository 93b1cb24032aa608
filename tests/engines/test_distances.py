"""Distances hold the same laws for every engine: in memory, sparse, in a file, on a device, streamed."""

import numpy as np
import pytest
import scipy.sparse as sp

import manyview as mv
from manyview._arrays import on_host
from manyview.engines.numpy.distances import Geometry
from manyview.engines.numpy.engine import HOST
from manyview.engines.numpy.scaling import ScaledFile, Unscaled

N, M = 60, 12
PRESENT = np.arange(N) % 7 != 3


def rows():
    rng = np.random.default_rng(0)
    Z = rng.random((N, M)) * (rng.random((N, M)) < 0.7)
    Z[~PRESENT] = 0
    Z[20] = Z[12]  # a copy
    return Z


def in_memory(Z, folder):
    return HOST.distances(Z, PRESENT, False)


def as_sparse(Z, folder):
    return HOST.distances(sp.csr_array(Z), PRESENT, False)


def in_a_file(Z, folder):
    np.save(folder / "z.npy", Z)
    source = mv.on_disk(folder / "z.npy")
    return HOST.distances(ScaledFile(source, Unscaled(), PRESENT, np.dtype(float)), PRESENT, False)


def on_a_device(Z, folder):
    torch = pytest.importorskip("torch")
    engine = pytest.importorskip("manyview.engines.torch.engine").TorchEngine("cpu")
    return engine.distances(torch.as_tensor(Z), PRESENT, False)


def streamed(Z, folder):
    torch = pytest.importorskip("torch")
    room = pytest.importorskip("manyview.engines.torch.engine")
    engine, host = room.TorchEngine("cpu"), room.HostView(Z, torch.device("cpu"))
    return engine.distances(
        host.scaled(Unscaled(), PRESENT, np.dtype(float)), PRESENT, unit_rows=False
    )


@pytest.fixture(params=[in_memory, as_sparse, in_a_file, on_a_device, streamed])
def view(request, tmp_path):
    return request.param(rows(), tmp_path)


@pytest.fixture
def wanted():
    return Geometry(rows(), PRESENT)


def test_pairs_and_who_can_be_compared(view, wanted):
    assert (view.n_samples, view.n_features) == (N, M)
    np.testing.assert_array_equal(view.comparable, PRESENT)
    i, j = np.triu_indices(N, 1)
    d = view.pairs(i, j)
    # Files hold their coordinates in single precision.
    np.testing.assert_allclose(d, wanted.pairs(i, j), rtol=1e-4, atol=1e-6)
    assert (d[~(PRESENT[i] & PRESENT[j])] == 1).all()
    assert view.pairs(np.array([12]), np.array([20]))[0] == 0


def test_the_nearest_are_those_with_the_smallest_distances(view):
    near = view.nearest(4)
    indices, d = on_host(near.indices), on_host(near.d)
    np.testing.assert_array_equal(near.rows, np.flatnonzero(PRESENT))
    assert (np.diff(d, axis=1) >= -1e-6).all() and PRESENT[indices].all()
    everyone = np.flatnonzero(PRESENT)
    for row, listed in zip(near.rows, indices, strict=True):
        others = everyone[everyone != row]
        smallest = np.sort(view.pairs(np.full(len(others), row), others))[:4]
        found = np.sort(view.pairs(np.full(4, row), listed))
        np.testing.assert_allclose(found, smallest, rtol=1e-5, atol=1e-7)
        assert row not in listed


def test_parts_of_rows_and_features_are_views_again(view, wanted):
    chosen = np.arange(5, 50, 2)
    i, j = np.triu_indices(len(chosen), 1)
    some = view.rows(chosen)
    np.testing.assert_allclose(
        some.pairs(i, j), wanted.rows(chosen).pairs(i, j), rtol=1e-4, atol=1e-6
    )
    columns = np.arange(0, M, 2)
    i, j = np.triu_indices(N, 1)
    np.testing.assert_allclose(
        view.half(columns).pairs(i, j), wanted.half(columns).pairs(i, j), rtol=1e-4, atol=1e-6
    )


def test_identical_rows_have_one_code(view):
    codes = view.codes()
    assert codes[12] == codes[20]
    assert len(np.unique(codes[PRESENT])) == PRESENT.sum() - 1


def test_what_a_model_keeps_measures_unseen_rows(view, wanted):
    kept = view.for_model(sparse=False)
    new = rows()[:7] + 0.01
    ours, theirs = (np.vstack([d for d, _ in v.to_new(new, None, 3)]) for v in (kept, wanted))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)
    assert (ours[:, ~PRESENT] == 1).all()


def test_products_of_halves_add_up_to_those_of_the_view():
    rng = np.random.default_rng(0)
    view = Geometry(rng.random((60, 40)) + 5, np.arange(60) != 3)
    view.nearest(5)  # products are kept
    order = rng.permutation(40)
    one, other = view.halves(order[::2], order[1::2])
    assert other._products is not None
    for half, columns in ((one, order[::2]), (other, order[1::2])):
        alone = view.half(columns)
        d, expected = (kind.between(np.arange(60)) for kind in (half, alone))
        np.testing.assert_allclose(d, expected, rtol=1e-10, atol=1e-12)


def test_counts_whose_halves_get_unit_rows_do_not_add_up():
    rng = np.random.default_rng(0)
    view = Geometry(rng.random((60, 40)), np.ones(60, dtype=bool), unit_rows=True)
    view.nearest(5)
    order = rng.permutation(40)
    other = view.halves(order[::2], order[1::2])[1]
    alone = view.half(order[1::2])
    np.testing.assert_array_equal(other.between(np.arange(60)), alone.between(np.arange(60)))
