"""What a run says of clusters that follow a batch, with the remedy of the place it is read in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from manyview.outcomes.batch import Followed


def followed(about: Mapping[str, Any], remedy: str) -> tuple[list[str], list[str]]:
    """Of `run.json`: warnings of batches that the clusters follow, and sentences on other columns.

    ``remedy`` has "{option}", or "{column}", for the column to be regressed out.
    """
    clinical = about.get("clinical") or {}
    robust = "--method robust " if about.get("method") == "WMNMF" else ""
    told: tuple[list[str], list[str]] = ([], [])
    for item in clinical.get("followed", []):
        found = Followed(**item)
        option = f"{robust}--adjust {shlex.quote(found.column)}"
        text = found.sentence(
            remedy.format(option=option, column=found.column), found.column in about["adjusted"]
        )
        told[not found.technical].append(text)
    return told
