"""
Images: views made from descriptors
===================================

Views of images are made by computing several descriptors of each image. The weights say which descriptors
agree. This example describes scikit-learn's small scans of digits in four ways, one of which is noise.
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
# **Descriptors**: blurred pixels; directions of edges in nine regions; profiles, which are sums of rows,
# columns and diagonals; and noise.


def blurred(images: np.ndarray) -> np.ndarray:
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    shifted = [padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)]
    return np.mean(shifted, axis=0).reshape(len(images), -1)


def edges(images: np.ndarray, directions: int = 8) -> np.ndarray:
    """Strength of edges by direction, in 3 × 3 regions that overlap."""
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
# **Fit**, and compare with k-means of all z-scored features side by side.

model = mv.RobustWMNMF(n_clusters=10, random_state=0).fit(views)
for name, weight in zip(model.view_names_in_, model.view_weights_, strict=True):
    print(f"{name:9} weight {weight:.2f}")
features = StandardScaler().fit_transform(np.hstack(list(views.values())))
plain = KMeans(10, n_init=10, random_state=0).fit_predict(features)
for name, labels in (("weighted", model.labels_), ("plain", plain)):
    found = mv.metrics.scores(truth, labels)
    print(f"{name:9} accuracy {found['acc']:.3f}, nmi {found['nmi']:.3f}")

# %%
# **The clusters as pictures**: the mean image, and the images with the highest and lowest confidence.

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
for ax, text in zip(axes[:, 0], ("mean", "highest", "lowest"), strict=True):
    ax.set_ylabel(text)
plt.show()

# %%
# **New images** need the same descriptors. Rows of NaN are missing descriptors.

new, known = data.images[900:1000], data.target[900:1000]
unseen = {"pixels": blurred(new), "edges": edges(new), "profiles": profiles(new)}
unseen["scanner"] = np.full((len(new), 60), np.nan)
placed = model.predict(unseen)
print(f"nmi of {len(new)} new images: {mv.metrics.scores(known, placed)['nmi']:.3f}")
