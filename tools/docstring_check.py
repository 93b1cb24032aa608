"""Does every public function and method say what it takes and gives? (numpydoc's validation)

    python tools/docstring_check.py

`make lint` runs it. Complaints are printed, one a line.
"""

import dataclasses
import inspect
import re
import sys
from enum import Enum
from types import ModuleType
from typing import Protocol

from numpydoc.validate import validate

import manyview as mv

MODULES = (
    mv,
    mv.baselines,
    mv.datasets,
    mv.metrics,
    mv.outcomes,
    mv.plot,
    mv.regularizers,
    mv.solvers,
    mv.sources,
    mv.testing,
    mv.tl,
)
#: No docstring; parameters not in the docstring; parameters only there; no Returns; no Yields.
CODES = {"GL08", "PR01", "PR02", "RT01", "YD01"}


def is_ours(thing):
    return (getattr(thing, "__module__", None) or "").split(".")[0] == "manyview"


def exported(module):
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    for thing in (getattr(module, name) for name in names):
        own = "__all__" in vars(module) or getattr(thing, "__module__", None) == module.__name__
        if own and is_ours(thing) and callable(thing) and not isinstance(thing, ModuleType):
            yield thing


def methods(cls):
    """Public methods that one of our classes defines; scikit-learn describes its own.

    A method that stands for another one of ours may leave arguments and result to that.
    """
    for name in dir(cls):
        owners = [c for c in cls.__mro__ if name in vars(c) and is_ours(c)] or [object]
        owner = next(
            (c for c in owners if "----" in (getattr(c, name, None).__doc__ or "")), owners[0]
        )
        if not name.startswith("_") and is_ours(owner) and callable(getattr(cls, name)):
            yield f"{owner.__module__}.{owner.__qualname__}.{name}"


def public_names():
    found = {}
    for thing in (thing for module in MODULES for thing in exported(module)):
        found[f"{thing.__module__}.{thing.__qualname__}"] = thing
        if isinstance(thing, type):
            found |= dict.fromkeys(methods(thing))
    return found


def complaints(name, thing):
    errors = [(code, text) for code, text in validate(name)["errors"] if code in CODES]
    if isinstance(thing, type) and (
        issubclass(thing, Enum | Warning) or Protocol in thing.__bases__
    ):
        return [error for error in errors if error[0] == "GL08"]  # nobody calls them
    if isinstance(thing, type) and dataclasses.is_dataclass(thing):
        # Results are made by us and read by others: their fields may be told as attributes.
        told = re.split(r"(?:Attributes|Parameters)\n-", inspect.getdoc(thing), maxsplit=1)[-1]
        fields = [field.name for field in dataclasses.fields(thing)]
        errors = [error for error in errors if error[0] != "PR01"]
        errors += [("PR01", field) for field in fields if field not in told]
    return errors


def main():
    found = public_names()
    # A package whose names are not found would be blameless.
    if len(found) < 100 or "manyview.compare.compare" not in found:
        return f"only {len(found)} public names were found; look at MODULES"
    bad = [(name, *error) for name, thing in found.items() for error in complaints(name, thing)]
    for name, code, text in bad:
        print(f"{name}: {code} {text}")
    print(f"{len(found)} public names, {len(bad)} complaints")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
