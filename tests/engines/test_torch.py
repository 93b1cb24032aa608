"""The torch engine gives NumPy's answers: on the CPU always, on a GPU where there is one."""

from __future__ import annotations

import warnings
import weakref
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

torch = pytest.importorskip("torch", reason="engine='torch' needs PyTorch (extra 'torch')")

from conftest import blobs  # noqa: E402
from manyview import WMNMF, RobustWMNMF, load  # noqa: E402
from manyview._arrays import DeviceFlag  # noqa: E402
from manyview.datasets import load_handwritten, make_synthetic  # noqa: E402
from manyview.engines.affinity import affinity, nearest_neighbors  # noqa: E402
from manyview.engines.numpy.distances import FileGeometry  # noqa: E402
from manyview.engines.numpy.rows import Rows  # noqa: E402
from manyview.engines.torch import device as engine  # noqa: E402
from manyview.engines.torch import kmeans as torch_kmeans  # noqa: E402
from manyview.engines.torch import neighbors as torch_neighbors  # noqa: E402
from manyview.engines.torch.graph import DeviceGraph, united  # noqa: E402
from manyview.engines.torch.neighbors import nearest_rows  # noqa: E402
from manyview.engines.torch.rows import TorchView  # noqa: E402
from manyview.labels import assign, kmeans  # noqa: E402
from manyview.maths import equations as eq  # noqa: E402
from manyview.maths.solvers import SOLVERS  # noqa: E402
from manyview.maths.spectrum import normalized  # noqa: E402
from manyview.regularizers import GraphTerm, NoPenalty, Orthogonal, Sparse  # noqa: E402
from manyview.robust import RobustView  # noqa: E402
from manyview.wmnmf import Progress  # noqa: E402  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)


def random_problem(seed=0, n=230, m=37, k=5, dtype=np.float64, density=None):
    rng = np.random.default_rng(seed)
    X = rng.random((n, m)) * (rng.random((n, m)) < (density or 1))
    U, V = rng.random((m, k)), rng.random((n, k))
    weights = rng.random(n) * (rng.random(n) > 0.1)
    A = affinity(X, 4)
    return X.astype(dtype), U.astype(dtype), V.astype(dtype), rng.random((n, k)), weights, A


def graph_on(A, device, dtype=np.float64):
    parts = [engine.put(p.astype(np.int64), device) for p in (A.indptr, A.indices)]
    return DeviceGraph(*parts, engine.put(A.data, device, dtype))


def terms_on(term, device):
    if not isinstance(term, GraphTerm):
        return term
    graph = graph_on(term.A, device)
    return GraphTerm(graph, graph.row_sums())


@on_devices
@pytest.mark.parametrize("solver", ["multiplicative", "hals"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("term", [None, NoPenalty(), Sparse(), Orthogonal()])
def test_a_pass_is_the_pass_of_numpy(device, solver, sparse, term):
    X, U, V, consensus, weights, A = random_problem(density=0.2 if sparse else None)
    term = term or GraphTerm(A)
    X = sp.csr_array(X) if sparse else X
    steps = SOLVERS[solver]()
    here = Rows(X, steps)
    there = TorchView(X, torch.device(device), np.float64).as_rows(steps)
    U, V = steps.start(U, V)
    U2, V2 = (engine.put(part, device) for part in (U, V))
    here.begin(V, consensus, weights, weights, term, True)
    there.begin(V2, consensus, weights, weights, terms_on(term, device), True)
    here.sum(V)
    there.sum(V2)
    for _ in range(4):
        U, U2 = here.step_U(U, 0.3), there.step_U(U2, 0.3)
        V, V2 = here.step_V(U, V, 0.3, 0.2, True), there.step_V(U2, V2, 0.3, 0.2, True)
        np.testing.assert_allclose(V2.cpu(), V, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(U2.cpu(), U, rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(float(there.error(U2)), here.error(U), rtol=1e-9)
        np.testing.assert_allclose(float(there.gap(U2, V2)), here.gap(U, V), rtol=1e-9)
        np.testing.assert_allclose(float(there.penalty), here.penalty, rtol=1e-9)
    np.testing.assert_allclose(there.residuals.cpu(), here.residuals, rtol=1e-7, atol=1e-10)


@on_devices
def test_neighbors_in_blocks_of_columns_too(device, monkeypatch):
    X = np.random.default_rng(0).random((500, 6))
    view = TorchView(X, torch.device(device), np.float64)
    view.resident = False  # as if it did not fit on the device
    for name in ("HOST_BLOCK", "BLOCK"):
        monkeypatch.setattr(f"manyview.engines.torch.neighbors.{name}", 4 * 6 * 37)
    found, d = nearest_rows(view, 4)
    expected, squared = nearest_neighbors(X, 4)
    np.testing.assert_array_equal(found.cpu(), expected)
    np.testing.assert_allclose(d.cpu(), squared, atol=1e-12)


@on_devices
@pytest.mark.parametrize("kind", ["binary", "heat", "cosine"])
@pytest.mark.parametrize("mutual", [False, True])
def test_affinities_are_those_of_the_host(device, kind, mutual):
    X = np.random.default_rng(1).random((300, 8))
    expected = affinity(X, 5, kind, mutual=mutual)
    found = affinity(engine.put(X, device), 5, kind, mutual=mutual)
    assert abs(found.to_scipy() - expected).max() <= 1e-10


@on_devices
def test_graphs_add_scale_and_multiply(device):
    A, B = (random_problem(seed)[-1] for seed in (0, 1))
    one, other = graph_on(A, device), graph_on(B, device)
    Y = np.random.default_rng(0).random((A.shape[0], 3))
    both = (A + 0.5 * B) / 3
    np.testing.assert_allclose(((one + 0.5 * other) / 3).to_scipy().toarray(), both.toarray())
    np.testing.assert_allclose((one @ engine.put(Y, device)).cpu(), A @ Y)
    np.testing.assert_allclose(one.normalized().to_scipy().toarray(), normalized(A).toarray())
    empty = united(torch.zeros((3, 1), dtype=torch.long), torch.zeros((3, 1)), mutual=False)
    assert empty.to_scipy().nnz == 0


@on_devices
def test_the_digits_are_clustered_as_by_numpy(device):
    views = load_handwritten(views="paper").views
    expected = RobustWMNMF(10, random_state=0).fit(views)
    model = RobustWMNMF(10, random_state=0, engine="torch", device=device, dtype=np.float32)
    model.fit(views)
    assert adjusted_rand_score(expected.labels_, model.labels_) >= 0.99
    objective = model.history_["objective"]
    assert (np.diff(objective) <= 1e-6 * objective[0]).all()


@on_devices
def test_the_digits_are_factorized_as_by_numpy(device):
    """All of WMNMF but its last step: k-means here has other starts, and may end in another minimum."""
    views = load_handwritten(views="paper").views
    here = WMNMF(10, random_state=0).fit(views)
    there = WMNMF(10, random_state=0, dtype="float64", engine="torch", device=device).fit(views)
    np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-6)
    np.testing.assert_allclose(there.view_weights_, here.view_weights_, rtol=1e-6)
    gap = np.linalg.norm(there.consensus_ - here.consensus_) / np.linalg.norm(here.consensus_)
    assert gap <= 1e-6
    read = [
        assign(np.asarray(model.consensus_, float), 10, "spectral", np.random.default_rng(0))
        for model in (here, there)
    ]
    assert adjusted_rand_score(*read) >= 0.99


@on_devices
def test_kmeans_is_as_good_as_that_of_scikit_learn(device):
    rng = np.random.default_rng(0)
    centers = 3 * rng.random((12, 4))
    X = np.repeat(centers, rng.integers(20, 120, 12), axis=0)
    X += 0.2 * rng.standard_normal(X.shape)
    for seed in range(10):
        found = [
            kmeans(part, 12, np.random.default_rng(seed), 5) for part in (X, engine.put(X, device))
        ]
        here, there = (_inertia(X, np.asarray(engine.put(y, "cpu"))) for y in found)
        assert there <= 1.02 * here


def _inertia(X, labels):
    return sum(((X[labels == k] - X[labels == k].mean(0)) ** 2).sum() for k in np.unique(labels))


@on_devices
def test_an_empty_cluster_is_given_a_far_row(device):
    X = engine.put(np.array([[0.0], [0.1], [5.0], [5.1], [9.0]]), device)
    start = engine.put(np.array([[[0.0], [5.0], [100.0]]]), device)
    centers, _ = torch_kmeans._lloyd(X, start, 20)
    np.testing.assert_allclose(np.sort(centers.cpu().ravel()), [0.05, 5.05, 9.0])


@on_devices
@pytest.mark.parametrize("estimator", [WMNMF, RobustWMNMF])
def test_the_default_precision_of_pytorch_does_not_matter(device, estimator):
    data = make_synthetic(n_samples=200, random_state=1)
    settings = {"random_state": 0, "engine": "torch", "device": device, "dtype": np.float32}
    expected = estimator(10, **settings).fit(data.views)
    before = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        model = estimator(10, **settings).fit(data.views)
    finally:
        torch.set_default_dtype(before)
    np.testing.assert_allclose(model.consensus_, expected.consensus_, atol=1e-4)


@on_devices
@pytest.mark.parametrize("estimator", [WMNMF, RobustWMNMF])
def test_tensors_in_tensors_out(device, estimator):
    data = make_synthetic(n_samples=200, random_state=1)
    views = {name: torch.from_numpy(X).to(device) for name, X in data.views.items()}
    settings = {"random_state": 0, "engine": "torch", "device": device}
    model = estimator(10, **settings)
    labels = model.fit_predict(views)
    for found in (labels, model.transform(views), model.predict(views)):
        assert isinstance(found, torch.Tensor) and found.device.type == device
    np.testing.assert_array_equal(labels.cpu(), model.labels_)
    again = estimator(10, **settings).fit(data.views).labels_
    assert adjusted_rand_score(again, labels.cpu()) >= (1 if device == "cpu" else 0.99)
    single = estimator(10, **settings).fit_predict(next(iter(views.values())))
    assert isinstance(single, torch.Tensor)


def test_tensors_numpy_has_no_place_for():
    X = torch.rand((40, 5), generator=torch.Generator().manual_seed(0))
    settings = {"random_state": 0, "engine": "torch"}
    half = RobustWMNMF(2, **settings).fit(X.bfloat16())
    expected = RobustWMNMF(2, **settings).fit(X.bfloat16().float())
    np.testing.assert_array_equal(half.labels_, expected.labels_)
    with pytest.raises(ValueError, match=r"sparse tensor.*to_dense"):
        RobustWMNMF(2, **settings).fit(X.to_sparse())


@on_devices
def test_the_nndsvd_start(device):
    data = make_synthetic(n_samples=200, random_state=1)
    expected = WMNMF(10, random_state=0, init="nndsvd").fit(data.views)
    model = WMNMF(10, random_state=0, init="nndsvd", engine="torch", device=device).fit(data.views)
    np.testing.assert_allclose(model.objective_, expected.objective_, rtol=1e-2)


@on_devices
def test_sparse_views_of_wmnmf(device):
    data = make_synthetic(n_samples=300, random_state=1)
    views = [sp.csr_array(X * (np.median(X) < X)) for X in data.views.values()]
    expected = WMNMF(10, random_state=0).fit(views)
    model = WMNMF(10, random_state=0, engine="torch", device=device).fit(views)
    assert adjusted_rand_score(expected.labels_, model.labels_) >= 0.99


@on_devices
@pytest.mark.filterwarnings("ignore:view .* samples are zero throughout")
def test_sparse_views_of_the_robust_estimator(device):
    data = make_synthetic(n_samples=300, random_state=1)
    views = [X * (np.quantile(X, 0.95) < X) for X in data.views.values()]
    expected = RobustWMNMF(10, random_state=0).fit([sp.csr_array(X) for X in views])
    model = RobustWMNMF(10, random_state=0, engine="torch", device=device)
    model.fit([sp.csr_array(X) for X in views])
    # Many rows are equally far from each other: which are "the nearest" differs.
    np.testing.assert_allclose(model.view_weights_, expected.view_weights_, atol=5e-3)
    assert all(sp.issparse(view.Z) for view in model._geometry)
    assert adjusted_rand_score(expected.labels_, model.labels_) >= 0.9


@on_devices
@pytest.mark.parametrize("kind", ["constant", "zero", "missing", "one row"])
@pytest.mark.filterwarnings("ignore:view 'view2'")  # that it says nothing
def test_views_that_say_nothing(device, kind):
    rng = np.random.default_rng(0)
    views = [rng.random((3, 5))[np.arange(60) % 3] + 0.1 * rng.random((60, 5)) for _ in range(2)]
    dull = {
        "constant": np.ones((60, 2)),
        "zero": np.zeros((60, 2)),
        "missing": np.full((60, 2), np.nan),
        "one row": np.where(np.arange(60)[:, None] == 3, 1.0, np.nan) * np.ones((60, 2)),
    }[kind]
    model = RobustWMNMF(3, random_state=0, engine="torch", device=device).fit([*views, dull])
    assert adjusted_rand_score(np.arange(60) % 3, model.labels_) == 1
    assert model.view_weights_[2] < 1e-8


@on_devices
def test_numbers_that_do_not_fit_float32(device):
    rng = np.random.default_rng(0)
    truth = np.arange(90) % 3
    views = [rng.random((3, 6))[truth] + 0.1 * rng.random((90, 6)) for _ in range(2)]
    for change in (lambda X: X + 1.7e9, lambda X: X * 1e60, lambda X: X * 1e-60):
        model = RobustWMNMF(3, random_state=0, engine="torch", device=device, dtype=np.float32)
        assert adjusted_rand_score(truth, model.fit([change(X) for X in views]).labels_) == 1


@on_devices
def test_a_regularizer_of_your_own_must_say_that_it_takes_tensors(device):
    class Ridge:
        def prepare(self, X, view):
            return self

        def value(self, V):
            return (V * V).sum()

        def split(self, V):
            return 0.0, V

    X = np.random.default_rng(0).random((40, 5))
    with pytest.raises(ValueError, match="would pass tensors to the regularizer Ridge"):
        WMNMF(2, engine="torch", regularizer=Ridge()).fit(X)
    Ridge.takes_tensors = True
    here, there = (
        WMNMF(2, regularizer=Ridge(), random_state=0, **where).fit(X)
        for where in ({}, {"engine": "torch", "device": device, "dtype": np.float64})
    )
    np.testing.assert_allclose(here.objective_, there.objective_, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:the views take")
def test_sentences(monkeypatch):
    X = np.random.default_rng(0).random((30, 4))
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="sees no GPU here; use device='auto'"):
            WMNMF(2, engine="torch", device="cuda").fit(X)
    else:
        with pytest.raises(RuntimeError, match=r"'cuda:99' was requested.*counted from 0"):
            WMNMF(2, engine="torch", device="cuda:99").fit(X)
    for device in ("gpu", "cuda:", "cuda:x"):
        with pytest.raises(ValueError, match="device must be 'auto', 'cpu'"):
            WMNMF(2, engine="torch", device=device).fit(X)
    with pytest.raises(ValueError, match="negative entries"):
        RobustWMNMF(2, engine="torch").fit([sp.csr_array(X - 0.5)])
    monkeypatch.setattr("manyview.engines.torch.engine.fits", lambda size, device: False)
    with pytest.raises(ValueError, match=r"'view0' is sparse.*too much to compute with"):
        RobustWMNMF(2, engine="torch").fit([sp.csr_array(X)])
    holes = X.copy()
    holes[0, 0] = np.nan
    with pytest.raises(ValueError, match="'view0' is partly unobserved"):
        RobustWMNMF(2, engine="torch").fit([holes])
    with pytest.raises(ValueError, match=r"unobserved \(NaN\) entries"):
        WMNMF(2, engine="torch", missing="allow").fit([holes])


def test_running_out_of_memory_leaves_the_estimator_unfitted(monkeypatch):
    taken = []

    def full(*args, **kwargs):
        tensor = torch.zeros(3)
        taken.append(weakref.ref(tensor))
        raise torch.OutOfMemoryError("CUDA out of memory")

    X = np.random.default_rng(0).random((30, 4))
    for estimator, name in ((WMNMF, "wmnmf.Loop.run"), (RobustWMNMF, "robust.run_robust")):
        monkeypatch.setattr(f"manyview.{name}", full)
        model = estimator(2, engine="torch")
        with pytest.raises(MemoryError, match=r"ran out of memory.*left unfitted") as held:
            model.fit(X)
        assert held and taken[-1]() is None  # free, although somebody looks at the error
        assert not [attribute for attribute in vars(model) if attribute.endswith("_")]


def test_a_fit_that_fails_leaves_no_tensors_behind():
    """Whatever ends a fit: a device's memory must not hang on an estimator."""

    def fail(info):
        raise KeyError("stopped")

    model = RobustWMNMF(2, engine="torch", callback=fail)
    with pytest.raises(KeyError):
        model.fit(np.random.default_rng(0).random((30, 4)))
    held = [*vars(model).values()]
    held += [part for item in held if isinstance(item, list) for part in item]
    held += [part for item in held if hasattr(item, "__dict__") for part in vars(item).values()]
    assert not any(isinstance(item, torch.Tensor) for item in held)


def test_numbers_that_overflow_are_noticed_at_the_end():
    progress = Progress(3, None)
    for value in (2.0, torch.nan, torch.nan):
        progress.record(1, 0, 1, {"a": 0.0, "b": 0.0, "c": 0.0, "objective": torch.tensor(value)})
    with pytest.raises(ValueError, match="the objective is nan in round 1"):
        progress.history()


needs_card = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA card")


@needs_card
def test_running_out_of_memory_gives_the_card_back():
    X = np.random.default_rng(0).random((20_000, 300), dtype=np.float32)
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    before = torch.cuda.memory_reserved()
    try:
        torch.cuda.set_per_process_memory_fraction((before + 100e6) / total)
        for estimator in (WMNMF, RobustWMNMF):
            model = estimator(5, engine="torch", device="cuda")
            with pytest.raises(MemoryError, match="left unfitted"):
                model.fit([X, X[:, ::-1]])
            assert torch.cuda.memory_reserved() <= before + 2**21
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


@needs_card
@pytest.mark.parametrize("solver", ["multiplicative", "hals"])
def test_the_inner_loop_does_not_wait_for_the_card(solver):
    X, U, V, consensus, weights, A = random_problem(n=3000, m=60)
    steps = SOLVERS[solver]()
    rows = TorchView(X, torch.device("cuda"), np.float32).as_rows(steps)
    U, V = (engine.put(part, "cuda", np.float32) for part in steps.start(U, V))
    rows.begin(V, consensus, weights, weights, terms_on(GraphTerm(A), "cuda"), True)
    rows.sum(V)
    for round_ in range(2):
        with not_waiting(round_ > 0):  # the first records and compiles
            for _ in range(3):
                U = rows.step_U(U, 0.3)
                V = rows.step_V(U, V, 0.3, 0.2)
                rows.error(U), rows.gap(U, V)


@needs_card
def test_the_robust_loop_does_not_wait_for_the_card():
    rng = np.random.default_rng(0)
    n, k = 3000, 5
    X = engine.put(rng.random((n, 40)), "cuda", np.float32)
    X = X / X.sum(1, keepdims=True)
    view, settled = RobustView(TorchView(X, X.device), np.ones(n, bool)), DeviceFlag()
    P, V = (engine.put(rng.random((n, k)), "cuda", np.float32) for _ in range(2))
    V_star, w, alpha = V.clone(), X.new_ones((n, 1)), np.ones(1)
    U = view.start_U(V, w[:, 0])
    distances = eq.cluster_distances(P, eq.cluster_centers(P, V_star))
    for round_ in range(2):
        with not_waiting(round_ > 0):
            for _ in range(3):
                U, V, error = view.step(U, V, V_star, w[:, 0], 0.5)
                V_star = eq.simplex_consensus([V], alpha, w, distances, 0.5, 0.1)
                distances = eq.cluster_distances(P, eq.cluster_centers(P, V_star))
                given = ([error / view.tau], [V], V_star, alpha, w, distances, 0.5, 0.1)
                settled.latest(eq.robust_objective(*given)["objective"] < 0)


@contextmanager
def not_waiting(forbidden):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        # PyTorch calls the mode a prototype
        torch.cuda.set_sync_debug_mode("error" if forbidden else "default")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@needs_card
def test_the_users_precision_is_restored_after_an_error():
    before = torch.get_float32_matmul_precision()
    try:
        for setting in ("high", "highest"):
            torch.set_float32_matmul_precision(setting)
            with pytest.raises(KeyError), torch_neighbors.exact_products():
                raise KeyError
            assert torch.get_float32_matmul_precision() == setting
    finally:
        torch.set_float32_matmul_precision(before)


@needs_card
def test_views_larger_than_the_card_are_streamed(monkeypatch):
    X, U, V, consensus, weights, A = random_problem(n=4000, m=60)
    monkeypatch.setattr("manyview.engines.torch.rows.STREAMED_BLOCK", 60 * 700)
    steps, results = SOLVERS["multiplicative"](), []
    here = Rows(X, steps)
    there = TorchView(X, torch.device("cuda"), np.float64, resident=False).as_rows(steps)
    assert there.view.X.is_pinned() and not there.view.resident
    for rows, place in ((here, np.asarray), (there, lambda x: engine.put(x, "cuda"))):
        term = GraphTerm(A) if rows is here else terms_on(GraphTerm(A), "cuda")
        U2, V2 = place(U), place(V)
        rows.begin(V2, consensus, weights, weights, term, True)
        rows.sum(V2)
        for _ in range(3):
            U2 = rows.step_U(U2, 0.3)
            V2 = rows.step_V(U2, V2, 0.3, 0.2)
        results.append(np.asarray(V2 if rows is here else V2.cpu()))
    np.testing.assert_allclose(*results, rtol=1e-8, atol=1e-12)


@pytest.fixture(params=DEVICES)
def too_small(request, monkeypatch):
    """A device on which no view fits: rows are streamed (on the CPU from its own memory)."""
    monkeypatch.setattr("manyview.engines.torch.engine.fits", lambda size, device: False)
    monkeypatch.setattr("manyview.engines.torch.rows.STREAMED_BLOCK", 2**16)
    if request.param == "cuda":
        monkeypatch.setattr("manyview.engines.torch.rows.fits", lambda size, device: False)
    return request.param


def test_the_robust_estimator_streams_views_larger_than_the_card(too_small, tmp_path):
    arrays, y = blobs(n=300, features=(90, 70, 6), noise=1.0)
    views = dict(zip("abc", arrays, strict=True))
    here = RobustWMNMF(3, random_state=0).fit(views)
    with pytest.warns(UserWarning, match="stay in host memory"):
        there = RobustWMNMF(3, random_state=0, engine="torch", device=too_small).fit(views)
    assert all(isinstance(view, FileGeometry) for view in there._geometry)
    assert adjusted_rand_score(here.labels_, there.labels_) > 0.97
    assert adjusted_rand_score(y, there.labels_) > adjusted_rand_score(y, here.labels_) - 0.01
    np.testing.assert_allclose(there.view_weights_, here.view_weights_, atol=0.01)
    some = {name: X[:200] for name, X in views.items()}
    assert np.mean(there.predict(some) == there.labels_[:200]) > 0.97
    there.save(tmp_path / "model.npz")
    np.testing.assert_array_equal(load(tmp_path / "model.npz").predict(some), there.predict(some))


@pytest.mark.filterwarnings("ignore:the views take")
def test_streamed_views_may_miss_rows_but_not_entries(too_small):
    data = make_synthetic(n_samples=300, random_state=0)
    settings = {"engine": "torch", "device": too_small, "random_state": 0}
    views = [X.copy() for X in data.views.values()]
    views[0][5:40] = np.nan
    there = RobustWMNMF(10, **settings).fit(views)
    here = RobustWMNMF(10, random_state=0).fit(views)
    assert adjusted_rand_score(here.labels_, there.labels_) > 0.99
    assert all(isinstance(view, FileGeometry) for view in there._geometry)
    assert (there.sample_weights_[5:40, 0] == 0).all()
    np.testing.assert_allclose(there.impute(0), here.impute(0), rtol=0.05, atol=0.05)
    views[1][3, 2] = np.nan
    with pytest.raises(ValueError, match="partly unobserved"):
        RobustWMNMF(10, **settings).fit(views)


@pytest.mark.filterwarnings("ignore:the views take", "ignore:view .* zero throughout")
def test_streamed_counts_and_rare_features(too_small, monkeypatch):
    """Sparse counts beside a wide view whose rare features a sample of its rows would miss."""
    monkeypatch.setattr(
        "manyview.engines.torch.engine.HostView.sample", 1
    )  # the fewest rows there are
    monkeypatch.setattr("manyview.engines.torch.engine.fits", lambda size, device: size < 6_000_000)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 400)
    wide = rng.random((3, 98))[y] + 0.1 * rng.random((len(y), 98))
    wide[:, 50:] = rng.random((len(y), 48)) < 0.003
    wide[7] = np.nan  # a share of 98 features, 1/98 of which times 98 is not 1
    counts = rng.poisson(rng.random((3, 200))[y] * (rng.random((3, 200)) < 0.1)[y])
    views = {"wide": wide, "counts": sp.csr_array(counts.astype(float))}
    settings = {"random_state": 0, "dtype": np.float64}
    there = RobustWMNMF(3, engine="torch", device=too_small, **settings).fit(views)
    here = RobustWMNMF(3, random_state=0).fit(views)
    assert adjusted_rand_score(here.labels_, there.labels_) > 0.99
    assert there.sample_weights_[7, 0] == 0
    assert here.scaling_ == there.scaling_ == {"wide": "part sqrt", "counts": "sqrt"}
    expected = here._scalings[0].quantile.gain > 0
    np.testing.assert_array_equal(there._scalings[0].quantile.gain > 0, expected)
    np.testing.assert_allclose(there.split_half_, here.split_half_, atol=0.05)
