"""Pages for readers, made from plain values: nothing here imports the methods or their data."""

from .comparison import comparison_page
from .text import printable

__all__ = ["comparison_page", "printable"]
