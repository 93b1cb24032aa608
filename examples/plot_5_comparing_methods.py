"""
Comparing methods on forty mice
===============================

The nutrimouse study measured liver gene expression and fatty acids of mice of two genotypes. Do the
clusters correspond to the genotypes, and does a simpler method work as well? This example fits a few
fast methods in a loop. `manyview.compare` does this for many methods, with limits of time and memory.
"""

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv

mice = mv.datasets.load_nutrimouse()
print(mice)

# %%
# `manyview.baselines.honest_methods` has simple methods on scaled features, as functions of a seed. The
# gene view has negative values; `WMNMF` accepts them with a scaling that shifts them.

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
# Each dot is a seed; dots of the same result overlap. With two classes of equal size, an accuracy of 0.5
# is that of chance.

figure, ax = plt.subplots(figsize=(8, 3), layout="constrained")
for row, values in enumerate(scores.values()):
    ax.scatter(values, np.full(len(values), row), alpha=0.5)
ax.axvline(0.5, color="gray", linestyle=":")
ax.set_yticks(range(len(scores)), list(scores))
ax.set(xlabel="accuracy against the genotype", xlim=(0.45, 1.02))
ax.invert_yaxis()
plt.show()

# %%
# These features are the strongest of the first cluster.

model = mv.RobustWMNMF(2, random_state=0).fit(mice.frames())
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
for ax, view in zip(axes, mice.views, strict=True):
    mv.plot.top_features(model, view, 0, ax=ax)
plt.show()
