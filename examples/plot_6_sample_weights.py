"""
Which view does each sample rely on?
=========================================

A view may be good as a whole and wrong about some samples: a failed assay, a swapped tube.
Here the first thirty rows of one view are exchanged for other rows, and the weights of samples
show it.
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
# A heat map of all weights: views by samples, sorted by cluster. Dark cells in the row of the
# second view are samples whose neighbors there are strangers in every other view.

figure, ax = plt.subplots(figsize=(9, 2.8), layout="constrained")
mv.plot.sample_weights(model, kind="weight", ax=ax)
plt.show()

# %%
# The weights in that view, of the rows that were exchanged and of the others. (A few exchanged rows
# came from the same cluster by chance: nothing is wrong with those.)

figure, ax = plt.subplots(figsize=(6, 2.8), layout="constrained")
w = model.sample_weights_[:, list(views).index("view2")]
bins = np.linspace(0, 1, 21)
ax.hist([w[swapped], w[~swapped]], bins, stacked=True, label=["exchanged rows", "other rows"])
ax.set(xlabel="weight in view2", ylabel="observations")
ax.legend(frameon=False)
plt.show()

# %%
# ``reliance_`` puts both weights together: of each sample's support, the share that comes from
# each view.

print(model.view_names_in_)
print(model.reliance_[swapped].mean(axis=0).round(2), "exchanged rows")
print(model.reliance_[~swapped].mean(axis=0).round(2), "other rows")
