"""
Subtypes of a cancer, start to end
==================================

Three assays of the same patients, a clinical table, and the questions of a paper: how many subtypes,
do they differ in survival, what marks them, can one believe it? The cohort is made up
(`make_cohort`), so that the answer is known: four subtypes, of which D lives shortest, and three
batches that have nothing to do with them.
"""

import matplotlib.pyplot as plt

import manyview as mv
from manyview.outcomes import crosstab, enrichment, markers, survival

# %%
# **Load and align.** Views are tables with patients in rows; patients are matched by their ids, and some
# lack a view. With files, ``manyview fit`` does the same from the command line.

cohort = mv.datasets.make_cohort()
views, clinical = cohort.frames(), cohort.clinical_frame()
views["methylation"] = views["methylation"].dropna(how="all")
views["mutation"] = views["mutation"].dropna(how="all").sample(frac=1, random_state=0)
print({name: frame.shape for name, frame in views.items()})

# %%
# **Take out the batch.** It explains a good part of two views, and must not become a cluster.

adjusted = mv.adjust(views, clinical[["batch"]])
print(adjusted)

# %%
# **How many subtypes?** Modularity and the eigengap of the fused graph decide.

choice = mv.select_n_clusters(adjusted.views, range(2, 8), random_state=0)
print(choice.n_clusters, choice.reasons[0])

# %%
# **Cluster**, and look at all of it at once.

model = mv.RobustWMNMF(choice.n_clusters, random_state=0).fit(adjusted.views)
mv.plot.overview(model)
plt.show()

# %%
# The same map in other colors: the true subtype, and age.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ids = list(model.sample_names_in_)
mv.plot.embedding(model, ax=left, color=clinical.loc[ids, "subtype"].tolist(), name="subtype")
mv.plot.embedding(model, ax=right, color=clinical.loc[ids, "age"].tolist(), name="age")
plt.show()

# %%
# **Do they come back?** Refits on parts of the patients: bright blocks are clusters that stay together.

sure = mv.stability(model, adjusted.views, n_runs=10, random_state=0)
print(sure)
figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
mv.plot.consensus(sure, ax=ax)
plt.show()

# %%
# **Survival.** P-values come from permuted labels: with small clusters the usual approximation is wrong.

lives = survival(model, clinical["os_months"], clinical["dead"])
print(lives)
figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
mv.plot.survival(lives, ax=ax, time_label="months")
plt.show()

# %%
# **Clinical columns.** Does anything else go with the clusters? The batch should not any more.

clinic = enrichment(model, clinical[["age", "sex", "stage", "batch"]])
print(clinic)
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
mv.plot.enrichment(clinic, ax=ax)
plt.show()

# %%
# **Markers.** Each view is also tested on clusters found without it, which makes its p-values honest,
# and says how much the clusters depend on the view.

leading = markers(model, adjusted.views, leave_view_out=True)
print(leading.top(2))
figure = plt.figure(figsize=(9, 7.5))
ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
bars = {name: clinical.loc[ids, name].tolist() for name in ("subtype", "sex", "age")}
mv.plot.heatmap(model, adjusted.views, leading, n=3, annotations=bars, ax=ax)
plt.show()

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained")
mv.plot.leave_view_out(leading, ax=left)
mv.plot.agreement(model, ax=right)
plt.show()

# %%
# **Against what is known**, since here it is.

known = crosstab(model, clinical["subtype"])
print(known)
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
mv.plot.crosstab(known, ax=ax)
plt.show()

# %%
# **What to write.** The report of a run has a methods paragraph with citations and versions, and every
# figure above as SVG, PNG and PDF: ``mv.write_run(model, adjusted.views, "run", clinical=clinical,
# time="os_months", event="dead", figures=True)``, or from files, in one line:
#
# .. code-block:: none
#
#    manyview fit expression.csv methylation.csv mutation.csv --clusters auto --out run \
#      --clinical clinical.csv --time os_months --event dead --labels clinical.csv:subtype --adjust batch
