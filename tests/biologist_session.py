"""The session of docs/quickstart.md: a biologist's files, from the first command to figures, as printed.

Run as a script it does everything and writes the page anew:
``python tests/biologist_session.py docs/quickstart.md``.
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

#: (what is said before, the command, its exit status)
STEPS = [
    ("Three files as they came: a workbook of genes in rows, whose mice somebody typed in lower case, a "
     "CSV of Excel with semicolons and decimal commas, and the genotypes. The first try ends with a "
     "question.",
     "manyview fit genes.xlsx lipids.csv --clusters 2 --labels mice.csv --out run/", 2),
    ("The ids are the same mice, so we say so. Nobody had to say that the genes are in rows: the other ids "
     "tell.",
     "manyview fit genes.xlsx lipids.csv --match loose --clusters 2 --labels mice.csv --out run/", 0),
    ("How many clusters would the data themselves ask for?",
     "manyview select-k genes.xlsx lipids.csv --match loose --to 5 --out choice/", 0),
    ("Do other methods find the same?",
     "manyview compare genes.xlsx lipids.csv --match loose --clusters 2 --labels mice.csv --methods "
     "RobustWMNMF,WMNMF,SNF,NEMO,ConcatSpectral-z --runs 2 --out comparison/ --quiet --json", 0),
    ("New mice, measured later, for the lipids only:",
     "manyview predict run/ lipids=new_lipids.csv --out new_mice.csv", 0),
    ("The figures are in `run/report.html` and `comparison/comparison.html`, with everything as tables "
     "beside them:",
     "ls run choice comparison", 0),
]  # fmt: skip


def write_files(folder: Path) -> None:
    """The nutrimouse data as a laboratory would hand them over."""
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
    truth = pd.Series(data.labels, index=pd.Index(mice, name="mouse"), name="label")
    truth.to_csv(folder / "mice.csv")


def printed(command: str, folder: Path) -> tuple[int, str]:
    """What a terminal of 100 columns shows."""
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


def shown(command: str, output: str) -> str:
    if "--json" in command:  # a line for each method is enough
        lines = re.findall(r'"method": "(.*?)"|"(mean_rank|acc_mean|stability)": ([-\d.]+)', output)
        rows, row = [], []
        for method, name, value in lines:
            if method:
                rows.append(row)
                row = [f"{method}:"]
            else:
                row.append(f"{name} {float(value):.2f}")
        output = "\n".join(" ".join(row) for row in [*rows[1:], row])
        output = f"# of the JSON, some numbers of each method\n{output}"
    return output


def session(folder: Path, steps=STEPS) -> str:
    """Every step with its output, as Markdown."""
    write_files(folder)
    parts = []
    for said, command, expected in steps:
        status, output = printed(command, folder)
        assert status == expected, (command, status, output)
        note = f"\n(exit status {status})" if status else ""
        parts.append(f"{said}\n\n```text\n$ {command}\n{shown(command, output)}{note}\n```")
    return "\n\n".join(parts)


def main(page: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        made = session(Path(folder))
    before = page.read_text(encoding="utf-8")
    start, end = before.index(BEGIN) + len(BEGIN), before.index(END)
    page.write_text(f"{before[:start]}\n\n{made}\n\n{before[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
