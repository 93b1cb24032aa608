"""
Subtypes of a cancer, start to end
==================================

This example goes from three assays and a clinical table to the results of a paper: how many subtypes are
there, how stable are they, do they differ in survival, and what are their markers? The cohort is simulated
(`make_cohort`): four subtypes, of which D has the shortest survival, and three batches that do not depend
on them.
"""

import matplotlib.pyplot as plt

import manyview as mv
from manyview.outcomes import crosstab, enrichment, markers, survival

# %%
# **Load.** Views are tables with patients in rows. Patients are matched by their ids, and some lack a view.

cohort = mv.datasets.make_cohort()
views, clinical = cohort.frames(), cohort.clinical_frame()
views["methylation"] = views["methylation"].dropna(how="all")
views["mutation"] = views["mutation"].dropna(how="all").sample(frac=1, random_state=0)
print({name: frame.shape for name, frame in views.items()})

# %%
# **Number of subtypes.** ``batch=`` aligns the batches, which otherwise would determine the clusters.

batch = clinical["batch"]
choice = mv.select_n_clusters(views, range(2, 8), batch=batch, random_state=0)
print(choice.n_clusters, choice.reasons[0])

# %%
# **Cluster**, and draw an overview.

model = mv.RobustWMNMF(choice.n_clusters, random_state=0).fit(views, batch=batch)
mv.plot.overview(model)
plt.show()

# %%
# The same map, colored by the true subtype and by age.

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.4), layout="constrained")
ids = list(model.sample_names_in_)
mv.plot.embedding(model, ax=left, color=clinical.loc[ids, "subtype"].tolist(), name="subtype")
mv.plot.embedding(model, ax=right, color=clinical.loc[ids, "age"].tolist(), name="age")
plt.show()

# %%
# **Stability.** The picture shows how often patients are together in refits. Bright blocks are stable
# clusters.

sure = mv.stability(model, views, n_runs=10, random_state=0)
print(sure)
figure, ax = plt.subplots(figsize=(5.4, 4.6), layout="constrained")
mv.plot.consensus(sure, ax=ax)
plt.show()

# %%
# **Survival.** P-values come from permuted labels, because the usual approximation is wrong for small
# clusters.

lives = survival(model, clinical["os_months"], clinical["dead"])
print(lives)
figure, ax = plt.subplots(figsize=(7, 4.8), layout="constrained")
mv.plot.survival(lives, ax=ax, time_label="months")
plt.show()

# %%
# **Clinical columns.** Which of them differ between clusters? The batch does not, because it was aligned.

clinic = enrichment(model, clinical[["age", "sex", "stage", "batch"]])
print(clinic)
figure, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
mv.plot.enrichment(clinic, ax=ax)
plt.show()

# %%
# **Markers.** Each view is tested on clusters found without it, so its p-values are valid. The last figure
# shows how much the clusters depend on each view.

leading = markers(model, views, leave_view_out=True)
print(leading.top(2))
figure = plt.figure(figsize=(9, 7.5))
ax = figure.add_axes((0.01, 0.01, 0.98, 0.98))
bars = {name: clinical.loc[ids, name].tolist() for name in ("subtype", "sex", "age")}
mv.plot.heatmap(model, views, leading, n=3, annotations=bars, ax=ax)
plt.show()

# %%

figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.2), layout="constrained")
mv.plot.leave_view_out(leading, ax=left)
mv.plot.agreement(model, ax=right)
plt.show()

# %%
# **Known classes.** Compare the clusters with the true subtypes.

known = crosstab(model, clinical["subtype"])
print(known)
figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
mv.plot.crosstab(known, ax=ax)
plt.show()

# %%
# **Report.** ``mv.write_run(model, views, "run", clinical=clinical, time="os_months", event="dead",
# figures=True)`` writes a report with a methods paragraph and all figures. From files, one command does
# all of this:
#
# .. code-block:: none
#
#    manyview fit expression.csv methylation.csv mutation.csv --clusters auto --out run --batch batch \
#      --clinical clinical.csv --time os_months --event dead --labels clinical.csv:subtype
