"""
How many clusters?
==================

`manyview.select_n_clusters` tests whether the data have more clusters than data without clusters, and
chooses the number by modularity and eigengap. It gives reasons.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyview as mv
from manyview.selection import NoClustersWarning

data = mv.datasets.make_synthetic(150, n_clusters=4, noisy_views=(), random_state=0)

# %%
# Four clusters were made.

chosen = mv.select_n_clusters(data.views, range(2, 8), random_state=0)
print(chosen)

# %%
# The chosen number is marked.

chosen.figure()
plt.show()

# %%
# In data without clusters none are found; many criteria always find at least two.

rng = np.random.default_rng(0)
cloud = [rng.random((150, 20)), rng.random((150, 30))]
with warnings.catch_warnings():
    warnings.simplefilter("ignore", NoClustersWarning)  # it would say the same as the reasons
    print(mv.select_n_clusters(cloud, range(2, 8), random_state=0))

# %%
# ``RobustWMNMF(n_clusters="auto")`` asks the same question by itself; its answer and reasons are in
# ``selection_``. How sure a clustering is, whatever its number of clusters, says
# `manyview.reliability`.

model = mv.RobustWMNMF(chosen.n_clusters, random_state=0)
print(mv.stability(model, data.views, n_runs=6, random_state=0))
