"""What unseen input is held to: the views and features of the fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Views
from manyview.engines.numpy.presence import is_table
from manyview.engines.numpy.relations import kind_of, no_relation
from manyview.engines.numpy.sources import is_streamed
from manyview.views.containers import Collection, Item


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
    #: Whether unseen observations may lack views.
    may_lack: bool

    def check_form(self, single: bool) -> None:
        """Refuse one array after a fit on a collection of views, and the other way round."""
        if single != self.single:
            kinds = ("a collection of views", "one array")
            raise ValueError(
                f"{self.who} was fitted on {kinds[self.single]}, "
                f"got {kinds[single]}; pass the same form"
            )

    def in_order(self, given: Collection) -> Collection:
        """A dict may list the views in any order; named features may come in any order, too."""
        names = self.names
        if given.by_name:
            absent = [name for name in names if name not in given.names]
            extra = [name for name in given.names if name not in names]
            if extra or (absent and not self.may_lack):
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
        """A view that none of the observations has, of those that ``other`` lists."""
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
        place = _places(name, seen, wanted)
        if is_streamed(item.matrix):
            raise ValueError(
                f"{item.matrix.label} has its columns in another order than at fit; write them in the "
                "order of the fit"
            )
        X = item.matrix.tocsc() if sp.issparse(item.matrix) else item.matrix
        return replace(item, matrix=X[:, place], features=fitted)

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


def _places(name: str, seen: list[str], wanted: list[str]) -> list[int]:
    """Where the features of the fit are among those of a view."""
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
    return [place[feature] for feature in wanted]
