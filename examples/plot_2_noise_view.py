"""
The weight of a view of noise
=============================

This example adds a view of random numbers to four good views. `RobustWMNMF` gives it almost no weight,
because it does not agree with the other views. The paper's method gives it weight, because there a
weight measures how close the coefficients of a view are to the consensus.
"""

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv

digits = mv.datasets.load_handwritten(views="paper")
views = {name: X[::4] for name, X in digits.views.items()}
truth = digits.labels[::4]

noisy = dict(views)
noisy["noise"] = np.random.default_rng(0).random((len(truth), 100))

# %%
# Fit both methods, with and without the noise.

robust, robust_clean = (mv.RobustWMNMF(10, random_state=0).fit(X) for X in (noisy, views))
paper, paper_clean = (mv.WMNMF(10, random_state=0).fit(X) for X in (noisy, views))

# %%
# Compare the weights of the views.

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for ax, model in zip(axes, (robust, paper), strict=True):
    mv.plot.view_weights(model, ax=ax)
    ax.set_title(f"View weights of {type(model).__name__}")
plt.show()

# %%
# Compare the accuracy. This is one seed; single runs of the paper's method vary.

for name, model in {
    "RobustWMNMF": robust_clean,
    "RobustWMNMF with noise": robust,
    "WMNMF": paper_clean,
    "WMNMF with noise": paper,
}.items():
    print(f"{name:<24}accuracy {mv.metrics.accuracy(truth, model.labels_):.3f}")
