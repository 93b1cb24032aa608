"""What the paper reports: its table, the values of its text, and why some differ from ours."""

from __future__ import annotations

COLUMNS = ("acc", "nmi", "precision", "recall", "f_score", "ari")

#: Handwritten digits: mean and standard deviation of 20 runs; None where the paper gives no deviation.
DIGITS: dict[str, tuple[tuple[float, float | None], ...]] = {
    "BSV-kmeans": ((0.69, 0.07), (0.70, 0.03), (0.61, 0.05), (0.67, 0.04), (0.63, 0.05), (0.59, 0.05)),
    "ConcatK": ((0.63, 0.07), (0.62, 0.03), (0.51, 0.05), (0.59, 0.03), (0.55, 0.04), (0.49, 0.04)),
    "BSV-Spectral": tuple((v, None) for v in (0.68, 0.71, 0.58, 0.68, 0.62, 0.58)),
    "ConcatSpectral": (
        (0.12, None), (0.01, None), (0.10, None), (0.41, 0.04), (0.16, None), (0.00, None),
    ),
    "MultiNMF1": ((0.64, 0.03), (0.58, 0.02), (0.51, 0.03), (0.54, 0.03), (0.52, 0.03), (0.47, 0.03)),
    "MultiNMF2": ((0.79, 0.04), (0.72, 0.02), (0.66, 0.03), (0.69, 0.03), (0.68, 0.03), (0.64, 0.03)),
    "P-MLRSSC": ((0.75, 0.07), (0.77, 0.04), (0.68, 0.07), (0.75, 0.05), (0.71, 0.06), (0.68, 0.07)),
    "C-MLRSSC": ((0.75, 0.06), (0.77, 0.04), (0.68, 0.06), (0.74, 0.05), (0.71, 0.06), (0.67, 0.06)),
    "P-KMLRSSC": ((0.77, 0.06), (0.72, 0.02), (0.66, 0.05), (0.68, 0.05), (0.67, 0.04), (0.63, 0.05)),
    "C-KMLRSSC": ((0.76, 0.07), (0.72, 0.03), (0.65, 0.06), (0.68, 0.05), (0.67, 0.05), (0.63, 0.06)),
    "NMF-W1": ((0.92, 0.03), (0.88, 0.03), (0.85, 0.06), (0.88, 0.03), (0.86, 0.05), (0.84, 0.05)),
    "NMF-W2": ((0.81, 0.08), (0.77, 0.05), (0.69, 0.10), (0.76, 0.06), (0.72, 0.08), (0.69, 0.09)),
    "WM-NMF": ((0.96, 0.02), (0.93, 0.01), (0.93, 0.04), (0.94, 0.01), (0.93, 0.03), (0.93, 0.03)),
}  # fmt: skip

#: LIHC: the means named in the text, with a deviation where one is given.
LIHC: dict[str, tuple[tuple[float, float | None], ...]] = {
    "WM-NMF": tuple((v, None) for v in (0.97, 0.70, 0.99, 0.95, 0.97, 0.83)),
    "best MLRSSC": (
        (0.57, 0.04), (0.18, None), (0.88, None), (0.54, None), (0.67, None), (0.10, None),
    ),
}  # fmt: skip
#: Accuracy of the supervised network the paper names beside them.
SUPERVISED = 0.951

_KMEANS = "k-means here starts by k-means++; which start the paper used is not said."
_KERNEL = (
    "An artefact of unscaled features: the kernel underflows to 0 and nothing is left to cluster; which "
    "labels come out then is arbitrary."
)
#: Shown beside a method of the digits table outside the paper's spread. Nothing is said where the
#: reason is not known.
WHY = {
    **dict.fromkeys(("BSV-kmeans", "ConcatK"), _KMEANS),
    "ConcatSpectral": _KERNEL,
}

#: The symbols of the parameters that the tuning experiments vary.
SYMBOLS = {"p": "p", "beta": "β", "k": "K"}
#: What the column "rescale" says.
RESCALED = {"True": "U rescaled", "False": "not rescaled"}
MEASURE_LIHC = "manyview reproduce lihc convergence --data FOLDER"
CITATION = "S. S. Liu and L. Lin, Adaptive Weighted Multi-View Clustering"
