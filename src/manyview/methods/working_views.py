"""The views of `WMNMF` as it computes with them: scaled, and where the engine wants them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.engines.numpy.masked import MaskedView, least_entries
from manyview.engines.numpy.presence import check_finite, has_nan
from manyview.engines.numpy.sources import Scaled, is_streamed
from manyview.engines.protocols import Engine
from manyview.engines.threads import beside
from manyview.maths.solvers import Solver, own_name
from manyview.storage.checkpoint import digest

from .impute import refuse_changed
from .precision import working_dtype
from .scaling import Scaling, fit_scaling

#: Dense views of more bytes than this are scaled when read, not copied.
COPY_LIMIT = 2**28


class WorkingViews(NamedTuple):
    """Views for the loop, the same for the model to keep (always on the host), and their scalings.

    ``sums`` waits for the `checksums` of those it keeps.
    """

    Xs: list[Any]
    fitted: list[Any]
    scalings: list[Scaling]
    sums: Callable[[], list[str | None]]


def scale_and_place(
    views: Views, scale: str | None, asked: npt.DTypeLike | None, mask: bool, engine: Engine
) -> WorkingViews:
    """Scale the views and bring them to where the engine computes; with ``mask`` entries may be NaN."""
    dtype = working_dtype(views, asked)
    fit = partial(fit_scaling, kind=scale)
    copy = partial(scaled, views, dtype=dtype, always_copied=mask)
    Xs, fitted, scalings = engine.loop_views(views, fit, copy, asked, dtype)
    if not mask and not engine.tensors:  # tensors were looked at where they are
        check_finite(fitted, views.names)
    return WorkingViews(Xs, fitted, scalings, beside(partial(checksums, fitted)))


def scaled(
    views: Views, scalings: list[Scaling], dtype: np.dtype, always_copied: bool
) -> list[Matrix]:
    """The scaled views, as copies or, where they are large or in files, scaled when read."""
    size = sum(np.prod(X.shape) for X in views.matrices if not sp.issparse(X)) * dtype.itemsize
    copied = size <= COPY_LIMIT or always_copied
    # Scaled in float64, since the raw numbers may not fit float32; then cast.
    return [
        scaling.apply(X.astype(np.float64, copy=False)).astype(dtype, copy=False)
        if copied and not is_streamed(X)
        else Scaled(X, scaling, dtype)
        for X, scaling in zip(views.matrices, scalings, strict=True)
    ]


def masked(Xs: Sequence[Any], names: Sequence[str], solver: Solver, n_components: int) -> list[Any]:
    """Views with unobserved entries as `MaskedView`; the others as they are."""
    holes = [has_nan(X) for X in Xs]
    rule = own_name(solver)
    if any(holes) and rule != "multiplicative":
        raise ValueError(
            f"view {names[holes.index(True)]!r} has unobserved (NaN) entries, which "
            f"solver={rule or type(solver).__name__!r} does not take; use solver='multiplicative' or "
            "RobustWMNMF"
        )
    return [
        MaskedView(X, least_entries(X.shape[1], n_components)) if hole else X
        for X, hole in zip(Xs, holes, strict=True)
    ]


def some_rows(views: Views, chosen: Array) -> Views:
    """Some of the observations; all of them as they are."""
    return views if chosen.all() else views.with_matrices([X[chosen] for X in views.matrices])


def checksums(fitted: Sequence[Any]) -> list[str | None]:
    """Checksums of the user's own arrays, where a model reads them rather than a copy."""
    return [digest(X.X) if isinstance(X, Scaled) and not is_streamed(X) else None for X in fitted]


def check_unchanged(
    fitted: Sequence[Any], sums: Sequence[str | None], names: Sequence[str]
) -> None:
    """Views too large to be copied are read where they are: they must be those of the fit."""
    for X, before, name in zip(fitted, sums, names, strict=True):
        if before is not None:  # only of views that wrap the user's own array
            refuse_changed(X.X, before, name)
