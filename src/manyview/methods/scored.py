"""A word of warning where scores of several numbers of clusters are compared."""

from __future__ import annotations

from collections.abc import Sequence

from manyview._warn import warn_user

#: Numbers of clusters that a kind of model was scored with, on views of these widths.
_SCORED: dict[tuple[str, tuple[int, ...]], set[int]] = {}


def warn_of_more_clusters(kind: str, widths: Sequence[int], n_clusters: int) -> None:
    """Warn when models of another number of clusters were scored on such views before.

    A grid search does so, and would always choose the largest number.
    """
    seen = _SCORED.setdefault((kind, tuple(int(m) for m in widths)), set())
    if n_clusters in seen:
        return
    seen.add(n_clusters)
    if len(seen) == 2:
        warn_user(
            f"{kind}.score measures how well the views are reconstructed, which rises with the number of "
            f"clusters (scored so far: {', '.join(map(str, sorted(seen)))}): a grid search over n_clusters "
            "favours the largest. Choose it by manyview.select_n_clusters, or give a scoring of your own"
        )
