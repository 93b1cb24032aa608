"""The views of `WMNMF` as it computes with them: scaled, and where the engine wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.engines.affinity import has_nan
from manyview.engines.numpy.masked import MaskedView, least_entries
from manyview.engines.numpy.sources import Scaled, is_streamed
from manyview.engines.optional import torch_part
from manyview.engines.torch.device import choose, precision
from manyview.maths.solvers import Solver, own_name
from manyview.storage.checkpoint import digest

from .base import working_dtype
from .scaling import Scaling, fit_scaling

#: Dense views of more bytes than this are scaled when read, not copied.
COPY_LIMIT = 2**28


class WorkingViews(NamedTuple):
    """Views for the loop, the same for the model to keep (always on the host), and their scalings."""

    Xs: list[Any]
    fitted: list[Any]
    scalings: list[Scaling]


def scale_and_place(views: Views, model: Any, cluster: Any) -> WorkingViews:
    """Scale the views and bring them to where the model's engine computes."""
    if model.engine == "torch":
        return _on_device(views, model)
    scalings = fit_scaling(views, model.scale)
    fitted = scaled(views, scalings, model.dtype, model.missing == "mask")
    if model.missing == "error":
        check_finite(fitted, views.names)
    if cluster is None:
        return WorkingViews(fitted, fitted, scalings)
    refuse_holes(fitted, views.names)
    return WorkingViews([cluster.view(X) for X in fitted], fitted, scalings)


def _on_device(views: Views, model: Any) -> WorkingViews:
    """The views moved once to the device and scaled there."""
    refuse_holes(views.matrices, views.names)
    for X in views.matrices:
        if is_streamed(X):
            raise ValueError(
                f"{X.label} is read from its file by rows, which engine='numpy' does; use that, "
                "or load the view into memory"
            )
    device = choose(model.device, sum(int(np.prod(X.shape)) for X in views.matrices))
    dtype = precision(device, model.dtype, working_dtype(views, model.dtype))
    Xs, scalings = torch_part("rows").device_views(
        views, lambda raw: fit_scaling(raw, model.scale), device, dtype
    )
    # Unseen rows look for their neighbours on the host.
    fitted = scaled(views, scalings, model.dtype, model.missing == "mask")
    if model.missing == "error":
        check_finite(Xs, views.names)
    return WorkingViews(Xs, fitted, scalings)


def scaled(views: Views, scalings: list[Scaling], dtype: Any, always_copied: bool) -> list[Any]:
    """The scaled views, as copies or, where they are large or in files, scaled when read."""
    dtype = working_dtype(views, dtype)
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


def refuse_holes(Xs: Sequence[Matrix], names: Sequence[str]) -> None:
    for X, name in zip(Xs, names, strict=True):
        if has_nan(X):
            raise ValueError(
                f"view {name!r} has unobserved (NaN) entries, which WMNMF takes with "
                "engine='numpy' only; use that, or fill them in"
            )


def check_finite(Xs: Sequence[Any], names: Sequence[str]) -> None:
    for X, name in zip(Xs, names, strict=True):
        if not np.isfinite(X.sum()):
            raise ValueError(
                f"view {name!r} has entries too large or too small to compute with; divide it "
                "by a constant"
            )


def checksums(fitted: Sequence[Any]) -> list[str | None]:
    """Checksums of the user's own arrays, where a model reads them rather than a copy."""
    return [digest(X.X) if isinstance(X, Scaled) and not is_streamed(X) else None for X in fitted]


def check_unchanged(
    fitted: Sequence[Any], sums: Sequence[str | None], names: Sequence[str]
) -> None:
    """Views too large to be copied are read where they are: they must be those of the fit."""
    for X, before, name in zip(fitted, sums, names, strict=True):
        if before is not None and digest(X.X) != before:
            raise ValueError(
                f"view {name!r} was changed after the fit (it is too large to be "
                "copied, and the model reads it where it is); fit again, or put its numbers back"
            )
