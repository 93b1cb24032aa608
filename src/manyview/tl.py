"""Functions for AnnData and MuData: results are written into the same object."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from manyview._types import Array, Seed
from manyview._warn import warn_user
from manyview.datasets._dataset import import_pandas
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.threads import blocks
from manyview.maths.tails import are_counts, shape_rows
from manyview.outcomes import enrichment
from manyview.outcomes.columns import is_technical
from manyview.robust import RobustWMNMF
from manyview.storage.checkpoint import digest
from manyview.views.containers import (
    Collection,
    Item,
    collect,
    described_by_var,
    full_name,
    is_a,
    parts_of,
)
from manyview.views.ids import places, refuse_repeated

#: The column of ``var`` in which scanpy and muon mark the features to use.
HIGHLY_VARIABLE = "highly_variable"


def cluster(
    data: Any,
    n_clusters: int | str = "communities",
    *,
    key_added: str = "manyview",
    resolution: float = 1.0,
    batch_key: str | None = None,
    views: Sequence[str] | None = None,
    use_highly_variable: bool | None = None,
    random_state: Seed = 0,
    neighbors: RobustWMNMF | None = None,
    **settings: Any,
) -> RobustWMNMF:
    """Cluster the samples of a MuData or AnnData by all their views, and write the results into it.

    The fit is that of ``RobustWMNMF(...).fit(data)``.

    Parameters
    ----------
    data : MuData or AnnData
        Changed in place. Samples that lack a modality get their label from the others. If the clusters
        follow a technical column of ``obs`` (batch, site, plate), a warning appears.
    n_clusters : "communities", "auto" or int, default="communities"
        As many as the fused graph has Leiden communities (extra ``communities``), a number found by
        `select_n_clusters`, or yours. Communities are where the clusters start; the factorization then
        moves a few samples between them.
    key_added : str, default="manyview"
        Where to write: ``obs[key_added]`` has the clusters, ``obs[key_added + "_confidence"]`` how sure
        they are; `annotate` lists the rest. The fused graph is at ``neighbors_key=key_added`` for
        scanpy's tools.
    resolution : float, default=1
        Of the communities: a higher value gives more and smaller ones.
    batch_key : str, optional
        The column of ``obs`` with the batch of every cell (sample, donor, lane). Batches are aligned in
        every modality, and the weights of modalities are learned within batches. Types that only one
        batch has stay apart if the batches share most others. The matrices themselves do not change.
    views : sequence of str, optional
        Modalities of a MuData (all by default), or parts of an AnnData such as ["X",
        "obsm:protein", "layers:spliced"].
    use_highly_variable : bool, optional
        Whether only features with ``var["highly_variable"]`` are used. By default they are wherever
        there is such a column, and a warning says so; True does so without a warning.
    random_state : int, RandomState, Generator or None, default=0
    neighbors : RobustWMNMF, optional
        What `tl.neighbors` returned for these data: its graph and weights, and all its settings, are used
        again. With a whole number as random_state the result is the one without ``neighbors``, bit for bit.
        Only resolution, key_added, max_iter, tol and parameters of the computation may then differ. If the
        data have changed since, a warning says so: the clusters are of the data that it saw.
    **settings : other parameters of `RobustWMNMF`
        Such as n_neighbors=15 or scale={"atac": "sqrt"}.

    Returns
    -------
    RobustWMNMF
        The fitted model, for `predict`, `impute` and `save`.

    Examples
    --------
    >>> import manyview as mv
    >>> model = mv.tl.cluster(mdata, resolution=1)  # doctest: +SKIP
    >>> sc.tl.umap(mdata, neighbors_key="manyview")  # doctest: +SKIP
    >>> model = mv.tl.neighbors(mdata)  # doctest: +SKIP
    >>> for r in (0.5, 1, 2):  # doctest: +SKIP
    ...     mv.tl.cluster(mdata, resolution=r, neighbors=model, key_added=f"resolution {r}")
    """
    asked = {
        "batch_key": batch_key,
        "views": views,
        "use_highly_variable": use_highly_variable,
        "random_state": random_state,
        **settings,
    }
    if neighbors is None:
        model = _fitted("tl.cluster", data, n_clusters, resolution=resolution, **asked)
    else:
        _refuse_unknown_settings(settings, "tl.cluster")
        _refuse_other_settings(neighbors, {"n_clusters": n_clusters, **asked})
        _warn_of_other_data(data, neighbors)
        whole = RobustWMNMF() if neighbors.max_iter == 1 else neighbors
        loop = {"max_iter": whole.max_iter}
        loop |= {name: settings[name] for name in LOOP if name in settings}
        model = neighbors._at_resolution(resolution, **loop)
        model._batch_key, model._seen = neighbors._batch_key or batch_key, None
    _write(data, model, key_added)
    _warn_of_batches(data.obs, key_added, model._batch_key)
    return model


#: Parameters that change nothing before the factorization.
LOOP = ("max_iter", "tol", "n_jobs", "verbose", "callback")


def _refuse_other_settings(model: Any, asked: dict[str, Any]) -> None:
    """What `tl.neighbors` has decided, and cannot be chosen again."""
    if not isinstance(model, RobustWMNMF):
        raise TypeError(
            f"neighbors= is the model that tl.neighbors returns, got {type(model).__name__}; the name "
            "under which results are written is key_added"
        )
    check_is_fitted(model)
    if model.n_clusters != "communities" or asked["n_clusters"] != "communities":
        raise TypeError(
            "neighbors= is for communities, of which a resolution gives more or fewer, not for "
            f"n_clusters={model.n_clusters!r} (of the model) and {asked['n_clusters']!r} (given); leave "
            "neighbors out"
        )
    told = {"batch_key": model._batch_key, "use_highly_variable": model._highly_variable}
    known = {**model.get_params(), **told}
    if model._batch_key is None and model._batch is not None:  # a fit by batch=, which has no name
        known["batch_key"] = asked["batch_key"]
    wrong = [
        name
        for name, value in asked.items()
        if value is not None
        and name not in LOOP
        and not (name == "random_state" and value == 0)  # the default
        and not (name in known and np.array_equal(value, known[name]))
    ]
    if wrong:
        raise TypeError(
            f"neighbors= has its own settings: give {', '.join(wrong)} to tl.neighbors, or leave neighbors "
            "out"
        )


def _warn_of_other_data(data: Any, model: RobustWMNMF) -> None:
    """The clusters will be those of the samples and values that `tl.neighbors` saw."""
    if model._seen is None:
        return
    now = _checksums(data, model)
    other = [name for name, known in model._seen.items() if now.get(name) != known]
    if other:
        warn_user(
            f"{', '.join(map(repr, other))}: not the data that tl.neighbors saw (other samples, features "
            "or values). The clusters are those of its data, and are written to the samples of the same "
            "name; call tl.neighbors again to cluster these"
        )


def _checksums(data: Any, model: RobustWMNMF) -> dict[str, str]:
    """Of every view that the model reads: the names of its samples and features, and its values."""
    with warnings.catch_warnings(action="ignore"):  # said at the fit
        given = _of_used_features(data, collect(data, model.views), model._highly_variable)
    found = {}
    for name, item in zip(given.names, given.items, strict=True):
        X = item.matrix
        values = X if is_streamed(X) else sp.csr_array(X) if sp.issparse(X) else np.asarray(X)
        names = [[] if of is None else list(map(str, of)) for of in (item.ids, item.features)]
        found[str(name)] = hashlib.blake2b(f"{names} {digest(values)}".encode()).hexdigest()
    return found


def _write(data: Any, model: RobustWMNMF, key: str) -> None:
    annotate(data, model, key)
    if model._batch_key is not None:
        data.uns[key]["settings"]["batch_key"] = model._batch_key


def _fitted(
    verb: str,
    data: Any,
    n_clusters: int | str = "communities",
    *,
    batch_key: str | None = None,
    views: Sequence[str] | None = None,
    use_highly_variable: bool | None = None,
    random_state: Seed = 0,
    **settings: Any,
) -> RobustWMNMF:
    if not (is_a(data, "AnnData") or is_a(data, "MuData")):
        raise TypeError(
            f"{verb} takes an AnnData or MuData, got {type(data).__name__}; for arrays and tables "
            "use RobustWMNMF(n_clusters).fit_predict(views)"
        )
    _refuse_unknown_settings(settings, verb)
    model = RobustWMNMF(n_clusters, views=views, random_state=random_state, **settings)
    given = _of_used_features(data, collect(data, views), use_highly_variable)
    _tell_raw_counts(given, model.scale)
    with warnings.catch_warnings():
        if verb == "tl.neighbors":  # the loop is not what is wanted
            warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(given, batch=batch_of(data, batch_key))
    model._batch_key, model._highly_variable = batch_key, use_highly_variable
    return model


def _tell_raw_counts(given: Collection, scale: Any) -> None:
    """Announce modalities of whole numbers, whose cells differ in depth, unless their scale was chosen."""
    chosen = {*scale} if isinstance(scale, dict) else set()
    raw = [
        str(name)
        for name, item in zip(given.names, given.items, strict=True)
        if name not in chosen
        and (isinstance(item.matrix, np.ndarray) or sp.issparse(item.matrix))
        and are_counts(shape_rows(item.matrix))
    ]
    if raw and (scale == "auto" or chosen):
        warn_user(
            f"{', '.join(map(repr, raw))}: raw counts. With at least 40% zeros, each count is divided by "
            "its cell's total and square-rooted; with fewer zeros, clusters may follow sequencing depth. "
            "Normalize first: sc.pp.normalize_total and sc.pp.log1p for genes, CLR or DSB for proteins; or "
            f"choose yourself, scale={{{raw[0]!r}: 'sqrt'}}"
        )


def neighbors(data: Any, *, key_added: str = "manyview", **settings: Any) -> RobustWMNMF:
    """Write the fused graph, the weights of the views and the embedding, without clusters.

    For trying resolutions by ``tl.cluster(data, resolution=2, neighbors=model)``, and for the tools of
    scanpy. It leaves out the factorization, and so parts and labels.

    Parameters
    ----------
    data : MuData or AnnData
        Changed in place.
    key_added : str, default="manyview"
        As for `cluster`: written are ``obsp``, ``obsm[key_added + "_embedding"]`` and
        ``obsm[key_added + "_reliance"]``, ``obs[key_added + "_agreement"]`` and ``uns[key_added]``.
        Labels and parts that `cluster` wrote under the same key are removed.
    **settings : parameters of `cluster`
        Such as views, batch_key or use_highly_variable. `cluster` can go on from communities
        (the default), not from a number of clusters. The embedding has six dimensions for each
        community at the ``resolution``; graph and weights do not depend on it.

    Returns
    -------
    RobustWMNMF
        The model after one iteration, for ``tl.cluster(data, neighbors=model)``.

    Examples
    --------
    >>> import manyview as mv
    >>> model = mv.tl.neighbors(mdata)  # doctest: +SKIP
    >>> mv.tl.cluster(mdata, resolution=2, neighbors=model)  # doctest: +SKIP
    """
    if "max_iter" in settings:
        raise TypeError("tl.neighbors makes no iterations: leave max_iter out, or use tl.cluster")
    model = _fitted("tl.neighbors", data, **settings, max_iter=1)
    model._seen = _checksums(data, model)
    _write(data, model, key_added)
    for owner in (data, *(data.mod.values() if is_a(data, "MuData") else ())):
        for name in {key_added, f"{key_added}_confidence"} & set(owner.obs):
            del owner.obs[name]
        written = {key_added, *(f"{key_added}_{view}" for view in model.view_names_in_)}
        for name in written & set(owner.varm):
            del owner.varm[name]
    del data.obsm[key_added]
    return model


def predict(
    data: Any, model: RobustWMNMF, *, key_added: str = "manyview", batch_key: str | None = None
) -> Array:
    """Assign new samples to the clusters of a fitted model, and write the clusters into the object.

    Parameters
    ----------
    data : MuData or AnnData
        Changed in place: ``obs[key_added]`` has the cluster, with the categories of the fit, and
        ``obs[key_added + "_confidence"]`` how sure it is. Modalities may be absent. Features are found
        by name; those that are absent are treated as unobserved, with a warning that counts them.
    model : fitted RobustWMNMF
    key_added : str, default="manyview"
    batch_key : str, optional
        The column of ``obs`` with the batches, after a fit with batches. They may be new.

    Returns
    -------
    ndarray (n_obs,)
        The clusters as numbers; −1 where every view that has weight is missing.

    Examples
    --------
    >>> import manyview as mv
    >>> mv.tl.predict(new, model, batch_key="sample")  # doctest: +SKIP
    """
    check_is_fitted(model)
    if getattr(model, "_seen", None) is not None:
        raise ValueError(
            "the model of tl.neighbors has no clusters yet: predict with that of "
            "mv.tl.cluster(data, neighbors=model)"
        )
    if not (is_a(data, "AnnData") or is_a(data, "MuData")):
        raise TypeError(
            f"tl.predict writes into an AnnData or MuData, got {type(data).__name__}; for other data use "
            "model.predict(X)"
        )
    batch = batch_of(data, batch_key)
    labels = model.predict(data, batch=batch)
    sure = model.predict_proba(data, batch=batch).max(axis=1)
    categories = [str(k) for k in range(model.n_clusters_)]
    words = [categories[k] if k >= 0 else None for k in labels]
    data.obs[key_added] = import_pandas("tl.predict").Categorical(words, categories=categories)
    data.obs[f"{key_added}_confidence"] = np.where(labels >= 0, sure, np.nan)
    return labels


#: Arguments of scanpy's and muon's functions that ours do not have, and what does the same.
ELSEWHERE = {
    "copy": "results are written into the object that is passed; pass data.copy() to keep it as it is",
    "use_rep": "name representations among the views: views=['obsm:X_pca'], or ['rna:obsm:X_pca', 'prot'] "
    "of a MuData",
    "n_pcs": "choose the components before: adata.obsm['X_pca30'] = adata.obsm['X_pca'][:, :30], then "
    "views=['obsm:X_pca30']",
    "neighbors_key": "the graph is made of the views; give their names in views=[...]",
    "key": "the name under which results are written is key_added",
    "seed": "the seed is random_state",
    "inplace": "results are always written into the object that is passed",
}


def _refuse_unknown_settings(settings: dict[str, Any], verb: str) -> None:
    known = RobustWMNMF._get_param_names()
    for name in settings:
        if name in known:
            continue
        hint = ELSEWHERE.get(name)
        if hint is None:
            near = get_close_matches(name, known, 3)
            hint = f"did you mean {' or '.join(near)}? " if near else ""
            own = ", batch_key, use_highly_variable, key_added" if verb.startswith("tl.") else ""
            hint += f"The parameters are {', '.join(known)}{own}"
        raise TypeError(f"{verb} has no parameter {name!r}: {hint}")


def batch_of(data: Any, key: str | None) -> Any:
    """A column of ``obs`` as a Series; of a MuData also one that its modalities have alone."""
    if key is None:
        return None
    if key in data.obs:
        return data.obs[key]
    found: Any = None
    for table in data.mod.values() if is_a(data, "MuData") else ():
        if key in table.obs:
            column = table.obs[key].astype(object)
            found = column if found is None else found.combine_first(column)
    if found is None:
        raise ValueError(
            f"obs has no column {key!r} for batch_key; the columns are {[str(c) for c in data.obs]}"
        )
    return found.reindex(data.obs_names)


def _warn_of_batches(obs: Any, key: str, aligned: str | None = None) -> None:
    """Compare the clusters with the columns of ``obs`` that look technical."""
    technical = {str(c): obs[c].astype(object) for c in obs.columns if is_technical(str(c))}
    if not technical or obs[key].isna().all():
        return
    labels = obs[key].astype(object).tolist()
    columns = {name: column.tolist() for name, column in technical.items()}
    for found in enrichment(labels, columns).followed:
        again = f"Cluster again with batch_key={found.column!r}."
        warn_user(found.sentence(again, found.column == aligned))


def _of_used_features(data: Any, given: Collection, asked: bool | None) -> Collection:
    """The views with their highly variable features alone, where these are marked and wanted."""
    if asked is False:
        return given
    items, told = [], []
    for name, item in zip(given.names, given.items, strict=True):
        table = described_by_var(data, name)
        if table is None or HIGHLY_VARIABLE not in table.var:
            items.append(item)
            continue
        used = _marked(table, name)
        items.append(_columns(item, used, name))
        told.append(f"{int(used.sum())} of {len(used)} features of {name!r}")
    if asked and not told:
        raise ValueError(
            f"none of the views {given.names} has var[{HIGHLY_VARIABLE!r}]; mark features by "
            "sc.pp.highly_variable_genes(adata), or leave use_highly_variable out"
        )
    if told and asked is None:
        warn_user(
            f"only highly variable features are used: {', '.join(told)}; use_highly_variable=False uses "
            "all, and True uses these without a warning"
        )
    return replace(given, items=items)


def _marked(table: Any, name: str) -> Array:
    """Which features of a table are highly variable."""
    used = table.var[HIGHLY_VARIABLE].fillna(False).to_numpy().astype(bool)
    if not used.any():
        raise ValueError(
            f"var[{HIGHLY_VARIABLE!r}] of {name!r} marks none of its {len(used)} features; mark some, or "
            "pass use_highly_variable=False"
        )
    if not table.var_names.is_unique:
        raise ValueError(
            f"the features of {name!r} have repeated names, so the highly variable ones could not be "
            "found in new data; call its var_names_make_unique() first, or pass "
            "use_highly_variable=False"
        )
    return used


def _columns(item: Item, used: Array, name: str) -> Item:
    if used.all():
        return item
    if is_streamed(item.matrix):
        raise ValueError(
            f"view {name!r} stays in its file, of which columns cannot be chosen; load it "
            "(adata.to_memory()), or pass use_highly_variable=False"
        )
    X = item.matrix
    some = sp.csr_array(X.tocsc()[:, used]) if sp.issparse(X) else np.asarray(X)[:, used]
    features = None if item.features is None else item.features[used]
    return replace(item, matrix=some, features=features)


# --- results into the users' own container --------------------------------------------------------


def annotate(data: Any, model: Any, key: str = "manyview") -> Any:
    """Write labels, weights, the fused graph and loadings of a fitted model into an AnnData or MuData.

    Samples are matched by name (by position if the model was fitted without names, or on the
    same names in the same order); those the model has not seen get NaN, and no neighbors.

    Parameters
    ----------
    data : AnnData or MuData
        Changed in place, and returned.
    model : fitted WMNMF or RobustWMNMF
    key : str, default="manyview"
        Written are ``obs[key]`` (cluster, categorical; of a MuData also in the ``obs`` of each modality,
        where `scanpy.tl.rank_genes_groups` looks for it), ``obsm[key]`` (consensus),
        ``obsm[key + "_reliance"]`` (a column per view), ``uns[key]`` (names and weights of the views,
        settings, number of clusters) and ``varm[key]`` of each modality (the parts of the clusters; NaN
        for features that were not used). An AnnData has ``varm[key]`` if one view is its X or a layer,
        ``varm[key + "_" + view]`` if several are, and parts of others in ``uns[key]["loadings"]``.
        RobustWMNMF also gives ``obs[key + "_confidence"]`` (of the label), ``obs[key + "_agreement"]``
        (how far the views agree on each sample), ``obsm[key + "_embedding"]`` and its fused graph,
        ``obsp[key + "_connectivities"]`` and ``obsp[key + "_distances"]`` (in the
        embedding), which ``uns[key]`` describes as scanpy's neighbors are:
        pass ``neighbors_key=key`` to its tools. What was there under these names before is replaced.

    Returns
    -------
    AnnData or MuData
        The same object as ``data``.

    Examples
    --------
    >>> import manyview as mv
    >>> model = mv.RobustWMNMF(4, views=["X", "obsm:protein"]).fit(adata)  # doctest: +SKIP
    >>> mv.tl.annotate(adata, model).obs["manyview"]  # doctest: +SKIP
    """
    check_is_fitted(model)
    if not (is_a(data, "AnnData") or is_a(data, "MuData")):
        raise TypeError(
            f"annotate writes to an AnnData or MuData, got {type(data).__name__}; for other data "
            "read model.labels_, model.sample_names_in_ and model.reliance_"
        )
    rows = _rows(data, model)
    for owner in (data, *(data.mod.values() if is_a(data, "MuData") else ())):
        if owner.is_view:  # part of another object becomes one of its own, as the caller asks
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                owner.uns["__manyview__"] = True
                del owner.uns["__manyview__"]
    robust = hasattr(model, "confidence_")
    labels = _labels(model, rows)
    found: list[tuple[Any, str, str, Any]] = [
        (data, "obs", key, labels),
        (data, "obsm", key, _placed(model.consensus_, rows)),
        (data, "obsm", f"{key}_reliance", _placed(model.reliance_, rows)),
    ]
    if is_a(data, "MuData"):
        place = {name: i for i, name in enumerate(data.obs_names)}
        for table in data.mod.values():
            found.append((table, "obs", key, labels[[place[name] for name in table.obs_names]]))
    described = _description(model)
    if robust:
        found += _graph(data, model, key, rows)
        described |= _neighbors(model, key)
    elsewhere: dict[str, Array] = {}
    for table, name, values in _loadings(data, model, key):
        if table is None:
            elsewhere[name] = values
        else:
            found.append((table, "varm", name, values))
    # Everything is computed: from here on nothing fails halfway.
    for owner, attribute, name, values in found:
        getattr(owner, attribute)[name] = values
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


def _graph(data: Any, model: Any, key: str, rows: Array) -> list[tuple[Any, str, str, Any]]:
    connectivities = _placed_graph(sp.csr_array(model.graph_), rows)
    return [
        (data, "obs", f"{key}_confidence", _placed(model.confidence_.max(axis=1), rows)),
        (data, "obs", f"{key}_agreement", _placed(model.sample_agreement_, rows)),
        (data, "obsm", f"{key}_embedding", _placed(model.embedding_, rows)),
        (data, "obsp", f"{key}_connectivities", connectivities),
        (data, "obsp", f"{key}_distances", _distances(connectivities, model.embedding_, rows)),
    ]


def _placed_graph(graph: sp.csr_array, rows: Array) -> sp.csr_matrix:
    """Links between the samples of ``data``; a matrix, which older versions of scanpy ask for."""
    known = np.flatnonzero(rows >= 0)
    shape = (len(rows), graph.shape[0])
    pick = sp.csr_array((np.ones(len(known), graph.dtype), (known, rows[known])), shape=shape)
    placed = sp.csr_matrix(pick @ graph @ pick.T)
    placed.sort_indices()
    return placed


#: Links measured together: few enough for the cache.
LINKS = 2**12


def _distances(graph: sp.csr_matrix, embedding: Array, rows: Array) -> sp.csr_matrix:
    """How far linked samples are from each other in the embedding."""
    one = np.repeat(rows, np.diff(graph.indptr))
    squared = np.concatenate(
        [
            ((embedding[one[b]] - embedding[rows[graph.indices[b]]]) ** 2).sum(axis=1)
            for b in blocks(slice(0, len(one)), LINKS)
        ]
        or [np.zeros(0)]
    )
    parts = np.sqrt(squared), graph.indices.copy(), graph.indptr.copy()
    return sp.csr_matrix(parts, graph.shape)


def _neighbors(model: Any, key: str) -> dict[str, Any]:
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
    """The table whose varm the parts of each view go to (None: into ``uns``), their name, the parts."""
    parts = parts_of(data)
    names = [str(name) for name in model.view_names_in_]
    tables = {name: table for name in names if (table := described_by_var(data, name)) is not None}
    for name, loadings in zip(names, model.components_, strict=True):
        if name in tables:
            table = tables[name]
            alone = sum(other is table for other in tables.values()) == 1
            values = _by_feature(loadings.T, model.view_feature_names_in_[name], table, name)
            if values is not None:
                yield table, key if alone else f"{key}_{name}", values
        elif parts.get(full_name(data, name), (None, ""))[1] == "obsm":
            yield None, name, np.asarray(loadings.T)


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


# --- samples ------------------------------------------------------------------------------


def _rows(data: Any, model: Any) -> Array:
    """The model's row of every sample of ``data``, −1 where it has none."""
    kind, fitted = type(data).__name__, model.sample_names_in_
    names = [str(name) for name in data.obs_names]
    if fitted is None:
        if len(names) != len(model.labels_):
            raise ValueError(
                f"the model was fitted on {len(model.labels_)} samples without names, and the "
                f"{kind} has {len(names)}; fit on named samples"
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
            f"no sample of the {kind} (the first is {names[0]!r}) was in the "
            f"fit (the first there is {str(fitted[0])!r}); annotate the data the model was fitted on"
        )
    return rows


def _placed(values: Array, rows: Array) -> Array:
    placed = np.full((len(rows), *values.shape[1:]), np.nan, dtype=values.dtype)
    placed[rows >= 0] = values[rows[rows >= 0]]
    return placed
