"""Agreement of a clustering with known classes: ACC, NMI, pair precision/recall/F, ARI.

Labels may be numbers, strings, booleans or a mixture, and the two sides may have any number of
clusters. Equal partitions score 1 on all six, one cluster or all singletons included. NMI and ARI
are scikit-learn's.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix, pair_confusion_matrix

from ._labels import class_codes


def scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return all six scores of a clustering: acc, nmi, precision, recall, f_score, ari.

    Parameters
    ----------
    y_true : sequence of labels
        Known classes, one per sample.
    y_pred : sequence of labels
        Clusters of the same samples; their names need not be those of the classes.

    Returns
    -------
    dict of str to float
        From 0 (ari: about 0 for a random clustering) to 1.

    Examples
    --------
    >>> scores(["a", "a", "b", "b"], [1, 1, 0, 0])["acc"]
    1.0
    """
    true, pred = _codes(y_true, y_pred)
    return {
        "acc": accuracy(true, pred),
        "nmi": float(normalized_mutual_info_score(true, pred)),
        **pair_scores(true, pred),
        "ari": float(adjusted_rand_score(true, pred)),
    }


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Return the share of correct samples under the best one-to-one matching of clusters to classes.

    Samples of a cluster or class that is not matched are wrong.

    Parameters
    ----------
    y_true : sequence of labels
        Known classes, one per sample.
    y_pred : sequence of labels
        Clusters of the same samples.

    Returns
    -------
    float
        From above 0 to 1.
    """
    true, pred = _codes(y_true, y_pred)
    table = contingency_matrix(true, pred)
    return float(table[linear_sum_assignment(-table)].sum() / len(true))


def pair_scores(y_true: Any, y_pred: Any) -> dict[str, float]:
    """Return precision, recall and f_score of pairs of samples.

    Precision: of the pairs in one cluster, the share in one class (0 if no pair is in one cluster).
    Recall: of the pairs in one class, the share in one cluster. All are 1 if neither side has a pair.

    Parameters
    ----------
    y_true : sequence of labels
        Known classes, one per sample.
    y_pred : sequence of labels
        Clusters of the same samples.

    Returns
    -------
    dict of str to float
        "precision", "recall" and "f_score", each from 0 to 1.
    """
    # Python integers: sums of pair counts overflow nothing.
    (_, only_pred), (only_true, both) = pair_confusion_matrix(*_codes(y_true, y_pred)).tolist()
    if both + only_pred + only_true == 0:
        return {"precision": 1.0, "recall": 1.0, "f_score": 1.0}
    return {
        "precision": both / (both + only_pred) if both + only_pred else 0.0,
        "recall": both / (both + only_true) if both + only_true else 0.0,
        "f_score": 2 * both / (2 * both + only_pred + only_true),
    }


def _codes(y_true: Any, y_pred: Any) -> tuple[np.ndarray, np.ndarray]:
    true, pred = class_codes(y_true, "y_true"), class_codes(y_pred, "y_pred")
    if len(true) != len(pred):
        raise ValueError(
            f"y_true has {len(true)} labels and y_pred has {len(pred)}; "
            "both must label the same samples"
        )
    return true, pred
