"""Fitted models on disk: an .npz of plain arrays and a JSON header; versioned, atomic, no pickle.

The header describes the model as a tree of plain values, arrays (by their name in the archive) and
objects of the few classes listed in `_types.STORABLE`. Nothing else can be stored, and reading a file
runs no code from it. A checksum over header and arrays finds damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from manyview._types import STORABLE
from manyview._version import __version__
from manyview._warn import warn_user
from manyview.engines.files.disk import DiskMatrix
from manyview.engines.files.row_file import INSIDE
from manyview.io.limits import BadFile, TooLarge, unpacking_limit, unpacking_up_to
from manyview.io.packed import check_archive, read_npy
from manyview.io.writing import write_whole

from .tree import MODELS, Reader, Writer

#: What files hold, and who writes them.
MAKERS = {
    "model": "models are written by model.save()",
    "checkpoint": "checkpoints are written by a fit with checkpoint=PATH",
}
#: Raised when the tree changes its meaning; other versions are refused.
FORMAT = 2
HEADER = "header.json"
#: How hard members are packed: more takes twice the time for a tenth less.
LEVEL = 1
#: Parameters a fitted model does without: they are left out, with a warning, if they are objects.
DROPPED = ("callback", "random_state")


def save(model: Any, path: str | Path) -> Path:
    """Write a fitted model; `read_model` gives it back exactly."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model)
    path = Path(path)
    name = type(model).__name__
    if name not in MODELS or STORABLE.get(name) is not type(model):
        raise ValueError(f"a {name} cannot be saved, only {' and '.join(MODELS)}")
    writer = Writer()
    state = {name: writer.attribute(name, value) for name, value in _kept(model).items()}
    _write(path, "model", {"class": name, "state": state}, writer.members, zipfile.ZIP_DEFLATED)
    return path


def read_model(path: Path, fitted_on: Any = (), max_unpacked: float | None = None) -> Any:
    """A model of a class that is imported by now; `manyview.load` has the parameters."""
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the model file in it, such as model.npz")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    with unpacking_up_to(max_unpacked):
        return read_state(path, "model", fitted_on)


def write_state(path: Path, kind: str, state: dict[str, Any]) -> None:
    """Plain values, arrays and objects of the listed classes, whole or not at all."""
    writer = Writer()
    _write(path, kind, {"state": writer.value(state)}, writer.members, zipfile.ZIP_STORED)


def read_state(path: Path, kind: str, fitted_on: Any = ()) -> Any:
    """What was written; anything else is refused. Of files it names, only ``fitted_on`` open."""
    header, members = _unpack(path, kind)
    try:
        # The bytes of each array are let go once it is there.
        reader = Reader({name: read_npy(BytesIO(members.pop(name))) for name in list(members)})
        if kind == "model":
            found = reader.model(header["class"], header["state"])
        else:
            found = reader.value(header["state"])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        why = str(error) or type(error).__name__
        remedy = "save it again" if kind == "model" else "remove it"
        raise ValueError(f"{path.name} is not a usable {kind}: {why}; {remedy}") from error
    _allow_files(reader.named, fitted_on)
    return found


def _allow_files(named: list[DiskMatrix], given: Any) -> None:
    """Let those of the named files be opened that the user gives as well."""
    if isinstance(given, str | os.PathLike | DiskMatrix):
        given = [given]
    by_view = given if isinstance(given, Mapping) else {}
    moved = {str(view): _place(item) for view, item in by_view.items()}
    places = {_place(item) for item in given} if not by_view else set()
    known = {X.view for X in named}
    for view in moved:
        if view not in known:
            raise ValueError(
                f"fitted_on names the view {view!r}, but the views that the model reads from files are: "
                f"{', '.join(map(str, known)) or 'none'}"
            )
    for X in named:
        if X.view in moved or X.path in places:
            X.path, X.only_named = moved.get(X.view, X.path), False
            X.max_unpacked = unpacking_limit()


def _place(item: Any) -> str:
    if isinstance(item, DiskMatrix):
        return item.path
    return os.path.abspath(os.fspath(item).partition(INSIDE)[0])


# --- the file ----------------------------------------------------------------------------------


def _write(
    path: Path, kind: str, fields: dict[str, Any], members: dict[str, bytes], packing: int
) -> None:
    header = {"kind": f"manyview {kind}", "format": FORMAT, "library": __version__, **fields}
    header["sha256"] = _checksum(header, members)
    write_whole(path, lambda file: _archive(file, header, members, packing))


def _archive(
    file: BinaryIO, header: dict[str, Any], members: dict[str, bytes], packing: int
) -> None:
    with zipfile.ZipFile(file, "w", packing) as archive:
        # A fixed date: the same model gives the same bytes.
        for name, content in {HEADER: _text(header), **members}.items():
            member = zipfile.ZipInfo(name if name == HEADER else f"{name}.npy")
            member.compress_type = packing
            archive.writestr(member, content, compresslevel=LEVEL)


def _unpack(path: Path, kind: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    damaged = f"{path.name} is damaged or was cut short"
    remedy = "copy it again or save the model again" if kind == "model" else "remove it"
    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, path.stat().st_size)
            if HEADER not in archive.namelist():
                raise BadFile(f"{path.name} is not a manyview {kind}; {MAKERS[kind]}")
            header = _checked_header(path.name, archive.read(HEADER), kind)
            members = {
                name.removesuffix(".npy"): archive.read(name)
                for name in archive.namelist()
                if name != HEADER
            }
            checksum = _checksum(header, members)
    except BadFile as error:
        raise ValueError(str(error)) from None
    except TooLarge as error:
        raise ValueError(f"{path.name}: {error}") from None
    except zipfile.BadZipFile as error:
        with path.open("rb") as file:
            ours = file.read(2) == b"PK"
        if ours:
            raise ValueError(f"{damaged} ({error}); {remedy}") from error
        raise ValueError(
            f"{path.name} is not a manyview {kind}, and not an .npz file ({error}); name another file"
        ) from error
    except (ValueError, EOFError, OSError, zlib.error, NotImplementedError, RuntimeError) as error:
        # RuntimeError: the archive needs a password, or its header nests too deep.
        raise ValueError(f"{damaged} ({error}); {remedy}") from error
    if header.get("sha256") != checksum:
        raise ValueError(
            f"{path.name} was changed after it was saved (its checksum differs); {remedy}"
        )
    return header, members


def _checked_header(file: str, text: bytes, kind: str) -> dict[str, Any]:
    header = json.loads(text, parse_constant=_no_constant)
    if not isinstance(header, dict) or header.get("kind") != f"manyview {kind}":
        raise BadFile(f"{file} is not a manyview {kind}; {MAKERS[kind]}")
    if header.get("format") != FORMAT:
        raise BadFile(
            f"{file} was written by manyview {header.get('library')} in format "
            f"{header.get('format')}, and this manyview reads format {FORMAT}; use that version, "
            f"or {'fit and save the model again' if kind == 'model' else 'remove it'}"
        )
    return header


def _no_constant(name: str) -> None:
    raise ValueError(f"its header holds {name}")


def _text(header: dict[str, Any]) -> bytes:
    return json.dumps(header, separators=(",", ":"), allow_nan=False).encode()


def _checksum(header: dict[str, Any], members: dict[str, bytes]) -> str:
    digest = hashlib.sha256(_text({k: v for k, v in header.items() if k != "sha256"}))
    for name in sorted(members):
        digest.update(f"\n{name} {len(members[name])}\n".encode())
        digest.update(members[name])
    return digest.hexdigest()


def _plain_ids(ids: Any) -> Any:
    """Ids as a file without pickle can keep them: those of classes of their own as text."""
    if ids is None or not ids.dtype.hasobject:
        return ids
    odd = next((sample for sample in ids if not _is_plain(sample)), None)
    if odd is None:
        return ids
    warn_user(
        f"sample ids of the type {type(odd).__name__} are saved as text ({odd!r} as {str(odd)!r}), because "
        "a file without pickle cannot store them"
    )
    return np.array([str(sample) for sample in ids], dtype=object)


def _is_plain(value: Any) -> bool:
    if type(value) is tuple:
        return all(_is_plain(part) for part in value)
    return type(value) in (str, int, float, bool) or isinstance(value, np.generic)


# --- model → tree ------------------------------------------------------------------------------


def _kept(model: Any) -> dict[str, Any]:
    state = dict(vars(model))
    state["sample_names_in_"] = _plain_ids(state.get("sample_names_in_"))
    state["checkpoint"] = None  # the fit is done
    for name in DROPPED:
        value = state.get(name)
        if value is not None and not isinstance(value, Integral | list | tuple | np.ndarray):
            warn_user(
                f"{name}={value!r} is not saved (it is an object in memory); the loaded model "
                f"has {name}=None. Labels and predictions do not depend on it"
            )
            state[name] = None
    return state
