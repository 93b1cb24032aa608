"""Regress covariates (age, sex, site) out of the views before clustering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._labels import as_list
from manyview._types import Array, Matrix, Views
from manyview.base import ZERO_ROWS, ByView, check_by_view
from manyview.engines.numpy.sources import is_streamed
from manyview.fuse import settled_zeros
from manyview.outcomes.align import frame, printed, quoted, read_table
from manyview.outcomes.columns import Column, design_of, may_be_codes, read_column, read_levels
from manyview.outcomes.mark import per_total, view_kind
from manyview.views.containers import Collection, Item
from manyview.views.ids import places
from manyview.views.views import as_views

#: Entries of a sparse view that may become dense.
MOST_DENSE = 50_000_000
#: Features regressed at a time.
BLOCK = 2048
#: Levels of a category beyond which there are too few samples of each.
FEWEST_PER_COLUMN = 5


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Views without the linear effects of covariates.

    Attributes
    ----------
    views : Collection
        Views for estimators, with the names of samples and features; ``arrays`` has plain arrays.
    covariates : tuple of str
        Columns that were regressed out.
    explained : dict of view → float
        Mean share of the variance of the view's features that was removed.
    notes : tuple of str
    """

    views: Collection
    covariates: tuple[str, ...]
    explained: dict[str, float]
    notes: tuple[str, ...]

    @property
    def arrays(self) -> dict[str, Array]:
        """Every view as an array."""
        return dict(zip(self.views.names, (item.matrix for item in self.views.items), strict=True))

    @property
    def table(self) -> Any:
        """One row per view: the share of variance that was taken away."""
        return frame({"view": list(self.explained), "explained": list(self.explained.values())})

    def __repr__(self) -> str:
        lines = [f"Views adjusted for {', '.join(self.covariates)}", printed(self.table)]
        return "\n".join([*lines, *(f"Note: {note}" for note in self.notes)])


def adjust(views: Any, covariates: Any, *, ids: Any = None, zero_rows: ByView = "auto") -> Adjusted:
    """Regress covariates out of every feature of every view.

    The linear regression on the covariates (categories as one column per level) is subtracted from each
    feature, except its mean. Counts are divided by the sample's total and log-transformed first, because
    depth and batch act by factors. Views of zeros and ones are unchanged. Use the result, not the original
    views, for all further functions.

    Differences between clusters that go along with a covariate are removed, too: if a subtype was
    measured in one batch only, its difference from the others is lost. For batches use ``fit(views,
    batch=...)``.

    Parameters
    ----------
    views : as `as_views` takes them
        NaN stays NaN. Sparse views become dense.
    covariates : DataFrame or dict of columns
        A row per sample, in the same order or, with an index of ids, matched by ids. Whole numbers with
        ten values or fewer (batch 1, 2, 3) are categories. A missing category is a separate level; a
        missing number is replaced by the mean of its column.
    ids : sequence, optional
        Ids of the samples, if the views have none.
    zero_rows : "auto", "missing", "observed" or dict of view → one of these, default "auto"
        What a row of zeros means, as in `RobustWMNMF`: a missing view (NaN in the result, not used in the
        regression), or a value.

    Returns
    -------
    Adjusted
        Pass its ``views`` to estimators.

    Examples
    --------
    >>> import numpy as np
    >>> import manyview as mv
    >>> rng = np.random.default_rng(0)
    >>> batch = np.repeat(["a", "b"], 30)
    >>> X = rng.normal(size=(60, 5)) + 3 * (batch == "b")[:, None]
    >>> found = mv.adjust({"rna": X}, {"batch": batch})
    >>> bool(found.explained["rna"] > 0.5)
    True
    >>> Y = found.arrays["rna"]
    >>> bool(np.allclose(Y[:30].mean(axis=0), Y[30:].mean(axis=0)))
    True
    """
    given = as_views(views, allow_negative=True, allow_missing=True, caller="adjust")
    names = given.sample_names if ids is None else np.array(as_list(ids), dtype=object)
    if names is not None and len(names) != given.n_samples:
        raise ValueError(f"ids has {len(names)} entries for {given.n_samples} samples")
    check_by_view("zero_rows", zero_rows, given.names, ZERO_ROWS)
    zeros = settled_zeros(given, zero_rows)
    notes: list[str] = []
    columns = _columns(covariates, names, given.n_samples, notes)
    design = design_of(columns, given.n_samples)[1]
    design = design - design.mean(axis=0)
    if design.shape[1] * FEWEST_PER_COLUMN > given.n_samples:
        raise ValueError(
            f"the covariates have {design.shape[1]} columns (levels count one each) for "
            f"{given.n_samples} samples; name fewer, or join rare levels"
        )
    items, explained = [], {}
    for s, name in enumerate(given.names):
        X, kind = _dense(given, s, zeros[name] == "observed", notes)
        residual, share = (X, 0.0) if kind == "binary" else _regressed(X, design)
        explained[name] = share
        items.append(Item(residual, names, given.feature_names[s]))
    found = Collection(list(given.names), items, by_name=True)
    return Adjusted(found, tuple(c.name for c in columns), explained, tuple(notes))


def _columns(covariates: Any, names: Any, n: int, notes: list[str]) -> list[Column]:
    table = read_table("covariates", covariates)
    table = table.numbered_like(None if names is None else names.tolist())
    if not table.columns.shape[1]:
        raise ValueError("covariates has no columns; pass those to regress out")
    rows = np.arange(table.n)
    if table.ids is not None and names is not None:
        rows = places([str(i) for i in names], [str(i) for i in table.ids])
        if not (rows >= 0).any():
            raise ValueError(
                f"covariates and views share no sample id: the views have {str(names[0])!r}, the "
                f"covariates {str(table.ids[0])!r}; use the same ids in both"
            )
    elif table.n != n:
        raise ValueError(
            f"covariates has {table.n} rows for {n} samples; give one row each, or ids to both"
        )
    columns = [
        _column(name, as_list(column), notes)
        for name, column in table.columns.reindex(rows).items()
    ]
    for column in columns:
        if column.kind is None:
            raise ValueError(f"covariate {quoted(column.name)} cannot be used: {column.reason}")
        if len(np.unique(column.values[~np.isnan(column.values)])) < 2:
            raise ValueError(
                f"covariate {quoted(column.name)} has one value only; there is nothing to regress out"
            )
        missing = int(column.absent.sum())
        if missing:
            how = "a level of its own" if column.levels else "set to the mean"
            notes.append(f"{quoted(column.name)} is missing for {missing} samples: {how}.")
    return columns


def _column(name: str, values: list[Any], notes: list[str]) -> Column:
    """A covariate; few whole numbers are levels, which take away all that a straight line would.

    So are the values of a technical column, whatever they are: dates of runs, plates 1 to 9 and "A".
    """
    column = read_column(name, values)
    if column.kind is None:
        return read_levels(name, values) or column
    if not (may_be_codes(column) or (column.kind == "number" and read_levels(name, values))):
        return column
    codes = read_column(name, values, "category")
    notes.append(
        f"{quoted(name)} has {len(codes.levels)} whole numbers, each treated as a separate level."
    )
    return codes


def _dense(views: Views, s: int, zeros: bool, notes: list[str]) -> tuple[Array, str]:
    """A view as an array: logarithms of counts, missing rows NaN unless ``zeros`` are values; its kind."""
    X: Matrix = views.matrices[s]
    name = views.names[s]
    if is_streamed(X):
        raise ValueError(
            f"view {name!r} is read from its file by rows; load it into memory to adjust it"
        )
    if sp.issparse(X):
        if X.shape[0] * X.shape[1] > MOST_DENSE:
            raise ValueError(
                f"view {name!r} is sparse and would take {X.shape[0]} × {X.shape[1]} numbers without "
                "its zeros; choose some thousand features first"
            )
        X = X.toarray()
    X = np.asarray(X, dtype=float)
    kind = view_kind(X, name, None)
    if kind == "counts":
        X = np.log1p(per_total(X))
        notes.append(
            f"View {name!r} has counts; shares of each sample's total were log-transformed."
        )
    elif kind == "binary":
        notes.append(
            f"View {name!r} has only zeros and ones, which cannot be adjusted; it is unchanged."
        )
    empty = ~X.any(axis=1)  # NaN is a value here: rows of NaN are missing already
    if not zeros and empty.any() and not empty.all():
        # A residual would make a missing sample a present one.
        notes.append(
            f"View {name!r} has {int(empty.sum())} rows of zeros, treated as missing and left "
            f"out of the regression; with zero_rows={{{name!r}: 'observed'}} they are values."
        )
        X = np.where(empty[:, None], np.nan, X)
    return X, kind


def _regressed(X: Array, design: Array) -> tuple[Array, float]:
    """Residuals plus means, and the mean share of variance taken away; gaps feature by feature."""
    Z = np.column_stack([np.ones(len(X)), design])
    adjusted = np.array(X, dtype=float)
    before, after = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for start in range(0, X.shape[1], BLOCK):
        block = slice(start, start + BLOCK)
        part = X[:, block]
        seen = ~np.isnan(part)
        filled = np.where(seen, part, 0.0)
        if seen.all():
            beta = np.linalg.lstsq(Z, filled, rcond=None)[0]
        else:
            gram = np.einsum("if,ip,iq->fpq", seen.astype(float), Z, Z, optimize=True)
            beta = np.einsum("fpq,fq->pf", np.linalg.pinv(gram, hermitian=True), filled.T @ Z)
        effect = design @ beta[1:]
        # Only what was observed keeps its mean; the design is centered over all.
        shift = np.where(seen, effect, 0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)
        adjusted[:, block] = part - effect + shift
        before[block], after[block] = _variance(part), _variance(adjusted[:, block])
    varies = before > 0
    share = 1 - after[varies] / before[varies]
    return adjusted, float(np.clip(share, 0, 1).mean()) if varies.any() else 0.0


def _variance(X: Array) -> Array:
    seen = ~np.isnan(X)
    n = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, X, 0).sum(axis=0) / n
    return (np.where(seen, X - mean, 0) ** 2).sum(axis=0) / n
