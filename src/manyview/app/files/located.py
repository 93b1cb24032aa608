"""What a user types for a file: its name, the view's name before it, a sheet's name behind it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from manyview.datasets._tables import SEPARATORS, split_suffix
from manyview.io.guard import check_no_pipe

from .apart import APART, SEVERAL
from .arrays import READERS
from .text import GCT

#: What takes files out of packages that are not looked into.
UNPACKERS = {".zip": "unzip", ".xz": "unxz -k", ".7z": "7z x", ".tar": "tar xf", ".tgz": "tar xzf"}
KINDS = (*SEPARATORS, GCT, ".parquet", *APART, *READERS)


def located(item: str) -> tuple[str | None, Path, str | None]:
    """``path``, ``name=path``, ``path:sheet`` or all of them → name, path and sheet."""
    name, path = None, item
    if "=" in item and not _is_file(item):
        name, _, path = item.partition("=")
        if not name or not path:
            raise ValueError(f"{item!r} is not name=path; write for example rna=data/rna.csv")
    if not _is_file(path):
        file, colon, inside = path.rpartition(":")
        while colon:  # a sheet's name may hold colons, too
            if split_suffix(Path(file).name)[1] in SEVERAL:
                return name, existing(Path(file)), inside
            file, colon, more = file.rpartition(":")
            inside = f"{more}:{inside}"
    return name, existing(Path(path)), None


def _is_file(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # a name no file system takes
        return False


def existing(path: Path) -> Path:
    try:
        there, folder = path.is_file(), path.is_dir()
    except (OSError, ValueError) as error:  # a name no file system takes
        raise ValueError(f"{str(path)[:80]!r} is no name of a file ({error})") from None
    check_no_pipe(path)
    if not there:
        raise ValueError(f"{path} {'is a folder' if folder else 'does not exist'}; name a file")
    packer = UNPACKERS.get(path.suffix.lower())
    if packer:
        raise ValueError(
            f"{path.name} is an archive or packed in a way that is not read; unpack it: {packer} "
            f"{quote(str(path))}"
        )
    if split_suffix(path.name)[1] not in KINDS:
        raise ValueError(
            f"{path.name} is of no known kind; files may be {', '.join(KINDS)}, and tables of text also "
            "packed: .csv.gz, .csv.bz2, .csv.zst"
        )
    return path
