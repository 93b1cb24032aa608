"""
A view of noise, and what the weights say of it
===============================================

A view of random numbers is added. A weight that measures trust should notice. That of `RobustWMNMF`,
which asks whether views agree, does; that of the paper's method does not, because it measures how
close a view's factorization comes to the consensus.
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
# Both methods, with and without the noise.

robust, robust_clean = (mv.RobustWMNMF(10, random_state=0).fit(X) for X in (noisy, views))
paper, paper_clean = (mv.WMNMF(10, random_state=0).fit(X) for X in (noisy, views))

# %%
# Weights of the views: the robust method leaves the noise aside.

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for ax, model in zip(axes, (robust, paper), strict=True):
    mv.plot.view_weights(model, ax=ax)
    ax.set_title(f"View weights of {type(model).__name__}")
plt.show()

# %%
# What it does to the clusters. One seed only: single runs of the paper's method scatter.

for name, model in {
    "RobustWMNMF": robust_clean,
    "RobustWMNMF with noise": robust,
    "WMNMF": paper_clean,
    "WMNMF with noise": paper,
}.items():
    print(f"{name:<24}accuracy {mv.metrics.accuracy(truth, model.labels_):.3f}")
