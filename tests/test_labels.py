"""Columns of other libraries mean what their values say, wherever a column is taken."""

import numpy as np
import pytest

import manyview as mv
from manyview import outcomes
from manyview.baselines import BestSingleView, KNNSpectral

Y = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2] * 3
RNG = np.random.default_rng(0)
X = RNG.random((30, 4)) + np.array(Y)[:, None]
TIME, EVENT = RNG.integers(1, 60, 30).tolist(), RNG.integers(0, 2, 30).tolist()


class Tensor:
    """What tensors of every library share: their entries are tensors, equal as objects only."""

    def __init__(self, values):
        self.values = np.asarray(values)
        self.shape, self.ndim = self.values.shape, self.values.ndim

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)

    def __iter__(self):
        return (Tensor(value) for value in self.values)


class NotIterable(Tensor):
    __iter__ = None


def entries(values):
    return list(Tensor(values))


def torch_tensor(values):
    return pytest.importorskip("torch").tensor(values)


HOLDERS = [Tensor, NotIterable, entries, torch_tensor]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(
    "found",
    [
        lambda as_: mv.metrics.scores(Y, as_(EVENT)),
        lambda as_: mv.metrics.scores(as_(Y), as_(EVENT)),
        lambda as_: mv.metrics.accuracy(as_(Y), TIME),
        lambda as_: mv.metrics.pair_scores(as_(EVENT), Y),
        lambda as_: outcomes.survival(as_(Y), as_(TIME), as_(EVENT), ids=as_(range(30))),
        lambda as_: outcomes.crosstab(as_(Y), as_(EVENT)),
        lambda as_: outcomes.enrichment(as_(Y), {"a": as_(EVENT), "t": as_(TIME)}),
        lambda as_: outcomes.markers(as_(Y), {"v": X}),
        lambda as_: mv.adjust({"v": X}, {"b": as_(EVENT)}, ids=as_(range(30))),
        lambda as_: BestSingleView(KNNSpectral(3, random_state=0)).fit([X, -X], as_(Y)).best_view_,
    ],
)
def test_tensors_mean_what_their_values_say(holder, found):
    assert str(found(holder)) == str(found(list))


def test_a_table_is_no_column():
    for bad in (Tensor([[0, 1], [1, 0]]), Tensor(1)):
        with pytest.raises(ValueError, match="1-D"):
            mv.metrics.scores([0, 1], bad)
        with pytest.raises(ValueError, match="1-D"):
            outcomes.crosstab([0, 1], bad)
