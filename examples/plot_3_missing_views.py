"""
Samples that lack a view
========================

Often some samples lack a view. A row of NaN, or an id that is absent from one of several DataFrames,
means that this view is missing for this sample. manyview uses all samples.
"""

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv

data = mv.datasets.make_synthetic(240, n_clusters=4, noisy_views=(), random_state=0)
rng = np.random.default_rng(0)

# %%
# A third of the samples loses one view at random.

names = list(data.views)
views = {name: X.copy() for name, X in data.views.items()}
for i in rng.choice(data.n_samples, data.n_samples // 3, replace=False):
    views[names[rng.integers(len(names))]][i] = np.nan

model = mv.RobustWMNMF(n_clusters=4, random_state=0).fit(views)
print(f"accuracy {mv.metrics.accuracy(data.labels, model.labels_):.3f}")

# %%
# The weight of a missing view is 0 (dark lines). The other views decide the cluster of the sample.

figure, ax = plt.subplots(figsize=(9, 2.6), layout="constrained")
mv.plot.sample_weights(model, kind="weight", ax=ax)
plt.show()

# %%
# ``impute`` fills in the missing view by the value expected from the clusters of the sample. This is
# closer to the hidden values than the mean of each feature.

hidden = np.isnan(views["view1"]).any(axis=1)
filled = model.impute("view1")
truth, mean = data.views["view1"][hidden], np.nanmean(views["view1"], axis=0)


def error(guess):
    return np.sqrt(np.mean((guess - truth) ** 2))


print(f"error of the mean of each feature {error(mean):.2f}")
print(f"error of impute                   {error(filled[hidden]):.2f}")
