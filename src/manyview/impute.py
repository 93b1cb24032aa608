"""What a fitted model fills in where a view is missing, and the data it keeps for that."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix, Views
from manyview.engines.numpy.presence import is_table
from manyview.engines.numpy.repeats import row_codes
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import Scaling
from manyview.engines.threads import beside
from manyview.storage.checkpoint import digest
from manyview.views.views import LOAD_LIMIT

#: How the checksum of a table begins that comes from the codes of its rows.
OF_ROWS = "rows "


def remember(views: Views) -> tuple[list[Matrix], Callable[[], list[str | None]]]:
    """The data to fill in later: copies, since users' arrays change.

    Of arrays too large to be copied there is a checksum, made while the fit goes on; files are what
    they are.
    """
    held = [X for X in views.matrices if not is_streamed(X)]
    large = sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in held) > LOAD_LIMIT
    data = [X if large or is_streamed(X) else X.copy() for X in views.matrices]
    if not large:
        return data, lambda: [None] * len(data)
    return data, beside(lambda: [None if is_streamed(X) else checksum_of(X) for X in data])


def checksum_of(X: Matrix) -> str:
    """A checksum that shows whether an array was changed, in a tenth of the time of a digest."""
    if not is_table(X):
        return digest(X)
    return OF_ROWS + hashlib.blake2b(row_codes(X).data, digest_size=32).hexdigest()


def refuse_changed(X: Matrix, checksum: str | None, name: str) -> None:
    """Views too large to be copied are read where they are: they must be those of the fit."""
    if checksum is None:
        return
    if checksum != (checksum_of(X) if checksum.startswith(OF_ROWS) else digest(X)):
        raise ValueError(
            f"view {name!r} was changed after the fit (it is too large to be copied, and the model "
            "reads it where it is); fit again, or put its numbers back"
        )


def check_fillable(X: Matrix, checksum: str | None, name: str) -> None:
    """Refuse files, relations, and arrays that are not those of the fit."""
    if not is_table(X):
        raise ValueError(
            f"view {name!r} is a {X.kind}, of which nothing is filled in; impute works on features"
        )
    if is_streamed(X):
        raise ValueError(
            f"{X.label} is read from its file by rows and has nothing missing but rows of zeros; "
            "impute works on views in memory"
        )
    refuse_changed(X, checksum, name)


def filled_in(X: Matrix, present: Array, guess: Array, scaling: Scaling | None) -> Array:
    """The data with what is absent taken from ``guess``, the product U v* in scaled units.

    Rows where the view is missing have the size of a typical row, unobserved entries of others the
    size of their row. A feature that no row has stays NaN.
    """
    dense = X.toarray() if sp.issparse(X) else X
    known = ~np.isnan(dense)
    zeros = ~present & ~np.where(known, dense, 0).any(axis=1)
    known &= ~zeros[:, None]  # rows of zeros count as missing
    Z = dense if scaling is None else scaling.apply(dense.astype(float))
    # A row of z is as large, against its U v*, as its observed entries are.
    covered = np.where(known, guess, 0).sum(axis=1)
    size = np.divide(
        np.where(known, Z, 0).sum(axis=1), covered, out=np.zeros(len(Z)), where=covered > 0
    )
    typical = size[present].mean() if present.any() else 1.0
    size = np.where(size > 0, size, typical)[:, None]
    filled = size * guess if scaling is None else scaling.undo(size * guess)
    if scaling is not None and scaling.low is None:
        totals = np.nansum(np.abs(dense), axis=1)
        mean_total = totals[present].mean() if present.any() else 1.0
        filled = filled * np.where(totals > 0, totals, mean_total)[:, None]
    filled[:, ~known.any(axis=0)] = np.nan
    return np.where(known, dense, filled)
