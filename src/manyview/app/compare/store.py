"""Finished runs on disk, one file each: written whole or not at all, found by what decides them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from manyview.io import checksum
from manyview.io.writing import write_whole

#: Raised when the fields of a record change their meaning; older files are then ignored.
FORMAT = 1
#: What the folder of a comparison is called there; its results are replaced, its runs kept.
KIND = "compare"


class Store:
    """Records of finished runs by key, in ``out/runs/KEY.json``, or in memory without ``out``."""

    def __init__(self, out: Path | None):
        self.folder = None if out is None else out / "runs"
        self._memory: dict[str, dict[str, Any]] = {}
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)

    def read(self, key: str) -> dict[str, Any] | None:
        if key in self._memory or self.folder is None:
            return self._memory.get(key)
        try:
            record = json.loads((self.folder / f"{key}.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):  # absent, or damaged by something else: run again
            return None
        if not isinstance(record, dict) or record.get("key") != key:
            return None
        self._memory[key] = record
        return record

    def write(self, key: str, record: dict[str, Any]) -> None:
        record = {"key": key, **record}
        self._memory[key] = record
        if self.folder is not None:
            text = json.dumps(record)
            write_whole(self.folder / f"{key}.json", text.encode())

    def n_others(self, keys: Iterable[str]) -> int:
        """How many stored files belong to other data or settings."""
        if self.folder is None:
            return 0
        return len({path.stem for path in self.folder.glob("*.json")} - set(keys))


def key_of(*parts: Any) -> str:
    """A file name for whatever decides a result."""
    text = json.dumps([FORMAT, *parts], sort_keys=True)
    return checksum.of_bytes(text.encode())[:32]
