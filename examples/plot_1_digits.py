"""
Quick start: handwritten digits in four views
=============================================

Images of digits described in four ways (Fourier coefficients, pixels, Zernike moments, profile
correlations) are clustered once. The known classes are used for scoring only.
"""

import matplotlib.pyplot as plt

import manyview as mv

# %%
# Every fourth image will do for an example. A dict of arrays gives the views names.

digits = mv.datasets.load_handwritten(views="paper")
views = {name: X[::4] for name, X in digits.views.items()}
truth = digits.labels[::4]
print({name: X.shape for name, X in views.items()})

# %%
# The recommended estimator needs the number of clusters and nothing else.

model = mv.RobustWMNMF(n_clusters=10, random_state=0)
labels = model.fit_predict(views)

for name, score in mv.metrics.scores(truth, labels).items():
    print(f"{name:<10}{score:.3f}")

# %%
# Two pictures: the consensus of the views in two dimensions, and how far each view agrees with the
# others.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(1.3, 1), layout="constrained"
)
mv.plot.embedding(model, ax=left)
mv.plot.view_weights(model, ax=right)
plt.show()

# %%
# A fitted model places images it has not seen, and says how sure it is of each. These are the ones it
# is least sure of.

unseen = {name: X[1::40] for name, X in digits.views.items()}
clusters, confidence = model.predict(unseen), model.transform(unseen).max(axis=1)
for i in confidence.argsort()[:5]:
    print(f"image {i}: cluster {clusters[i]}, confidence {confidence[i]:.2f}")
