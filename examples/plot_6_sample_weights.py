"""
Which view does each sample rely on?
====================================

A good view can be wrong for some samples, for example after a failed assay or a swapped tube. This
example replaces the first thirty rows of one view by rows of other samples. The sample weights show it.
"""

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv

data = mv.datasets.make_synthetic(240, n_clusters=4, noisy_views=(), random_state=0)
views = {name: X.copy() for name, X in data.views.items()}
swapped = np.arange(data.n_samples) < 30
views["view2"][swapped] = np.random.default_rng(0).permutation(views["view2"])[swapped]

model = mv.RobustWMNMF(4, random_state=0).fit(views)

# %%
# The heat map has the weights of all samples in all views, sorted by cluster. Dark cells in the row of
# the second view are samples that have other neighbors in this view than in all other views.

figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
mv.plot.sample_weights(model, kind="weight", ax=ax)
plt.show()

# %%
# Weights in the second view, of the exchanged rows and of the others. By chance, a few exchanged rows are
# from the same cluster; they keep their weight.

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
w = model.sample_weights_[:, list(views).index("view2")]
bins = np.linspace(0, 1, 21)
ax.hist([w[swapped], w[~swapped]], bins, stacked=True, label=["exchanged rows", "other rows"])
ax.set(xlabel="weight in view2", ylabel="samples")
ax.legend(frameon=False)
plt.show()

# %%
# ``reliance_`` combines the weights of views and samples: how much each sample relies on each view.

print(model.view_names_in_)
print(model.reliance_[swapped].mean(axis=0).round(2), "exchanged rows")
print(model.reliance_[~swapped].mean(axis=0).round(2), "other rows")
