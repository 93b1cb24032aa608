"""What is asked of `WMNMF`: its parameters as the stages want them, and those that do not go together."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.utils._param_validation import InvalidParameterError

from manyview._types import Matrix, Views
from manyview._warn import warn_user
from manyview.engines.protocols import Engine
from manyview.engines.threads import Threads
from manyview.maths.terms import Term
from manyview.regularizers import Graph, make_regularizer, prepared_terms
from manyview.storage.checkpoint import Checkpoint

from .observed import observed_part
from .scaling import SHIFTING, UNIT_ROWS, is_constant, tell_level, tell_outliers, tell_rounded
from .scored import ScoredByReconstruction
from .state import Settings


class AskedOfWMNMF(ScoredByReconstruction):
    """The parameters of `WMNMF` as its stages want them."""

    @classmethod
    def nmf_w1(cls, n_clusters: int = 8, **params: Any) -> Self:
        """The paper's ablation NMF-W1: observation weights stay equal.

        Parameters
        ----------
        n_clusters : int
        **params : dict
            Further parameters of `WMNMF`.
        """
        return cls(n_clusters, **({"learn_sample_weights": False} | params))

    @classmethod
    def nmf_w2(cls, n_clusters: int = 8, **params: Any) -> Self:
        """The paper's ablation NMF-W2: equal observation weights and no regulariser.

        Parameters
        ----------
        n_clusters : int
        **params : dict
            Further parameters of `WMNMF`.
        """
        return cls(n_clusters, **({"learn_sample_weights": False, "beta": 0.0} | params))

    def _validate_params(self) -> None:
        """Also say who can find the number of clusters, if that is asked."""
        if isinstance(self.n_clusters, str):
            raise InvalidParameterError(
                f"n_clusters={self.n_clusters!r}: WMNMF takes a number, for it has no fused graph to find "
                "one in; use RobustWMNMF, or the number that select_n_clusters recommends"
            )
        super()._validate_params()

    @property
    def _rank(self) -> int:
        """K, the number of columns of all factors."""
        return self.n_components or self.n_clusters

    @property
    def _threads(self) -> Threads:
        return Threads(self.n_jobs)

    @property
    def _settings(self) -> Settings:
        return Settings(
            self.p,
            self.beta,
            self.max_iter,
            self.inner_iter,
            self.tol,
            self.inner_tol,
            self.rescale,
            learn_view_weights=self.learn_view_weights,
            learn_sample_weights=self.learn_sample_weights,
        )

    def _prepared_terms(
        self, Xs: list[Matrix], checkpoint: Checkpoint, engine: Engine
    ) -> tuple[list[Term], list[Term]]:
        """The regulariser of every view, and the term that the starting factors are found with."""
        regularizer = make_regularizer(self.regularizer, self.n_neighbors, self.affinity)
        prepare = partial(prepared_terms, Xs=Xs, keep=checkpoint.keep, tensors=engine.tensors)
        terms = prepare(regularizer)
        if self.init != "gnmf" or isinstance(regularizer, Graph):
            return terms, terms
        return terms, prepare(Graph(self.n_neighbors, self.affinity))

    @property
    def _output_unit(self) -> float:
        """With scale=None results are in the units of the data; otherwise in those of the scaled views."""
        return self._scalings[0].unit if self.scale is None else 1.0

    def _check(self, n_samples: int, engine: Engine) -> None:
        """Refuse settings that do not go together."""
        self._check_n_clusters(self.n_clusters, n_samples)
        if engine.tensors and not self._solver.takes_tensors:
            raise ValueError(
                f"solver {type(self._solver).__name__} would be handed tensors by engine={self.engine!r}; "
                "set takes_tensors = True on it if it can, or use engine='numpy'"
            )
        if self.assign_labels == "argmax" and self._rank != self.n_clusters:
            raise ValueError(
                "assign_labels='argmax' reads one cluster per component, but "
                f"n_components={self._rank} and n_clusters={self.n_clusters}; make them equal"
            )
        if self.assign_labels == "argmax" and self.n_init > 1:
            raise ValueError(
                f"assign_labels='argmax' needs one start (components of {self.n_init} starts do not "
                "match); use n_init=1 or another assignment"
            )

    def _observed_part(self, given: Views) -> Views:
        """Also leave out views that are constant: any weight suits them, and α would be large."""
        views = super()._observed_part(given)
        direction = self.scale in UNIT_ROWS  # then only the proportions of a row count
        constant = [is_constant(X, direction) for X in views.matrices]
        after = f" after scale={self.scale!r}" if direction else ""
        if all(constant):
            if direction:
                warn_user(
                    f"no view tells samples apart (each is constant{after}): the clusters mean "
                    "nothing; use another scale"
                )
            return views
        if not any(constant):
            return views
        masks = self._columns or [np.ones(m, dtype=bool) for m in given.n_features]
        for s, same in zip(self._kept(), constant, strict=True):
            if same:
                masks[s] = np.zeros_like(masks[s])
                warn_user(
                    f"view {given.names[s]!r} is constant{after}: it cannot tell samples apart, is left "
                    "out and gets weight 0"
                )
        self._columns = masks
        return observed_part(given, masks)

    def _warn_extremes(self, views: Views) -> None:
        """Say which views hold gross outliers, or are so far above 0 that clusters may be lost."""
        single = self.dtype is not None and np.dtype(self.dtype) == np.float32
        for X, name in zip(views.matrices, views.names, strict=True):
            tell_outliers(X, name)
            if self.scale not in SHIFTING and not (single and tell_rounded(X, name)):
                tell_level(X, name)

    def _allows_missing(self) -> bool:
        return self.missing == "mask"

    def _allows_negative(self) -> bool:
        return self.scale in SHIFTING

    @property
    def _callback(self) -> Any:
        if not self.verbose and self.callback is None:
            return None

        def report(info: dict[str, Any]) -> Any:
            info["total"] *= self.n_init
            kept = self._kept()
            last = info["iteration"] == self.inner_iter and info["view"] == len(kept) - 1
            info["view"] = kept[info["view"]]
            if self.verbose > 1 or (self.verbose and last):
                print(
                    f"round {info['round']} view {self.view_names_in_[info['view']]} "
                    f"iteration {info['iteration']}: objective {info['objective']:.6g}"
                )
            return self.callback(info) if self.callback else None

        return report
