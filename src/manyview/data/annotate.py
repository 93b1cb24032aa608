"""Results of a fit into the users' own AnnData or MuData, when they ask for it."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from manyview._types import Array
from manyview.datasets._dataset import import_pandas

from .foreign import is_a
from .ids import places, refuse_repeated


def annotate(data: Any, model: Any, key: str = "manyview") -> Any:
    """Write labels, weights and the consensus of a fitted model into an AnnData or MuData.

    Observations are matched by name (by position if the model was fitted without names, or on the
    same names in the same order); those the model has not seen get NaN.

    Parameters
    ----------
    data : AnnData or MuData
        Changed in place, and returned.
    model : fitted WMNMF or RobustWMNMF
    key : str, default="manyview"
        Written are ``obs[key]`` (cluster, categorical), ``obs[key + "_confidence"]`` (of the label;
        RobustWMNMF only), ``obsm[key]`` (consensus), ``obsm[key + "_reliance"]`` (a column per view)
        and ``uns[key]`` (names and weights of the views, method, number of clusters). What was
        there under these names before is replaced.

    Returns
    -------
    AnnData or MuData
        The same object as ``data``.

    Examples
    --------
    >>> import manyview as mv
    >>> model = mv.RobustWMNMF(4, views=["X", "obsm:protein"]).fit(adata)  # doctest: +SKIP
    >>> mv.annotate(adata, model).obs["manyview"]  # doctest: +SKIP
    """
    check_is_fitted(model)
    if not (is_a(data, "AnnData") or is_a(data, "MuData")):
        raise TypeError(
            f"annotate writes to an AnnData or MuData, got {type(data).__name__}; for other data "
            "read model.labels_, model.sample_names_in_ and model.reliance_"
        )
    pandas = import_pandas("annotate")
    rows = _rows(data, model)
    labels = [str(label) if label >= 0 else None for label in model.labels_]
    found = [None if i < 0 else labels[i] for i in rows]
    categories = [str(label) for label in np.unique(model.labels_[model.labels_ >= 0])]
    data.obs[key] = pandas.Categorical(found, categories=categories)
    if hasattr(model, "confidence_"):
        data.obs[f"{key}_confidence"] = _placed(model.confidence_.max(axis=1), rows)
    data.obsm[key] = _placed(model.consensus_, rows)
    data.obsm[f"{key}_reliance"] = _placed(model.reliance_, rows)
    data.uns[key] = {
        "method": type(model).__name__,
        "n_clusters": len(categories),
        "view_names": np.array([str(name) for name in model.view_names_in_]),
        "view_weights": np.asarray(model.view_weights_),
    }
    return data


def _rows(data: Any, model: Any) -> Array:
    """The model's row of every observation of ``data``, −1 where it has none."""
    kind, fitted = type(data).__name__, model.sample_names_in_
    names = [str(name) for name in data.obs_names]
    if fitted is None:
        if len(names) != len(model.labels_):
            raise ValueError(
                f"the model was fitted on {len(model.labels_)} observations without names, and the "
                f"{kind} has {len(names)}; fit on named observations"
            )
        return np.arange(len(names))
    known = [str(name) for name in fitted]
    if known == names:  # also where names are repeated: these are the fitted rows in their order
        return np.arange(len(names))
    refuse_repeated(known, "the model")
    refuse_repeated(names, f"the {kind}")
    rows = places(names, known)
    if (rows < 0).all():
        raise ValueError(
            f"no observation of the {kind} (the first is {names[0]!r}) was in the "
            f"fit (the first there is {str(fitted[0])!r}); annotate the data the model was fitted on"
        )
    return rows


def _placed(values: Array, rows: Array) -> Array:
    placed = np.full((len(rows), *values.shape[1:]), np.nan, dtype=values.dtype)
    placed[rows >= 0] = values[rows[rows >= 0]]
    return placed
