"""The check of docstrings in `make lint` sees what it forbids."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("numpydoc")
TOOL = Path(__file__).parents[1] / "tools" / "docstring_check.py"


@pytest.fixture(scope="module")
def check():
    spec = importlib.util.spec_from_file_location("docstring_check", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def told(rows):
    """Count rows.

    Parameters
    ----------
    rows : list

    Returns
    -------
    int
    """
    return len(rows)


def untold(rows):
    """Count rows."""
    return len(rows)


@pytest.mark.parametrize(("function", "codes"), [(told, set()), (untold, {"PR01", "RT01"})])
def test_what_is_not_described_is_complained_about(check, function, codes):
    name = f"{__name__}.{function.__name__}"
    assert {code for code, _ in check.complaints(name, function)} == codes


def test_names_and_methods_of_users_are_looked_at(check):
    names = check.public_names()
    assert len(names) > 100
    assert {"manyview.compare.compare", "manyview.plot.model.embedding"} <= set(names)
