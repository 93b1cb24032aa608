"""Which methods a comparison runs, what each is called, and the settings that identify it."""

from __future__ import annotations

import functools
import inspect
import pickle
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from manyview.app.processes import sent
from manyview.baselines import (
    DESCRIPTIONS,
    ORACLES,
    BestSingleView,
    honest_methods,
    omics_methods,
    paper_methods,
)
from manyview.baselines._base import set_seeds
from manyview.io import checksum
from manyview.robust import RobustWMNMF

#: Where a method comes from, in the words readers see.
GROUPS = {
    "robust": "the method manyview recommends",
    "proposed": "the paper's method and its ablations",
    "paper": "methods the paper compares to",
    "simple": "simple methods the paper left out",
    "omics": "methods common in omics",
    "yours": "given by you",
}
_PROPOSED = ("WM-NMF", "NMF-W1", "NMF-W2")
#: Ours, in every set of methods, by the names of their classes.
_ALWAYS = {"RobustWMNMF": "RobustWMNMF", "WMNMF": "WM-NMF"}
#: Methods on unscaled features: their scores depend on units more than on the method.
_UNSCALED = ("ConcatK", "ConcatSpectral")
#: Packages whose version is part of what identifies a run; of all other code the file is.
_VERSIONED = ("manyview", "numpy", "scipy", "sklearn", "builtins")
_ROBUST = (
    "WM-NMF made robust: views and samples are weighted by how far the views agree, then "
    "clustered together. Not in the paper."
)


@dataclass(frozen=True)
class Method:
    """A named way to make an estimator from a seed."""

    name: str
    make: Callable[[int], Any]
    group: str
    description: str
    oracle: bool = False
    #: A word of warning to show next to the name.
    caution: str = ""


def resolve(methods: Any, n_clusters: int, missing: bool = False) -> list[Method]:
    """``methods`` of `manyview.compare` as a list, in the order they will be shown.

    Where views are ``missing``, those called by name that can accept them are made so.
    """
    known = _catalogue(n_clusters, missing)
    if isinstance(methods, str | Mapping):
        methods = [methods]
    if not isinstance(methods, Iterable):
        raise ValueError(
            f"methods must be 'all', 'paper', 'honest', 'omics', a dict of name → estimator, or a list of "
            f"names and dicts; got a {type(methods).__name__}"
        )
    chosen: list[Method] = []
    for item in methods:
        if isinstance(item, Mapping):
            chosen += [_given(str(name), value, known, n_clusters) for name, value in item.items()]
        else:
            chosen += _named(item, known)
    if not chosen:
        raise ValueError("methods is empty; name at least one method")
    return list({method.name: method for method in chosen}.values())


def settings_of(value: Any) -> Any:
    """What decides a value, as plain JSON: classes by name, parameters by value, arrays by hash.

    Never ``repr``: it holds memory addresses for some objects and cuts long arrays for others.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        # A list of pairs: JSON would turn the keys 1 and "1" into one.
        return ["dict", [[settings_of(k), settings_of(v)] for k, v in value.items()]]
    if isinstance(value, list | tuple):
        return [settings_of(item) for item in value]
    if isinstance(value, functools.partial):
        return ["partial", *map(settings_of, (value.func, value.args, value.keywords))]
    if isinstance(value, np.ndarray):
        return ["array", checksum.of_arrays([value])]
    if sp.issparse(value):
        return ["sparse", checksum.of_arrays([value])]
    if inspect.ismethod(value):
        return ["method", settings_of(value.__self__), value.__name__]
    if isinstance(value, type) or hasattr(value, "__qualname__"):
        return _named_code(value)
    kind = _named_code(type(value))
    if hasattr(value, "get_params"):
        return [kind, settings_of(value.get_params(deep=False))]
    if getattr(value, "__dict__", None):
        return [kind, settings_of(vars(value))]
    try:
        return [kind, checksum.of_bytes(pickle.dumps(value))]
    except Exception:
        return [kind]  # cannot be sent to another process either: its run will say so


def _named_code(value: Any) -> str:
    """Name of a class or function, and for code of no stated version a hash of its file."""
    name = f"{value.__module__}.{value.__qualname__}"
    if str(value.__module__).split(".")[0] in _VERSIONED:
        return name
    file = getattr(sys.modules.get(value.__module__), "__file__", None)
    try:
        if (
            file is None and value.__module__ == "__main__"
        ):  # a notebook: all that goes along with it
            return f"{name} {checksum.of_bytes(sent(value))}"
        return f"{name} {checksum.of_file(Path(file))}" if file else name
    except (OSError, ValueError):
        return name


def _allowing(make: Callable[[int], Any], seed: int) -> Any:
    return make(seed).set_params(missing="allow")


def _catalogue(n_clusters: int, missing: bool) -> dict[str, Method]:
    """Every method that has a name; its group is the first that has it."""
    robust = functools.partial(_seeded_copy, RobustWMNMF(n_clusters))
    known = {"RobustWMNMF": Method("RobustWMNMF", robust, "robust", _ROBUST)}
    groups = {"paper": paper_methods, "simple": honest_methods, "omics": omics_methods}
    for group, methods in groups.items():
        for name, make in methods(n_clusters).items():
            proposed = name in _PROPOSED
            if proposed and missing:
                make = functools.partial(_allowing, make)
            where, caution = "proposed" if proposed else group, "unscaled" * (name in _UNSCALED)
            method = Method(name, make, where, DESCRIPTIONS[name], name in ORACLES, caution)
            known.setdefault(name, method)
    return known


def _named(item: Any, known: dict[str, Method]) -> list[Method]:
    sets = {"paper": ("paper", "proposed"), "honest": ("simple",), "omics": ("omics",)}
    if not isinstance(item, str):
        raise ValueError(
            f"methods lists names and dicts, got a {type(item).__name__}; pass estimators as a dict of "
            "name → estimator"
        )
    item = _ALWAYS.get(item, item)
    if item == "all":
        return list(known.values())
    if item in sets:
        return [m for m in known.values() if m.name in _ALWAYS.values() or m.group in sets[item]]
    if item not in known:
        raise ValueError(
            f"there is no method {item!r}; known are {', '.join(known)}, and 'all', 'paper', "
            "'honest', 'omics'"
        )
    return [known[item]]


def _given(name: str, value: Any, known: dict[str, Method], n_clusters: int) -> Method:
    """A user's estimator, its class, or a function that makes one."""
    make: Callable[[int], Any]
    if isinstance(value, type):
        if not hasattr(value, "fit_predict"):
            raise ValueError(
                f"method {name!r}: the class {value.__name__} has no fit_predict(views); add it"
            )
        takes = _parameters(value)
        if "n_clusters" not in takes:
            raise ValueError(
                f"method {name!r}: the class {value.__name__} has no parameter n_clusters "
                f"(it has {', '.join(takes) or 'none'}); pass an object of it, "
                f"{value.__name__}(...), or a function of the number of clusters and a seed"
            )
        make = functools.partial(_seeded_copy, value(n_clusters=n_clusters))
    elif hasattr(value, "fit_predict"):
        make = functools.partial(_seeded_copy, value)
    elif callable(value) and len(_parameters(value, required=True)) == 2:
        make = functools.partial(value, n_clusters)
    elif callable(value):
        make = value
    else:
        raise ValueError(
            f"method {name!r} must be an estimator with fit_predict(views), its class, or a function "
            f"of a seed that makes one; got a {type(value).__name__}"
        )
    kind = type(value if make is not value else _attempt(make))
    ours = known.get(name)
    if ours is not None and type(ours.make(0)) is kind:
        # One of ours with other settings keeps its place, its explanation and its oracle mark.
        return Method(name, make, ours.group, ours.description, ours.oracle, ours.caution)
    first_line = (kind.__doc__ or "").strip().split("\n")[0] if kind is not type(None) else ""
    return Method(name, make, "yours", first_line, oracle=kind is BestSingleView)


def _parameters(value: Callable[..., Any], required: bool = False) -> list[str]:
    """Names of the parameters of a class or function; ``required``: those without a default."""
    try:
        found = inspect.signature(value).parameters.values()
    except ValueError:  # some functions written in C have no signature
        return []
    return [p.name for p in found if not required or (p.default is p.empty and p.kind <= 1)]


def _attempt(make: Callable[[int], Any]) -> Any:
    try:
        return make(0)
    except Exception:  # its rows report it when it is made for a run
        return None


def _seeded_copy(estimator: Any, seed: int) -> Any:
    """A copy with ``seed``; its parts, if they take seeds, get others that follow from it."""
    copy = clone(estimator, safe=False)
    if hasattr(copy, "get_params"):
        set_seeds(copy, np.random.default_rng(seed))
        if "random_state" in copy.get_params(deep=False):
            copy.set_params(random_state=seed)
        if "checkpoint" in copy.get_params(
            deep=False
        ):  # runs at the same time would share the file
            copy.set_params(checkpoint=None)
    return copy
