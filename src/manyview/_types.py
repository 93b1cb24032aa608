"""Small values that pass between the modules: views, factors, the result of a fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
#: One number; of a computation on a device an array without axes, which is not waited for.
Number: TypeAlias = float | Array
#: One view: samples × features, a NumPy array or a SciPy CSR matrix; inside engines also what
#: stands for one (rows of a file, tensors).
Matrix: TypeAlias = Any
#: What users pass for reproducible results.
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
Callback = Callable[[dict[str, Any]], Any]


#: Classes whose objects a model file may hold, by name: files name classes, not modules.
STORABLE: dict[str, type] = {}
Storable = TypeVar("Storable", bound=type)


def storable(cls: Storable) -> Storable:
    """Let objects of this class be saved with a model and read back."""
    STORABLE[cls.__name__] = cls
    return cls


@storable
class Stop(StrEnum):
    """Why a fit ended; the value is the message people read."""

    CONVERGED = "the objective changed by less than tol between two rounds"
    STEADY = "labels stayed the same, and the objective changed by less than 10 times tol"
    ROUNDS = "all max_iter rounds were done, as requested (tol=0)"
    MAX_ITER = "max_iter rounds were done before the objective settled to tol"
    CALLBACK = "the callback stopped the fit"
    BATCH = "the batch was added to those before (partial_fit)"


@runtime_checkable
class Clustering(Protocol):
    """A fitted clustering model, of this package or another."""

    labels_: Any


class CollapseWarning(UserWarning):
    """One view has nearly all of the view weight."""


@dataclass(frozen=True)
class Views:
    """Validated views of the same samples, with whatever names came along."""

    matrices: tuple[Matrix, ...]
    names: tuple[str, ...]
    feature_names: tuple[Array | None, ...]
    sample_names: Array | None = None
    #: Of sparse views that lack samples of others, how many: the rows of these are zeros.
    filled: Mapping[str, int] = field(default_factory=dict)
    #: The batch of every sample, where batches are to be aligned.
    batch: Array | None = None

    @property
    def n_samples(self) -> int:
        return self.matrices[0].shape[0]

    @property
    def n_features(self) -> tuple[int, ...]:
        return tuple(X.shape[1] for X in self.matrices)

    @property
    def dtype(self) -> np.dtype:
        return np.result_type(*(X.dtype for X in self.matrices))

    def with_matrices(self, matrices: list[Matrix]) -> Views:
        return replace(self, matrices=tuple(matrices))

    def __len__(self) -> int:
        return len(self.matrices)


class Sums(NamedTuple):
    """All the next step on U needs to know of the rows: XᵀWV, VᵀWV, Σ v∘v*, Σ v∘v."""

    P: Array
    G: Array
    vc: Array
    vv: Array


class Split(NamedTuple):
    """A regularizer at V: (negative, positive) parts of half its gradient, and its curvature."""

    negative: Number
    positive: Number
    curvature: Number

    def rows(self, rows: slice) -> Split:
        """Their part for some rows; what is the same for all rows is left as it is."""
        return Split(*(_some_rows(part, rows) for part in self))


def _some_rows(part: Number, rows: slice) -> Number:
    if isinstance(part, int | float) or part.ndim == 0 or part.shape[0] == 1:
        return part
    return part[rows]


@storable
@dataclass(frozen=True)
class Factors:
    """The unknowns of the method: X_s ≈ V_s U_sᵀ, consensus V*, weights α and w."""

    U: tuple[Array, ...]
    V: tuple[Array, ...]
    consensus: Array
    alpha: Array
    w: Array


@storable
@dataclass(frozen=True)
class FitResult:
    """What the loop leaves behind."""

    factors: Factors
    history: dict[str, Array]
    n_iter: int
    stop: Stop
    #: Mean squared error of an entry, of every view.
    entry_errors: list[float] | None = None
