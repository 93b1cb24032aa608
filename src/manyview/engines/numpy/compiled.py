"""Which compiled inner loops are at hand (numba, extra "fast"), and which solvers they stand in for."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from manyview._arrays import copied
from manyview._types import Array, Sums
from manyview._warn import warn_user
from manyview.maths.solvers import Solver, least_diagonal, own_name

from .code_cache import import_compiled

UpdateU = Callable[[Array, Sums, float], Array]


class Forms(NamedTuple):
    """The compiled forms of one solver."""

    #: `Solver.update_U`; None where NumPy does it as fast.
    update_U: UpdateU | None
    #: `Solver.update_V` with the parts of the regulariser one by one, into its last argument.
    update_V: Callable[..., None]
    #: How `kernels.rows_pass` is told which of its two rules to run.
    hals: bool | None


@cache
def compiled() -> Any:
    """The module of compiled loops, or None without numba: then NumPy does the same, slower."""
    try:
        return import_compiled("manyview.engines.numpy.kernels")
    except ModuleNotFoundError:
        return None
    except ImportError as error:  # numba refuses a NumPy newer than itself
        warn_user(f"numba is installed but does not work ({error}); going on without it, slower")
        return None


def compiled_forms(solver: Solver) -> Forms | None:
    """What stands in for this solver; None without numba, and for any rule but the library's own."""
    kernels, name = compiled(), own_name(solver)
    if kernels is None or name is None:
        return None
    return {
        "multiplicative": Forms(None, kernels.multiplicative_rows, hals=None),
        "hals": Forms(_hals_update_U, kernels.hals_rows, hals=True),
    }[name]


def basis_update(solver: Solver) -> UpdateU:
    """The solver's step on U, compiled where there is such a form."""
    forms = compiled_forms(solver)
    return solver.update_U if forms is None or forms.update_U is None else forms.update_U


def row_update(solver: Solver) -> Callable[..., None]:
    """The solver's step on rows of V into its last argument, compiled where there is such a form."""
    forms = compiled_forms(solver)
    if forms is None:

        def plain(*args: Any) -> None:
            args[-1][...] = solver.update_V(*args[:-1])

        return plain
    kernel = forms.update_V

    def fast(V: Array, *args: Any) -> None:
        *products, split, out = args
        kernel(V, *products, *split, out)

    return fast


def _hals_update_U(U: Array, sums: Sums, a: float) -> Array:
    """`SimplexHALS.update_U`."""
    P, G = sums.P, sums.G
    columns = copied(U.T).astype(P.dtype, copy=False)
    compiled().hals_columns(columns, P, G, least_diagonal(U, G))
    return columns.T
