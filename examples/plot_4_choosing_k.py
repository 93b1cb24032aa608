"""
How many clusters?
==================

`manyview.select_n_clusters` compares the data with clouds that have the same covariance and no
clusters. It gives reasons, and it can answer that there are none.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv
from manyview.selection import NoClustersWarning

data = mv.datasets.make_synthetic(150, n_clusters=4, noisy_views=(), random_state=0)

# %%
# Two criteria look at the fused graph of the views: which clusters come back in parts of the data,
# and where its eigenvalues have a gap.

chosen = mv.select_n_clusters(
    data.views, range(2, 8), ["stability", "eigengap"], n_runs=8, random_state=0
)
print(chosen)

# %%
# The chosen number is marked.

chosen.figure()
plt.show()

# %%
# Data without clusters are told apart, where many criteria always find at least two.

rng = np.random.default_rng(0)
cloud = [rng.random((150, 20)), rng.random((150, 30))]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoClustersWarning)  # it would say the same as the reasons
    print(mv.select_n_clusters(cloud, range(2, 8), "eigengap", random_state=0))

# %%
# ``RobustWMNMF(n_clusters="auto")`` asks the same question by itself; its answer and reasons are in
# ``selection_``. How sure a clustering is, whatever its number of clusters, says
# `manyview.reliability`.

model = mv.RobustWMNMF(chosen.n_clusters, random_state=0)
print(mv.stability(model, data.views, n_runs=6, random_state=0))
