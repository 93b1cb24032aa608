"""Files of unknown origin, looked at before they are opened: what they claim, name and would run.

Imports nothing else of this library: everything that opens users' files can import it.
"""

from .chunked import check_lengths, check_zarr, open_hdf5
from .limits import TooLarge, check_claim, check_held, free_memory, unpacking_limit, unpacking_up_to
from .packed import (
    STREAMS,
    check_archive,
    check_no_pipe,
    check_parquet,
    check_pyarrow,
    check_shape_claim,
    check_texts,
    counted,
    text_of_file,
)

__all__ = [
    "STREAMS",
    "TooLarge",
    "check_archive",
    "check_claim",
    "check_held",
    "check_lengths",
    "check_no_pipe",
    "check_parquet",
    "check_pyarrow",
    "check_shape_claim",
    "check_texts",
    "check_zarr",
    "counted",
    "free_memory",
    "open_hdf5",
    "text_of_file",
    "unpacking_limit",
    "unpacking_up_to",
]
