"""What a user of `WMNMF` is told once: what was left out, what cannot lead, how the loop ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from manyview._types import Array, CollapseWarning, FitResult, Stop
from manyview._warn import warn_user
from manyview.engines.numpy.masked import reaches

#: From this weight of one view on, the consensus is that view's alone.
COLLAPSE = 0.9


def warn_unobserved_rows(anywhere: Array) -> None:
    """Say which observations no view describes."""
    if not anywhere.all():
        warn_user(
            f"{int((~anywhere).sum())} observations have no value in any view (the first is row "
            f"{int(np.flatnonzero(~anywhere)[0])}); they are left out and get the label -1"
        )


def warn_scarce_views(Xs: Sequence[Any], names: Sequence[str], n_components: int) -> None:
    """Say which views are observed for too few rows to learn parts from."""
    for s in np.flatnonzero(reaches(list(Xs), n_components) < 1).tolist():
        X = Xs[s]
        warn_user(
            f"view {names[s]!r} is observed for {int(X.here.sum())} of {X.shape[0]} observations "
            f"({X.counts.sum() / np.prod(X.shape):.1%} of its entries), too few to learn "
            f"{n_components} parts from: it cannot lead, and its weight is small; leave it out, "
            "or ask for fewer clusters"
        )


def warn_about(result: FitResult, view_names: Sequence[str], tol: float) -> None:
    """Say that the loop did not settle, or that one view has taken over."""
    if result.stop is Stop.MAX_ITER:
        warn_user(
            f"WM-NMF stopped after {result.n_iter} rounds before the objective settled to "
            f"tol={tol:g}; raise max_iter, or set tol=0 to ask for a fixed number of rounds",
            ConvergenceWarning,
        )
    if not result.factors.consensus.any():
        warn_user(
            "the regulariser has driven the consensus to zero: its clusters mean nothing; lower beta",
            CollapseWarning,
        )
    alpha = result.factors.alpha
    if len(alpha) > 1 and alpha.max() > COLLAPSE:
        warn_user(
            f"view {view_names[int(alpha.argmax())]!r} holds {alpha.max():.0%} of the view weight: "
            "the consensus has collapsed onto it; use fewer rounds (max_iter) or a larger p",
            CollapseWarning,
        )
