"""Common parts of both estimators: parameters by view, reading and checking input, names, seeds, saving."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions
from sklearn.utils._set_output import _get_output_config
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from manyview._arrays import copied, on_host
from manyview._types import Array, Factors, Matrix, Seed, Views
from manyview._warn import warn_user
from manyview.engines.files.disk import is_file_name
from manyview.engines.files.slabs import STORE
from manyview.engines.numpy.engine import Engine
from manyview.engines.numpy.presence import has_nan, is_table
from manyview.engines.numpy.relations import kind_of, no_relation
from manyview.engines.numpy.sources import is_streamed
from manyview.engines.table import ENGINES
from manyview.engines.threads import beside
from manyview.engines.torch.device import put
from manyview.storage.checkpoint import digest
from manyview.storage.store import save
from manyview.views.containers import (
    Collection,
    Item,
    by_modality,
    collect,
    is_single,
    refuse_nothing,
    tensor_among,
    views_there,
)
from manyview.views.views import LOAD_LIMIT, as_views

# --- precision ----------------------------------------------------------------------------------

#: float32 views of more bytes than this are computed with as they are.
LARGE_FLOAT32 = 2**30


def working_dtype(views: Views, asked: npt.DTypeLike | None) -> np.dtype:
    """The precision of the computation: the requested dtype, or float64 unless the data are large float32.

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


def reordered(factors: Factors, order: Array) -> Factors:
    """The same factors with their components in another order."""
    U, V = (tuple(copied(part[:, order]) for part in parts) for parts in (factors.U, factors.V))
    return Factors(U, V, copied(factors.consensus[:, order]), factors.alpha, factors.w)


def in_dtype(array: Array, dtype: np.dtype) -> Array:
    """A result as users get it: in their precision, in one memory order."""
    return np.ascontiguousarray(array, dtype=dtype)


# --- seeds --------------------------------------------------------------------------------------


def generator(random_state: Seed) -> np.random.Generator:
    """The one source of randomness of a fit, from whatever scikit-learn users pass."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)


# --- parameters by view -------------------------------------------------------------------------

#: "learned", "equal", one number for every view, or numbers by their names.
ViewWeights: TypeAlias = Any
#: A setting of all views, or settings by the names of views; views that are not named have the default.
ByView: TypeAlias = str | dict[str, Any] | None

ZERO_ROWS = ("auto", "missing", "observed")


def of_view(value: ByView, name: str, default: str) -> Any:
    """A parameter's setting of one view."""
    found = value.get(name, default) if isinstance(value, dict) else value
    return None if found == "none" else found


def check_by_view(
    parameter_name: str, value: ByView, names: Sequence[str], allowed: Sequence[str | None]
) -> None:
    """Refuse views or settings that do not exist."""
    if isinstance(value, dict):
        refuse_strangers(parameter_name, value, names)
    items = value.items() if isinstance(value, dict) else [(None, value)]
    for name, kind in items:
        if kind == "none" and None in allowed:
            continue
        if not isinstance(kind, str | None) or kind not in allowed:
            *others, last = (repr(word) for word in allowed)
            of = "" if name is None else f" of view {name!r}"
            raise ValueError(
                f"{parameter_name}{of} must be {', '.join(others)} or {last}, got {kind!r}"
            )


def refuse_strangers(name: str, given: dict[str, Any], names: Sequence[str]) -> None:
    """Refuse names that no view has."""
    unknown = [name for name in given if name not in names]
    if unknown:
        raise ValueError(f"{name} names the view {unknown[0]!r}, and the views are {list(names)}")


# --- weights -----------------------------------------------------------------------------------


def fixed_view_weights(
    asked: ViewWeights, names: Sequence[str], kept: Sequence[int] | None = None
) -> Array | None:
    """The weights that were given, those of the views that are ``kept`` adding up to 1.

    Parameters
    ----------
    asked : "learned", "equal", sequence of numbers, or dict of view → number
    names : sequence of str
        Of all views.
    kept : sequence of int, optional
        Places of the views that hold a value; by default all.

    Returns
    -------
    ndarray (n kept,), or None where the weights are to be learned
    """
    if isinstance(asked, str):
        if asked == "learned":
            return None
        if asked != "equal":
            raise ValueError(
                "view_weights must be 'learned', 'equal', one number for every view or a dict of "
                f"numbers by the names of views, got {asked!r}"
            )
        weights = np.ones(len(names))
    else:
        if isinstance(asked, dict):
            refuse_strangers("view_weights", asked, names)
            lacking = [name for name in names if name not in asked]
            if lacking:
                raise ValueError(
                    f"view_weights has no number for the view {lacking[0]!r}; give one to each of "
                    f"{list(names)}, 0 to ignore a view"
                )
            asked = [asked[name] for name in names]
        listed = np.asarray(asked, dtype=object)
        if listed.shape != (len(names),):
            raise ValueError(
                f"view_weights has {listed.size} numbers for {len(names)} views {list(names)}; give one "
                "number for every view"
            )
        weights = np.array([_number(value, name) for value, name in zip(asked, names, strict=True)])
        if not weights.any():
            raise ValueError("view_weights are all zero; give at least one view a number above 0")
    part = weights if kept is None else weights[list(kept)]
    if not part.sum() > 0:
        raise ValueError(
            "view_weights gives all weight to views without values; give some to another view"
        )
    part = part / part.max()  # the sum of huge numbers is none
    return part / part.sum()


def _number(value: Any, name: str) -> float:
    """A weight, if it is one."""
    try:
        number = float("nan") if isinstance(value, bool | str) else float(value)
    except (TypeError, ValueError):
        number = float("nan")
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(
            f"view_weights of view {name!r} must be a finite number of 0 or more, got {value!r}"
        )
    return number


def with_weight(items: Sequence[Any], weights: Array | None) -> list[Any]:
    """Those of the views that count; all of them where weights are to be learned."""
    if weights is None:
        return list(items)
    return [item for item, weight in zip(items, weights, strict=True) if weight > 0]


# --- observed columns and rows ------------------------------------------------------------------

#: Names told in a warning; of more there is a count.
NAMED = 5
#: A column with a smaller share of the values that the view's fullest column has is nearly empty.
NEARLY_EMPTY = 0.05


def observed_columns(views: Views) -> list[Array] | None:
    """Which columns of each view are observed, not empty or nearly so; None where all are."""
    masks = []
    for X in views.matrices:
        values = _values_of(X) if has_nan(X) else np.ones(X.shape[1])
        masks.append((values > 0) & (values >= NEARLY_EMPTY * values.max(initial=0)))
    return None if all(mask.all() for mask in masks) else masks


def _values_of(X: Array) -> Array:
    """How many rows each column is observed for."""
    return np.count_nonzero(~np.isnan(X), axis=0)


def observed_part(views: Views, columns: list[Array]) -> Views:
    """The views that have such columns, with these only."""
    kept = kept_views(columns)
    matrices = [
        X if mask.all() else np.ascontiguousarray(X[:, mask])
        for X, mask in ((views.matrices[s], columns[s]) for s in kept)
    ]
    named = [views.feature_names[s] for s in kept]
    features = [
        None if names is None else np.asarray(names)[columns[s]]
        for s, names in zip(kept, named, strict=True)
    ]
    return replace(
        views,
        matrices=tuple(matrices),
        names=tuple(views.names[s] for s in kept),
        feature_names=tuple(features),
    )


def left_out(views: Views, columns: list[Array]) -> list[tuple[Array, Array, Array]] | None:
    """The few values in columns that are left out: rows, columns, values of every view; None if none."""
    found = []
    for X, mask in zip(views.matrices, columns, strict=True):
        dropped = np.flatnonzero(~mask)
        i, j = np.nonzero(~np.isnan(X[:, dropped])) if len(dropped) else (dropped, dropped)
        found.append((i, dropped[j], X[i, dropped[j]] if len(i) else np.zeros(0)))
    return found if any(len(i) for i, _, _ in found) else None


def kept_views(columns: Sequence[Array]) -> list[int]:
    return [s for s, mask in enumerate(columns) if mask.any()]


def tell_unobserved(views: Views, columns: list[Array]) -> None:
    """Warn of views without values, and of columns that are empty or nearly so."""
    for X, name, names, mask in zip(
        views.matrices, views.names, views.feature_names, columns, strict=True
    ):
        if mask.all():
            continue
        if not mask.any():
            warn_user(f"view {name!r} has no values; it gets no weight")
            continue
        values = _values_of(X)
        empty, scarce = np.flatnonzero(values == 0), np.flatnonzero(~mask & (values > 0))
        if len(empty):
            warn_user(
                f"view {name!r}: {len(empty)} of {len(values)} columns have no values and are "
                f"ignored: {_listed(names, empty)}"
            )
        if len(scarce):
            warn_user(
                f"view {name!r}: {len(scarce)} of {len(values)} columns have values for at most "
                f"{values[scarce].max()} samples, less than {NEARLY_EMPTY:.0%} of the {values.max()} of "
                f"the fullest column, and are ignored: {_listed(names, scarce)}"
            )


def _listed(names: Array | None, columns: Array) -> str:
    """The first columns by name, or by number where they have none."""
    shown = [
        repr(names[j]) if names is not None and str(names[j]).strip() else f"number {j + 1}"
        for j in columns[:NAMED].tolist()
    ]
    more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
    return ", ".join(shown) + more


def observed_somewhere(matrices: Sequence[Matrix]) -> Array:
    """Rows of which some view holds a value."""
    anywhere = np.zeros(matrices[0].shape[0], dtype=bool)
    for X in matrices:
        if not has_nan(X):
            return np.ones_like(anywhere)
        anywhere |= ~np.isnan(X).all(axis=1)
    return anywhere


def spread_out(part: Array, mask: Array, axis: int) -> Array:
    """``part`` in the places of ``mask`` along an axis, and 0 elsewhere."""
    if mask.all():
        return part
    shape = list(part.shape)
    shape[axis] = len(mask)
    whole = np.zeros(shape, dtype=part.dtype)
    whole[(slice(None),) * axis + (mask,)] = part
    return whole


# --- the data of the fit ------------------------------------------------------------------------


def remember(views: Views) -> tuple[list[Matrix], Callable[[], list[str | None]]]:
    """The data to fill in later: copies, since users' arrays change.

    Of arrays too large to be copied there is a checksum, made while the fit goes on; files are what
    they are.
    """
    held = [X for X in views.matrices if not is_streamed(X)]
    large = sum(X.data.nbytes if sp.issparse(X) else X.nbytes for X in held) > LOAD_LIMIT
    data = [X if large or is_streamed(X) else X.copy() for X in views.matrices]
    if not large:
        return data, lambda: [None] * len(data)
    return data, beside(lambda: [None if is_streamed(X) else digest(X) for X in data])


def refuse_changed(X: Matrix, checksum: str | None, name: str) -> None:
    """Views too large to be copied are read where they are: they must be those of the fit."""
    if checksum is not None and checksum != digest(X):
        raise ValueError(
            f"view {name!r} was changed after the fit (the model did not copy it, because it is large); "
            "fit again, or restore its numbers"
        )


# --- input after the fit ------------------------------------------------------------------------


@dataclass(frozen=True)
class FittedInput:
    """Names, widths and kinds of the views that an estimator was fitted on."""

    #: The name of the estimator, for messages.
    who: str
    names: list[str]
    feature_names: dict[str, Array | None]
    widths: Sequence[int]
    #: Which kind of relation each view is; None for features.
    kinds: Sequence[str | None]
    sample_names: Array | None
    #: Whether it was one array.
    single: bool
    #: Which views unseen samples may lack.
    may_lack: Callable[[str], bool]

    def in_order(self, given: Collection) -> Collection:
        """A dict may list the views in any order; named features may come in any order, too."""
        names = self.names
        if given.by_name:
            absent = [name for name in names if name not in given.names]
            extra = [name for name in given.names if name not in names]
            if extra or not all(map(self.may_lack, absent)):
                raise ValueError(
                    f"{self.who} was fitted on the views {names}; missing here: {absent}, unknown: {extra}"
                )
            found = dict(zip(given.names, given.items, strict=True))
            items = [found[n] if n in found else self.absent(n, given.items[0]) for n in names]
        elif len(given.items) != len(names):
            raise ValueError(
                f"{self.who} was fitted on {len(names)} views {names}, got {len(given.items)}"
            )
        else:
            items = given.items
        ordered = [self._with_features(n, x) for n, x in zip(names, items, strict=True)]
        return replace(given, names=names, items=ordered)

    def absent(self, name: str, other: Item) -> Item:
        """A view that none of the samples has, of those that ``other`` lists."""
        s = self.names.index(name)
        kind, shape = self.kinds[s], (other.matrix.shape[0], self.widths[s])
        if kind is not None:
            return Item(no_relation(kind, shape), other.ids)
        return Item(np.full(shape, np.nan), other.ids)

    def _with_features(self, name: str, item: Item) -> Item:
        if not is_table(item.matrix):
            return replace(item, matrix=item.matrix.for_unseen(self.sample_names))
        fitted = self.feature_names[name]
        if fitted is None or item.features is None:
            return item
        seen, wanted = list(item.features), list(fitted)
        if seen == wanted:
            return item
        place = _places(name, seen, wanted, self.may_lack(name))
        if is_streamed(item.matrix):
            raise ValueError(
                f"{item.matrix.label} has its columns in another order than at fit; write them in the "
                "order of the fit"
            )
        X = item.matrix.tocsc() if sp.issparse(item.matrix) else item.matrix
        there = np.array(place) >= 0
        if there.all():
            return replace(item, matrix=X[:, place], features=fitted)
        known = X[:, np.array(place)[there]]
        known = known.toarray() if sp.issparse(known) else np.asarray(known, dtype=float)
        whole = np.full((len(known), len(wanted)), np.nan)
        whole[:, there] = known
        return replace(item, matrix=whole, features=fitted)

    def check(self, given: Views) -> None:
        """Refuse views of another kind or width."""
        for name, before, X in zip(self.names, self.kinds, given.matrices, strict=True):
            now = kind_of(X)
            if before != now:
                raise ValueError(
                    f"view {name!r} is a {now or 'table of features'}, but {self.who} was "
                    f"fitted on a {before or 'table of features'}; pass the same kind"
                )
        for name, fitted, seen in zip(self.names, self.widths, given.n_features, strict=True):
            if fitted != seen:
                raise ValueError(
                    f"view {name!r} has {seen} features, but {self.who} was fitted with {fitted}"
                )


def _places(name: str, seen: list[str], wanted: list[str], may_lack: bool) -> list[int]:
    """Where the features of the fit are among those of a view; −1 where it lacks one and may."""
    place = {feature: j for j, feature in enumerate(seen)}
    if len(place) < len(seen) or len(set(wanted)) < len(wanted):
        raise ValueError(
            f"view {name!r} has repeated column names in another order than at fit; "
            "give its features unique names"
        )
    lacking = [feature for feature in wanted if feature not in place]
    if lacking:
        share = f"{len(lacking)} of its {len(wanted)} fitted features"
        if not may_lack or len(lacking) == len(wanted):
            raise ValueError(f"view {name!r} lacks {share}, the first being {lacking[0]!r}")
        warn_user(
            f"view {name!r} lacks {share} ({len(lacking) / len(wanted):.0%}), the first being "
            f"{lacking[0]!r}: they are treated as missing, and samples are compared on the other features"
        )
    return [place.get(feature, -1) for feature in wanted]


#: The parameters that a score by reconstruction rises with.
NUMBERS = frozenset({"n_clusters", "n_components"})


# --- the estimator ------------------------------------------------------------------------------

#: What the two estimators accept for the parameters they share.
SHARED_CONSTRAINTS: dict[str, list[Any]] = {
    "learn_view_weights": ["boolean"],
    "learn_sample_weights": ["boolean"],
    "views": ["array-like", dict, None],
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
    #: Columns of each view with a value at the fit; None: all.
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
                    f"named settings, got {value!r}; choose one of these"
                )
        super()._validate_params()
        if self.device not in ("auto", "cpu") and not ENGINES[self.engine].takes_devices:
            raise InvalidParameterError(
                f"device={self.device!r} is for engine='torch'; engine={self.engine!r} computes on the "
                "processor: leave device out, or use engine='torch'"
            )

    #: Parameters that may be a dict by view: their settings, the first of which is the default.
    _by_view: ClassVar[dict[str, tuple[str | None, ...]]] = {}

    def _of_view(self, parameter_name: str, name: str) -> Any:
        """A parameter's setting of one view."""
        default = self._by_view[parameter_name][0]
        return of_view(getattr(self, parameter_name), name, str(default))

    def _allows_negative(self, name: str = "") -> bool:
        """Whether this view may have negative entries; estimators that scale decide by their scale."""
        return False

    def _allows_missing(self, name: str = "") -> bool:
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

        Columns without a value at the fit are left out, at the fit with a warning; the names and
        widths stored are those of all columns.
        """
        if not reset:
            check_is_fitted(self)
        refuse_nothing(X)
        single, fitted = is_single(X), None if reset else fitted_input(self)
        if fitted is None:
            collected = collect(X, self.views)
            for parameter_name, allowed in self._by_view.items():
                check_by_view(
                    parameter_name, getattr(self, parameter_name), collected.names, allowed
                )
        else:
            if single != fitted.single:
                kinds = ("a collection of views", "one array")
                raise ValueError(
                    f"{fitted.who} was fitted on {kinds[fitted.single]}, got {kinds[single]}; pass the "
                    "same form"
                )
            X = by_modality(X, fitted.names, fitted.feature_names)
            collected = collect(X, views_there(X, self.views))
        if ENGINES[self.engine].leaves_rows:
            self._leave_to_workers(collected)
        given = as_views(
            collected if fitted is None or single else fitted.in_order(collected),
            allow_negative=self._allows_negative,
            allow_missing=self._allows_missing,
            zero_is_missing=partial(self._zero_is_missing, reset=reset),
            allow_files=self._reads_files,
            allow_relations=self._takes_relations,
            min_samples=2 if reset else 1,
            caller=type(self).__name__,
            remedy="use missing='allow' to treat NaN as missing"
            if hasattr(self, "missing")
            else "impute them, or use RobustWMNMF, which treats NaN as missing",
        )
        if single:
            # scikit-learn's own bookkeeping of n_features_in_ and feature_names_in_.
            as_it_is = tensor_among(X) is None and not is_file_name(X)
            table = X if as_it_is else collected.items[0].matrix
            validate_data(self, table, reset=reset, skip_check_array=True)
        if fitted is None:
            if not single:
                self.n_features_in_ = given.n_features
                self.__dict__.pop("feature_names_in_", None)  # of an earlier fit on one DataFrame
            self.view_names_in_ = np.array(given.names, dtype=object)
            self.view_feature_names_in_ = dict(zip(given.names, given.feature_names, strict=True))
            self.sample_names_in_ = given.sample_names
            self._view_widths, self._fitted_on_single = given.n_features, single
            relations = [kind_of(X) for X in given.matrices]
            for name, kind in zip(given.names, relations, strict=True):
                if kind is not None and not ENGINES[self.engine].takes_relations:
                    raise ValueError(
                        f"view {name!r} is a {kind}, which engine={self.engine!r} does not "
                        "accept; use engine='numpy', or pass its as_features()"
                    )
            self._relations = relations if any(relations) else None
            return self._observed_part(given)
        fitted.check(given)
        return given if self._columns is None else observed_part(given, self._columns)

    def _observed_part(self, given: Views) -> Views:
        """At a fit: select the columns that have values, and warn of the others."""
        self._columns, self._left_out = observed_columns(given), None
        if self._columns is None:
            return given
        if not any(mask.any() for mask in self._columns):
            raise ValueError(
                f"none of the views {list(given.names)} has values; check that they were read correctly"
            )
        tell_unobserved(given, self._columns)
        self._left_out = left_out(given, self._columns)
        return observed_part(given, self._columns)

    def _kept(self) -> list[int]:
        """Places of the views with a value, among those given."""
        every = range(len(self._view_widths))
        return list(every) if self._columns is None else kept_views(self._columns)

    def _all_columns(self, parts: list[Array]) -> list[Array]:
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
            array = np.zeros((rows, len(mask)), dtype=parts[0].dtype)
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
    def _opened(self, name: str | None = None) -> Iterator[Engine]:
        """The engine of a fit (this estimator's, or another) that is whole or nothing.

        A fit that fails leaves the estimator (and a generator it was given) as it was before. Out of
        memory, it is left unfitted, and a GPU is free again. What was read ahead of files is let go in
        any case.
        """
        before, rng = vars(self).copy(), self.random_state
        state: Any = None
        if isinstance(rng, np.random.Generator):
            state = rng.bit_generator.state
        elif isinstance(rng, np.random.RandomState):
            state = rng.get_state()
        try:
            # One thread: the sums inside BLAS and k-means differ between thread counts.
            opened = ENGINES[name or self.engine].opened(self.device, self._forget)
            with threadpool_limits(1), opened as engine:
                yield engine
        except MemoryError:
            self._forget()
            raise
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if isinstance(rng, np.random.Generator):
                rng.bit_generator.state = state
            elif isinstance(rng, np.random.RandomState):
                rng.set_state(state)
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
        generator is left out with a warning; a regularizer of your own class cannot be saved.

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

    # --- a score that rises with the number of clusters ---
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

    def _tell_favored(self) -> None:
        """Warn that a grid search by this score would choose the largest number of clusters."""
        if not self._number_was_set:
            return
        told = self.__dict__.setdefault("_told", [])
        if not told:
            told.append(True)
            warn_user(
                f"{type(self).__name__}.score measures how well the views are reconstructed, which rises "
                "with the number of clusters: a grid search over n_clusters favors the largest. Choose it "
                "by manyview.select_n_clusters, or give a scoring of your own"
            )

    def _check_n_clusters(self, n_clusters: int, n_samples: int) -> None:
        if n_clusters > n_samples:
            raise ValueError(
                f"n_clusters={n_clusters} is more than the number of samples "
                f"(n_samples={n_samples}); choose fewer clusters"
            )


def unfitted(model: Any, n_clusters: int | None) -> Any:
    """A clone for refits of parts of the data: what the fit has settled is not settled again.

    ``n_clusters`` takes the place of "auto". A checkpoint is for the fit of all samples.
    """
    again = clone(model)
    new: dict[str, Any] = {"checkpoint": None}
    if hasattr(model, "zero_rows_"):
        new["zero_rows"] = model.zero_rows_
    known = again.get_params()
    if known.get("n_clusters") == "auto":
        new["n_clusters"] = n_clusters
    return again.set_params(**{name: value for name, value in new.items() if name in known})


def fitted_input(model: MultiViewEstimator) -> FittedInput:
    """What a fitted estimator holds unseen input to."""
    return FittedInput(
        type(model).__name__,
        list(model.view_names_in_),
        model.view_feature_names_in_,
        model._view_widths,
        model._relations or [None] * len(model._view_widths),
        model.sample_names_in_,
        model._fitted_on_single,
        model._allows_missing,
    )
