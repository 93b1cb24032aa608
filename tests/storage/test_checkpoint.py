"""A fit that was broken off and goes on ends in the same bits; other checkpoints are refused."""

import errno
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from conftest import blobs
from manyview import WMNMF, RobustWMNMF, load, on_disk
from manyview import fuse as agree_module
from manyview.io.writing import random_name
from manyview.regularizers import Graph
from manyview.storage import store
from manyview.storage.checkpoint import digest

FITS = {
    "paper": lambda **p: WMNMF(3, max_iter=2, inner_iter=5, random_state=0, **p),
    "hals": lambda **p: WMNMF(3, solver="hals", max_iter=3, inner_iter=4, random_state=0, **p),
    "starts": lambda **p: WMNMF(3, n_init=3, inner_iter=3, tol=1e-3, random_state=0, **p),
    "heat": lambda **p: WMNMF(3, affinity="heat", beta=1.0, inner_iter=4, random_state=0, **p),
    "masked": lambda **p: WMNMF(3, missing="allow", inner_iter=4, random_state=0, **p),
    "robust": lambda **p: RobustWMNMF(3, tol=0, max_iter=15, random_state=0, **p),
}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
ATTRIBUTES = ("labels_", "consensus_", "view_weights_", "sample_weights_")


class Broken(Exception):
    pass


def data(kind="paper"):
    views, _ = blobs(n=90)
    if kind == "masked":
        views[0][4, 2] = np.nan
        views[1][7] = np.nan
    return views


def breaking(after):
    """A callback that breaks the fit off in its iteration number ``after``."""
    seen = []

    def callback(info):
        seen.append(info)
        if len(seen) == after:
            raise Broken

    return callback


def assert_same(one, other):
    for name in ATTRIBUTES:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    for name in ("components_", "coefficients_"):
        for a, b in zip(getattr(one, name), getattr(other, name), strict=True):
            np.testing.assert_array_equal(a, b)
    assert one.history_.keys() == other.history_.keys()
    for name in one.history_:
        np.testing.assert_array_equal(one.history_[name], other.history_[name])
    assert one.n_iter_ == other.n_iter_ and one.stop_reason_ == other.stop_reason_


@pytest.mark.parametrize("kind", FITS)
def test_a_fit_broken_off_anywhere_ends_in_the_same_bits(kind, tmp_path):
    views, file = data(kind), tmp_path / "state"
    all_calls = []
    whole = FITS[kind](callback=lambda i: all_calls.append(i)).fit(views)
    n = len(all_calls)
    for after in sorted({1, 2, 3, n // 3, n // 2, n}):
        with pytest.raises(Broken):
            FITS[kind](checkpoint=(file, 0), callback=breaking(after)).fit(views)
        assert file.exists()
        calls = []
        again = FITS[kind](checkpoint=file, callback=lambda i, c=calls: c.append(i)).fit(views)
        assert_same(again, whole)
        assert not file.exists() and len(calls) == n - after + 1


def test_a_fit_broken_off_twice_on_files_ends_in_the_same_bits(tmp_path):
    views = data()
    for s, X in enumerate(views):
        np.save(tmp_path / f"{s}.npy", X)
    files = [on_disk(tmp_path / f"{s}.npy") for s in range(len(views))]
    whole = FITS["paper"]().fit(files)
    for after in (4, 9):
        with pytest.raises(Broken):
            model = FITS["paper"](checkpoint=(tmp_path / "c", 0), callback=breaking(after))
            model.fit(files)
    assert_same(FITS["paper"](checkpoint=str(tmp_path / "c")).fit(files), whole)


def test_what_is_finished_is_not_done_again(tmp_path, monkeypatch):
    file = tmp_path / "state"
    for kind in ("paper", "robust"):
        with pytest.raises(Broken):
            FITS[kind](checkpoint=(file, 0), callback=breaking(5)).fit(data())

        def never(*args):
            raise AssertionError("done again")

        with monkeypatch.context() as patch:
            patch.setattr(Graph, "edges", never)
            patch.setattr("manyview.initialize.gnmf", never)
            patch.setattr(agree_module, "agree", never)
            patch.setattr(agree_module, "embed", never)
            FITS[kind](checkpoint=file).fit(data())


def test_an_undisturbed_fit_leaves_nothing_behind_and_is_the_same(tmp_path):
    for kind in ("paper", "robust"):
        (tmp_path / random_name("state")).write_bytes(b"of a process killed while it wrote")
        model = FITS[kind](checkpoint=(tmp_path / "state", 0)).fit(data())
        assert_same(model, FITS[kind]().fit(data()))
        assert list(tmp_path.iterdir()) == []
        again = load(model.save(tmp_path / "m.npz"))
        np.testing.assert_array_equal(again.labels_, model.labels_)
        os.remove(tmp_path / "m.npz")


# --- refusals ----------------------------------------------------------------------------------


@pytest.fixture
def broken_off(tmp_path):
    file = tmp_path / "state"
    with pytest.raises(Broken):
        FITS["paper"](checkpoint=(file, 0), callback=breaking(5)).fit(data())
    return file


def test_other_settings_or_data_are_refused_by_name(broken_off):
    before = broken_off.read_bytes()
    views = data()
    changed = [views[0], views[1].copy(), views[2]]
    changed[1][5, 2] += 1e-9
    other = [
        (
            WMNMF(4, max_iter=2, inner_iter=5, random_state=0),
            views,
            "n_clusters=3, and this fit has",
        ),
        (
            WMNMF(3, max_iter=2, inner_iter=5, random_state=1),
            views,
            "random_state=0, and this fit has",
        ),
        (RobustWMNMF(3), views, "from WMNMF, and this fit is of RobustWMNMF"),
        (FITS["paper"](), changed, "the numbers of view 'view1' have changed"),
        (FITS["paper"](), [X[:80] for X in views], "of shape 90 × 8, and now is of shape 80 × 8"),
        (FITS["paper"](), views[:2], "it has 3 views, and this fit has 2"),
        (FITS["paper"](), [X.astype("f4") for X in views], "of type float64"),
    ]
    for model, held, told in other:
        with pytest.raises(ValueError, match=f"belongs to another fit: .*{told}"):
            model.set_params(checkpoint=broken_off).fit(held)
    assert broken_off.read_bytes() == before
    FITS["paper"](checkpoint=broken_off, n_jobs=1, verbose=0).fit(views)


def test_a_damaged_or_foreign_file_is_refused_and_left_alone(broken_off, tmp_path):
    content = broken_off.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 1
    model = tmp_path / "m.npz"
    FITS["paper"]().fit(data()).save(model)
    for held, told in (
        (content[: len(content) // 2], "cut short|not a manyview checkpoint"),
        (content[:-1], "cut short|not a manyview checkpoint"),
        (b"", "is not a manyview checkpoint"),
        (b"some text of mine\n", "is not a manyview checkpoint"),
        (bytes(flipped), "damaged|changed after it was saved"),
        (model.read_bytes(), "is not a manyview checkpoint"),
    ):
        broken_off.write_bytes(held)
        with pytest.raises(ValueError, match=told):
            FITS["paper"](checkpoint=broken_off).fit(data())
        assert broken_off.read_bytes() == held
    with pytest.raises(ValueError, match="is not a manyview model"):
        broken_off.write_bytes(content)
        load(broken_off)


def test_where_nothing_can_be_written_is_told_before_the_work(tmp_path):
    with pytest.raises(ValueError, match="does not exist; create it"):
        FITS["paper"](checkpoint=tmp_path / "absent" / "state").fit(data())
    with pytest.raises(ValueError, match="is a folder; name a file in it"):
        FITS["paper"](checkpoint=tmp_path).fit(data())


def test_a_full_disk_is_told_and_what_was_written_is_kept(broken_off, monkeypatch):
    before, written = broken_off.read_bytes(), []
    whole = FITS["paper"]().fit(data())

    def full(handle):
        written.append(handle)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    model = FITS["paper"](checkpoint=(broken_off, 0), callback=breaking(3))
    told = pytest.warns(UserWarning, match=r"could not be written \(No space left")
    with told, pytest.raises(Broken):
        model.fit(data())
    assert written and broken_off.read_bytes() == before
    assert [path.name for path in broken_off.parent.iterdir()] == ["state"]
    with pytest.warns(UserWarning, match="the fit continues"):
        assert_same(FITS["paper"](checkpoint=(broken_off, 0)).fit(data()), whole)
    with pytest.raises(OSError, match="No space left"):
        whole.save(broken_off.with_name("m.npz"))
    assert not any(path.name.endswith(("npz", "tmp")) for path in broken_off.parent.iterdir())


def test_the_digest_sees_every_row_in_every_form(tmp_path, monkeypatch):
    monkeypatch.setattr("manyview.engines.protocols.LOOK", 40)
    X = np.random.default_rng(0).random((200, 4))
    np.save(tmp_path / "x.npy", X)
    assert digest(X) == digest(on_disk(tmp_path / "x.npy")) == digest(X.copy("F"))
    sparse = sp.csr_array(np.where(X > 0.5, X, 0))
    wide = sp.csr_array((sparse.data, sparse.indices.astype("i8"), sparse.indptr.astype("i8")))
    assert digest(sparse) == digest(wide) != digest(2 * sparse)
    seen = {digest(X)}
    for i in range(200):
        other = X.copy()
        other[i, i % 4] += 1e-12
        seen.add(digest(other))
    assert len(seen) == 201


@pytest.mark.parametrize("make", [np.random.default_rng, np.random.RandomState])
def test_a_generator_is_known_by_its_state(make, tmp_path):
    def fit(seed, **params):
        params |= {"max_iter": 1, "inner_iter": 5, "init": "random", "random_state": make(seed)}
        return WMNMF(3, **params).fit(data())

    file = tmp_path / "state"
    with pytest.raises(Broken):
        fit(1, checkpoint=(file, 0), callback=breaking(4))
    with pytest.raises(ValueError, match="belongs to another fit: it has random_state="):
        fit(2, checkpoint=file)
    assert_same(fit(1, checkpoint=file), fit(1))


class Ridge:
    """A regularizer of a user, of which nothing can be told."""

    def __init__(self, c):
        self.c = c

    def prepare(self, X, view):
        return self

    def value(self, V):
        return self.c * float((V**2).sum())

    def split(self, V):
        return np.zeros_like(V), self.c * V


@dataclass
class ToldRidge(Ridge):
    c: float


def test_regularizers_of_users_are_told_apart_or_refused(tmp_path):
    def fit(regularizer, **params):
        return WMNMF(3, regularizer=regularizer, inner_iter=5, random_state=0, **params).fit(data())

    file = tmp_path / "state"
    with pytest.raises(
        ValueError, match=r"checkpoint cannot store regularizer=.*make it a dataclass"
    ):
        fit(Ridge(0.1), checkpoint=file)
    assert not file.exists()
    with pytest.raises(Broken):
        fit(ToldRidge(0.1), checkpoint=(file, 0), callback=breaking(4))
    with pytest.raises(ValueError, match=r"belongs to another fit: it has regularizer=ToldRidge"):
        fit(ToldRidge(5.0), checkpoint=file)
    assert_same(fit(ToldRidge(0.1), checkpoint=file), fit(ToldRidge(0.1)))


def test_what_is_no_checkpoint_is_told_and_files_of_others_stay(tmp_path):
    path = str(tmp_path / "state")
    for wrong in ((path,), (path, "often"), (path, -1), (path, 1, 2), (3, 1), (path, True)):
        with pytest.raises(ValueError, match="checkpoint must be a path, or"):
            FITS["paper"](checkpoint=wrong).fit(data())
    others = {
        tmp_path / name for name in (".state.mine.tmp", ".state.123.tmp", f".state.{'0a' * 12}.tmp")
    }
    for other in others:
        other.write_bytes(b"of somebody else")
    FITS["paper"](checkpoint=path).fit(data())
    assert set(tmp_path.iterdir()) == others


# --- killed ------------------------------------------------------------------------------------

SCRIPT = """
import sys, numpy as np, manyview as mv
folder, kind = sys.argv[1:]
rng = np.random.default_rng(0)
views = [rng.random((400, 30)) for _ in range(2)]
print("ready", flush=True)
common = {"random_state": 0, "checkpoint": (folder + "/state", 0)}
if kind == "paper":
    model = mv.WMNMF(3, max_iter=2, inner_iter=60, **common)
else:
    model = mv.RobustWMNMF(3, max_iter=60, tol=0, **common)
model.fit(views)
np.savez(folder + "/done.npz", *model.components_, *model.coefficients_, model.labels_)
"""


def start(folder, kind):
    source = str(Path(store.__file__).parents[2])
    environment = os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(folder), kind]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no SIGKILL here")
@pytest.mark.parametrize("kind", ["paper", "robust"])
def test_killed_and_resumed_the_result_is_the_same(kind, tmp_path):
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    undisturbed = start(tmp_path / "whole", kind)
    rng, kills = np.random.default_rng(0), 0
    while kills < 2:
        process = start(tmp_path / "killed", kind)
        assert process.stdout.readline() == b"ready\n"
        deadline = time.monotonic() + 60
        while not (tmp_path / "killed" / "state").exists() and process.poll() is None:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(rng.uniform(0, 0.3))
        process.kill()
        process.wait()
        kills += 1
    assert undisturbed.wait() == 0 and start(tmp_path / "killed", kind).wait() == 0
    one, other = (np.load(tmp_path / name / "done.npz") for name in ("whole", "killed"))
    for name in one.files:
        np.testing.assert_array_equal(one[name], other[name])
    assert not (tmp_path / "killed" / "state").exists()


def test_a_device_takes_no_checkpoint(tmp_path):
    pytest.importorskip("torch", reason="engine='torch' needs PyTorch")
    with pytest.raises(ValueError, match="engine='torch' writes no checkpoints"):
        FITS["paper"](checkpoint=tmp_path / "state", engine="torch").fit(data())


def test_without_pytorch_a_sentence_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    for name in FITS:
        with pytest.raises(ModuleNotFoundError, match=r"pip install 'manyview\[torch\]'"):
            FITS[name](engine="torch").fit(data())


def test_a_checkpoint_of_another_version_or_place_is_refused(tmp_path, monkeypatch):
    views, _ = blobs(n=60)
    path = tmp_path / "state"

    def stop(info):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        WMNMF(3, random_state=0, checkpoint=(path, 0), callback=stop).fit(views)
    with monkeypatch.context() as other:
        other.setattr("manyview.storage.checkpoint.__version__", "9.9.9")
        with pytest.raises(ValueError, match=r"made by manyview .*, and this is 9\.9\.9"):
            WMNMF(3, random_state=0, checkpoint=path).fit(views)
    WMNMF(np.int64(3), random_state=0, checkpoint=path).fit(views)
    mine = tmp_path / "mine.npy"
    np.save(mine, views[0])
    with pytest.raises(ValueError, match="name another file"):
        WMNMF(3, checkpoint=mine).fit(views)
    assert mine.exists()
