"""Text from anywhere, made safe to show."""

from __future__ import annotations

import unicodedata
from typing import Any

#: Turn the direction of the text that follows.
_TURNS = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def printable(text: Any) -> str:
    """Characters that are not seen but do something, or are none, written as escapes."""
    return "".join(
        ascii(c)[1:-1] if unicodedata.category(c) in ("Cc", "Cs") or c in _TURNS else c
        for c in str(text)
    )


def number(text: str) -> int | float | str:
    """A cell of a table as the number it is, or the text."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
