"""docs/paper_map.md names functions and tests that exist."""

import ast
import re
from pathlib import Path

import manyview

SOURCE = Path(manyview.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
TESTS = Path(__file__).parent


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
