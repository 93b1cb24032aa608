"""Results of a fit into the users' own AnnData or MuData, when they ask for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from manyview._types import Array
from manyview._warn import warn_user
from manyview.datasets._dataset import import_pandas

from .containers import described_by_var, is_a
from .ids import places, refuse_repeated


def annotate(data: Any, model: Any, key: str = "manyview") -> Any:
    """Write labels, weights, the fused graph and loadings of a fitted model into an AnnData or MuData.

    Observations are matched by name (by position if the model was fitted without names, or on the
    same names in the same order); those the model has not seen get NaN, and no neighbours.

    Parameters
    ----------
    data : AnnData or MuData
        Changed in place, and returned.
    model : fitted WMNMF or RobustWMNMF
    key : str, default="manyview"
        Written are ``obs[key]`` (cluster, categorical), ``obsm[key]`` (consensus),
        ``obsm[key + "_reliance"]`` (a column per view), ``uns[key]`` (names and weights of the views,
        settings, number of clusters) and ``varm[key]`` of each modality (the parts of the clusters; NaN
        for features that were not used). An AnnData has ``varm[key]`` if one view is its X or a layer,
        ``varm[key + "_" + view]`` if several are, and parts of others in ``uns[key]["loadings"]``.
        RobustWMNMF also gives ``obs[key + "_confidence"]`` (of the label), ``obsm[key +
        "_embedding"]`` and its fused graph, ``obsp[key + "_connectivities"]`` and ``obsp[key +
        "_distances"]`` (in the embedding), which ``uns[key]`` describes as scanpy's neighbours are:
        pass ``neighbors_key=key`` to its tools. What was there under these names before is replaced.

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
    rows = _rows(data, model)
    robust = hasattr(model, "confidence_")
    found = [
        (data.obs, key, _labels(model, rows)),
        (data.obsm, key, _placed(model.consensus_, rows)),
        (data.obsm, f"{key}_reliance", _placed(model.reliance_, rows)),
    ]
    described = _description(model)
    if robust:
        found += _graph(data, model, key, rows)
        described |= _neighbours(model, key)
    elsewhere: dict[str, Array] = {}
    for place, name, values in _loadings(data, model, key):
        if place is None:
            elsewhere[name] = values
        else:
            found.append((place, name, values))
    # Everything is computed: from here on nothing fails halfway.
    for place, name, values in found:
        place[name] = values
    data.uns[key] = described | ({"loadings": elsewhere} if elsewhere else {})
    return data


def _labels(model: Any, rows: Array) -> Any:
    labels = [str(label) if label >= 0 else None for label in model.labels_]
    found = [None if i < 0 else labels[i] for i in rows]
    categories = [str(label) for label in np.unique(model.labels_[model.labels_ >= 0])]
    return import_pandas("annotate").Categorical(found, categories=categories)


def _description(model: Any) -> dict[str, Any]:
    """What ``uns`` holds: names, weights and settings, in kinds that HDF5 knows."""
    return {
        "method": type(model).__name__,
        "n_clusters": len(np.unique(model.labels_[model.labels_ >= 0])),
        "view_names": np.array([str(name) for name in model.view_names_in_]),
        "view_weights": np.asarray(model.view_weights_),
        "settings": _settings(model.get_params(deep=False)),
    }


def _settings(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters as files can hold them: None is left out, what is no number or text is as well."""
    kept: dict[str, Any] = {}
    for name, value in parameters.items():
        if isinstance(value, dict):
            kept[name] = {str(k): "none" if v is None else v for k, v in value.items()}
        elif isinstance(value, list | tuple | np.ndarray):
            kept[name] = np.asarray(value)
        elif isinstance(value, bool | int | float | str | np.number):
            kept[name] = value
    return kept


# --- the fused graph ---------------------------------------------------------------------------


def _graph(data: Any, model: Any, key: str, rows: Array) -> list[tuple[Any, str, Any]]:
    connectivities = _placed_graph(sp.csr_array(model.graph_), rows)
    return [
        (data.obs, f"{key}_confidence", _placed(model.confidence_.max(axis=1), rows)),
        (data.obsm, f"{key}_embedding", _placed(model.embedding_, rows)),
        (data.obsp, f"{key}_connectivities", connectivities),
        (data.obsp, f"{key}_distances", _distances(connectivities, model.embedding_, rows)),
    ]


def _placed_graph(graph: sp.csr_array, rows: Array) -> sp.csr_matrix:
    """Links between the observations of ``data``; a matrix, which older versions of scanpy ask for."""
    known = np.flatnonzero(rows >= 0)
    shape = (len(rows), graph.shape[0])
    pick = sp.csr_array((np.ones(len(known), graph.dtype), (known, rows[known])), shape=shape)
    placed = sp.csr_matrix(pick @ graph @ pick.T)
    placed.sort_indices()
    return placed


def _distances(graph: sp.csr_matrix, embedding: Array, rows: Array) -> sp.csr_matrix:
    """How far linked observations are from each other in the embedding."""
    one = np.repeat(np.arange(len(rows)), np.diff(graph.indptr))
    apart = embedding[rows[one]] - embedding[rows[graph.indices]]
    return sp.csr_matrix(
        (np.sqrt((apart**2).sum(axis=1)), graph.indices.copy(), graph.indptr.copy()), graph.shape
    )


def _neighbours(model: Any, key: str) -> dict[str, Any]:
    """What scanpy's tools read at ``neighbors_key``."""
    return {
        "connectivities_key": f"{key}_connectivities",
        "distances_key": f"{key}_distances",
        "params": {
            "method": "manyview",
            "metric": "euclidean",
            "n_neighbors": model.n_neighbors,
            "use_rep": f"{key}_embedding",
        },
    }


# --- parts of the clusters ---------------------------------------------------------------------


def _loadings(data: Any, model: Any, key: str) -> Iterator[tuple[Any, str, Array]]:
    """Where the parts of each view go (None: into ``uns``), their name there, and the parts by feature."""
    names = [str(name) for name in model.view_names_in_]
    tables = {name: table for name in names if (table := described_by_var(data, name)) is not None}
    alone = is_a(data, "MuData") or len(tables) == 1
    for name, parts in zip(names, model.components_, strict=True):
        if name in tables:
            values = _by_feature(parts.T, model.view_feature_names_in_[name], tables[name], name)
            if values is not None:
                yield tables[name].varm, key if alone else f"{key}_{name}", values
        elif is_a(data, "AnnData") and name.removeprefix("obsm:") in data.obsm:
            yield None, name, np.asarray(parts.T)


def _by_feature(parts: Array, features: Array | None, table: Any, name: str) -> Array | None:
    """Parts in the order of the table's features, NaN where a feature was not used."""
    wanted = [str(feature) for feature in table.var_names]
    fitted = wanted if features is None else [str(feature) for feature in features]
    if fitted == wanted and len(parts) == len(wanted):
        return np.asarray(parts)
    if (
        len(set(fitted)) < len(fitted)
        or len(fitted) != len(parts)
        or len(set(wanted)) < len(wanted)
    ):
        warn_user(
            f"the features of view {name!r} cannot be matched with those of the fit (names are repeated "
            "or absent); its parts are in model.components_ and were not written to varm"
        )
        return None
    return _placed(parts, places(wanted, fitted))


# --- observations ------------------------------------------------------------------------------


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
