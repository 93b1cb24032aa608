"""Checksums: equal for equal values however they are held, different for any other."""

import numpy as np
import pytest
import scipy.sparse as sp

from manyview.io import checksum

KINDS = (np.float32, np.int64, bool, "U3", "M8[s]", object)


@pytest.mark.parametrize("kind", KINDS)
def test_one_entry_or_its_place_changes_the_sum(kind):
    X = np.arange(12).reshape(4, 3).astype(kind)
    other = X.copy()
    other[2, 1] = np.zeros(1, int).astype(kind)[0]
    sums = [checksum.of_arrays([A]) for A in (X, X.copy(order="F"), other, X.T, X[:0])]
    assert sums[0] == sums[1] and len(set(sums[1:])) == 4


def test_names_and_order_count():
    X, Y = np.ones((2, 2)), np.zeros((2, 2))
    sums = {
        checksum.of_arrays([X, Y], "ab"),
        checksum.of_arrays([Y, X], "ab"),
        checksum.of_arrays([X, Y], "ba"),
    }
    assert len(sums) == 3


def test_blocks_equal_the_whole(rng):
    X = rng.random((7, 3))
    whole = checksum.of_blocks(X.shape, X.dtype, [X])
    assert whole == checksum.of_blocks(X.shape, X.dtype, [X[:2], X[2:3], X[3:]])
    assert whole != checksum.of_blocks(X.shape, X.dtype, [X[::-1]])


def test_sparse_matrices_are_told_by_their_values(rng):
    X = sp.random_array((6, 5), density=0.4, rng=rng, format="csr")
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    assert checksum.of_arrays([X]) == checksum.of_arrays([wide]) != checksum.of_arrays([2 * X])


def test_files_are_told_by_their_bytes(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(b"abc")
    assert checksum.of_file(file) == checksum.of_bytes(b"abc") != checksum.of_bytes(b"abd")
