"""The house rules that no linter knows: imports at the top, short files, fewer and fewer probes.

`lint-imports` (in `make lint`) holds the other one: imports go downwards.
"""

import ast
import re
from pathlib import Path

import manyview

SOURCE = Path(manyview.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

#: Modules that still import ours inside a function. A name leaves this list and none comes.
IMPORTS_INSIDE = {
    "engines/affinity.py",
    "engines/dask/cluster.py",
    "engines/dask/view.py",
    "engines/numpy/lists.py",
    "engines/torch/distances.py",
    "engines/torch/fused.py",
    "judge/selection/__init__.py",
    "maths/agreement.py",
    "methods/assign.py",
    "methods/robust.py",
    "methods/wmnmf.py",
}

MOST_LINES = 450
#: Files that are longer still, with their length: it may only fall.
LONGER = {"maths/agreement.py": 542, "methods/wmnmf.py": 795, "methods/robust.py": 894}

#: How often an object is asked what it has instead of saying so in a protocol: it may only fall.
MOST_HASATTR = 76


def trees():
    for path in FILES:
        yield path.relative_to(SOURCE).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def is_ours(node):
    if isinstance(node, ast.ImportFrom):
        return node.level > 0 or (node.module or "").split(".")[0] == "manyview"
    return isinstance(node, ast.Import) and any(
        alias.name.split(".")[0] == "manyview" for alias in node.names
    )


def imports_ours_inside(tree):
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(is_ours(node) for function in functions for node in ast.walk(function))


def test_our_modules_are_imported_at_the_top():
    assert {name for name, tree in trees() if imports_ours_inside(tree)} == IMPORTS_INSIDE


def test_files_stay_short():
    lengths = {
        path.relative_to(SOURCE).as_posix(): len(path.read_text(encoding="utf-8").splitlines())
        for path in FILES
    }
    longer = {name for name, n in lengths.items() if n > LONGER.get(name, MOST_LINES)}
    assert not longer
    assert {name for name, n in lengths.items() if n > MOST_LINES} == set(LONGER)


def test_objects_are_probed_less_and_less():
    probes = sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
        for _, tree in trees()
        for node in ast.walk(tree)
    )
    assert probes <= MOST_HASATTR


def test_the_rules_see_what_they_forbid():
    inside = "def f():\n    def g():\n        from .x import y\n    return g"
    assert imports_ours_inside(ast.parse(inside))
    assert imports_ours_inside(ast.parse("async def f():\n    import manyview.plot"))
    assert not imports_ours_inside(ast.parse("from .x import y\ndef f():\n    import numpy"))


def defined(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_the_paper_map_names_functions_and_tests_that_exist():
    tests = Path(__file__).parent
    text = (tests.parent / "docs" / "paper_map.md").read_text(encoding="utf-8")
    robust = text.split("## RobustWMNMF")[1].split("##")[0]
    lines = (text.split("## Departures")[0] + robust).splitlines()
    rows = [line.split("|") for line in lines]
    here = " ".join(row[2] for row in rows if len(row) == 5)
    ours = set().union(*map(defined, FILES)) | {path.stem for path in FILES} | {"baselines"}
    named = re.findall(r"`([\w.]+)`", here)
    assert len(named) > 40
    assert not [
        name for name in named if not name.endswith(".py") and name.split(".")[-1] not in ours
    ]
    for file, test in re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", text):
        assert (tests / file).is_file(), file
        assert not test or test in defined(tests / file), test
