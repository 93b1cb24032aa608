"""What is loaded when: the package by itself loads nothing heavy; every name is there when asked for."""

import pickle
import subprocess
import sys
from types import ModuleType

import pytest

import manyview as mv
from manyview.app.options import FitRequest
from manyview.engines.table import ENGINES


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_package_and_the_command_load_no_estimator():
    heavy = "{'sklearn', 'pandas', 'matplotlib', 'numba', 'manyview.methods'} & set(sys.modules)"
    assert run(f"import sys, manyview; print({heavy})") == "set()\n"
    assert run(f"import sys, manyview.app.cli.app; print({heavy})") == "set()\n"


@pytest.mark.parametrize("words", ["compare x=none.xlsx:A --clusters 2",
                                   "select-k none.h5::a"])  # fmt: skip
def test_a_file_that_is_not_there_is_told_at_once(words, tmp_path):
    code = (
        "import sys\nfrom manyview.app.cli.app import app\n"
        f"sys.argv = 'manyview {words} --out out'.split()\n"
        "try:\n app()\nexcept SystemExit as end:\n"
        " print(end.code, 'sklearn' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.stdout == "2 False\n"
    assert done.stderr.startswith(f"manyview {words.split()[0]}: none")
    assert "does not exist; name a file" in done.stderr
    assert not any(tmp_path.iterdir())


def test_the_command_names_what_the_library_has():
    assert FitRequest.__dataclass_fields__["engine"].metadata["choices"] == tuple(ENGINES)


def test_every_public_name_is_found():
    assert {name for name in dir(mv) if not name.startswith("__")} == set(mv.__all__)
    assert all(getattr(mv, name) is not None for name in mv.__all__)


def test_public_functions_are_found_whatever_was_imported_before():
    code = """
import pkgutil, sys, manyview as mv
functions = {name for name in mv.__all__ if not isinstance(getattr(mv, name), type(sys))}
for module in pkgutil.iter_modules(mv.__path__):
    if module.name != "__main__":
        __import__("manyview." + module.name)
print([name for name in functions if isinstance(getattr(mv, name), type(sys))])
"""
    assert run(code) == "[]\n"


def test_every_public_name_can_be_sent_to_another_process():
    for name in mv.__all__:
        value = getattr(mv, name)
        if not isinstance(value, ModuleType):  # pickle itself sends no module of anybody
            assert pickle.loads(pickle.dumps(value)) is value
    cloudpickle = pytest.importorskip("cloudpickle")
    assert cloudpickle.loads(cloudpickle.dumps(mv)) is mv


def test_what_a_notebook_defines_may_refer_to_the_package():
    pytest.importorskip("cloudpickle")
    pytest.importorskip("pandas")
    code = """
import joblib, numpy as np, manyview as mv

def score(y):
    return mv.metrics.scores(y, y)["acc"]

class Mine:
    def fit_predict(self, views):
        return mv.datasets.make_synthetic(len(next(iter(views.values())))).labels

    def score(self, y):
        return score(y)

print(joblib.Parallel(2)(joblib.delayed(each)([0, 0, 1]) for each in (score, Mine().score)))
X = np.random.default_rng(0).random((20, 3))
found = mv.compare([X, X], n_clusters=2, methods={"mine": Mine()}, n_runs=1, progress=False)
print(list(found.table["status"]))
"""
    assert run(code).split("\n")[:2] == ["[1.0, 1.0]", "['ok']"]


def test_a_model_is_read_where_no_estimator_was_asked_for(tmp_path):
    model = mv.RobustWMNMF(2, random_state=0).fit([[[1.0, 2], [2, 1], [5, 9], [9, 5]]])
    model.save(tmp_path / "model.npz")
    code = f"import manyview as mv; print(mv.load({str(tmp_path / 'model.npz')!r}).n_clusters)"
    assert run(code) == "2\n"
