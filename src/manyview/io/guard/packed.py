"""Archives, gzip streams, Parquet and sparse shapes: how large they become, before they do."""

from __future__ import annotations

import bz2
import gzip
import io
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from .limits import check_claim, check_held, room_for

#: Deflate cannot shrink anything further than this; a member that claims to is a trap.
MAX_RATIO = 1100
#: What a byte of JSON takes as Python objects, at worst: "[]," is a list.
JSON_BYTES = 25
#: What a byte of a table takes: "0," becomes 8 bytes.
TEXT_BYTES = 4
#: Kinds of Parquet columns that hold one value per row.
FLAT = ("int", "uint", "float", "double", "halffloat", "bool", "string", "large_string", "string_view",
        "date", "time", "decimal", "null", "duration")  # fmt: skip
#: Older ones run code that a file brings along (CVE-2023-47248).
SAFE_PYARROW = (14, 0, 1)


def check_no_pipe(path: str | Path) -> None:
    """Refuse a pipe or a device: what is read from it is gone."""
    place = Path(path)
    if place.exists() and not place.is_file() and not place.is_dir():
        raise ValueError(
            f"{path} is a pipe or a device, and a file is read more than once: for its kind, its numbers "
            "and its checksum in run.json. Save it first, for example by: cat > table.csv"
        )


def check_archive(archive: zipfile.ZipFile, packed: int) -> None:
    """Refuse an archive of ``packed`` bytes that claims what cannot be, or would fill the memory."""
    members = archive.infolist()
    for member in members:
        # Of other kinds zipfile unpacks all there is, whatever the table of contents says.
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(
                f"its member {member.filename!r} is packed in a way NumPy does not use; save it again"
            )
    total = sum(member.compress_size for member in members)
    impossible = any(m.file_size > MAX_RATIO * (m.compress_size + 1) for m in members)
    if total > packed or impossible:
        raise ValueError("its table of contents does not fit its size")
    held = sum(m.file_size * (JSON_BYTES if m.filename.endswith(".json") else 1) for m in members)
    check_held(held, packed)


def check_shape_claim(shape: Any, packed: int, what: str = "it") -> None:
    """Refuse a sparse matrix that is nearly all shape: each row and column takes a number."""
    check_claim(8 * sum(int(n) for n in shape), packed, f"{what}, of shape {tuple(shape)},")


class _Counted(io.RawIOBase):
    """A stream that ends with an error when it becomes larger than its file may."""

    def __init__(self, stream: Any, packed: int, weight: int):
        self.stream, self.packed, self.weight, self.seen = stream, packed, weight, 0
        self.most = room_for(packed) / weight

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        part = self.stream.read(len(buffer))
        buffer[: len(part)] = part
        self.seen += len(part)
        if self.seen > self.most:
            check_held(self.weight * self.seen, self.packed, so_far=True)
            self.most = room_for(self.packed) / self.weight
        return len(part)

    def close(self) -> None:
        self.stream.close()
        super().close()


def counted(path: Path, weight: int = TEXT_BYTES) -> BinaryIO:
    """The bytes of a file, or what is packed in it up to the limit; a byte takes ``weight``."""
    ending = next((end for end in STREAMS if path.name.lower().endswith(end)), None)
    if ending is None:
        return path.open("rb")
    stream: Any = _Counted(STREAMS[ending](path), path.stat().st_size, weight)
    return io.BufferedReader(stream, 2**16)


def _zstd(path: Path) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError(
            f"reading {path.name} needs pyarrow; install it with: pip install 'manyview[app]'"
        ) from error
    return pyarrow.CompressedInputStream(pyarrow.OSFile(str(path)), "zstd")


#: Endings of files that pack one other file, and what unpacks them piece by piece.
STREAMS: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": _zstd,
}


@contextmanager
def text_of_file(path: Path, encoding: str = "utf-8-sig") -> Iterator[TextIO]:
    """The text of a table, packed or not."""
    with io.TextIOWrapper(counted(path), encoding=encoding, newline="") as file:
        yield file


def check_pyarrow() -> None:
    """Refuse a pyarrow that runs code which a file brings along."""
    import pyarrow

    if tuple(int(n) for n in pyarrow.__version__.split(".")[:3] if n.isdigit()) < SAFE_PYARROW:
        raise ImportError(
            f"pyarrow {pyarrow.__version__} can run code from a file; update it: "
            "pip install -U 'manyview[app]'"
        )


def check_parquet(path: str | Path, by_rows: bool = False) -> Any:
    """An open ParquetFile whose columns may be read.

    Columns of text come as dictionaries, so that one long text in every row is held once;
    `check_texts` tells what they become.
    """
    import pyarrow.parquet as pq

    check_pyarrow()
    packed = Path(path).stat().st_size
    file = pq.ParquetFile(path)
    texts = []
    for field in file.schema_arrow:
        kind = _kind(field.type)
        if not kind.startswith(FLAT):
            raise ValueError(
                f"its column {field.name!r} ({field.type}) does not hold one number or text in each row; "
                "leave it out, or spread it over several columns"
            )
        if "string" in kind:
            texts.append(field.name)
    claimed = file.metadata
    wanted = 8 * claimed.num_rows * claimed.num_columns
    pages = [
        claimed.row_group(g).column(j).total_uncompressed_size
        for g in range(claimed.num_row_groups)
        for j in range(claimed.num_columns)
    ]
    what = f"its table of {claimed.num_rows} rows and {claimed.num_columns} columns"
    (check_claim if by_rows else check_held)(wanted, packed, what)
    check_held(max(pages, default=0), packed, "a column of it")
    return pq.ParquetFile(path, read_dictionary=texts) if texts else file


def _kind(of: Any) -> str:
    """What a column holds, under the names that are only about how it is kept."""
    from pyarrow import BaseExtensionType, types

    while isinstance(of, BaseExtensionType) or types.is_dictionary(of):
        of = of.storage_type if isinstance(of, BaseExtensionType) else of.value_type
    return str(of)


def check_texts(column: Any, packed: int) -> Any:
    """A column of a Parquet table, once the texts in it are found to be of ordinary length."""
    import pyarrow.compute as compute
    from pyarrow import types

    total = 0
    for chunk in column.chunks:
        if not types.is_dictionary(chunk.type) or "string" not in _kind(chunk.type):
            continue
        lengths = compute.binary_length(chunk.dictionary)
        total += compute.sum(compute.take(lengths, chunk.indices)).as_py() or 0
        check_held(total, packed, "a column of text")
    return column
