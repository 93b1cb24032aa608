"""
Single cells: two modalities, one graph
=======================================

This example clusters cells by expression and chromatin with one call, and writes the results into the
MuData for scanpy and muon. The cells are simulated: six types of very unequal size. Expression cannot
separate the last two types, and chromatin cannot separate the first two. Every tenth cell has no
chromatin.
"""

import warnings

import anndata as ad
import matplotlib.pyplot as plt
import mudata as md
import numpy as np

import manyview as mv

# %%
# **Cells.** Counts are drawn from Poisson distributions, whose means depend on the type and the depth of
# the cell. As usual, they are scaled to 10,000 per cell and log-transformed.

rng = np.random.default_rng(0)
SIZES = [220, 140, 80, 60, 40, 24]
types = np.repeat(np.arange(len(SIZES)), SIZES)


def log_normalized(n_features: int, markers: int, depth: float, alike: list[int]) -> np.ndarray:
    """Counts of one modality, in which the types ``alike`` have the same markers."""
    means = rng.gamma(0.4, 1.0, size=n_features) * np.ones((len(SIZES), 1))
    for kind in range(len(SIZES)):
        own = rng.choice(n_features, markers, replace=False)
        means[kind, own] += rng.gamma(2.0, 1.5, size=markers)
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
    warnings.simplefilter("ignore")  # MuData announces new defaults
    mdata = md.MuData({"rna": rna, "atac": atac})
mdata.obs["type"] = [f"type {types[int(cell[4:])]}" for cell in mdata.obs_names]
print(mdata.shape, {name: part.shape for name, part in mdata.mod.items()})

# %%
# **Clusters** are the Leiden communities of the fused graph. Cells without chromatin are clustered by
# expression alone.

model = mv.tl.cluster(mdata, resolution=1, use_highly_variable=True)
print(mdata.obs["manyview"].value_counts().to_dict())
print(mv.metrics.scores(mdata.obs["type"], mdata.obs["manyview"].astype(int))["ari"])

# %%
# **Did the second modality help?** With one modality alone, the two types that it cannot separate are one
# cluster.

for name in ("rna", "atac"):
    alone = mv.RobustWMNMF("communities", max_iter=1000, random_state=0).fit(
        {name: mdata.mod[name]}
    )
    truth = mdata.obs.loc[mdata.mod[name].obs_names, "type"]
    print(name, round(mv.metrics.scores(truth, alone.labels_)["ari"], 3))

# %%
# **Results in the MuData**: the fused graph is in ``obsp``, where scanpy expects neighbors. View weights
# are in ``uns``, the reliance of cells on modalities in ``obsm``, and features of clusters in ``varm``.

print(dict(zip(model.view_names_in_, model.view_weights_.round(2), strict=True)))
print(list(mdata.obsp), list(mdata.obsm), list(mdata.mod["rna"].varm))
parts = mdata.mod["rna"].varm["manyview"]
print(
    "cluster 0:", list(mdata.mod["rna"].var_names[np.nan_to_num(parts[:, 0]).argsort()[::-1][:4]])
)

# %%
# Continue in scanpy as usual::
#
#     sc.tl.umap(mdata, neighbors_key="manyview")
#     sc.pl.umap(mdata, color=["manyview", "manyview_confidence", "type"])
#     sc.tl.leiden(mdata, neighbors_key="manyview", resolution=2)
#     mdata.write("cells.h5mu")
#
# This map needs no other package. It shows clusters, types, and how much cells rely on expression.

figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
mv.plot.embedding(model, ax=axes[0])
mv.plot.embedding(model, ax=axes[1], color=list(mdata.obs["type"]), name="type")
mv.plot.embedding(
    model, ax=axes[2], color=mdata.obsm["manyview_reliance"][:, 0], name="reliance on rna"
)
plt.show()

# %%
# **New cells** may lack a modality. An AnnData is matched to its modality by its features.

new = mdata.mod["rna"][:5].copy()
print(mv.tl.predict(new, model), model.labels_[:5])
print(list(new.obs["manyview"]))

# %%
# **Batches.** These cells have genes and proteins, five types and three batches. In a tenth of the cells
# the proteins are noise. The clusters of two aligned batches correspond to types, not to batches.

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
# **A new batch** is aligned with the others when its cells are assigned to clusters.

mv.tl.predict(late, aligned, batch_key="batch")
print(round(mv.metrics.scores(late.obs["type"], late.obs["manyview"])["nmi"], 3))

# %%
# **Reliance.** Cells whose proteins are noise rely on expression, and the modalities agree less on them.

old.obs["relies_on_rna"] = old.obsm["manyview_reliance"][:, 0]
print(old.obs.groupby("scrambled")[["relies_on_rna", "manyview_agreement"]].mean().round(2))

# %%
# **Principal components** are a view by their name. manyview does not stretch their columns.

centered = genes.X - genes.X.mean(axis=0)
left, length, _ = np.linalg.svd(centered, full_matrices=False)
cite.mod["rna"].obsm["X_pca"] = left[:, :30] * length[:30]
model = mv.tl.cluster(cite, views=["rna:obsm:X_pca", "prot"], batch_key="batch")
print(model.scaling_, round(mv.metrics.scores(cite.obs["type"], cite.obs["manyview"])["nmi"], 3))
