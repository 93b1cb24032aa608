"""Where users run it: nothing but the core installed, nowhere to keep compiled code, oldest versions."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import manyview
from manyview.engines.numpy import compiled

SOURCE = str(Path(manyview.__file__).parents[1])
posix = pytest.mark.skipif(os.name != "posix", reason="others have no such folder")


def run(code, **environment):
    """Output and errors of a program, run by this Python with manyview to import."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": SOURCE, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


# --- nothing but the core ----------------------------------------------------------------------

BARE = """
import sys
from importlib.machinery import PathFinder

CORE = {"manyview", "numpy", "scipy", "sklearn", "threadpoolctl"}
CORE |= {"joblib", "narwhals", "cloudpickle"}  # scikit-learn needs them

class CoreAlone:
    def find_spec(self, name, path=None, target=None):
        if path is None and name not in CORE | sys.stdlib_module_names:
            found = PathFinder.find_spec(name)
            if found is not None and "site-packages" in str(found.origin):
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, CoreAlone())
import numpy as np, manyview as mv
from sklearn.metrics import adjusted_rand_score

data = mv.datasets.make_synthetic(90, n_clusters=3, noisy_views=(), random_state=0)
for method in (mv.RobustWMNMF, mv.WMNMF):
    model = method(3, random_state=0).fit(data.views)
    model.save("model.npz")
    again = mv.load("model.npz").predict(data.views)
    print(adjusted_rand_score(data.labels, model.labels_), len(again))
outside = {m.split(".")[0] for m in sys.modules} & {"pandas", "numba", "matplotlib", "h5py", "rich"}
assert not outside, outside
"""


def test_the_core_alone_fits_saves_and_predicts(tmp_path):
    code = f"import os\nos.chdir({str(tmp_path)!r})\n" + BARE
    scores = [line.split() for line in run(code)[0].splitlines()]
    assert [int(n) for _, n in scores] == [90, 90]
    assert float(scores[0][0]) > 0.9


def test_floors_are_versions_that_can_be_asked_for():
    """`make test-minimal` installs every floor exactly; a floor of another form would not be tested."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert all(re.fullmatch(r"[a-z-]+>=[\d.]+", name) for name in project["dependencies"])


# --- nowhere to keep compiled code -------------------------------------------------------------


HOSTILE = """
import yaml, numpy as np, manyview as mv
s = mv.datasets.make_synthetic(30, n_clusters=2, random_state=0)
mv.WMNMF(2, random_state=0).fit(s.views)
import numba
numba.njit(lambda: 0)()  # compiles, and reads settings again
config = numba.config
print(config.CACHE_DIR == "mine", config.DISABLE_JIT, int(config.OPT), yaml.safe_load("1"))
"""


@pytest.mark.parametrize(
    "settings", ["cache_dir: evil\ndisable_jit: 1\nopt: 0", "- no\n- mapping", "{"]
)
def test_the_current_folder_does_not_choose_where_numba_loads_code_from(
    tmp_path, monkeypatch, settings
):
    pytest.importorskip("numba", reason="needs the extra 'fast'")
    pytest.importorskip("yaml", reason="numba reads its file with it")
    (tmp_path / ".numba_config.yaml").write_text(settings)
    monkeypatch.chdir(tmp_path)
    shown, told = run(HOSTILE, NUMBA_CACHE_DIR="mine", NUMBA_OPT="2")
    assert shown.split() == ["True", "0", "2", "1"] and not (tmp_path / "evil").exists()
    assert told.count(".numba_config.yaml in the current folder is not used") == 1


AT_ONCE = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from manyview.engines.numpy.compiled import compiled
start = Barrier(8)
def load(_):
    start.wait()
    return compiled() is not None
with ThreadPoolExecutor(8) as pool:
    print(all(pool.map(load, range(8))))
"""


def test_threads_that_need_compiled_loops_at_once_all_get_them():
    pytest.importorskip("numba", reason="needs the extra 'fast'")
    assert run(AT_ONCE)[0].strip() == "True"


def test_without_a_home_numba_is_not_left_to_the_current_folder(monkeypatch, tmp_path):
    for name in (compiled.SETTING, "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert compiled.home_is_known()
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert not compiled.home_is_known()
    monkeypatch.setenv(compiled.SETTING, str(tmp_path / "a" / "file"))
    assert compiled.home_is_known()
    (tmp_path / "file").touch()
    monkeypatch.setenv(compiled.SETTING, str(tmp_path / "file" / "below"))
    assert not compiled.home_is_known()


PROBE = """
import numba
from manyview.engines.numpy.compiled import keeps_code

@numba.njit(cache=keeps_code(lambda: None))
def twice(x):
    return 2 * x
"""
USE = """
import os, sys, warnings
sys.path.insert(0, {folder!r})
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    import probe
print(probe.twice(4), sum(probe.twice.stats.cache_hits.values()))
print([str(w.message) for w in told])
print(os.environ.get("NUMBA_CACHE_DIR"))
"""


@pytest.fixture
def sealed(tmp_path):
    """A module beside which nothing can be kept, by root neither, and an environment without a home."""
    pytest.importorskip("numba")
    package, temporary = tmp_path / "package", tmp_path / "temporary"
    package.mkdir()
    temporary.mkdir()
    (package / "probe.py").write_text(PROBE)
    (package / "__pycache__").touch()  # a file: no folder of this name can be made
    nowhere = str(package / "__pycache__" / "home")
    environment = {
        "HOME": nowhere,
        "XDG_CACHE_HOME": nowhere,
        "TMPDIR": str(temporary),
        "NUMBA_CACHE_DIR": "",
    }
    return USE.format(folder=str(package)), environment, temporary


@posix
def test_compiled_code_is_kept_in_a_private_folder_for_the_run(sealed):
    code, environment, temporary = sealed
    code += "print(os.stat(os.environ['NUMBA_CACHE_DIR']).st_mode & 0o777 == 0o700)\n"
    code += "import pathlib; print(len(list(pathlib.Path(os.environ['NUMBA_CACHE_DIR']).rglob('*.nbi'))))"
    values, told, folder, private, kept = run(code, **environment)[0].splitlines()
    assert values.split() == ["8", "0"] and (private, kept) == ("True", "1")
    assert (
        told.count("numba cannot keep compiled code") == told.count("every run compiles again") == 1
    )
    assert Path(folder).parent == temporary and not Path(folder).exists()
