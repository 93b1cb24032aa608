"""The smallest entries of products by limits, against looking at all entries."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="limits are found with tensors")

from manyview.engines.torch import limits, neighbors  # noqa: E402
from manyview.engines.torch.limits import LimitedProducts, entries_within, halved  # noqa: E402
from manyview.engines.torch.neighbors import nearest_rows, squared_gaps  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


def kernels(device):
    """How entries below limits are found there."""
    if device == "cpu":
        return [entries_within]
    kernel = pytest.importorskip("manyview.engines.torch.triton_limits", reason="needs Triton")
    return [entries_within, kernel.entries_within]


def rows(n, m, seed=0, kinds=7):
    """Rows in groups that follow one another, some of them alike."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(kinds, m))[np.sort(rng.integers(kinds, size=n))]
    X = X + 0.2 * rng.normal(size=(n, m))
    X[n // 2 : n // 2 + 5] = X[0]
    return torch.tensor(X, dtype=torch.float32)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n", "m", "k"), [(700, 3, 1), (1000, 70, 9), (1300, 130, 20)])
def test_the_smallest_entries_are_found_without_looking_at_all(device, n, m, k, monkeypatch):
    monkeypatch.setattr(limits, "FEW", 200)
    X = rows(n, m).to(device)
    own = torch.arange(n, device=device)
    left, right = halved(X)[0].float(), halved(-X)[0].float()
    products = (left @ right.T).fill_diagonal_(torch.inf)
    expected = products.topk(k, largest=False).values
    for within in kernels(device):
        found = LimitedProducts(-X, within).find(X, k, own)
        assert found.complete.float().mean() > 0.9
        at = found.complete
        scale = float(halved(X)[1] * halved(-X)[1])
        close = {"rtol": 1e-4, "atol": 1e-2}
        torch.testing.assert_close(found.values[at] * scale, expected[at], **close)
        mine = products.gather(1, found.columns.long())[at]
        torch.testing.assert_close(mine, expected[at], **close)


@pytest.mark.parametrize("device", DEVICES)
def test_rows_whose_limit_lets_too_many_through_say_so(device, monkeypatch):
    monkeypatch.setattr(limits, "FEW", 100)
    X = torch.ones((900, 5), device=device)  # every entry is as small as the limit
    X[:10] = torch.arange(10, device=device)[:, None] + 2.0
    for within in kernels(device):
        found = LimitedProducts(X, within).find(-X, 3, None)
        assert not found.complete.all()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("n_left", "n_right", "m"), [(1, 1, 64), (130, 257, 64), (300, 129, 192)])
def test_entries_up_to_a_limit_are_counted_and_kept(device, n_left, n_right, m):
    generator = torch.Generator().manual_seed(n_left)
    L, R = (torch.randn((n, m), generator=generator).half().to(device) for n in (n_left, n_right))
    products = L.double() @ R.double().T
    limit = products.quantile(0.1, dim=1).float()
    room = max(1, n_right // 16)
    expected = products <= limit[:, None].double()
    for within in kernels(device):
        counts, columns, values = within(L, R, limit, room)
        assert (counts.cpu() - expected.sum(1).cpu()).abs().max() <= 1  # the limit is an entry
        for i in range(n_left):
            kept = min(int(counts[i]), room)
            assert torch.isinf(values[i, kept:]).all()
            mine = columns[i, :kept].long()
            assert len(mine.unique()) == kept
            torch.testing.assert_close(
                values[i, :kept].double(), products[i, mine], rtol=1e-4, atol=1e-3
            )


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("room", [None, 12])
def test_neighbours_by_limits_are_the_nearest(device, room, monkeypatch):
    """Also where most rows have no room for all entries below their limits."""
    X = rows(1200, 9).to(device)
    expected, squared = nearest_rows(X.double(), 6)
    monkeypatch.setattr(limits, "FEW", 200)
    if room is not None:
        monkeypatch.setattr(limits, "room_for", lambda k: room + k)
    monkeypatch.setattr(neighbors, "has_tensor_cores", lambda X: X.dtype == torch.float32)
    for within in kernels(device):
        monkeypatch.setattr(neighbors, "limited", lambda R, k, w=within: LimitedProducts(R, w))
        found, d = nearest_rows(X, 6)
        torch.testing.assert_close(d.double(), squared, rtol=1e-4, atol=1e-5)
        assert (found == expected).float().mean() > 0.99


def test_a_kernel_that_does_not_run_is_done_without(monkeypatch):
    X = rows(300, 4)

    def broken(*given):
        raise RuntimeError("no compiler")

    monkeypatch.setattr(limits, "FEW", 50)
    monkeypatch.setattr(neighbors, "has_tensor_cores", lambda X: True)
    expected, _ = nearest_rows(X, 5)
    monkeypatch.setattr(neighbors, "limited", lambda R, k: LimitedProducts(R, broken))
    with pytest.warns(UserWarning, match="no compiler"):
        found, _ = nearest_rows(X, 5)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("m", "n_pairs"), [(1, 5), (63, 100), (130, 1001)])
def test_squared_gaps_are_those_of_the_pairs(device, m, n_pairs, monkeypatch):
    monkeypatch.setattr(neighbors, "GATHERED", 40 * m)
    X = rows(200, m).to(device)
    i, j = torch.randint(200, (2, n_pairs), generator=torch.Generator().manual_seed(0)).to(device)
    expected = (X[i].double() - X[j].double()).square().sum(1)
    found = squared_gaps(X, i, j)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found, squared_gaps(X, j, i), rtol=0, atol=0)
    assert squared_gaps(X, i[:0], j[:0]).shape == (0,)
