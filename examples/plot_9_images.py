"""
Images: views of our own making
===============================

Images seldom come in views. One makes them: each description says something else of a picture, and the
weights say which descriptions agree. Here scikit-learn's small scans of digits are described in four ways,
one of which is useless on purpose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import manyview as mv

data = load_digits()
images, truth = data.images[:900], data.target[:900]

# %%
# **Descriptions.** Pixels, blurred by their neighbors; directions of edges in nine regions; profiles,
# which are sums of rows, columns and diagonals; and the noise of a scanner, which knows nothing of digits.


def blurred(images: np.ndarray) -> np.ndarray:
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    shifted = [padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
    return np.mean(shifted, axis=0).reshape(len(images), -1)


def edges(images: np.ndarray, directions: int = 8) -> np.ndarray:
    """How strong edges are, by direction, in 3 × 3 regions that overlap."""
    down, right = np.gradient(images, axis=(1, 2))
    strength = np.hypot(down, right)
    angle = (np.arctan2(down, right) / (2 * np.pi) * directions).round().astype(int) % directions
    parts = [
        ((angle == d) * strength)[:, top : top + 4, left : left + 4].sum(axis=(1, 2))
        for d in range(directions)
        for top in (0, 2, 4)
        for left in (0, 2, 4)
    ]
    return np.column_stack(parts)


def profiles(images: np.ndarray) -> np.ndarray:
    flipped = images[:, :, ::-1]
    diagonals = [
        np.trace(side, offset=o, axis1=1, axis2=2)
        for side in (images, flipped)
        for o in range(-5, 6)
    ]
    return np.column_stack([images.sum(axis=1), images.sum(axis=2), *diagonals])


rng = np.random.default_rng(0)
views = {
    "pixels": blurred(images),
    "edges": edges(images),
    "profiles": profiles(images),
    "scanner": rng.normal(size=(len(images), 60)),
}
print({name: X.shape for name, X in views.items()})

# %%
# **One fit**, and the same without weights: side by side, every feature as a z-score, k-means.

model = mv.RobustWMNMF(n_clusters=10, random_state=0).fit(views)
for name, weight in zip(model.view_names_in_, model.view_weights_, strict=True):
    print(f"{name:9} weight {weight:.2f}")
features = StandardScaler().fit_transform(np.hstack(list(views.values())))
plain = KMeans(10, n_init=10, random_state=0).fit_predict(features)
for name, labels in (("weighted", model.labels_), ("plain", plain)):
    found = mv.metrics.scores(truth, labels)
    print(f"{name:9} accuracy {found['acc']:.3f}, nmi {found['nmi']:.3f}")

# %%
# **The clusters as pictures**: the mean of each, the image it is surest of, the one it is least sure of.

sure = model.confidence_.max(axis=1)
figure, axes = plt.subplots(3, 10, figsize=(10, 3.4), layout="constrained")
for k, (top, middle, bottom) in enumerate(axes.T):
    own = np.flatnonzero(model.labels_ == k)
    pictures = (
        images[own].mean(axis=0),
        images[own[sure[own].argmax()]],
        images[own[sure[own].argmin()]],
    )
    for ax, picture in zip((top, middle, bottom), pictures, strict=True):
        ax.imshow(picture, cmap="gray_r")
        ax.set(xticks=[], yticks=[])
for ax, text in zip(axes[:, 0], ("mean", "surest", "least sure"), strict=True):
    ax.set_ylabel(text)
plt.show()

# %%
# **New images** need the same descriptions, and may lack some: what is NaN is missing.

new, known = data.images[900:1000], data.target[900:1000]
unseen = {"pixels": blurred(new), "edges": edges(new), "profiles": profiles(new)}
unseen["scanner"] = np.full((len(new), 60), np.nan)
placed = model.predict(unseen)
print(f"nmi of {len(new)} new images: {mv.metrics.scores(known, placed)['nmi']:.3f}")
