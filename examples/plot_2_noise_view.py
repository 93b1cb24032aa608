"""
A view of noise, and what the weights say of it
===============================================

One of the views is replaced by random numbers. A good weight notices; the weight of the paper's
method does not, because it measures how close a view's factorisation comes to the consensus and
noise is easily pulled anywhere.
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
# The same data, with and without noise, and both methods.

robust = mv.RobustWMNMF(10, random_state=0).fit(noisy)
paper = mv.WMNMF(10, random_state=0).fit(noisy)
clean = mv.RobustWMNMF(10, random_state=0).fit(views)

# %%
# Weights of the views: the robust method leaves the noise aside.

figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained", sharey=True)
for ax, model in zip(axes, (robust, paper), strict=True):
    mv.plot.view_weights(model, ax=ax)
    ax.set_title(f"View weights of {type(model).__name__}")
plt.show()

# %%
# And the clusters hardly change.

print(f"accuracy without the noise view {mv.metrics.accuracy(truth, clean.labels_):.3f}")
print(f"accuracy with it                {mv.metrics.accuracy(truth, robust.labels_):.3f}")
print(f"the paper's method with it      {mv.metrics.accuracy(truth, paper.labels_):.3f}")
