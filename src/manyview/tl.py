"""Verbs for single-cell containers: AnnData or MuData in, results written into the same object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Seed
from manyview._warn import warn_user
from manyview.engines.numpy.sources import is_streamed
from manyview.outcomes import enrichment
from manyview.outcomes.batch import is_technical
from manyview.robust import RobustWMNMF
from manyview.views.annotate import annotate
from manyview.views.containers import Collection, Item, collect, described_by_var, is_a

#: The column of ``var`` in which scanpy and muon mark the features to use.
HIGHLY_VARIABLE = "highly_variable"


def cluster(
    data: Any,
    n_clusters: int | str = "communities",
    *,
    key_added: str = "manyview",
    resolution: float = 1.0,
    views: Sequence[str] | None = None,
    use_highly_variable: bool | None = None,
    random_state: Seed = 0,
    **settings: Any,
) -> RobustWMNMF:
    """Cluster the observations of a MuData or AnnData by all their views, and write the results into it.

    The same fit as ``RobustWMNMF(...).fit(data)``, bit for bit, and then `annotate`.

    Parameters
    ----------
    data : MuData or AnnData
        Changed in place. Observations that lack a modality keep their label from the others. A column
        of ``obs`` that looks technical (batch, site, plate) and that the clusters follow is a warning.
    n_clusters : "communities", "auto" or int, default="communities"
        Leiden communities of the fused graph (extra ``communities``), a number found by
        `select_n_clusters`, or yours.
    key_added : str, default="manyview"
        Where to write: ``obs[key_added]`` has the clusters, ``obs[key_added + "_confidence"]`` how sure
        they are; `annotate` lists the rest. The fused graph is at ``neighbors_key=key_added`` for
        scanpy's tools.
    resolution : float, default=1
        Of the communities: more gives more and smaller ones.
    views : sequence of str, optional
        Modalities of a MuData (all by default), or parts of an AnnData such as ["X",
        "obsm:protein", "layers:spliced"].
    use_highly_variable : bool, optional
        Whether only features with ``var["highly_variable"]`` are used. By default they are wherever
        there is such a column, and a warning says so; True asks for it in silence.
    random_state : int, RandomState, Generator or None, default=0
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
    """
    if not (is_a(data, "AnnData") or is_a(data, "MuData")):
        raise TypeError(
            f"tl.cluster takes an AnnData or MuData, got {type(data).__name__}; for arrays and tables "
            "use RobustWMNMF(n_clusters).fit_predict(views)"
        )
    model = RobustWMNMF(
        n_clusters, resolution=resolution, views=views, random_state=random_state, **settings
    )
    given = _of_used_features(data, collect(data, views), use_highly_variable)
    annotate(data, model.fit(given), key_added)
    _warn_of_batches(data.obs, key_added)
    return model


def _warn_of_batches(obs: Any, key: str) -> None:
    """Compare the clusters with the columns of ``obs`` that look technical."""
    technical = {str(c): obs[c].astype(object) for c in obs.columns if is_technical(str(c))}
    if not technical or obs[key].isna().all():
        return
    labels = obs[key].astype(object).tolist()
    columns = {name: column.tolist() for name, column in technical.items()}
    for found in enrichment(labels, columns).followed:
        warn_user(
            found.sentence(
                f"Fit again: RobustWMNMF(…).fit(mv.adjust(data, data.obs[[{found.column!r}]]).views)."
            )
        )


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
            f"only highly variable features are used: {', '.join(told)}; use_highly_variable=False takes "
            "all, True says that this is meant"
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
            f"the features of {name!r} have repeated names, by which those that are highly variable are "
            "found again; call its var_names_make_unique() first, or pass use_highly_variable=False"
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
