"""
Single cells: two modalities, one graph
=======================================

Expression and chromatin of the same cells in a MuData, clustered by one verb. What it writes is what scanpy
and muon read. The cells are made up, so that the answer is known: six types of very unequal size,
of which expression cannot tell the last two apart, and chromatin the first two; every tenth cell
has no chromatin.
"""

import warnings

import anndata as ad
import matplotlib.pyplot as plt
import mudata as md
import numpy as np

import manyview as mv

# %%
# **Cells.** Counts of a type are Poisson around the type's programme and the depth of the cell;
# then the usual: shares of 10,000, and logarithms.

rng = np.random.default_rng(0)
SIZES = [220, 140, 80, 60, 40, 24]
types = np.repeat(np.arange(len(SIZES)), SIZES)


def log_normalized(n_features: int, programmes: int, depth: float, alike: list[int]) -> np.ndarray:
    """Counts of one modality, in which the types ``alike`` share a programme."""
    means = rng.gamma(0.4, 1.0, size=n_features) * np.ones((len(SIZES), 1))
    for kind in range(len(SIZES)):
        own = rng.choice(n_features, programmes, replace=False)
        means[kind, own] += rng.gamma(2.0, 1.5, size=programmes)
    means[alike] = means[alike[0]]
    shares = means / means.sum(axis=1, keepdims=True)
    depths = depth * rng.lognormal(0, 0.4, size=len(types))
    counts = rng.poisson(shares[types] * depths[:, None]).astype(float)
    return np.log1p(1e4 * counts / counts.sum(axis=1, keepdims=True))


cells = [f"cell{i}" for i in range(len(types))]
rna = ad.AnnData(log_normalized(600, 25, 900, alike=[4, 5]))
atac = ad.AnnData(log_normalized(900, 40, 700, alike=[0, 1]))
for name, data in (("gene", rna), ("peak", atac)):
    data.obs_names = cells
    data.var_names = [f"{name}{j}" for j in range(data.n_vars)]
spread = rna.X.var(axis=0)
rna.var["highly_variable"] = spread > np.quantile(spread, 0.5)  # or sc.pp.highly_variable_genes
atac = atac[np.arange(len(types)) % 10 > 0].copy()
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # MuData tells of changes to come in its own defaults
    mdata = md.MuData({"rna": rna, "atac": atac})
mdata.obs["type"] = [f"type {types[int(cell[4:])]}" for cell in mdata.obs_names]
print(mdata.shape, {name: part.shape for name, part in mdata.mod.items()})

# %%
# **One verb.** Leiden communities of the fused graph; nothing else is asked for. Cells without chromatin
# are placed by expression alone.

model = mv.tl.cluster(mdata, resolution=1, use_highly_variable=True)
print(mdata.obs["manyview"].value_counts().to_dict())
print(mv.metrics.scores(mdata.obs["type"], mdata.obs["manyview"].astype(int))["ari"])

# %%
# **Did the second modality help?** The same with one of them: each misses what only the other sees.

for name in ("rna", "atac"):
    alone = mv.RobustWMNMF("communities", max_iter=1000, random_state=0).fit(
        {name: mdata.mod[name]}
    )
    truth = mdata.obs.loc[mdata.mod[name].obs_names, "type"]
    print(name, round(mv.metrics.scores(truth, alone.labels_)["ari"], 3))

# %%
# **Everything is in the MuData**: the fused graph in ``obsp``, where scanpy looks for neighbors; weights
# in ``uns``; which modality each cell relies on in ``obsm``; the parts of the clusters in ``varm``.

print(dict(zip(model.view_names_in_, model.view_weights_.round(2), strict=True)))
print(list(mdata.obsp), list(mdata.obsm), list(mdata.mod["rna"].varm))
parts = mdata.mod["rna"].varm["manyview"]
print(
    "cluster 0:", list(mdata.mod["rna"].var_names[np.nan_to_num(parts[:, 0]).argsort()[::-1][:4]])
)

# %%
# With scanpy installed, the next lines of a notebook are the usual ones::
#
#     sc.tl.umap(mdata, neighbors_key="manyview")
#     sc.pl.umap(mdata, color=["manyview", "manyview_confidence", "type"])
#     sc.tl.leiden(mdata, neighbors_key="manyview", resolution=2)
#     mdata.write("cells.h5mu")
#
# Here is the map that needs no other package, by cluster and by type, and on which modality cells rely.

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
mv.plot.embedding(model, ax=axes[0])
mv.plot.embedding(model, ax=axes[1], color=list(mdata.obs["type"]), name="type")
mv.plot.embedding(
    model, ax=axes[2], color=mdata.obsm["manyview_reliance"][:, 0], name="reliance on rna"
)
plt.show()

# %%
# **New cells**, of which only expression was measured: an AnnData is recognized by its features.

new = mdata.mod["rna"][:5].copy()
print(mv.tl.predict(new, model), model.labels_[:5])
print(list(new.obs["manyview"]))

# %%
# **Batches.** Genes and proteins of five types in three batches; a tenth of the cells has noise as
# proteins. Two batches are clustered; the types are found, not the batches.

cells = mv.datasets.make_single_cells(
    900, 5, n_batches=3, n_features={"rna": 400}, scrambled=0.1, random_state=0
)


def log_shares(counts, total: float):
    return np.log1p(total * counts / counts.sum(axis=1, keepdims=True))


genes = ad.AnnData(log_shares(cells.views["rna"].toarray(), 1e4))
proteins = ad.AnnData(log_shares(cells.views["adt"], 1e3))
for name, data in (("gene", genes), ("protein", proteins)):
    data.obs_names = cells.sample_names
    data.var_names = [f"{name}{j}" for j in range(data.n_vars)]
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cite = md.MuData({"rna": genes, "prot": proteins})
cite.obs["batch"] = cells.clinical["batch"]
cite.obs["scrambled"] = cells.clinical["scrambled"]
cite.obs["type"] = cells.labels
old = cite[cite.obs["batch"] != "batch2"].copy()
late = cite[cite.obs["batch"] == "batch2"].copy()
aligned = mv.tl.cluster(old, batch_key="batch")
for against in ("type", "batch"):
    print(against, round(mv.metrics.scores(old.obs[against], old.obs["manyview"])["nmi"], 3))

# %%
# **The third batch** was not in the fit. It is aligned with the others when its cells are placed.

mv.tl.predict(late, aligned, batch_key="batch")
print(round(mv.metrics.scores(late.obs["type"], late.obs["manyview"])["nmi"], 3))

# %%
# **Which modality each cell relies on.** Cells whose proteins are noise rely on expression, and the
# modalities agree less on them.

old.obs["relies_on_rna"] = old.obsm["manyview_reliance"][:, 0]
print(old.obs.groupby("scrambled")[["relies_on_rna", "manyview_agreement"]].mean().round(2))

# %%
# **Principal components** as a view, by their name; no column of an embedding is stretched.

centered = genes.X - genes.X.mean(axis=0)
left, length, _ = np.linalg.svd(centered, full_matrices=False)
cite.mod["rna"].obsm["X_pca"] = left[:, :30] * length[:30]
model = mv.tl.cluster(cite, views=["rna:obsm:X_pca", "prot"], batch_key="batch")
print(model.scaling_, round(mv.metrics.scores(cite.obs["type"], cite.obs["manyview"])["nmi"], 3))
