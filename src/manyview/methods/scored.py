"""A word of warning where the number of clusters is searched by a score that rises with it."""

from __future__ import annotations

from typing import Any, Self

from manyview._warn import warn_user

from .base import MultiViewEstimator

#: The parameters that a score by reconstruction rises with.
NUMBERS = frozenset({"n_clusters", "n_components"})


class ScoredByReconstruction(MultiViewEstimator):
    """An estimator whose `score` rises with the number of clusters."""

    #: Whether `set_params` has set the number of clusters, as a grid search does.
    _number_was_set = False
    #: What this estimator, and the estimator it is a clone of, tell their clones: the clones of one
    #: estimator, as a search makes them, warn once together.
    _told_to_clones: list[bool]
    _told: list[bool]

    def __sklearn_clone__(self) -> Self:
        new = super().__sklearn_clone__()
        new._told = self.__dict__.setdefault("_told_to_clones", [])
        return new

    def set_params(self, **params: Any) -> Self:
        """Set parameters, as scikit-learn's searches do.

        Parameters
        ----------
        **params : dict
            Parameters by their names.

        Returns
        -------
        estimator
            Itself.
        """
        super().set_params(**params)
        if NUMBERS & params.keys():
            self._number_was_set = True
        return self

    def _tell_favoured(self) -> None:
        """Warn where the score may be asked for in a search: it would choose the largest number."""
        if not self._number_was_set:
            return
        told = self.__dict__.setdefault("_told", [])
        if not told:
            told.append(True)
            warn_user(
                f"{type(self).__name__}.score measures how well the views are reconstructed, which rises "
                "with the number of clusters: a grid search over n_clusters favours the largest. Choose it "
                "by manyview.select_n_clusters, or give a scoring of your own"
            )
