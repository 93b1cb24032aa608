"""
How many clusters?
==================

`manyview.select_n_clusters` tests whether the data have clusters, chooses their number by modularity
and eigengap, and gives reasons.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv
from manyview.selection import NoClustersWarning

data = mv.datasets.make_synthetic(150, n_clusters=4, noisy_views=(), random_state=0)

# %%
# These data have four clusters.

chosen = mv.select_n_clusters(data.views, range(2, 8), random_state=0)
print(chosen)

# %%
# The figure shows the score of each number, and marks the chosen one.

chosen.figure()
plt.show()

# %%
# In data without clusters it finds none. Many criteria always find at least two.

rng = np.random.default_rng(0)
cloud = [rng.random((150, 20)), rng.random((150, 30))]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoClustersWarning)  # it would say the same as the reasons
    print(mv.select_n_clusters(cloud, range(2, 8), random_state=0))

# %%
# ``RobustWMNMF(n_clusters="auto")`` does the same; ``selection_`` has the result.
#
# `manyview.stability` measures how stable the clusters are.

model = mv.RobustWMNMF(chosen.n_clusters, random_state=0)
print(mv.stability(model, data.views, n_runs=6, random_state=0))
