"""What is loaded when: the package by itself loads nothing heavy; every name is there when asked for."""

import subprocess
import sys

import pytest

import manyview as mv
from manyview.cli.app import USUAL_METHODS
from manyview.judge.selection import DEFAULT


def run(code):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout


def test_the_package_and_the_command_load_no_estimator():
    heavy = "{'sklearn', 'pandas', 'matplotlib', 'numba', 'manyview.methods'} & set(sys.modules)"
    assert run(f"import sys, manyview; print({heavy})") == "set()\n"
    assert run(f"import sys, manyview.cli.app; print({heavy})") == "set()\n"


@pytest.mark.parametrize("words", ["fit none.csv --clusters 2", "compare x=none.xlsx:A --clusters 2",
                                   "predict run none.csv", "select-k none.h5::a"])  # fmt: skip
def test_a_file_that_is_not_there_is_told_at_once(words, tmp_path):
    code = (
        "import sys\nfrom manyview.cli.app import app\n"
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


def test_the_command_names_the_usual_methods():
    assert ",".join(DEFAULT) == USUAL_METHODS


def test_every_public_name_is_found():
    assert set(mv.__all__) <= set(dir(mv))
    assert all(getattr(mv, name) is not None for name in mv.__all__)


def test_compare_is_the_function_whatever_was_imported_before():
    code = "import manyview.compare, manyview as mv; print(callable(mv.compare), mv.Comparison)"
    assert run(code).startswith("True <class")


def test_a_model_is_read_where_no_estimator_was_asked_for(tmp_path):
    model = mv.RobustWMNMF(2, random_state=0).fit([[[1.0, 2], [2, 1], [5, 9], [9, 5]]])
    model.save(tmp_path / "model.npz")
    code = f"import manyview as mv; print(mv.load({str(tmp_path / 'model.npz')!r}).n_clusters)"
    assert run(code) == "2\n"
