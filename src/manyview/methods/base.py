"""What every multi-view estimator shares: how it reads its input, and a fit that is whole or nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from manyview._types import Array, Seed, Views
from manyview.engines.files.disk import is_file_name
from manyview.engines.files.slabs import STORE
from manyview.engines.numpy.relations import kind_of
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.protocols import Engine
from manyview.engines.table import ENGINES, opened
from manyview.engines.torch.device import put
from manyview.storage.store import save
from manyview.views.containers import (
    Collection,
    by_modality,
    collect,
    is_single,
    refuse_nothing,
    tensor_among,
    views_there,
)
from manyview.views.views import as_views

from .fitted_input import FittedInput
from .observed import kept_views, left_out, observed_columns, observed_part, tell_unobserved
from .seeds import set_state, state_of

#: What the two estimators accept for the parameters they share.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "learn_view_weights": ["boolean"],
    "learn_sample_weights": ["boolean"],
    "views": ["array-like", None],
    "engine": [StrOptions(set(ENGINES))],
    "device": [str],
    "n_jobs": [
        Interval(Integral, 1, None, closed="left"),
        Interval(Integral, None, -1, closed="right"),
        None,
    ],
    "checkpoint": [str, os.PathLike, tuple, None],
    "random_state": ["random_state", np.random.Generator],
    "verbose": ["verbose"],
    "callback": [callable, None],
}


class MultiViewEstimator(BaseEstimator):
    """Validates views at fit, and holds later input to the same views and features."""

    # What estimators without these parameters do: one array is one view, and NumPy computes.
    views: Any = None
    engine: str = "numpy"
    device: str = "auto"
    random_state: Seed = None
    _fitted_on_single: bool
    #: Which columns of each view anybody observed at the fit; None: all.
    _columns: list[Array] | None = None
    #: Of every given view the values in columns that were left out (rows, columns, values).
    _left_out: list[tuple[Array, Array, Array]] | None = None

    _parameter_constraints: ClassVar[dict]

    def _validate_params(self) -> None:
        """Also refuse True and False where a number is meant, and a device no engine would use."""
        for name, value in self.get_params(deep=False).items():
            allowed = [c for c in self._parameter_constraints.get(name, ()) if isinstance(c, str)]
            if isinstance(value, bool) and not {"boolean", "verbose"} & set(allowed):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number or one of its "
                    f"named settings, got {value!r}; say what was meant"
                )
        super()._validate_params()
        if self.device not in ("auto", "cpu") and not ENGINES[self.engine].takes_devices:
            raise InvalidParameterError(
                f"device={self.device!r} is for engine='torch'; engine={self.engine!r} computes on the "
                "processor: leave device out, or use engine='torch'"
            )

    #: Whether `_read` lets negative entries through; estimators that scale decide by their scale.
    def _allows_negative(self) -> bool:
        return False

    def _allows_missing(self) -> bool:
        return False

    #: Whether views may stay in their files.
    _reads_files = False

    #: Whether views may be graphs, kernels or distances.
    _takes_relations = False
    #: Which kind of relation each view was at the fit; None for features.
    _relations: list[str | None] | None = None

    def _zero_is_missing(self, name: str, reset: bool) -> bool:
        """Whether a row of zeros in this sparse view means that the view is missing there."""
        return False

    def _read(self, X: Any, reset: bool) -> Views:
        """``X`` as Views; at fit (``reset``) its names are stored, afterwards compared.

        Columns that nobody observed at the fit are left out, at the fit with a warning; the names and
        widths stored are those of all columns.
        """
        if not reset:
            check_is_fitted(self)
        refuse_nothing(X)
        single, fitted = is_single(X), None if reset else self._fitted_input()
        if fitted is None:
            collected = collect(X, self.views)
        else:
            fitted.check_form(single)
            X = by_modality(X, fitted.names, fitted.feature_names)
            collected = collect(X, views_there(X, self.views))
        if ENGINES[self.engine].leaves_rows:
            self._leave_to_workers(collected)
        given = as_views(
            collected if fitted is None or single else fitted.in_order(collected),
            allow_negative=self._allows_negative(),
            allow_missing=self._allows_missing(),
            zero_is_missing=partial(self._zero_is_missing, reset=reset),
            allow_files=self._reads_files,
            allow_relations=self._takes_relations,
            min_samples=2 if reset else 1,
            caller=type(self).__name__,
        )
        if single:
            # scikit-learn's own bookkeeping of n_features_in_ and feature_names_in_.
            as_it_is = tensor_among(X) is None and not is_file_name(X)
            table = X if as_it_is else collected.items[0].matrix
            validate_data(self, table, reset=reset, skip_check_array=True)
        if fitted is None:
            self._remember_names(given, single)
            return self._observed_part(given)
        fitted.check(given)
        return given if self._columns is None else observed_part(given, self._columns)

    def _observed_part(self, given: Views) -> Views:
        """At a fit: the columns that somebody observed; what is left out is told and remembered."""
        self._columns, self._left_out = observed_columns(given), None
        if self._columns is None:
            return given
        if not any(mask.any() for mask in self._columns):
            raise ValueError(
                f"none of the views {list(given.names)} has an observed value; look at how they were read"
            )
        tell_unobserved(given, self._columns)
        self._left_out = left_out(given, self._columns)
        return observed_part(given, self._columns)

    def _fitted_input(self) -> FittedInput:
        """What unseen input is held to."""
        return FittedInput(
            type(self).__name__,
            list(self.view_names_in_),
            self.view_feature_names_in_,
            self._view_widths,
            self._relations or [None] * len(self._view_widths),
            self.sample_names_in_,
            self._fitted_on_single,
            self._allows_missing(),
        )

    def _remember_names(self, given: Views, single: bool) -> None:
        """What unseen input is compared with: names, widths, and whether it was one array."""
        if not single:
            self.n_features_in_ = given.n_features
            self.__dict__.pop("feature_names_in_", None)  # of an earlier fit on one DataFrame
        self.view_names_in_ = np.array(given.names, dtype=object)
        self.view_feature_names_in_ = dict(zip(given.names, given.feature_names, strict=True))
        self.sample_names_in_ = given.sample_names
        self._view_widths, self._fitted_on_single = given.n_features, single
        relations = [kind_of(X) for X in given.matrices]
        self._relations = relations if any(relations) else None

    def _kept(self) -> list[int]:
        """Places of the views with a value, among those given."""
        every = range(len(self._view_widths))
        return list(every) if self._columns is None else kept_views(self._columns)

    def _all_columns(self, parts: list[Array], empty: float = 0.0) -> list[Array]:
        """One array per fitted view (… × kept columns) as one per given view (… × all columns)."""
        if self._columns is None:
            return parts
        found = dict(zip(self._kept(), parts, strict=True))
        rows = parts[0].shape[0]
        whole = []
        for s, mask in enumerate(self._columns):
            if s in found and mask.all():  # of a relation, coordinates that are not its columns
                whole.append(found[s])
                continue
            array = np.full((rows, len(mask)), empty, dtype=parts[0].dtype)
            if s in found:
                array[:, mask] = found[s]
            whole.append(array)
        return whole

    def _all_views(self, array: Array) -> Array:
        """Numbers of the fitted views (along the last axis) as those of the given ones; 0 elsewhere."""
        if self._columns is None:
            return array
        whole = np.zeros((*array.shape[:-1], len(self._columns)), dtype=array.dtype)
        whole[..., self._kept()] = array
        return whole

    def _like_input(self, array: Any, X: Any) -> Any:
        """Tensors in, tensors out: a result on the device its input came from."""
        given = tensor_among(X)
        return array if given is None else put(array, given.device)

    @contextmanager
    def _opened(self) -> Iterator[Engine]:
        """The engine of a fit that is whole or nothing."""
        # One thread: the sums inside BLAS and k-means differ between thread counts.
        with (
            threadpool_limits(1),
            self._whole_or_nothing(),
            opened(self.engine, self.device, self._forget) as engine,
        ):
            yield engine

    @contextmanager
    def _whole_or_nothing(self) -> Iterator[None]:
        """A fit that fails leaves the estimator (and a generator it was given) as it was before.

        Out of memory, it is left unfitted, and a GPU is free again. What was read ahead of files is
        let go in any case.
        """
        before, state = vars(self).copy(), state_of(self.random_state)
        try:
            yield
        except MemoryError:
            self._forget()
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if state is not None:
                set_state(self.random_state, state)
            raise
        finally:
            STORE.clear()

    def _forget(self) -> None:
        kept = {*self.get_params(deep=False), "_sklearn_output_config"}
        for name in set(vars(self)) - kept:
            delattr(self, name)

    #: Whether an engine that leaves rows where they are makes the passes over those in files.
    _rows_stay = False

    def _leave_to_workers(self, given: Collection) -> None:
        for item in given.items:
            if is_streamed(item.matrix) and self._rows_stay:
                item.matrix.keep = True  # workers read it, however small

    def _named_rows(self, array: Array, views: Views) -> Any:
        """With set_output(transform="pandas") the sample ids become the index; otherwise the array."""
        wanted = _get_output_config("transform", self)["dense"]
        if wanted != "pandas" or views.sample_names is None:
            return array
        import pandas

        return pandas.DataFrame(array, index=views.sample_names)

    def save(self, path: str | Path) -> Path:
        """Write the fitted model to ``path`` (.npz, no pickle); `manyview.load` gives it back exactly.

        The file holds the training data that `predict` and `impute` need. A ``callback`` or a random
        generator is left out with a warning; a regulariser of your own class cannot be saved.

        Parameters
        ----------
        path : path
            The file, such as "model.npz".

        Returns
        -------
        Path
            Of the file.
        """
        return save(self, path)

    def _check_n_clusters(self, n_clusters: int, n_samples: int) -> None:
        if n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={n_clusters} is more than the number of observations "
                f"(n_samples={n_samples}); ask for fewer clusters"
            )


def fitted_input(model: MultiViewEstimator) -> FittedInput:
    """What a fitted estimator holds unseen input to."""
    return model._fitted_input()


def refuse_relations(kinds: Sequence[str | None] | None, names: Sequence[str], engine: str) -> None:
    """Say which view is a graph, a kernel or distances, if the engine takes none."""
    if kinds is None or ENGINES[engine].takes_relations:
        return
    name, kind = next((name, kind) for name, kind in zip(names, kinds, strict=True) if kind)
    raise ValueError(
        f"view {name!r} is a {kind}, which engine={engine!r} does not take; "
        "use engine='numpy', or pass its as_features()"
    )
