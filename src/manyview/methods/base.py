"""What every multi-view estimator shares: input, names, seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data

from manyview._arrays import on_host
from manyview._types import Array, Factors, Seed, Views
from manyview.data.containers import (
    Collection,
    Item,
    collect,
    is_single,
    refuse_nothing,
    tensor_among,
)
from manyview.data.later import by_modality, views_there
from manyview.data.views import as_views
from manyview.engines.files.disk import is_file_name
from manyview.engines.files.slabs import STORE
from manyview.engines.numpy.relations import Relation, kind_of, no_relation
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.torch.device import memory_guard, put
from manyview.storage.store import save

from .observed import kept_views, left_out, observed_columns, observed_part, tell_unobserved

#: float32 views of more bytes than this are computed with as they are.
LARGE_FLOAT32 = 2**30


def generator(random_state: Seed) -> np.random.Generator:
    """The one source of randomness of a fit, from whatever scikit-learn users pass."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


def _random_state(random_state: Seed) -> Any:
    """The state of a generator that a fit would advance; None for a seed."""
    if isinstance(random_state, np.random.Generator):
        return random_state.bit_generator.state
    return random_state.get_state() if isinstance(random_state, np.random.RandomState) else None


def _set_random_state(random_state: Seed, state: Any) -> None:
    if isinstance(random_state, np.random.Generator):
        random_state.bit_generator.state = state
    elif isinstance(random_state, np.random.RandomState):
        random_state.set_state(state)


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
        """Also refuse True and False where a number is meant: Python would count with them."""
        for name, value in self.get_params(deep=False).items():
            allowed = [c for c in self._parameter_constraints.get(name, ()) if isinstance(c, str)]
            if isinstance(value, bool) and not {"boolean", "verbose"} & set(allowed):
                raise InvalidParameterError(
                    f"The {name!r} parameter of {type(self).__name__} must be a number or one of its "
                    f"named settings, got {value!r}; say what was meant"
                )
        super()._validate_params()

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

    def _zero_is_missing(self, name: str) -> bool:
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
        single = is_single(X)
        if not reset and single != self._fitted_on_single:
            kinds = ("a collection of views", "one array")
            raise ValueError(
                f"{type(self).__name__} was fitted on {kinds[self._fitted_on_single]}, "
                f"got {kinds[single]}; pass the same form"
            )
        if not reset:
            X = by_modality(X, list(self.view_names_in_), self.view_feature_names_in_)
        collected = collect(X, self.views if reset else views_there(X, self.views))
        if self.engine == "dask":
            self._leave_to_workers(collected)
        given = as_views(
            collected if reset or single else self._in_fitted_order(collected),
            allow_negative=self._allows_negative(),
            allow_missing=self._allows_missing(),
            zero_is_missing=self._zero_is_missing,
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
        if not reset:
            self._check_kinds([kind_of(X) for X in given.matrices])
            self._check_widths(given)
            return given if self._columns is None else observed_part(given, self._columns)
        self._remember_names(given, single)
        self._columns, self._left_out = observed_columns(given), None
        if self._columns is None:
            return given
        if not any(mask.any() for mask in self._columns):
            raise ValueError(
                f"none of the views {list(given.names)} has an observed value; look at how they were read"
            )
        tell_unobserved(given, self._columns, stacklevel=3)
        self._left_out = left_out(given, self._columns)
        return observed_part(given, self._columns)

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
    def _whole_or_nothing(self) -> Iterator[None]:
        """A fit that fails leaves the estimator (and a generator it was given) as it was before.

        Out of memory, it is left unfitted, and a GPU is free again. What was read ahead of files is
        let go in any case.
        """
        guard = memory_guard(self.device, self._forget) if self.engine == "torch" else nullcontext()
        before, state = vars(self).copy(), _random_state(self.random_state)
        try:
            with guard:
                yield
        except MemoryError:
            self._forget()
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if state is not None:
                _set_random_state(self.random_state, state)
            raise
        finally:
            STORE.clear()

    def _forget(self) -> None:
        kept = {*self.get_params(deep=False), "_sklearn_output_config"}
        for name in set(vars(self)) - kept:
            delattr(self, name)

    #: Whether workers of the Dask engine make the passes over rows in files or dask arrays.
    _rows_stay = False

    def _leave_to_workers(self, given: Collection) -> None:
        for item in given.items:
            if is_streamed(item.matrix) and self._rows_stay:
                item.matrix.keep = True  # workers read it, however small

    def _in_fitted_order(self, given: Collection) -> Collection:
        """A dict may list the views in any order; named features may come in any order, too."""
        names, me = list(self.view_names_in_), type(self).__name__
        if given.by_name:
            absent = [name for name in names if name not in given.names]
            extra = [name for name in given.names if name not in names]
            if extra or (absent and not self._allows_missing()):
                raise ValueError(
                    f"{me} was fitted on the views {names}; missing here: {absent}, unknown: {extra}"
                )
            found = dict(zip(given.names, given.items, strict=True))
            items = [found[n] if n in found else self._absent(n, given.items[0]) for n in names]
        elif len(given.items) != len(names):
            raise ValueError(
                f"{me} was fitted on {len(names)} views {names}, got {len(given.items)}"
            )
        else:
            items = given.items
        ordered = [self._with_fitted_features(n, x) for n, x in zip(names, items, strict=True)]
        return replace(given, names=names, items=ordered)

    def _absent(self, name: str, other: Item) -> Item:
        """A view that none of the observations has, of those that ``other`` lists."""
        s = list(self.view_names_in_).index(name)
        width, kind = self._view_widths[s], None if self._relations is None else self._relations[s]
        if kind is not None:
            return Item(no_relation(kind, (other.matrix.shape[0], width)), other.ids)
        return Item(np.full((other.matrix.shape[0], width), np.nan), other.ids)

    def _with_fitted_features(self, name: str, item: Item) -> Item:
        if isinstance(item.matrix, Relation):
            return replace(item, matrix=item.matrix.for_unseen(self.sample_names_in_))
        fitted = self.view_feature_names_in_[name]
        if fitted is None or item.features is None:
            return item
        seen, wanted = list(item.features), list(fitted)
        if seen == wanted:
            return item
        place = {feature: j for j, feature in enumerate(seen)}
        if len(place) < len(seen) or len(set(wanted)) < len(wanted):
            raise ValueError(
                f"view {name!r} has repeated column names in another order than at fit; "
                "give its features unique names"
            )
        lacking = [feature for feature in wanted if feature not in place]
        if lacking:
            raise ValueError(
                f"view {name!r} lacks {len(lacking)} of its {len(wanted)} fitted features, "
                f"the first being {lacking[0]!r}"
            )
        if is_streamed(item.matrix):
            raise ValueError(
                f"{item.matrix.label} has its columns in another order than at fit; write them in the "
                "order of the fit"
            )
        columns = [place[feature] for feature in wanted]
        X = item.matrix.tocsc() if sp.issparse(item.matrix) else item.matrix
        return replace(item, matrix=X[:, columns], features=fitted)

    def _named_rows(self, array: Array, views: Views) -> Any:
        """With set_output(transform="pandas") the sample ids become the index; otherwise the array."""
        wanted = _get_output_config("transform", self)["dense"]
        if wanted != "pandas" or views.sample_names is None:
            return array
        import pandas

        return pandas.DataFrame(array, index=views.sample_names)

    def _check_kinds(self, kinds: list[str | None]) -> None:
        fitted = self._relations or [None] * len(kinds)
        for name, before, now in zip(self.view_names_in_, fitted, kinds, strict=True):
            if before != now:
                raise ValueError(
                    f"view {name!r} is a {now or 'table of features'}, but {type(self).__name__} was "
                    f"fitted on a {before or 'table of features'}; pass the same kind"
                )

    def _check_widths(self, given: Views) -> None:
        for name, fitted, seen in zip(
            self.view_names_in_, self._view_widths, given.n_features, strict=True
        ):
            if fitted != seen:
                raise ValueError(
                    f"view {name!r} has {seen} features, but {type(self).__name__} was fitted with "
                    f"{fitted}"
                )

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


def working_dtype(views: Views, asked: Any) -> np.dtype:
    """The precision of the computation: what was asked for, or float64 unless the data are large float32.

    A float64 copy of large float32 data would take more memory than its owner planned for.
    """
    if asked is not None:
        dtype = np.dtype(asked)
        if dtype not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32, float64 or None, got {asked!r}")
        return dtype
    size = sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in views.matrices)
    large = views.dtype == np.float32 and size > LARGE_FLOAT32
    return np.dtype(np.float32 if large else np.float64)


def on_host_factors(factors: Factors) -> Factors:
    """The same factors as NumPy arrays."""
    U, V = (tuple(on_host(part) for part in parts) for parts in (factors.U, factors.V))
    return Factors(U, V, on_host(factors.consensus), factors.alpha, on_host(factors.w))


def in_dtype(array: Array, dtype: np.dtype) -> Array:
    return np.ascontiguousarray(array, dtype=dtype)
