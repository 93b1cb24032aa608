"""The house rules that no linter knows: imports at the top, short files, fewer and fewer probes.

`lint-imports` (in `make lint`) holds the other one: imports go downwards.
"""

import ast
import re
from pathlib import Path

import manyview

SOURCE = Path(manyview.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = Path(__file__).parent

MOST_LINES = 350
#: How often an object is asked what it has instead of saying so in a protocol: it may only fall.
MOST_HASATTR = 22


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
    assert [name for name, tree in trees() if imports_ours_inside(tree)] == []


def test_files_stay_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    assert {path: n for path, n in lengths.items() if n > MOST_LINES} == {}


def test_objects_are_probed_less_and_less():
    probes = sum(
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hasattr"
        for _, tree in trees()
        for node in ast.walk(tree)
    )
    assert probes <= MOST_HASATTR


def test_formulas_and_protocols_say_what_they_take():
    typed = [*SOURCE.glob("maths/*.py"), SOURCE / "engines" / "protocols.py"]
    typed += [SOURCE / "solvers.py", SOURCE / "sources.py"]
    for path in typed:
        names = {
            node.id
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Name)
        }
        assert "Any" not in names, path


def test_the_rules_see_what_they_forbid():
    inside = "def f():\n    def g():\n        from .x import y\n    return g"
    assert imports_ours_inside(ast.parse(inside))
    assert imports_ours_inside(ast.parse("async def f():\n    import manyview.plot"))
    assert not imports_ours_inside(ast.parse("from .x import y\ndef f():\n    import numpy"))


def test_tests_stand_in_the_rooms_of_what_they_test():
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir()}
    assert {path.parent.name for path in TESTS.glob("*/test_*.py")} <= rooms


def defined(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def named_in_sources():
    """module.function, Class.method, and methods that the two estimators inherit."""
    for path in FILES:
        yield from (f"{path.stem}.{name}" for name in (*defined(path), "py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                yield from (
                    f"{node.name}.{part.name}" for part in node.body if hasattr(part, "name")
                )
    for estimator in (manyview.WMNMF, manyview.RobustWMNMF):
        yield from (f"{estimator.__name__}.{name}" for name in dir(estimator))
    yield "manyview.baselines"


def test_the_paper_map_names_functions_and_tests_that_exist():
    tests = {path.name: path for path in TESTS.rglob("test_*.py")}
    text = (TESTS.parent / "docs" / "paper_map.md").read_text(encoding="utf-8")
    robust = text.split("## RobustWMNMF")[1].split("##")[0]
    lines = (text.split("## Departures")[0] + robust).splitlines()
    rows = [line.split("|") for line in lines]
    here = " ".join(row[2] for row in rows if len(row) == 5)
    named = re.findall(r"`(\w+\.\w+)`", here)
    assert len(named) > 40
    assert not set(named) - set(named_in_sources())
    for file, test in re.findall(r"`(test_\w+\.py)(?:::(\w+))?`", text):
        assert file in tests, file
        assert not test or test in defined(tests[file]), test
