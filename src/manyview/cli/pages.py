"""`manyview report` of a run that has its page already: where it is, or how to get it."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

from manyview.io.writing import files_of

#: Command that made a folder → its page.
PAGES = {"fit": "report.html", "compare": "comparison.html"}


def page_of_run(folder: Path) -> Path | None:
    """The page of a fit or comparison in this folder; None if it holds neither."""
    for command, page in PAGES.items():
        ours = files_of(folder, command) if folder.is_dir() else []
        if page in ours:
            return folder / page
        if ours and command == "fit":
            raise ValueError(
                f"{folder} was fitted without a report; run the command that is in {folder}/run.json "
                f"again, without --no-report and with --force, or name another folder: --out "
                f"{quote(str(folder) + '-report')}"
            )
    return None
