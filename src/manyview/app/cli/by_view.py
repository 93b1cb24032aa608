"""Options that say one thing for all views, or one for each: ``equal``, ``rna=2,protein=1``."""

from __future__ import annotations

from typing import Any

from manyview.base import ZERO_ROWS
from manyview.fuse import SCALINGS
from manyview.scaling import SCALES


def by_view(text: str, option: str) -> str | dict[str, str]:
    """One word, or words by the names of views.

    A view's name may hold "=" (the last one counts), but no comma.
    """
    if "=" not in text:
        return text
    found: dict[str, str] = {}
    for part in text.split(","):
        name, sign, value = part.rpartition("=")
        if not sign or not name.strip() or not value.strip():
            raise ValueError(
                f"{option} {text}: {part!r} is not VIEW=VALUE; say it as rna=…,protein=…"
            )
        if name.strip() in found:
            raise ValueError(f"{option} {text} names the view {name.strip()!r} twice; say it once")
        found[name.strip()] = value.strip()
    return found


def view_weights(text: str) -> Any:
    """ "learned", "equal", or a number by view."""
    found = by_view(text, "--view-weights")
    if isinstance(found, dict):
        return {name: _number(value, name) for name, value in found.items()}
    if found not in ("learned", "equal"):
        raise ValueError(
            f"--view-weights must be learned, equal or numbers such as rna=2,protein=1; got {text!r}"
        )
    return found


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(
            f"--view-weights: the weight of view {name!r} must be a number, got {text!r}"
        ) from None


def zero_rows(text: str) -> Any:
    """ "auto", "missing", "observed", or one of them by view."""
    found = by_view(text, "--zero-rows")
    for kind in found.values() if isinstance(found, dict) else [found]:
        if kind not in ZERO_ROWS:
            raise ValueError(
                f"--zero-rows must be auto, missing, observed or such as mutations=observed; got {kind!r}"
            )
    return found


def scale(text: str, method: str) -> Any:
    """The scaling of a method, by view where it can be."""
    robust = method == "robust"
    found = by_view(text, "--scale") if robust else text
    allowed = (*SCALINGS, "none") if robust else (*SCALES, "none")
    for kind in found.values() if isinstance(found, dict) else [found]:
        if kind not in allowed:
            raise ValueError(
                f"--scale {text}: the method {method} takes {', '.join(allowed)}"
                + (", or these by view (rna=log,protein=quantile)" if robust else "")
                + ("; for others use --method wmnmf" if robust and kind in SCALES else "")
            )
    if isinstance(found, dict):
        return {name: None if kind == "none" else kind for name, kind in found.items()}
    return None if found == "none" else found
