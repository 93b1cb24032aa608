"""Links, similarities and distances between samples as coordinates of the samples."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh
from sklearn.preprocessing import normalize

from manyview._types import Array, Matrix

#: Up to this many samples all principal coordinates are found; of more, `LEADING` ones.
ALL_COORDINATES, LEADING = 1000, 256
#: Eigenvalues below this share of the largest are rounding errors.
NEGLIGIBLE = 1e-10
#: Graphs with a larger share of the possible links are computed with as dense arrays.
DENSE_SHARE = 0.1


def own_links(A: sp.csr_array) -> Array:
    """How much a sample is linked to itself: the mean weight of its links, 0 without any.

    So a sample is one of its own neighbors, whatever the unit of the weights.
    """
    degrees, counts = np.ravel(A.sum(axis=1)), np.diff(A.indptr)
    return np.divide(degrees, counts, out=np.zeros(len(degrees)), where=counts > 0)


def discounts(A: sp.csr_array) -> Array:
    """1/√d_j of every sample, d_j the sum of its links: to share a hub tells little.

    In units of the largest sum: weights times a constant give the same numbers.
    """
    degrees = np.ravel(A.sum(axis=0)).astype(float)
    largest = degrees.max(initial=0)
    return np.divide(largest, degrees, out=np.zeros(len(degrees)), where=degrees > 0) ** 0.5


def closed_neighborhoods(A: Matrix, discount: Array) -> Matrix:
    """z_i = a_ij/√d_j with rows of unit length; ``A`` has own links, if it has rows of its own."""
    Z = sp.csr_array(sp.csr_array(A).multiply(discount[None]))
    Z = sp.csr_array(normalize(Z))
    return Z.toarray() if Z.nnz > DENSE_SHARE * Z.shape[0] * Z.shape[1] else Z


def squared_from_kernel(S: Array, own_rows: Array, own_columns: Array) -> Array:
    """‖z_i − z_j‖² = s_ii + s_jj − 2 s_ij, not below 0."""
    return np.maximum(own_rows[:, None] + own_columns[None] - 2 * S, 0)


def principal_coordinates(squared: Array, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Coordinates whose squared distances are ``squared``, as a map of rows of squared distances.

    With J the centering matrix and −½ J D² J = V Λ Vᵀ, coordinates are V Λ^½ R, R a random rotation:
    random halves of them are to distances what random halves of the features are to a table. Returns
    the map G, the column means of D² and the origin: rows z = origin − ½ (d² − means) G.
    """
    means = squared.mean(axis=0)
    centered = -0.5 * (squared - means - means[:, None] + means.mean())
    n = len(centered)
    if n <= ALL_COORDINATES:
        values, vectors = eigh(centered)
    else:
        values, vectors = eigsh(centered, LEADING, which="LA", v0=rng.random(n) + 0.1)
    kept = values > NEGLIGIBLE * max(values.max(initial=0), np.finfo(float).tiny)
    if not kept.any():
        return np.zeros((n, 1)), means, np.zeros(1)
    values, vectors = values[kept], vectors[:, kept]
    rotation = np.linalg.qr(rng.standard_normal((len(values),) * 2))[0]
    G = (vectors / np.sqrt(values)) @ rotation
    # Each coordinate starts at 0: parts are nonnegative, and distances do not mind.
    origin = -(-0.5 * (squared - means) @ G).min(axis=0)
    return G, means, origin
