"""Views that stay in their files: rows are read when needed, and the next ones meanwhile.

From an .npy file any rows are read at once, from chunked or compressed files whole `slabs`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Matrix, storable
from manyview.engines.protocols import RowSource
from manyview.io.limits import check_held, unpacking_limit, unpacking_up_to
from manyview.io.packed import check_no_pipe

from .formats import APART, STREAMABLE, ZARR, arrays_apart, open_rows
from .hdf5 import Stored
from .row_file import INSIDE, LARGEST_TURNED, Held, Plain, RowFile, check_shape
from .slabs import Slabs

#: Arrays whose files another process has read as far as is needed, with the state of the file.
LOOKED_AT: set[tuple[str, str | None, str, tuple[int, ...]]] = set()


class Unreadable(OSError, ValueError):
    """Rows that cannot be read from the file."""


@storable
class DiskMatrix(RowSource):
    """One view in a file: its shape and precision, and rows on request.

    ``path`` may end in "::name" for an array inside the file. A model keeps the path, not the rows.
    """

    nbytes = 0
    #: An ending of file names that says how to read one that has another.
    kind = ""
    #: GiB the file may take unpacked, where the user has said so.
    max_unpacked: float | None = None
    #: Whether only a saved model names the file: it is not opened unless the user names it as well.
    only_named = False
    # Open files and slabs stay out of `vars`, and so out of saved models.
    __slots__ = ("_opened",)

    def __init__(self, path: str | os.PathLike[str], keep: bool = True, view: str = ""):
        text = os.fspath(path)
        file, _, key = text.partition(INSIDE)
        self.path, self.key = os.path.abspath(file), key or None
        self.layout: tuple[int, str, tuple[int, int]] | None = None
        self.view, self.keep, self.max_unpacked = view, keep, unpacking_limit()
        self._describe(self._open(0 if keep else LARGEST_TURNED))

    @classmethod
    def around(cls, array: Any, view: str) -> DiskMatrix:
        """What an open numpy.memmap, h5py.Dataset or zarr.Array reads from."""
        new = cls.__new__(cls)
        new.key, new.layout, new.view, new.keep = None, None, view, False
        if isinstance(array, np.memmap):
            new.path = os.path.abspath(str(array.filename))
            new.layout = (array.offset, array.dtype.str, array.shape)
            if array.mode == "r+":
                array.flush()  # earlier writes are not a change of the file
            found = new._open()
            new._check_map(array, found)
        else:
            new.path, new.key, new.kind = _place_of(array) or ("", None, "")
            found = Stored(array)
            # Whoever holds an HDF5 file open for writing may be writing something else into it.
            alone = new.kind in ZARR
            new._opened = Slabs(check_shape(found), _state_of(new.path, new.key) if alone else None)
        new._describe(found)
        return new

    def _check_map(self, held: Any, found: RowFile) -> None:
        """Rows are read by the name of the file: it must still be the file that was mapped."""
        for row in (0, len(held) // 2, len(held) - 1):
            if found.read(row, row + 1).tobytes() != held[row].tobytes():
                raise ValueError(
                    f"{self.label} is a numpy.memmap, but row {row} of the file {self.path} has other "
                    "values: the file was replaced since it was mapped; map it again by "
                    "numpy.load(path, mmap_mode='r'), or pass numpy.array(map)"
                )

    def _describe(self, rows: RowFile) -> None:
        self.shape = (int(rows.shape[0]), int(rows.shape[1]))
        self.sparse = rows.sparse
        small = rows.dtype in (np.float32, np.float16)
        self.dtype = np.dtype(np.float32 if small else np.float64)
        entries = getattr(rows, "nnz", None)
        self.nbytes = int(
            (np.prod(self.shape) if entries is None else entries) * self.dtype.itemsize
        )

    @property
    def rows(self) -> RowFile:
        return self._slabs().rows

    @property
    def label(self) -> str:
        name = Path(self.path).name + (f"{INSIDE}{self.key}" if self.key else "")
        return f"view {self.view!r} ({name})" if self.view else name

    def _slabs(self) -> Slabs:
        if not hasattr(self, "_opened"):
            shape = self.shape
            found = self._open()
            if tuple(found.shape) != tuple(shape):
                raise Unreadable(
                    f"{self.label} now has the shape {tuple(found.shape)}, but was fitted with {shape}; "
                    "put the file of the fit back"
                )
        return self._opened

    def stay(self) -> DiskMatrix:
        """Read rows from the file even if all of them were read to check it."""
        if not self.keep and hasattr(self, "_opened") and isinstance(self._opened.rows, Held):
            del self._opened
        self.keep = True
        return self

    def _open(self, most: float = 0) -> RowFile:
        if self.only_named:
            raise ValueError(
                f"the saved model needs {self.label} from {self.path} for this, but opens only files that "
                "you name: load it by mv.load(model, fitted_on=[file]), or give --fitted-on FILE"
            )
        check_no_pipe(self.path)
        kind = self.kind or Path(self.path).suffix.lower()
        found: RowFile | None = None
        try:
            with unpacking_up_to(self.max_unpacked):
                state = _state_of(self.path, self.key)
                if self.layout is not None:
                    found = Plain(self.path, *self.layout)
                elif kind in APART and (
                    most or (self.path, self.key, kind, state) not in LOOKED_AT
                ):
                    # Another process finds out whether the library hangs or crashes at something in the
                    # file, and sends the array if it takes no more than ``most`` bytes.
                    found = arrays_apart(self.path, self.key, kind, most)[""]
                    LOOKED_AT.add((self.path, self.key, kind, state))
                if found is None:
                    found = open_rows(self.path, self.key, self.kind)
                self._opened = Slabs(found, _state_of(self.path, self.key))
        except ImportError:
            raise
        except Exception as error:  # parsers of damaged files raise whatever they stumble over
            if not os.path.exists(self.path):
                raise FileNotFoundError(f"{self.label}: there is no file {self.path}") from None
            raise ValueError(f"{self.label} cannot be read by rows: {_why(error)}") from error
        return found

    def read(self, rows: slice) -> Matrix:
        """Rows as they are in the file, in the working precision of the view."""
        start, stop, _ = rows.indices(self.shape[0])
        found = self._read(start, stop)
        if start == 0 or stop == self.shape[0]:  # once or twice in a pass over the file
            self._check_unchanged(start, stop)
        return found

    def _check_unchanged(self, start: int, stop: int) -> None:
        opened = self._slabs()
        try:
            now = _state_of(self.path, self.key)
        except OSError as error:
            raise self._unreadable(start, stop, error) from error
        if opened.state is not None and now != opened.state:
            raise Unreadable(
                f"{self.label} was changed or replaced since it was opened; leave the file alone "
                "and run again"
            )

    def _read(self, start: int, stop: int) -> Matrix:
        slabs = self._slabs()
        if slabs.rows.direct:
            try:
                return slabs.rows.read(start, stop).astype(self.dtype, copy=False)
            except Exception as error:
                raise self._unreadable(start, stop, error) from error
        parts = [
            self._part(slabs, j, start, stop)
            for j in range(start // slabs.size, -(-stop // slabs.size))
        ]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return np.empty((0, self.shape[1]), dtype=self.dtype)
        return sp.csr_array(sp.vstack(parts)) if self.sparse else np.concatenate(parts)

    def _part(self, slabs: Slabs, j: int, start: int, stop: int) -> Matrix:
        low, high = j * slabs.size, min((j + 1) * slabs.size, self.shape[0])
        try:
            block = slabs.get(j, self.dtype)
        except Exception as error:
            raise self._unreadable(low, high, error) from error
        if start <= low and high <= stop:
            return block
        return block[max(start, low) - low : min(stop, high) - low]

    def _unreadable(self, start: int, stop: int, error: Exception) -> Unreadable:
        return Unreadable(
            f"{self.label}: rows {start} to {stop - 1} could not be read ({_why(error)}); put the file "
            "right and run again"
        )

    def _piece(self) -> int:
        return self._slabs().size

    def load(self) -> Matrix:
        """All rows, in memory."""
        with unpacking_up_to(self.max_unpacked):
            check_held(self.nbytes, self.nbytes, self.label)
        return super().load()

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _state_of(path: str, key: str | None) -> tuple[int, ...]:
    """What changes when a file does. Of a folder (Zarr): number and sums over its files, since chunks
    are files of their own."""
    place = Path(path)
    if not place.is_dir():
        return _marks(place)
    inside = os.walk(place / (key or "").strip("/"))
    files = [_marks(Path(folder, name)) for folder, _, names in inside for name in names]
    return len(files), *(sum(marks) for marks in zip(*files, strict=True))


def _marks(file: Path) -> tuple[int, int, int]:
    found = file.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns


def _why(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


def on_disk(path: str | os.PathLike[str], *, max_unpacked: float | None = None) -> DiskMatrix:
    """Read a view by rows from its file, also a small one: .npy, HDF5, .h5ad, Zarr or Parquet.

    Estimators also take plain paths: they load small files and read large ones by rows.

    Parameters
    ----------
    path : path
        May name an array inside the file, as in "measured.h5::counts".
    max_unpacked : float, optional
        GiB that the file may take when unpacked. By default a file that claims to be a thousand times
        larger than it is (and over 256 MiB) is refused.

    Returns
    -------
    DiskMatrix
        Pass it to an estimator as a view.

    Examples
    --------
    >>> import manyview as mv, numpy as np, os, tempfile
    >>> file = os.path.join(tempfile.mkdtemp(), "x.npy")
    >>> np.save(file, np.random.default_rng(0).random((40, 3)))
    >>> mv.on_disk(file).shape
    (40, 3)
    """
    with unpacking_up_to(max_unpacked):
        return DiskMatrix(path)


def is_file_name(item: Any) -> bool:
    """Whether ``item`` names a file that can be read by rows, rather than being data."""
    if not isinstance(item, str | os.PathLike):
        return False
    file = os.fspath(item).partition(INSIDE)[0]
    return isinstance(item, os.PathLike) or file.lower().endswith(STREAMABLE)


def is_open_file(item: Any) -> bool:
    """Whether ``item`` is an array that lives in a file: numpy.memmap, h5py.Dataset or zarr.Array."""
    if isinstance(item, np.memmap):
        # Only of the map itself is the place in the file known, not of a part of it.
        whole = type(item.base).__name__ == "mmap" and item.flags.c_contiguous and item.ndim == 2
        return whole and item.mode in ("r", "r+") and item.filename is not None
    kind = type(item)
    library = kind.__module__.split(".")[0]
    known = (kind.__name__, library) in {("Dataset", "h5py"), ("Array", "zarr")}
    return known and item.ndim == 2 and _place_of(item) is not None


def _place_of(array: Any) -> tuple[str, str | None, str] | None:
    """File, name inside and kind of an open h5py.Dataset or zarr.Array; None of one in memory."""
    file = getattr(array, "file", None)
    if file is not None:
        there = file.driver != "core" and os.path.isfile(file.filename)
        return (os.path.abspath(file.filename), array.name, ".h5") if there else None
    root = getattr(array.store, "root", getattr(array.store, "path", None))
    if not isinstance(root, str | os.PathLike) or not os.path.isdir(root):
        return None
    return os.path.abspath(root), array.path or None, ".zarr"
