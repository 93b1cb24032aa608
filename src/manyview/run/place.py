"""Where a run is written: whether it may be, and all of it or nothing."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ..report.page import file_stem


def check_free(out: Path, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise FileExistsError(f"{out} is a file; name a folder to write the run into")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise FileExistsError(
            f"the folder {out} is not empty; name another, or pass force=True (--force) to "
            "replace the run in it"
        )


def into_place(beside: Path, out: Path) -> None:
    """Rename the new folder; into one that is there move file by file, all or none, `run.json` last."""
    if not out.exists():
        beside.chmod(0o755)  # temporary folders are private
        os.replace(beside, out)
        return
    try:
        old = json.loads((out / "run.json").read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        old = []
    new = sorted(beside.iterdir(), key=lambda path: path.name == "run.json")
    _replace_all(new, out, beside / "replaced")
    kept = {path.name for path in new}
    for name in old if isinstance(old, list) else []:
        # Only plain names that a run writes: the file may have been edited.
        if isinstance(name, str) and name not in kept and file_stem(name) == name:
            (out / name).unlink(missing_ok=True)


def _replace_all(files: list[Path], out: Path, replaced: Path) -> None:
    """Move files into ``out``; if one cannot be, what was there is put back."""
    replaced.mkdir()
    moved: list[Path] = []
    try:
        for path in files:
            moved.append(out / path.name)
            if moved[-1].exists():
                os.replace(moved[-1], replaced / path.name)
            os.replace(path, moved[-1])
    except BaseException:
        for target in moved:
            if (replaced / target.name).exists():
                os.replace(replaced / target.name, target)
            elif not (replaced.parent / target.name).exists():
                target.unlink(missing_ok=True)
        raise
