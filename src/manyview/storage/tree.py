"""A model as a tree of plain values, arrays by name, and objects of the classes marked `storable`."""

from __future__ import annotations

import math
import os
from enum import Enum
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import STORABLE, Array
from manyview.engines.dask.source import DaskMatrix
from manyview.engines.files.disk import DiskMatrix
from manyview.io.packed import npy_bytes

MODELS = ("WMNMF", "RobustWMNMF")


class Writer:
    """Values to JSON, arrays set aside under short names; an array met twice is stored once."""

    def __init__(self) -> None:
        self.members: dict[str, bytes] = {}
        self._seen: dict[int, tuple[str, Array]] = {}

    def attribute(self, name: str, value: Any) -> Any:
        try:
            return self.value(value)
        except TypeError as error:
            raise ValueError(
                f"the model cannot be saved: {name} has {error}, which a file without pickle "
                "cannot store; use the named settings instead (regularizer='graph', plain names)"
            ) from None

    def value(self, value: Any) -> Any:
        if value is None or type(value) in (bool, str, int):
            return value
        if type(value) is float and math.isfinite(value):
            return value
        if isinstance(value, Enum):
            return {"~": "enum", "class": type(value).__name__, "name": value.name}
        if isinstance(value, float | np.generic):
            of = self.array(np.asarray(value))
            return {"~": "scalar", "of": of, "numpy": isinstance(value, np.generic)}
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:
                items = [self.value(item) for item in value.ravel()]
                return {"~": "objects", "shape": list(value.shape), "items": items}
            return {"~": "array", "of": self.array(value)}
        if sp.issparse(value):
            value = value if value.format in ("csr", "csc") else value.tocsr()
            parts = [self.array(part) for part in (value.data, value.indices, value.indptr)]
            kind = f"{value.format}_{'array' if isinstance(value, sp.sparray) else 'matrix'}"
            return {"~": "sparse", "class": kind, "shape": list(value.shape), "parts": parts}
        if isinstance(value, DaskMatrix):  # a cluster outlives no file: its rows are written
            return self.value(value.load())
        if type(value) is list:
            return [self.value(item) for item in value]
        if type(value) is tuple:
            return {"~": "tuple", "items": [self.value(item) for item in value]}
        if type(value) is range:
            return {"~": "range", "items": [value.start, value.stop, value.step]}
        if type(value) is dict:
            items = [[self.value(k), self.value(v)] for k, v in value.items()]
            return {"~": "dict", "items": items}
        if isinstance(value, np.dtype):
            return {"~": "dtype", "name": value.str}
        if isinstance(value, type) and issubclass(value, np.generic):
            return {"~": "type", "name": np.dtype(value).str}
        if STORABLE.get(type(value).__name__) is type(value):
            held: Any = value.__getstate__() or {}
            state = {name: self.value(item) for name, item in held.items()}
            return {"~": "object", "class": type(value).__name__, "state": state}
        raise TypeError(f"an object of type {type(value).__name__}")

    def array(self, array: Array) -> str:
        if id(array) not in self._seen:
            name = f"a{len(self._seen)}"
            self.members[name] = npy_bytes(array)
            self._seen[id(array)] = (name, array)  # held, so that no other array gets its id
        return self._seen[id(array)][0]


# --- tree → model ------------------------------------------------------------------------------


#: How often the parts of sparse matrices, which are copied, may be named, against all there is.
MOST_COPIES = 8


class Reader:
    """What `Writer` wrote, from arrays by their names.

    Files it names are not opened: they come in ``named``, for whoever knows which of them may be.
    """

    def __init__(self, arrays: dict[str, Array]):
        self.arrays, self.named = arrays, list[DiskMatrix]()
        self.left = MOST_COPIES * (sum(array.nbytes for array in arrays.values()) + 2**16)

    def model(self, name: str, state: dict[str, Any]) -> Any:
        if name not in MODELS:
            raise ValueError(f"its class {name!r} is not one of {', '.join(MODELS)}")
        cls: Any = STORABLE[name]
        values = {key: self.value(item) for key, item in state.items()}
        # A parameter younger than the file has its default, under which nothing else changed.
        if "n_clusters" not in values:
            raise ValueError("it lacks the parameter 'n_clusters'")
        known = [key for key in cls._get_param_names() if key in values]
        model = cls(**{key: values[key] for key in known})
        model.__dict__.update(values)
        model.checkpoint = None  # `save` writes none; another's would be written when fitted again
        return model

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        match node["~"]:
            case "array":
                return self.arrays[node["of"]]
            case "scalar":
                value = self.arrays[node["of"]][()]
                return value if node["numpy"] else float(value)
            case "objects":
                flat = np.empty(len(node["items"]), dtype=object)
                for i, item in enumerate(node["items"]):
                    flat[i] = self.value(item)
                return flat.reshape([int(n) for n in node["shape"]])
            case "tuple":
                return tuple(self.value(item) for item in node["items"])
            case "range":
                return range(*(int(n) for n in node["items"]))
            case "dict":
                return {self.value(key): self.value(item) for key, item in node["items"]}
            case "dtype":
                return np.dtype(str(node["name"]))
            case "type":
                return np.dtype(str(node["name"])).type
            case "enum":
                cls = STORABLE[node["class"]]
                if not issubclass(cls, Enum):
                    raise ValueError(f"{node['class']} has no named values")
                return cls[node["name"]]
            case "object":
                return self._object(node)
            case "sparse":
                return self._sparse(node)
        raise KeyError(node["~"])

    def _object(self, node: dict[str, Any]) -> Any:
        new: Any = object.__new__(STORABLE[node["class"]])
        new.__dict__.update({name: self.value(item) for name, item in node["state"].items()})
        if isinstance(new, DiskMatrix):
            new.path, new.only_named, new.max_unpacked = os.path.abspath(new.path), True, None
            self.named.append(new)
        return new

    def _sparse(self, node: dict[str, Any]) -> Any:
        make = {"csr_array": sp.csr_array, "csr_matrix": sp.csr_matrix,
                "csc_array": sp.csc_array, "csc_matrix": sp.csc_matrix}[node["class"]]  # fmt: skip
        parts = tuple(self.arrays[name] for name in node["parts"])
        self.left -= sum(part.nbytes for part in parts)
        if self.left < 0:
            raise ValueError("it makes many matrices of the same numbers")
        matrix = make(parts, shape=tuple(int(n) for n in node["shape"]))
        matrix.check_format(full_check=True)
        return matrix
