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

import pandas as pd

import manyview as mv

BEGIN, END = "<!-- made by tests/biologist_session.py -->", "<!-- end of the session -->"

#: (text before the command, the command, its exit status)
STEPS = [
    ("`manyview datasets` writes a synthetic cohort: 240 patients with expression, methylation, mutations "
     "and a clinical table. Some patients lack a view.",
     "manyview datasets --out data --quiet", 0),
    ("Find subtypes, align the batches, and compare the subtypes with the clinical table:",
     "manyview fit data/cohort/expression.csv data/cohort/methylation.csv data/cohort/mutation.csv "
     "--clusters auto --clinical data/cohort/clinical.csv --labels data/cohort/clinical.csv:subtype "
     "--batch batch --out run/ --figures", 0),
    ("Open `run/report.html`, and name the clusters; this updates the report and `run/figures/`:",
     "manyview report run/ --names 0=Indolent --names '3=Poor outcome'", 0),
    ("Next, a workbook with genes in rows, and a CSV from Excel with semicolons and decimal commas. "
     "Their ids differ in case, so manyview asks whether they match:",
     "manyview fit genes.xlsx lipids.csv --clusters 2 --out mice/", 2),
    ("They do. The genes are transposed, because their headings are the ids of the other file:",
     "manyview fit genes.xlsx lipids.csv --match loose --clusters 2 --out mice/ --no-report --quiet", 0),
    ("Assign new mice, for which only lipids were measured:",
     "manyview predict mice/ lipids=new_lipids.csv --out new_mice.csv", 0),
]  # fmt: skip


def write_files(folder: Path) -> None:
    """Write the nutrimouse data as a laboratory might send them."""
    data = mv.datasets.load_nutrimouse()
    frames = data.frames()
    gene, lipid = frames["gene"], frames["lipid"]
    mice = [f"Mouse-{i + 1:02d}" for i in range(len(gene))]
    genes = gene.set_axis([mouse.lower() for mouse in mice]).T.rename_axis("gene")
    with pd.ExcelWriter(folder / "genes.xlsx", engine="openpyxl") as book:
        genes.to_excel(book, sheet_name="expression", startrow=2)
        book.sheets["expression"]["A1"] = "Liver expression, 40 mice"
    lipids = lipid.set_axis(mice).rename_axis("mouse")
    lipids.to_csv(folder / "lipids.csv", sep=";", decimal=",", encoding="cp1252")
    lipids.tail(5).to_csv(folder / "new_lipids.csv", sep=";", decimal=",")


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


def session(folder: Path, steps=STEPS) -> str:
    """Run the steps; return commands and outputs as Markdown."""
    write_files(folder)
    parts = []
    for said, command, expected in steps:
        status, output = printed(command, folder)
        assert status == expected, (command, status, output)
        note = f"\n(exit status {status})" if status else ""
        parts.append(f"{said}\n\n```text\n$ {command}\n{shown(output)}{note}\n```")
    return "\n\n".join(parts)


def main(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = session(Path(folder))
    before = page.read_text(encoding="utf-8")
    start, end = before.index(BEGIN) + len(BEGIN), before.index(END)
    page.write_text(f"{before[:start]}\n\n{made}\n\n{before[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
