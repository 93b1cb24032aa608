"""A program of its own: it reads one file whose reader may hang, crash or fill the memory.

`manyview.io.child.read_apart` starts it and says how it is called and answers. Spreadsheets and files of R
become tables of text (CSV), Parquet and Feather a stream of Arrow, and arrays their bytes. It imports only
what the kind of file needs, so that it starts at once.
"""

from __future__ import annotations

import csv
import datetime
import io
import json
import os
import shlex
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from manyview.io import limits
from manyview.io.child import FAILED, NO_MEMORY, NO_PACKAGE, SENTENCE, TOO_LARGE, confine

Tables = dict[str, bytes]
#: What a reader finds: a value for JSON, and the parts (anything with bytes).
Found = tuple[Any, list[Any]]


def spreadsheet(calamine: Any, path: str, wanted: str | None) -> Found:
    """A sheet of a workbook: the values that were stored; no formula is computed, no link followed."""
    book = calamine.CalamineWorkbook.from_path(path)
    names = list(book.sheet_names)
    if wanted is not None and wanted not in names:
        raise limits.BadFile(
            f"has no sheet {wanted!r}; its sheets are {', '.join(map(repr, names))}"
        )
    found: dict[str, list[list[Any]]] = {}
    for name in [wanted] if wanted is not None else names:
        rows = book.get_sheet_by_name(name).to_python(skip_empty_area=True)
        if any(any(cell != "" for cell in row) for row in rows):
            found[name] = rows
    if not found:
        raise limits.BadFile("has no sheet with anything in it")
    if len(found) > 1:
        sheets = [f"{n!r} ({len(r)} × {max(map(len, r))})" for n, r in found.items()]
        first, listed = f"{path}:{next(iter(found))}", ", ".join(sheets[:8])
        raise limits.BadFile(f"has {len(found)} sheets: {listed}; name one: {shlex.quote(first)}")
    [(name, rows)] = found.items()
    return _tables({name: _csv(rows)}, _dates(rows))


def _tables(tables: Tables, remarks: list[str]) -> Found:
    return {"tables": list(tables), "remarks": remarks}, list(tables.values())


def _csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_cell(cell) for cell in row] for row in rows)
    return text.getvalue().encode("utf-8", "replace")


def _cell(cell: Any) -> Any:
    if isinstance(cell, float) and cell % 1 == 0 and abs(cell) < 2**53:
        return int(cell)  # spreadsheets know no whole numbers: an id 7 is stored as 7.0
    if isinstance(cell, str):
        return " ".join(cell.split())  # a heading of two lines is one
    return cell


def _dates(rows: list[list[Any]]) -> list[str]:
    """Excel makes dates of some genes' names (SEPT2, MARCH1)."""
    names = [*rows[0], *(row[0] for row in rows if row)]
    found = [cell for cell in names if isinstance(cell, datetime.date | datetime.datetime)]
    if not found:
        return []
    return [
        f"{len(found)} of the names of rows and columns are dates, such as {found[0]}: Excel makes dates "
        "of genes such as SEPT2 or MARCH1; look for the names in the original table"
    ]


def r_file(rdata: Any, path: str, wanted: str | None) -> Found:
    """Data frames and matrices of a file that R has saved, also those in a list."""
    rda = path.lower().endswith((".rda", ".rdata"))
    with warnings.catch_warnings(action="ignore"):
        made = rdata.read_rda(path) if rda else rdata.read_rds(path)
    objects = dict(made) if isinstance(made, Mapping) else {"": made}
    tables: Tables = {}
    left_out = []
    for name, value in objects.items():
        frame = _frame(value)
        if frame is None:
            left_out.append(f"{name or 'its object'} ({type(value).__name__})")
        else:
            tables[str(name)] = frame
    if wanted is not None:
        if wanted not in tables:
            raise limits.BadFile(
                f"has no table {wanted!r}; its tables are {', '.join(tables) or 'none'}"
            )
        return _tables({wanted: tables[wanted]}, [])
    if not tables:
        raise limits.BadFile(
            f"holds no data frame and no matrix of numbers: {', '.join(left_out)[:200]}; in R, save "
            "as.data.frame(x) by saveRDS or write.csv"
        )
    remarks = [f"{', '.join(left_out)[:200]} left out, no table"] if left_out else []
    return _tables(tables, remarks)


def _frame(value: Any) -> bytes | None:
    import numpy
    import pandas
    import xarray  # rdata makes these of matrices with names

    if isinstance(value, numpy.ndarray | xarray.DataArray):
        if value.ndim != 2 or value.dtype.kind not in "biuf":
            return None
        named = isinstance(value, xarray.DataArray)
        rows, columns = (_names(value, axis) if named else None for axis in (0, 1))
        columns = columns or [f"V{j + 1}" for j in range(value.shape[1])]
        value = pandas.DataFrame(numpy.asarray(value), index=rows, columns=columns)
    elif not isinstance(value, pandas.DataFrame):
        return None
    listed = [str(name) for name in value.index]
    counted = any(listed == [str(i + start) for i in range(len(value))] for start in (0, 1))
    return value.to_csv(index=not counted, lineterminator="\n").encode("utf-8", "replace")


def _names(value: Any, axis: int) -> list[str] | None:
    """The names of rows or columns of a matrix of R, if it has any."""
    name = value.dims[axis]
    return [str(text) for text in value.coords[name].values] if name in value.coords else None


def feather(pyarrow: Any, path: str, wanted: None) -> Found:
    """The columns of an Arrow file, as `parquet` gives them."""
    from pyarrow.feather import read_table

    from manyview.engines.files.parquet import check_flat

    table = read_table(path, memory_map=False, use_threads=False)
    check_flat(table.schema)
    return _stream(pyarrow, table)


def parquet(pyarrow: Any, path: str, wanted: None) -> Found:
    """The columns of a Parquet file as a stream of Arrow, with what pandas has noted about them."""
    from manyview.engines.files.parquet import check_parquet

    return _stream(pyarrow, check_parquet(path).read(use_threads=False))


def _stream(pyarrow: Any, table: Any) -> Found:
    for name, times in Counter(table.schema.names).items():
        if times > 1:
            raise limits.BadFile(f"has the column {name!r} more than once; give each its own name")
    table.validate(full=True)
    for j, (name, column) in enumerate(zip(table.schema.names, table.columns, strict=True)):
        if pyarrow.types.is_dictionary(column.type):
            table = table.set_column(j, name, column.cast(column.type.value_type))
    made = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(made, table.schema) as stream:
        stream.write_table(table)
    return None, [memoryview(made.getvalue())]


def arrays(library: Any, path: str, wanted: dict[str, Any]) -> Found:
    """Arrays of numbers with the names of their rows and columns; ``wanted`` tells which, see
    `manyview.engines.files.formats.arrays_apart`."""
    from manyview.engines.files.formats import arrays_in, described
    from manyview.engines.files.row_file import LARGEST_TURNED

    most = max(wanted["most"], LARGEST_TURNED)
    listed, parts = [], []
    for name, rows in arrays_in(path, wanted["key"], wanted["kind"], most).items():
        about, own = described(rows, wanted["most"], os.path.getsize(path))
        listed.append({"name": name, **about})
        parts += own
    return listed, parts


#: Kind → package that reads it, the extra that brings it, and the function.
KINDS: dict[str, tuple[str, str, Callable[..., Found]]] = {
    "spreadsheet": ("python_calamine", "files", spreadsheet),
    "r": ("rdata", "files", r_file),
    "feather": ("pyarrow", "app", feather),
    "parquet": ("pyarrow", "app", parquet),
    "rows of parquet": ("pyarrow", "app", arrays),
    "hdf5": ("h5py", "disk", arrays),
    "scipy": ("scipy.io", "", arrays),
}


def answer(path: str, settings: dict[str, Any]) -> Iterator[Any]:
    """The pieces of the result; a damaged file raises BadFile."""
    package, extra, read = KINDS[settings["kind"]]
    try:
        module = __import__(package)
    except ImportError:
        name = package.replace("_", "-")
        raise ImportError(
            f"reading {os.path.basename(path)} needs {name}; install it with: pip install "
            f"'manyview[{extra}]'"
        ) from None
    limits.ALLOWED.set(settings["allowed"])  # the limits of the process that asks
    limits.ALWAYS, limits.RATIO = settings["limits"]
    confine(settings["room"], settings["seconds"])
    about, parts = read(module, path, settings["wanted"])
    sizes = [memoryview(part).nbytes for part in parts]
    head = json.dumps({"about": about, "sizes": sizes}).encode() + b"\n"
    at = len(head)
    yield head
    for part, size in zip(parts, sizes, strict=True):
        yield bytes(-at % 64)
        yield part
        at += -at % 64 + size


def main() -> int:
    path, settings = sys.argv[1], json.loads(sys.argv[2])
    try:
        for piece in answer(path, settings):
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
    except MemoryError:
        return NO_MEMORY
    except ImportError as error:
        print(error)
        return NO_PACKAGE
    except limits.BadFile as error:
        print(" ".join(str(error).split()))
        return SENTENCE
    except BaseException as error:  # readers of damaged files raise whatever they stumble over
        why = " ".join(str(error).split())[:500]
        known = why and isinstance(error, ValueError | OSError)
        print(why if known else f"{type(error).__name__}: {why}".removesuffix(": "))
        return TOO_LARGE if isinstance(error, limits.TooLarge) else FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
