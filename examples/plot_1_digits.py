"""
Quick start: handwritten digits in four views
=============================================

This example clusters images of digits that are described in four ways: Fourier coefficients, pixels,
Zernike moments and profile correlations. The known classes are used for scoring only.
"""

import matplotlib.pyplot as plt

import manyview as mv

# %%
# The views are a dict of arrays. To be fast, the example uses every fourth image.

digits = mv.datasets.load_handwritten(views="paper")
views = {name: X[::4] for name, X in digits.views.items()}
truth = digits.labels[::4]
print({name: X.shape for name, X in views.items()})

# %%
# The recommended estimator needs only the number of clusters.

model = mv.RobustWMNMF(n_clusters=10, random_state=0)
labels = model.fit_predict(views)

for name, score in mv.metrics.scores(truth, labels).items():
    print(f"{name:<10}{score:.3f}")

# %%
# The left picture shows the images in two dimensions, colored by cluster. The right one shows the
# weights of the views.

figure, (left, right) = plt.subplots(
    1, 2, figsize=(10, 4), width_ratios=(1.3, 1), layout="constrained"
)
mv.plot.embedding(model, ax=left)
mv.plot.view_weights(model, ax=right)
plt.show()

# %%
# A fitted model assigns new images to clusters, with a probability for each cluster. These are the five
# new images with the lowest probability.

unseen = {name: X[1::40] for name, X in digits.views.items()}
clusters, confidence = model.predict(unseen), model.predict_proba(unseen).max(axis=1)
for i in confidence.argsort()[:5]:
    print(f"image {i}: cluster {clusters[i]}, confidence {confidence[i]:.2f}")
