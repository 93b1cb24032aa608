"""The house rules that no linter knows: imports at the top, short files, fewer and fewer probes.

`lint-imports` (in `make lint`) holds the other one: imports go downwards.
"""

import ast
import re
import tomllib
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


def module_of(name):
    return f"manyview.{name.removesuffix('.py').removesuffix('/__init__').replace('/', '.')}"


MODULES = {module_of(path.relative_to(SOURCE).as_posix()) for path in FILES}


def named_modules(tree):
    """Modules that a string names: for `import_module`, `later`, `python -m`, or `engine_part`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in MODULES:
            yield node.value
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "engine_part":
            yield ".".join(["manyview.engines", *(part.value for part in node.args)])


def layers():
    """For the package and for `engines`: who stands where, the highest first."""
    pyproject = tomllib.loads((TESTS.parent / "pyproject.toml").read_text(encoding="utf-8"))
    for contract in pyproject["tool"]["importlinter"]["contracts"]:
        if contract["type"] == "layers":
            stands = {
                room.strip(): -height
                for height, layer in enumerate(contract["layers"])
                for room in layer.split("|")
            }
            yield contract["containers"][0], stands


def goes_down(importer, imported):
    for container, stands in layers():
        inside = [m.removeprefix(f"{container}.") for m in (importer, imported)]
        rooms = [part.split(".")[0] for part in inside]
        if inside == [importer, imported] or any(room not in stands for room in rooms):
            continue
        above, below = (stands[room] for room in rooms)
        if rooms[0] != rooms[1] and above <= below:
            return False
    return True


def test_modules_named_by_strings_obey_the_layers_too():
    pairs = {(module_of(name), named) for name, tree in trees() for named in named_modules(tree)}
    assert len(pairs) > 15
    assert {pair for pair in pairs if not goes_down(*pair)} == set()


def test_no_engine_is_asked_for_by_its_name():
    """What an engine can do stands in its spec: a new one changes no other file."""
    compared = {
        (name, node.lineno)
        for name, tree in trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Compare)
        and any(
            getattr(side, "attr", getattr(side, "id", "")) == "engine" for side in ast.walk(node)
        )
        and any(
            isinstance(side, ast.Constant) and isinstance(side.value, str)
            for side in ast.walk(node)
        )
    }
    assert compared == set()


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
    hidden = "import_module('manyview.methods.robust'); engine_part('torch', 'graph')"
    assert set(named_modules(ast.parse(hidden))) == {
        "manyview.methods.robust",
        "manyview.engines.torch.graph",
    }
    assert not goes_down("manyview.storage.store", "manyview.methods.robust")
    assert not goes_down("manyview.engines.dask.rows", "manyview.engines.torch.graph")
    assert goes_down("manyview.engines.affinity", "manyview.engines.torch.graph")
    assert goes_down("manyview.cli.works", "manyview.web.command")
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
