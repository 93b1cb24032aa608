"""Models on disk: an exact round trip, and a sentence for every file that is not one."""

import io
import json
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import manyview as mv
from conftest import blobs
from manyview._types import Stop
from manyview.regularizers import Graph
from manyview.storage import store


def frames(n=40, missing=False):
    views, _ = blobs(n=n)
    ids = [f"patient {i} é<" for i in range(n)]
    made = {
        f"view {s}": pd.DataFrame(X, index=ids, columns=[f"f{s}.{j}" for j in range(X.shape[1])])
        for s, X in enumerate(views)
    }
    if missing:
        made["view 0"] = made["view 0"].iloc[3:]
        made["view 1"].iloc[5, 1] = np.nan
    return made


def counts(n=40):
    X = np.random.default_rng(0).poisson(0.3, (n, 30)) + 3 * (
        np.arange(30) % 3 == np.arange(n)[:, None] % 3
    )
    return {"dense": blobs(n=n)[0][0], "counts": sp.csr_array(X.astype(float))}


MODELS = {
    "robust": (mv.RobustWMNMF(3, random_state=0), frames()),
    "robust, missing": (mv.RobustWMNMF(3, random_state=0), frames(missing=True)),
    "robust, sparse": (mv.RobustWMNMF(3, random_state=0), counts()),
    "robust, float32": (mv.RobustWMNMF(3, dtype=np.float32, random_state=np.int64(3)), frames()),
    "robust, auto": (mv.RobustWMNMF("auto", random_state=0), frames(9)),
    "robust, one array": (mv.RobustWMNMF(3, views=[8, 5, 6], random_state=0), np.hstack(blobs()[0])),
    "paper": (mv.WMNMF(3, random_state=0), frames()),
    "paper, starts": (mv.WMNMF(3, n_init=2, scale="minmax", random_state=0), frames()),
    "paper, hals": (mv.WMNMF(3, solver="hals", affinity="heat", random_state=0), frames()),
    "paper, masked": (mv.WMNMF(3, missing="allow", random_state=0), frames(missing=True)),
    "paper, sparse": (mv.WMNMF(3, regularizer="sparse", scale="tfidf", random_state=0), counts()),
    "paper, own graph": (mv.WMNMF(3, regularizer=Graph(4, "heat", mutual=True), random_state=0), frames()),
    "ablation": (mv.WMNMF.nmf_w2(3, random_state=0), frames()),
}  # fmt: skip


def same(a, b, where="model"):
    assert type(a) is type(b), where
    if isinstance(a, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape, where
        if a.dtype.hasobject:
            assert a.tolist() == b.tolist(), where
        else:
            assert a.tobytes() == b.tobytes(), where
    elif sp.issparse(a):
        for part in ("data", "indices", "indptr"):
            same(getattr(a, part), getattr(b, part), f"{where}.{part}")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, (x, y) in enumerate(zip(a, b, strict=True)):
            same(x, y, f"{where}[{i}]")
    elif isinstance(a, dict):
        assert list(a) == list(b), where
        for key in a:
            same(a[key], b[key], f"{where}[{key!r}]")
    elif hasattr(a, "__dict__") and not isinstance(a, type | Stop):
        same(vars(a), vars(b), where)
    else:
        assert a == b or (a != a and b != b), where


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", MODELS)
def test_the_round_trip_is_exact_and_predictions_are_the_same_bits(tmp_path, case):
    model, views = MODELS[case]
    model.fit(views)
    again = mv.load(model.save(tmp_path / "m.npz"))
    same(model, again)
    new = {name: X[:7] for name, X in views.items()} if isinstance(views, dict) else views[:7]
    same(model.transform(new), again.transform(new))
    same(model.predict(new), again.predict(new))
    same(model.reliance_, again.reliance_)
    assert again.score(new) == model.score(new)
    if isinstance(model, mv.RobustWMNMF):
        for view in model.view_names_in_:
            same(model.impute(view), again.impute(view))
    same(model, mv.load(again.save(tmp_path / "n.npz")))
    assert [p.name for p in sorted(tmp_path.iterdir())] == ["m.npz", "n.npz"]


def test_the_loaded_model_is_an_estimator_like_any_other(tmp_path):
    views = frames()
    model = mv.RobustWMNMF(3, random_state=0).set_output(transform="pandas").fit(views)
    again = mv.load(model.save(tmp_path / "m.npz"))
    assert again.get_params() == model.get_params()
    pd.testing.assert_frame_equal(again.transform(views), model.transform(views))
    np.testing.assert_array_equal(again.fit(views).labels_, model.labels_)


def test_objects_are_dropped_with_a_warning_or_refused(tmp_path):
    views = blobs()[0]
    model = mv.RobustWMNMF(3, random_state=np.random.default_rng(0), callback=print).fit(views)
    with pytest.warns(UserWarning, match="is not saved") as seen:
        again = mv.load(model.save(tmp_path / "m.npz"))
    assert len(seen) == 2 and again.callback is None and again.random_state is None
    np.testing.assert_array_equal(again.predict(views), model.predict(views))

    class Mine(type(Graph())):
        pass

    own = mv.WMNMF(3, regularizer=Mine(), random_state=0).fit(views)
    with pytest.raises(ValueError, match="regularizer has an object of type Mine"):
        own.save(tmp_path / "own.npz")
    with pytest.raises(ValueError, match="a SumOfGraphs cannot be saved"):
        mv.baselines.SumOfGraphs(3).fit(views).save(tmp_path / "own.npz")
    with pytest.raises(Exception, match="not fitted"):
        mv.WMNMF(3).save(tmp_path / "own.npz")
    assert not (tmp_path / "own.npz").exists()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    views = [X[:12] for X in blobs(n=12, features=(3, 2))[0]]
    path = tmp_path_factory.mktemp("model") / "m.npz"
    with warnings.catch_warnings(action="ignore"):
        mv.RobustWMNMF(2, random_state=0, max_iter=3).fit(views).save(path)
    return path.read_bytes()


def rewritten(content, change=lambda header: None, members=None, checksum=True):
    """The same model with its header changed by someone who knows how the checksum is made."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(held.pop(store.HEADER))
    change(header)
    arrays = {name.removesuffix(".npy"): raw for name, raw in held.items()} | (members or {})
    if checksum:
        header["sha256"] = store._checksum(header, arrays)
    file = io.BytesIO()
    store._archive(file, header, arrays, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def objects():
    buffer = io.BytesIO()
    np.save(buffer, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


REFUSED = {
    "another version": (
        lambda raw: rewritten(raw, lambda h: h.update(format=99, library="9.9")),
        "was written by manyview 9.9 in format 99, and this manyview reads format 2",
    ),
    "truncated": (lambda raw: raw[: len(raw) // 2], "is damaged or was cut short"),
    "empty": (lambda raw: b"", "not a manyview model"),
    "not an archive": (lambda raw: b"hello", "not a manyview model"),
    "another npz": (lambda raw: npz(a=np.ones(3)), "not a manyview model"),
    "a changed number": (
        lambda raw: rewritten(raw, lambda h: h["state"].update(n_iter_=7), checksum=False),
        "was changed after it was saved",
    ),
    "another class": (
        lambda raw: rewritten(raw, lambda h: h.update({"class": "Popen"})),
        "its class 'Popen' is not one of WMNMF, RobustWMNMF",
    ),
    "an object inside": (
        lambda raw: rewritten(
            raw, lambda h: h["state"].update(x={"~": "object", "class": "Popen", "state": {}})
        ),
        "not a usable model: 'Popen'",
    ),
    "pickled objects": (
        lambda raw: rewritten(raw, members={"a0": objects()}),
        "holds Python objects, which are not read",
    ),
    "an absent parameter": (
        lambda raw: rewritten(raw, lambda h: h["state"].pop("n_clusters")),
        "lacks the parameter 'n_clusters'",
    ),
    "an unknown kind": (
        lambda raw: rewritten(raw, lambda h: h["state"].update(x={"~": "__init__"})),
        "not a usable model",
    ),
    "a nested header": (
        lambda raw: _with_header(b"[" * 100_000),
        "damaged",
    ),
}


def _with_header(text):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(store.HEADER, text)
    return buffer.getvalue()


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_model_is_refused_by_a_sentence(tmp_path, saved, case):
    make, sentence = REFUSED[case]
    path = tmp_path / "m.npz"
    path.write_bytes(make(saved))
    with pytest.raises(ValueError, match=sentence) as caught:
        mv.load(path)
    assert "m.npz" in str(caught.value)


@pytest.mark.parametrize("model", [mv.WMNMF(3, random_state=0), mv.RobustWMNMF(3, random_state=0)])
def test_models_older_than_some_parameters_are_read(tmp_path, model):
    views, _ = blobs(n=60)
    model.fit(views)

    def younger(header):
        for name in ("checkpoint", "device", "engine", "_stream"):
            header["state"].pop(name, None)

    file = tmp_path / "old.npz"
    file.write_bytes(rewritten(model.save(file).read_bytes(), younger))
    again = mv.load(file)
    assert again.get_params() == model.get_params()
    np.testing.assert_array_equal(again.predict(views), model.predict(views))
    if hasattr(again, "partial_fit"):
        again.partial_fit(views)
        np.testing.assert_array_equal(again.consensus_, model.partial_fit(views).consensus_)


def test_absent_files_folders_and_bombs(tmp_path, saved):
    with pytest.raises(FileNotFoundError, match="there is no file"):
        mv.load(tmp_path / "none.npz")
    with pytest.raises(ValueError, match="is a folder; name the model file"):
        mv.load(tmp_path)
    header = b'{"shape": (99999999999,), "fortran_order": False, "descr": "<f8"}'.ljust(117) + b"\n"
    huge = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header
    (tmp_path / "m.npz").write_bytes(rewritten(saved, members={"a0": huge}))
    with pytest.raises(ValueError, match="should hold 799999999992 bytes of numbers but holds 0"):
        mv.load(tmp_path / "m.npz")


@given(st.data())
def test_a_mutated_model_is_refused_or_unchanged(saved, tmp_path_factory, data):
    """Bytes flipped, cut out, repeated or replaced anywhere: a ValueError, or the same model."""
    raw = bytearray(saved)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 30))
        raw[at : at + length] = data.draw(st.binary(max_size=30))
    path = tmp_path_factory.getbasetemp() / "mutated.npz"
    path.write_bytes(bytes(raw))
    try:
        model = mv.load(path)
    except ValueError as error:
        assert "mutated.npz" in str(error)
    else:  # names or dates of members, which carry nothing
        (path.parent / "whole.npz").write_bytes(saved)
        same(model, mv.load(path.parent / "whole.npz"))


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just("a0"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["~", "of", "class", "state", "items", "shape"]), inner)
    ),
    max_leaves=6,
)


@given(st.data())
def test_a_header_made_up_with_a_right_checksum_is_refused_or_read(saved, tmp_path_factory, data):
    def change(header):
        node = header["state"]
        while True:
            keys = list(node) if isinstance(node, dict) else range(len(node))
            key = data.draw(st.sampled_from(keys))
            if not isinstance(node[key], dict | list) or not node[key] or data.draw(st.booleans()):
                break
            node = node[key]
        node[key] = data.draw(JUNK)

    path = tmp_path_factory.getbasetemp() / "madeup.npz"
    try:
        path.write_bytes(rewritten(saved, change))
    except ValueError:  # NaN is not JSON: such a header cannot even be written
        return
    try:
        mv.load(path)
    except ValueError as error:
        assert "madeup.npz" in str(error)
