"""Entries of matrices fetched before compiled loops come to them (numba, extra "fast")."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import config, types
from numba.core.cgutils import get_item_pointer
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from manyview._types import Array


@intrinsic
def _ask_for(context: Any, array: Any, row: Any, column: Any) -> Any:
    """Have an entry of a matrix fetched, without waiting for it."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        kind = signature.args[0]
        matrix = make_array(kind)(context, builder, args[0])
        entry = get_item_pointer(context, builder, kind, matrix, args[1:])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        prefetch = builder.module.declare_intrinsic(
            "llvm.prefetch", [byte], ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        )
        to_read, everywhere, data = number(0), number(3), number(1)
        builder.call(prefetch, [builder.bitcast(entry, byte), to_read, everywhere, data])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.intp), generate


def _nothing(array: Array, row: int, column: int) -> None:
    pass


#: Without a compiler (NUMBA_DISABLE_JIT) nothing can be asked for.
ask_for: Any = _nothing if config.DISABLE_JIT else _ask_for  # type: ignore[attr-defined]
