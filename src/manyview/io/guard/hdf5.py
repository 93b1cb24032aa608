"""HDF5 files (.h5, .h5ad, .h5mu, .mat 7.3): nothing outside the file is read, no bomb is unpacked."""

from __future__ import annotations

from io import BytesIO
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from .chunks import MOST, check_chunk
from .limits import check_claim, check_held, room_for

OUTSIDE = "whose bytes would be read along, whatever they are; copy the numbers into one file"


def open_hdf5(h5py: Any, path: str | Path) -> Any:
    """The open file, once all that is in it has been looked at."""
    file = h5py.File(path, "r")
    try:
        _Walk(h5py, Path(path).stat().st_size).group(file)
    except BaseException:
        file.close()
        raise
    return file


class _Walk:
    """Every object of a file, once: links may lead in circles."""

    def __init__(self, h5py: Any, packed: int):
        self.h5py, self.packed = h5py, packed
        #: Filters that unpack nothing: they reorder, or add a checksum.
        self.keeping = (h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_FLETCHER32)
        self.seen: set[Any] = set()

    def group(self, group: Any) -> None:
        waiting = [group]
        while waiting:
            for item in self._members(waiting.pop()):
                info = self.h5py.h5o.get_info(item.id)
                if (info.fileno, info.addr) in self.seen:
                    continue
                self.seen.add((info.fileno, info.addr))
                if isinstance(item, self.h5py.Group):
                    waiting.append(item)
                elif isinstance(item, self.h5py.Dataset):
                    self.dataset(item)

    def _members(self, group: Any) -> list[Any]:
        """What a group holds. Links to names in the file lead to what is looked at anyway."""
        links, members = group.id.links, []
        for name in group:
            kind = links.get_info(name.encode("utf-8", "surrogateescape")).type
            if kind == self.h5py.h5l.TYPE_HARD:
                members.append(group[name])
            elif kind != self.h5py.h5l.TYPE_SOFT:
                raise ValueError(f"{_named(group, name)} is a link to another file, {OUTSIDE}")
        return members

    def dataset(self, item: Any) -> None:
        made = item.id.get_create_plist()
        if made.get_external_count():
            raise ValueError(f"{item.name!r} keeps its numbers in other files, {OUTSIDE}")
        if made.get_layout() == self.h5py.h5d.VIRTUAL:
            raise ValueError(
                f"{item.name!r} is put together from other datasets or files, {OUTSIDE}"
            )
        if item.shape is None:
            return
        wanted = float(prod(map(int, item.shape)) * item.dtype.itemsize)
        if item.dtype.kind in "biuf":
            check_claim(wanted, self.packed, repr(item.name))
        if item.chunks and made.get_nfilters():
            chunk = prod(item.chunks) * item.dtype.itemsize
            check_held(chunk, self.packed, f"a chunk of {item.name!r}")
            self._chunks(item, [made.get_filter(i)[0] for i in range(made.get_nfilters())])

    def _chunks(self, item: Any, filters: list[int]) -> None:
        """Deflate unpacks whatever a chunk holds, however small it should be."""
        unpacking = [number for number in filters if number not in self.keeping]
        if len(unpacking) > 1:
            raise ValueError(
                f"{item.name!r} is packed more than once; write it again with one filter"
            )
        room = room_for(self.packed)
        if unpacking != [self.h5py.h5z.FILTER_DEFLATE] or MOST["zlib"] * self.packed <= room:
            return
        stored: list[Any] = []
        item.id.chunk_iter(stored.append)
        for chunk in stored:
            if MOST["zlib"] * chunk.size > room:
                raw = item.id.read_direct_chunk(chunk.chunk_offset)[1]
                check_chunk("zlib", len(raw), BytesIO(raw).read, self.packed)


def check_lengths(item: Any, packed: int) -> None:
    """Refuse a dataset whose texts are too long together: many rows can name one long text of the file.

    None is longer than the file, so that so many may be looked at at a time.
    """
    before = 0.0
    step = max(1, int(room_for(packed) // max(1, packed)))
    if item.ndim > 1:
        step = max(1, step // max(1, prod(item.shape[1:])))
    for start in range(0, item.shape[0] if item.shape else 1, step):
        block = item[start : start + step] if item.shape else item[()]
        before += _length(np.asarray(block))
        check_held(before, packed, f"what is in it, up to {item.name!r},", so_far=True)


def _length(block: np.ndarray) -> float:
    if block.dtype.names:
        return float(sum(_length(block[name]) for name in block.dtype.names))
    if block.dtype.kind != "O":
        return 0.0
    sized = (value for value in block.ravel() if isinstance(value, str | bytes | np.ndarray))
    return float(sum(v.nbytes if isinstance(v, np.ndarray) else len(v) for v in sized))


def _named(group: Any, name: str) -> str:
    return repr(f"{str(group.name).rstrip('/')}/{name}")
