"""Fitted models on disk: an .npz of plain arrays and a JSON header; versioned, atomic, no pickle.

The header describes the model as a tree of plain values, arrays (by their name in the archive) and
objects of the few classes listed in `_classes`. Nothing else can be stored, and reading a file
runs no code from it. A checksum over header and arrays finds damage; it is no signature.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import warnings
import zipfile
import zlib
from enum import Enum
from io import BytesIO
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from ._types import Array
from .npy import check_sizes, npy_bytes, read_npy

KIND = "manyview model"
#: Raised when the tree changes its meaning; other versions are refused.
FORMAT = 1
HEADER = "header.json"
MODELS = ("WMNMF", "RobustWMNMF")
#: Parameters a fitted model does without: they are left out, with a warning, if they are objects.
DROPPED = ("callback", "random_state")


def save(model: Any, path: str | Path) -> Path:
    """Write a fitted model; `load` gives it back exactly."""
    from sklearn.utils.validation import check_is_fitted

    from . import __version__

    check_is_fitted(model)
    path = Path(path)
    name = type(model).__name__
    if name not in MODELS or _classes()[name] is not type(model):
        raise ValueError(f"a {name} cannot be saved, only {' and '.join(MODELS)}")
    writer = _Writer()
    state = {name: writer.attribute(name, value) for name, value in _kept(model).items()}
    header = {
        "kind": KIND,
        "format": FORMAT,
        "library": __version__,
        "class": name,
        "state": state,
    }
    header["sha256"] = _checksum(header, writer.members)
    write_whole(path, _archive(header, writer.members))
    return path


def load(path: str | Path) -> Any:
    """Read a model written by ``model.save``.

    Files of another format version, damaged, changed or made by something else are refused. No code
    is run from the file, whatever it holds.

    Examples
    --------
    >>> import manyview as mv, numpy as np, os, tempfile
    >>> views = [np.eye(6) + 1, np.ones((6, 2))]
    >>> file = os.path.join(tempfile.mkdtemp(), "m.npz")
    >>> labels = mv.RobustWMNMF(2, random_state=0).fit(views).save(file)
    >>> mv.load(file).labels_.shape
    (6,)
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name the model file in it, such as model.npz")
    if not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    header, members = _unpack(path)
    try:
        arrays = {name: read_npy(BytesIO(raw)) for name, raw in members.items()}
        return _Reader(arrays).model(header["class"], header["state"])
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as error:
        why = str(error) or type(error).__name__
        raise ValueError(f"{path.name} is no usable model: {why}; save it again") from error


def write_whole(path: Path, content: bytes) -> None:
    """Write beside and rename: a reader, or a crash, sees the old file or the new one."""
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)


# --- the file ----------------------------------------------------------------------------------


def _archive(header: dict[str, Any], members: dict[str, bytes]) -> bytes:
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        # A fixed date: the same model gives the same bytes.
        for name, content in {HEADER: _text(header), **members}.items():
            member = zipfile.ZipInfo(name if name == HEADER else f"{name}.npy")
            member.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(member, content)
    return buffer.getvalue()


def _unpack(path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    damaged = f"{path.name} is damaged or was cut short"
    try:
        with zipfile.ZipFile(path) as archive:
            check_sizes(archive, path.stat().st_size)
            if HEADER not in archive.namelist():
                raise _Refused(f"{path.name} is no manyview model; models are written by .save()")
            header = _checked_header(path.name, archive.read(HEADER))
            members = {
                name.removesuffix(".npy"): archive.read(name)
                for name in archive.namelist()
                if name != HEADER
            }
            checksum = _checksum(header, members)
    except _Refused as error:
        raise ValueError(str(error)) from None
    except zipfile.BadZipFile as error:
        with path.open("rb") as file:
            ours = file.read(2) == b"PK"
        what = damaged if ours else f"{path.name} is no manyview model, nor any .npz file"
        raise ValueError(f"{what} ({error}); copy it again or save the model again") from error
    except (ValueError, EOFError, OSError, zlib.error, NotImplementedError, RuntimeError) as error:
        # RuntimeError: the archive asks for a password, or its header nests too deep.
        raise ValueError(f"{damaged} ({error}); copy it again or save the model again") from error
    if header.get("sha256") != checksum:
        raise ValueError(
            f"{path.name} was changed after it was saved (its checksum differs); "
            "copy it again or save the model again"
        )
    return header, members


class _Refused(Exception):
    pass


def _checked_header(file: str, text: bytes) -> dict[str, Any]:
    header = json.loads(text, parse_constant=_no_constant)
    if not isinstance(header, dict) or header.get("kind") != KIND:
        raise _Refused(f"{file} is no manyview model; models are written by model.save()")
    if header.get("format") != FORMAT:
        raise _Refused(
            f"{file} was written by manyview {header.get('library')} in format "
            f"{header.get('format')}, and this manyview reads format {FORMAT}; use that version, "
            "or fit and save the model again"
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


# --- model → tree ------------------------------------------------------------------------------


def _kept(model: Any) -> dict[str, Any]:
    state = dict(vars(model))
    for name in DROPPED:
        value = state.get(name)
        if value is not None and not isinstance(value, Integral | list | tuple | np.ndarray):
            warnings.warn(
                f"{name}={value!r} is not saved (it is an object in memory); the loaded model "
                f"has {name}=None. Labels and predictions do not depend on it",
                UserWarning,
                stacklevel=4,
            )
            state[name] = None
    return state


class _Writer:
    """Values to JSON, arrays set aside under short names; an array met twice is stored once."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self._seen: dict[int, tuple[str, Array]] = {}

    def attribute(self, name: str, value: Any) -> Any:
        try:
            return self.value(value)
        except TypeError as error:
            raise ValueError(
                f"the model cannot be saved: {name} holds {error}, which a file without pickle "
                "cannot keep; use the named settings instead (regularizer='graph', plain names)"
            ) from None

    def value(self, value: Any) -> Any:
        if value is None or isinstance(value, bool) or type(value) in (str, int):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if isinstance(value, Enum):
            return {"~": "enum", "class": type(value).__name__, "name": value.name}
        if isinstance(value, float | np.generic):
            return {"~": "scalar", "of": self.array(np.asarray(value)), "numpy": _is_numpy(value)}
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                items = [self.value(item) for item in value.ravel()]
                return {"~": "objects", "shape": list(value.shape), "items": items}
            return {"~": "array", "of": self.array(value)}
        if sp.issparse(value):
            return self.sparse(value)
        return self.container(value)

    def container(self, value: Any) -> Any:
        if type(value) is list:
            return [self.value(item) for item in value]
        if type(value) is tuple:
            return {"~": "tuple", "items": [self.value(item) for item in value]}
        if type(value) is range:
            return {"~": "range", "items": [value.start, value.stop, value.step]}
        if type(value) is dict:
            return {
                "~": "dict",
                "items": [[self.value(k), self.value(v)] for k, v in value.items()],
            }
        if isinstance(value, np.dtype) or (
            isinstance(value, type) and issubclass(value, np.generic)
        ):
            kind = "dtype" if isinstance(value, np.dtype) else "type"
            return {"~": kind, "name": np.dtype(value).str}
        if _classes().get(type(value).__name__) is type(value):
            state = {name: self.value(item) for name, item in vars(value).items()}
            return {"~": "object", "class": type(value).__name__, "state": state}
        raise TypeError(f"an object of type {type(value).__name__}")

    def sparse(self, value: Any) -> Any:
        value = value if value.format in ("csr", "csc") else value.tocsr()
        parts = [self.array(part) for part in (value.data, value.indices, value.indptr)]
        kind = f"{value.format}_{'array' if isinstance(value, sp.sparray) else 'matrix'}"
        return {"~": "sparse", "class": kind, "shape": list(value.shape), "parts": parts}

    def array(self, array: Array) -> str:
        if id(array) not in self._seen:
            name = f"a{len(self._seen)}"
            self.members[name] = npy_bytes(array)
            self._seen[id(array)] = (name, array)  # held, so that no other array gets its id
        return self._seen[id(array)][0]


def _is_numpy(value: Any) -> bool:
    return isinstance(value, np.generic)


# --- tree → model ------------------------------------------------------------------------------


class _Reader:
    def __init__(self, arrays: dict[str, Array]):
        self.arrays = arrays

    def model(self, name: str, state: dict[str, Any]) -> Any:
        if name not in MODELS:
            raise ValueError(f"its class {name!r} is none of {', '.join(MODELS)}")
        cls: Any = _classes()[name]
        values = {key: self.value(item) for key, item in state.items()}
        unknown = [key for key in cls._get_param_names() if key not in values]
        if unknown:
            raise ValueError(f"it lacks the parameter {unknown[0]!r}")
        model = cls(**{key: values[key] for key in cls._get_param_names()})
        model.__dict__.update(values)
        return model

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        kinds = {
            "array": self._array,
            "scalar": self._scalar,
            "objects": self._objects,
            "tuple": self._tuple,
            "range": self._range,
            "dict": self._dict,
            "dtype": self._dtype,
            "type": self._type,
            "enum": self._enum,
            "object": self._object,
            "sparse": self._sparse,
        }
        return kinds[node["~"]](node)

    def _array(self, node: dict[str, Any]) -> Array:
        return self.arrays[node["of"]]

    def _scalar(self, node: dict[str, Any]) -> Any:
        value = self.arrays[node["of"]][()]
        return value if node["numpy"] else float(value)

    def _objects(self, node: dict[str, Any]) -> Array:
        flat = np.empty(len(node["items"]), dtype=object)
        for i, item in enumerate(node["items"]):
            flat[i] = self.value(item)
        return flat.reshape([int(n) for n in node["shape"]])

    def _tuple(self, node: dict[str, Any]) -> tuple:
        return tuple(self.value(item) for item in node["items"])

    def _range(self, node: dict[str, Any]) -> range:
        return range(*(int(n) for n in node["items"]))

    def _dict(self, node: dict[str, Any]) -> dict:
        return {self.value(key): self.value(item) for key, item in node["items"]}

    def _dtype(self, node: dict[str, Any]) -> np.dtype:
        return np.dtype(str(node["name"]))

    def _type(self, node: dict[str, Any]) -> type:
        return np.dtype(str(node["name"])).type

    def _enum(self, node: dict[str, Any]) -> Any:
        cls = _classes()[node["class"]]
        if not issubclass(cls, Enum):
            raise ValueError(f"{node['class']} has no named values")
        return cls[node["name"]]

    def _object(self, node: dict[str, Any]) -> Any:
        cls = _classes()[node["class"]]
        new: Any = object.__new__(cls)
        new.__dict__.update({name: self.value(item) for name, item in node["state"].items()})
        return new

    def _sparse(self, node: dict[str, Any]) -> Any:
        make = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix,
                "csc_array": sp.csc_array, "csc_matrix": sp.csc_matrix}[node["class"]]  # fmt: skip
        parts = tuple(self.arrays[name] for name in node["parts"])
        matrix = make(parts, shape=tuple(int(n) for n in node["shape"]))
        matrix.check_format(full_check=True)
        return matrix


def _classes() -> dict[str, type]:
    """What a file may hold besides plain values; imported here because the estimators import this."""
    from . import _types, agreement, geometry, regularizers, scaling, selection, solvers
    from .estimators import WMNMF
    from .robust import RobustWMNMF

    listed: list[type] = [
        WMNMF,
        RobustWMNMF,
        _types.Stop,
        _types.Factors,
        agreement.Agreement,
        geometry.Geometry,
        geometry.RobustScaling,
        scaling.Scaling,
        selection.Selection,
        regularizers.Graph,
        regularizers.GraphTerm,
        regularizers._FittedGraphTerm,
        regularizers.Sparse,
        regularizers.Orthogonal,
        regularizers.NoPenalty,
        solvers.Multiplicative,
        solvers.SimplexHALS,
    ]
    return {cls.__name__: cls for cls in listed}
