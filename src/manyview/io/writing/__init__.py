"""What we write to disk: whole or not at all, ours known from others', one writer at a time."""

from .folder import OurFolder, claimed, restored
from .marker import files_of, is_whole
from .names import left_behind
from .refusal import FolderInUse, Refused
from .single import check_file, write_file
from .table import csv_bytes, csv_of_dicts, exact_text, read_csv, safe_text
from .whole import write_whole

__all__ = [
    "FolderInUse",
    "OurFolder",
    "Refused",
    "check_file",
    "claimed",
    "csv_bytes",
    "csv_of_dicts",
    "exact_text",
    "files_of",
    "is_whole",
    "left_behind",
    "read_csv",
    "restored",
    "safe_text",
    "write_file",
    "write_whole",
]
