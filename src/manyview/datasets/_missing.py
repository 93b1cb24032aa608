"""Missing views for benchmarks: remove them, count them, and split samples with all their views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.model_selection import train_test_split

from manyview._types import Array, Views
from manyview._warn import warn_user
from manyview.engines.numpy.presence import observed_rows
from manyview.views.views import as_views

from ._dataset import Dataset, import_pandas

PATTERNS = ("random", "unequal", "single")


def remove_views(
    views: Any, share: float, *, pattern: str = "random", seed: int | None = 0
) -> dict[str, Array]:
    """Remove views of samples: return a copy in which every sample keeps at least one.

    Parameters
    ----------
    views : Dataset, dict, list or array
        Complete views. Sparse views become dense, because a sparse matrix cannot have NaN.
    share : float, at least 0, below 1
        For "random" and "unequal" the share of all pairs of a sample and a view that are removed; for
        "single" the share of samples that lose all views but one.
    pattern : {"random", "unequal", "single"}, default="random"
        "random": every pair is removed with equal probability. "unequal": later views lose more
        samples (the last of V views has V times the rate of the first), as when one assay is rare.
        "single": some samples keep one
        random view, the others all.
    seed : int or None, default=0

    Returns
    -------
    dict of view name to ndarray, with rows of NaN

    Examples
    --------
    >>> from manyview.datasets import make_synthetic, missing_views, remove_views
    >>> data = make_synthetic(100, n_clusters=3, noisy_views=(), random_state=0)
    >>> incomplete = remove_views(data, 0.3, seed=0)
    >>> missing_views(incomplete).sum()["missing"], 100 * len(incomplete)
    (120, 400)
    """
    if pattern not in PATTERNS:
        raise ValueError(f"pattern must be one of {', '.join(PATTERNS)}, got {pattern!r}")
    data = _read(views)
    has = _present(data)
    if not has.all():
        raise ValueError(
            f"{int((~has).sum())} views of samples are missing already; pass complete views"
        )
    (n, n_views), rng = has.shape, np.random.default_rng(seed)
    limit = 1.0 if pattern == "single" else 1 - 1 / n_views
    if n_views < 2 or not 0 <= share <= limit:
        raise ValueError(
            f"share={share} with {n_views} views and pattern={pattern!r}: it must be between 0 and "
            f"{limit:.3g}, so that every sample keeps a view"
        )
    if pattern == "single":
        chosen = rng.permutation(n)[: round(share * n)]
        has[chosen] = np.eye(n_views, dtype=bool)[rng.integers(n_views, size=len(chosen))]
    else:
        # Pairs in random order, those of large weight sooner; the last view of a sample stays.
        weights = np.arange(1.0, n_views + 1) if pattern == "unequal" else np.ones(n_views)
        order = np.argsort(rng.exponential(size=has.shape) / weights, axis=None)
        left, wanted = np.full(n, n_views), round(share * n * n_views)
        for pair in order:
            if not wanted:
                break
            sample, view = divmod(int(pair), n_views)
            if left[sample] > 1:
                has[sample, view], left[sample], wanted = False, left[sample] - 1, wanted - 1
    if share > 0 and (has.sum(axis=1) < 2).all():
        warn_user(
            f"share={share} leaves every sample with one of {n_views} views: no sample connects two "
            "views, so no method can match clusters across them"
        )
    found = {}
    for s, (name, X) in enumerate(zip(data.names, data.matrices, strict=True)):
        found[name] = np.array(X.toarray() if sp.issparse(X) else X, dtype=float)
        found[name][~has[:, s]] = np.nan
        if not has[:, s].any():
            raise ValueError(f"view {name!r} would lose all samples; use a smaller share")
    return found


def missing_views(views: Any) -> Any:
    """Count the missing views: a row per combination of views that occurs, the most frequent first.

    Parameters
    ----------
    views : Dataset, dict, list or array
        Views with rows of NaN, or DataFrames of which some lack samples.

    Returns
    -------
    DataFrame
        A column of True and False for each view; "samples", how many samples have exactly these views;
        "missing", samples × missing views. `manyview.plot.missing_views` draws it.
    """
    data = _read(views)
    kinds, counts = np.unique(_present(data), axis=0, return_counts=True)
    table = import_pandas("missing_views()").DataFrame(kinds, columns=list(data.names))
    table["samples"], table["missing"] = counts, counts * (~kinds).sum(axis=1)
    return table.sort_values("samples", ascending=False, kind="stable", ignore_index=True)


def split_samples(
    views: Mapping[str, Any], y: Any = None, *, test_size: float = 0.25, seed: int | None = 0
) -> tuple[Any, ...]:
    """Split samples at random into two parts; all views of a sample go to the same part.

    Parameters
    ----------
    views : dict of arrays, sparse matrices or DataFrames with the same rows
    y : sequence of labels, optional
        The parts then have the same shares of every class.
    test_size : float, default=0.25
    seed : int or None, default=0

    Returns
    -------
    views_train, views_test, and with ``y`` also y_train, y_test
    """
    n = {name: X.shape[0] for name, X in views.items()}
    if len(set(n.values())) > 1:
        raise ValueError(f"views have different numbers of rows {n}; align them first")
    parts = train_test_split(
        np.arange(next(iter(n.values()))), test_size=test_size, random_state=seed, stratify=y
    )

    def rows(X: Any, part: Array) -> Any:
        return X.iloc[part] if hasattr(X, "iloc") else X[part]

    found = tuple({name: rows(X, part) for name, X in views.items()} for part in parts)
    return found if y is None else (*found, *(rows(np.asarray(y), part) for part in parts))


def _read(views: Any) -> Views:
    given = views.views if isinstance(views, Dataset) else views
    return as_views(given, allow_negative=True, allow_missing=True, caller="datasets")


def _present(data: Views) -> Array:
    return np.column_stack(
        [
            np.diff(X.tocsr().indptr) > 0 if name in data.filled else observed_rows(X)
            for name, X in zip(data.names, data.matrices, strict=True)
        ]
    )
