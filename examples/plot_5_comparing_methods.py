"""
Comparing methods on forty mice
===============================

The nutrimouse study measured liver gene expression and hepatic fatty acids of mice of two
genotypes. Do the clusters find the genotype, and does a simpler method do as well?
`manyview.compare` runs every method several times in processes of their own; here the same is done
by hand for a few quick ones, to see what they have in common.
"""

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv

mice = mv.datasets.load_nutrimouse()
print(mice)

# %%
# Simple methods on scaled features stand in `manyview.baselines.honest_methods`: functions of a
# seed. Every estimator takes the same views. The gene view has negative values, which the paper's
# method takes with a scaling that shifts.

methods = mv.baselines.honest_methods(2) | {
    "WMNMF": lambda seed: mv.WMNMF(2, scale="minmax", random_state=seed),
    "RobustWMNMF": lambda seed: mv.RobustWMNMF(2, random_state=seed),
}
scores = {
    name: [
        mv.metrics.accuracy(mice.labels, make(seed).fit_predict(mice.views)) for seed in range(5)
    ]
    for name, make in methods.items()
}

# %%
# A dot per seed; seeds with the same result lie on top of each other. With two classes of equal size,
# accuracy 0.5 is no better than chance.

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for row, values in enumerate(scores.values()):
    ax.scatter(values, np.full(len(values), row), alpha=0.5)
ax.axvline(0.5, color="gray", linestyle=":")
ax.set_yticks(range(len(scores)), list(scores))
ax.set(xlabel="accuracy against the genotype", xlim=(0.45, 1.02))
ax.invert_yaxis()
plt.show()

# %%
# What the clusters are made of: features that stand out in the first one.

model = mv.RobustWMNMF(2, random_state=0).fit(mice.frames())
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, view in zip(axes, mice.views, strict=True):
    mv.plot.top_features(model, view, 0, ax=ax)
plt.show()
