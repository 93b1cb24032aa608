"""Damaged files of every kind: a sentence or numbers, never a crash, never code from the file.

Those that another process reads are in test_apart.
"""

import bz2
import gzip
import io

import numpy as np
import pandas as pd
import pyarrow
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from manyview.app.files import KINDS, read_views
from manyview.app.files.tables import APART

ELSEWHERE = (*APART, ".parquet", ".feather", ".h5ad", ".h5mu", ".mat", ".mtx")
X = np.round(np.random.default_rng(0).random((9, 4)) * 20)
FRAME = pd.DataFrame(X, index=[f"s{i}" for i in range(9)], columns=list("abcd"))


def _bytes(write):
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


@pytest.fixture(scope="module")
def seeds():
    """A sound file of every kind."""
    text = FRAME.to_csv().encode()
    made = Seeds(
        {
            ".csv": text,
            ".csv.gz": gzip.compress(text, mtime=0),
            ".csv.bz2": bz2.compress(text),
            ".csv.zst": bytes(pyarrow.compress(text, "zstd")),
            ".gct": b"#1.2\n4\t9\n" + FRAME.T.rename_axis("Name").to_csv(sep="\t").encode(),
            ".tsv": FRAME.to_csv(sep="\t").encode(),
            ".txt": FRAME.to_csv(sep=" ").encode(),
            ".npy": _bytes(lambda f: np.save(f, X)),
            ".npz": _bytes(lambda f: sp.save_npz(f, sp.csr_array(X))),
        }
    )
    return made


class Seeds(dict):
    def __repr__(self):  # or a failure shows kilobytes of bytes
        return "seeds"


def mutated(data, raw):
    raw = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 5))):
        at = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 20))
        new = data.draw(
            st.binary(max_size=20) | st.sampled_from([b"\xff" * 8, b"\0" * 8, b"9" * 9])
        )
        raw[at : at + length] = new
    return bytes(raw[: data.draw(st.integers(0, len(raw)))] if data.draw(st.booleans()) else raw)


def attempt(path):
    """Read or a ValueError that names the file; anything else fails the test."""
    for missing in ("allow", "error"):
        try:
            read = read_views([path], missing=missing)
        except ValueError as error:
            assert path.name in str(error) or "none is left" in str(error), error
        else:
            for matrix in read.views.values():
                assert matrix.ndim == 2 and matrix.dtype.kind in "biuf"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "kind", [*(k for k in KINDS if k not in ELSEWHERE), ".csv.gz", ".csv.bz2", ".csv.zst"]
)
@given(data=st.data())
def test_a_mutated_file_is_refused_or_read(seeds, tmp_path_factory, kind, data):
    path = tmp_path_factory.getbasetemp() / f"f{kind}"
    path.write_bytes(mutated(data, seeds[kind]))
    attempt(path)


CELLS = st.sampled_from(
    ["1", "2.5", "-3", "", "NA", "x", "id", "é", '"', "1e999", "0x1", "1_0", ";", "\0"]
)


@pytest.mark.filterwarnings("ignore")
@given(
    st.lists(st.lists(CELLS, max_size=5), max_size=6),
    st.sampled_from([",", "\t", ";", " ", "|"]),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([".csv", ".tsv", ".txt"]),
)
def test_any_text_is_refused_or_read(tmp_path_factory, rows, separator, newline, kind):
    path = tmp_path_factory.getbasetemp() / f"t{kind}"
    path.write_bytes(newline.join(separator.join(row) for row in rows).encode())
    attempt(path)


def test_pickled_code_is_not_run(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "sprung"), "w"))

    trap = np.array([[Trap()]], dtype=object)
    np.save(tmp_path / "a.npy", trap, allow_pickle=True)
    np.savez(tmp_path / "b.npz", trap=trap)
    for name in ("a.npy", "b.npz"):
        with pytest.raises(ValueError, match="Python objects, which are not read"):
            read_views([tmp_path / name])
    assert not (tmp_path / "sprung").exists()


def test_impossible_sizes_are_refused_before_memory_is_asked_for(tmp_path):
    header = (
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (9999999999, 99)}".ljust(117) + b"\n"
    )
    magic = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    (tmp_path / "a.npy").write_bytes(magic + header)
    (tmp_path / "c.mtx").write_text(
        "%%MatrixMarket matrix array real general\n99999999 99999\n1.0\n"
    )
    for name in ("a.npy", "c.mtx"):
        with pytest.raises(ValueError, match=name):
            read_views([tmp_path / name])
