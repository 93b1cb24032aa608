"""The terminal session of docs/quickstart.md, as printed.

``python tests/biologist_session.py docs/quickstart.md`` runs the commands and writes the page.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

import manyview as mv

BEGIN, END = "<!-- made by tests/biologist_session.py -->", "<!-- end of the session -->"

#: (text before the command, the command)
STEPS = [
    ("`manyview datasets` writes a synthetic cohort: 240 patients with expression, methylation, mutations "
     "and a clinical table. Some patients lack a view.",
     "manyview datasets --out data --quiet"),
    ("Find subtypes, align the batches, and compare the subtypes with the clinical table:",
     "manyview fit data/cohort/expression.csv data/cohort/methylation.csv data/cohort/mutation.csv "
     "--clusters auto --clinical data/cohort/clinical.csv --labels data/cohort/clinical.csv:subtype "
     "--batch batch --out run/ --figures"),
    ("Open `run/report.html`, and name the clusters; this updates the report and `run/figures/`:",
     "manyview report run/ --names 0=Indolent --names '3=Poor outcome'"),
]  # fmt: skip


def printed(command: str, folder: Path) -> tuple[int, str]:
    """Run a command; return its status and what a terminal of 100 columns shows."""
    if command.startswith("manyview"):
        words = [sys.executable, "-m", "manyview", *shlex.split(command)[1:]]
    else:
        words = shlex.split(command)
    path = os.pathsep.join([str(Path(mv.__file__).parents[1]), *sys.path])
    environment = {
        **os.environ,
        "COLUMNS": "100",
        "PYTHONPATH": path,
        "NO_COLOR": "1",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.replace(f"{folder}/", "").rstrip()


def shown(output: str) -> str:
    """Drop the progress lines that a slow machine prints."""
    return "\n".join(
        line for line in output.splitlines() if not re.match(r"\d+% |[\d.]+ s: ", line)
    )


def session(folder: Path) -> str:
    """Run the steps; return commands and outputs as Markdown."""
    parts = []
    for said, command in STEPS:
        status, output = printed(command, folder)
        assert status == 0, (command, status, output)
        parts.append(f"{said}\n\n```text\n$ {command}\n{shown(output)}\n```")
    return "\n\n".join(parts)


def main(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = session(Path(folder))
    before = page.read_text(encoding="utf-8")
    start, end = before.index(BEGIN) + len(BEGIN), before.index(END)
    page.write_text(f"{before[:start]}\n\n{made}\n\n{before[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
