"""Tables from Excel, R and portals, and what `manyview fit` does with each.

``python tests/awkward_files.py docs/guide/files.md`` writes the table of that page.
"""

from __future__ import annotations

import bz2
import gzip
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from manyview.app.files import read_views
from manyview.app.files.clinical import clinical_ids

N = 12
IDS = [f"P{i:03d}" for i in range(1, N + 1)]
BARCODES = [f"TCGA-A{i % 3}-{1000 + i}" for i in range(N)]
GENES = ["TP53", "BRCA1", "EGFR", "MYC", "KRAS"]
BEGIN, END = "<!-- made by tests/awkward_files.py -->", "<!-- end -->"


@dataclass(frozen=True)
class Case:
    """A situation: what is written to a folder, what is asked, and what must come of it."""

    title: str
    write: Callable[[Path], Any]
    files: tuple[str, ...]
    options: dict[str, Any] = field(default_factory=dict)
    #: "read", or "asked" where it ends with a sentence that names what to add.
    outcome: str = "read"
    #: Something the notes or the sentence must hold.
    says: str = ""
    shapes: tuple[tuple[int, int], ...] = ()
    needs: str = ""


def numbers(seed: int = 0, ids: list[str] = IDS, names: list[str] = GENES) -> pd.DataFrame:
    values = np.round(np.random.default_rng(seed).normal(5, 2, (len(ids), len(names))) ** 2, 3)
    return pd.DataFrame(values, index=pd.Index(ids, name="sample"), columns=names)


def text(name: str, content: str | bytes, encoding: str = "utf-8") -> Callable[[Path], Any]:
    raw = content if isinstance(content, bytes) else content.encode(encoding)
    return lambda folder: (folder / name).write_bytes(raw)


def csv(frame: pd.DataFrame, **how: Any) -> str:
    return frame.to_csv(lineterminator="\n", **how)


def both(*writers: Callable[[Path], Any]) -> Callable[[Path], Any]:
    return lambda folder: [write(folder) for write in writers]


def _sheets(folder: Path) -> None:
    with pd.ExcelWriter(folder / "omics.xlsx", engine="openpyxl") as book:
        numbers(0).to_excel(book, sheet_name="RNA")
        numbers(1, names=["a", "b", "c"]).to_excel(book, sheet_name="protein 2024")


def _with_title(folder: Path) -> None:
    with pd.ExcelWriter(folder / "table_s1.xlsx", engine="openpyxl") as book:
        numbers().to_excel(book, sheet_name="Table S1", startrow=3, startcol=1)
        book.sheets["Table S1"]["B1"] = "Supplementary Table S1. Expression (log2)"
        book.sheets["Table S1"]["B2"] = "n = 12; see Methods"


def _merged(folder: Path) -> None:
    above = ["sample", "group A", "", "group B", "", ""]
    body = numbers().reset_index().to_numpy().tolist()
    rows = [above, ["", *GENES], *body, [""] * 6, ["* P005 was measured twice"]]
    pd.DataFrame(rows).to_excel(folder / "table_s2.xlsx", header=False, index=False)


def _dates(folder: Path) -> None:
    frame = numbers(names=["TP53", "x", "MYC"])
    with pd.ExcelWriter(folder / "genes.xlsx", engine="openpyxl") as book:
        frame.to_excel(book)
        book.sheets["Sheet1"]["C1"] = pd.Timestamp("2024-09-02").to_pydatetime()


def _old_excel(folder: Path) -> None:
    import xlwt

    book = xlwt.Workbook()
    sheet = book.add_sheet("data")
    frame = numbers().reset_index()
    for j, name in enumerate(frame.columns):
        sheet.write(0, j, name)
        for i, value in enumerate(frame[name]):
            sheet.write(i + 1, j, value if isinstance(value, str) else float(value))
    book.save(str(folder / "old.xls"))


def _rds(folder: Path) -> None:
    import rdata

    rdata.write_rds(folder / "expr.rds", numbers().reset_index())


def _rda(folder: Path) -> None:
    import rdata

    frames = {"rna": numbers().reset_index(), "prot": numbers(1, names=["a", "b"]).reset_index()}
    rdata.write_rda(folder / "omics.rda", frames)


def _zst(folder: Path) -> None:
    import pyarrow

    with pyarrow.CompressedOutputStream(str(folder / "rna.csv.zst"), "zstd") as file:
        file.write(csv(numbers()).encode())


ALIQUOTS = [f"{b}-01A-11R-A00{i}-07" for i, b in enumerate(BARCODES)]
GEO = (
    '!Series_title\t"An experiment"\n!Series_geo_accession\t"GSE1"\n!series_matrix_table_begin\n'
    + csv(numbers(ids=IDS).T.rename_axis("ID_REF"), sep="\t", quoting=2)
    + "!series_matrix_table_end\n"
)
GCT = f"#1.2\n{len(GENES)}\t{N}\n" + csv(
    numbers().T.rename_axis("Name").assign(Description="na")[["Description", *IDS]], sep="\t"
)
PORTAL = numbers(ids=[f"{b}-01" for b in BARCODES]).T.rename_axis("Hugo_Symbol").reset_index()
PORTAL.insert(1, "Entrez_Gene_Id", [7157, 672, 1956, 4609, 3845])
FIREHOSE = (
    csv(numbers(ids=ALIQUOTS).T.rename_axis("Hybridization REF"), sep="\t")
    .replace("\n", "\ngene_id" + "\tnormalized_count" * N + "\n", 1)
)  # fmt: skip
CPGS = numbers(names=[f"cg{i:08d}" for i in range(29, 49)]).T
CLINIC = numbers().assign(sex=["f", "m"] * 6, stage=["I", "II", "III"] * 4)
NORMALS = [f"{b}-11A-11R-A00{i}-07" for i, b in enumerate(BARCODES[:3])]
MANY = pd.DataFrame(np.arange(N * 20_000).reshape(N, -1) % 97, index=IDS).add_prefix("cg")
LABELS = "sample,subtype\n" + "".join(f"{s},{i % 3}\n" for i, s in enumerate(IDS))
GERMAN = csv(
    numbers(names=["Größe", "µg", "c", "d", "e"]),
    sep=";",
    decimal=",",
).replace("\n", "\r\n")
THOUSANDS = "sample,a,b\n" + "".join(
    f'{s},"{1234 + 997 * i:,}",{i + 0.5}\n' for i, s in enumerate(IDS)
)
FRENCH = "sample;a;b\n" + "".join(f"{s};{i + 1} 234,5;{i},25\n" for i, s in enumerate(IDS))
PERCENTS = "sample,a,b\n" + "".join(f"{s},{i}.5%,{i}\n" for i, s in enumerate(IDS))
DOUBT = "sample,a,b\n" + "".join(f'{s},"{i + 1},234","{i + 2},567"\n' for i, s in enumerate(IDS))
EMPTY_WORDS = "sample,a,b,c\n" + "".join(
    f"{s},{word},{i}.5,1{i}\n"
    for i, (s, word) in enumerate(
        zip(IDS, ["NA", "NaN", "null", "", "#N/A", "#DIV/0!", "n/a", *"1234"], strict=False)
    )
)
STRAY = csv(numbers()).replace(str(numbers().iloc[4, 1]), "?")
PLAIN = numbers(1, names=["a", "b", "c"])

CASES = [
    Case("CSV from a German Excel (semicolons, decimal commas, Windows-1252)",
         text("rna.csv", GERMAN, "cp1252"), ("rna.csv",), says="decimal mark is the comma",
         shapes=((N, 5),)),
    Case("Excel's “Unicode text” (UTF-16, tabs)", text("rna.txt", csv(numbers(), sep="\t"), "utf-16"),
         ("rna.txt",), shapes=((N, 5),)),
    Case("byte-order mark, Windows line ends, blank last lines",
         text("rna.csv", "\ufeff" + csv(numbers()).replace("\n", "\r\n") + "\r\n\r\n"), ("rna.csv",),
         shapes=((N, 5),)),
    Case("title lines above the header, an empty first column", _with_title,
         ("table_s1.xlsx",), says="2 lines above the table left out", shapes=((N, 5),), needs="openpyxl"),
    Case("a workbook with two sheets (`omics.xlsx:RNA` names one)", _sheets, ("omics.xlsx",),
         outcome="asked", says="name one:", needs="openpyxl"),
    Case("two sheets, both named", _sheets, ("omics.xlsx:RNA", "prot=omics.xlsx:protein 2024"),
         shapes=((N, 5), (N, 3)), needs="openpyxl"),
    Case("two header lines of merged cells, a remark below the table", _merged,
         ("table_s2.xlsx",), says="the second names the columns", shapes=((N, 5),), needs="openpyxl"),
    Case("gene names that Excel turned into dates (with a warning)", _dates, ("genes.xlsx",),
         says="dates of genes such as SEPT2", shapes=((N, 3),), needs="openpyxl"),
    Case("an old Excel file", _old_excel, ("old.xls",), shapes=((N, 5),), needs="xlwt"),
    Case("a “.xls” file that is text", text("export.xls", csv(numbers(), sep="\t")), ("export.xls",),
         says="is text and no Excel file", shapes=((N, 5),)),
    Case("a “.xls” file that is a web page", text("export.xls", "<html><table>…</table></html>"),
         ("export.xls",), outcome="asked", says="save the table as .csv"),
    Case("gzip", text("rna.csv.gz", gzip.compress(csv(numbers()).encode())), ("rna.csv.gz",),
         shapes=((N, 5),)),
    Case("bzip2", text("rna.tsv.bz2", bz2.compress(csv(numbers(), sep="\t").encode())),
         ("rna.tsv.bz2",), shapes=((N, 5),)),
    Case("zstd", _zst, ("rna.csv.zst",), shapes=((N, 5),), needs="pyarrow"),
    Case("a compressed file without `.gz` in its name",
         text("rna.csv", gzip.compress(csv(numbers()).encode())), ("rna.csv",), outcome="asked",
         says="mv rna.csv rna.csv.gz"),
    Case("R's `saveRDS` of a data frame", _rds, ("expr.rds",), shapes=((N, 5),), needs="rdata"),
    Case("R's `save` of two data frames", _rda, ("omics.rda",), shapes=((N, 5), (N, 2)), needs="rdata"),
    Case("Feather", lambda f: numbers().reset_index().to_feather(f / "rna.feather"), ("rna.feather",),
         shapes=((N, 5),), needs="pyarrow"),
    Case("R's `write.table` without a header above the row names",
         text("rna.txt", csv(numbers(), sep=" ", quoting=2).replace('"sample" ', "", 1)), ("rna.txt",),
         shapes=((N, 5),)),
    Case("a .tsv with commas", text("rna.tsv", csv(numbers())), ("rna.tsv",),
         says="separated by commas", shapes=((N, 5),)),
    Case("a GEO series matrix", text("GSE1_series_matrix.txt.gz", gzip.compress(GEO.encode())),
         ("GSE1_series_matrix.txt.gz",), outcome="asked", says="--transpose GSE1_series_matrix"),
    Case("the same, answered", text("GSE1_series_matrix.txt.gz", gzip.compress(GEO.encode())),
         ("GSE1_series_matrix.txt.gz",), {"transpose": ["all"]}, shapes=((N, 5),)),
    Case("GCT", text("expr.gct", GCT), ("expr.gct",), says="'Description' left out", shapes=((N, 5),)),
    Case("cBioPortal: genes in rows, a column of Entrez ids",
         text("data_mrna.txt", PORTAL.to_csv(sep="\t", index=False)), ("data_mrna.txt",),
         says="'Entrez_Gene_Id' left out", shapes=((N, 5),)),
    Case("Firehose: a line of units below the barcodes", text("rna.txt", FIREHOSE), ("rna.txt",),
         says="words below the headings is left out", shapes=((N, 5),)),
    Case("a single methylation table with CpGs in rows", text("beta.csv", csv(CPGS)), ("beta.csv",),
         outcome="asked", says="--transpose beta if"),
    Case("a first line “sep=;”", text("rna.csv", "sep=;\r\n" + csv(numbers(), sep=";")), ("rna.csv",),
         says="separated by semicolons", shapes=((N, 5),)),
    Case("1 234,5 (spaces between thousands, decimal commas)", text("counts.csv", FRENCH), ("counts.csv",),
         says="marks of thousands", shapes=((N, 2),)),
    Case("percent signs", text("rates.csv", PERCENTS), ("rates.csv",), outcome="asked",
         says="remove them"),
    Case("a line with one cell too many", text("rna.csv", csv(numbers()).replace("\nP005,", "\nP005,1,")),
         ("rna.csv",), outcome="asked", says="7 cells in line 6 ('P005', …)"),
    Case("1,234 among numbers with a decimal point", text("counts.csv", THOUSANDS), ("counts.csv",),
         says="marks of thousands ('1,234')", shapes=((N, 2),)),
    Case("1,234 that may be thousands or a decimal comma", text("values.csv", DOUBT),
         ("values.csv",), outcome="asked", says="--decimal values=comma"),
    Case("seven ways to write an empty cell", text("rna.csv", EMPTY_WORDS), ("rna.csv",),
         says="has 7 empty cells", shapes=((11, 3),)),
    Case("an unknown word for an empty cell", text("rna.csv", STRAY), ("rna.csv",), outcome="asked",
         says="add --na '?'"),
    Case("the same, answered", text("rna.csv", STRAY), ("rna.csv",), {"na": ["?"]}, shapes=((N, 5),)),
    Case("text columns among the features", text("clinic.csv", csv(CLINIC)), ("clinic.csv",),
         outcome="asked", says="add --drop-text"),
    Case("the same, left out", text("clinic.csv", csv(CLINIC)), ("clinic.csv",), {"drop_text": True},
         shapes=((N, 5),)),
    Case("the same, as categories", text("clinic.csv", csv(CLINIC)), ("clinic.csv",), {"one_hot": True},
         says="turned into columns of 0 and 1", shapes=((N, 10),)),
    Case("ids that differ in case and punctuation",
         both(text("rna.csv", csv(numbers())),
              text("meth.csv", csv(PLAIN.rename(lambda s: s.replace("P", "p.").lower())))),
         ("rna.csv", "meth.csv"), outcome="asked", says="--match loose"),
    Case("ids that lost their zeros in Excel",
         both(text("rna.csv", csv(numbers(ids=[f"{i:05d}" for i in range(1, 13)]))),
              text("meth.csv", csv(PLAIN.set_axis([str(i) for i in range(1, 13)])))),
         ("rna.csv", "meth.csv"), {"match": "loose"}, says="leading zeros are ignored",
         shapes=((N, 5), (N, 3))),
    Case("TCGA barcodes of aliquots and of patients",
         both(text("rna.csv", csv(numbers(ids=ALIQUOTS + NORMALS))),
              text("meth.csv", csv(PLAIN.set_axis(BARCODES)))),
         ("rna.csv", "meth.csv"), outcome="asked", says="--match tcga"),
    Case("the same, answered",
         both(text("rna.csv", csv(numbers(ids=ALIQUOTS + NORMALS))),
              text("meth.csv", csv(PLAIN.set_axis(BARCODES)))),
         ("rna.csv", "meth.csv"), {"match": "tcga"}, says="the 3 normal samples and controls are left out",
         shapes=((N, 5), (N, 3))),
    Case("two tumor samples of a patient",
         both(text("rna.csv", csv(numbers(ids=[*ALIQUOTS, f"{BARCODES[0]}-02A-11R-A000-07"]))),
              text("meth.csv", csv(PLAIN.set_axis(BARCODES)))),
         ("rna.csv", "meth.csv"), {"match": "tcga"}, outcome="asked", says="add --tumors one"),
    Case("the same, answered",
         both(text("rna.csv", csv(numbers(ids=[*ALIQUOTS, f"{BARCODES[0]}-02A-11R-A000-07"]))),
              text("meth.csv", csv(PLAIN.set_axis(BARCODES)))),
         ("rna.csv", "meth.csv"), {"match": "tcga", "tumors": "one"}, says="1 row left out",
         shapes=((N, 5), (N, 3))),
    Case("a single table with gene symbols in rows", text("rna.csv", csv(numbers().T.rename_axis(""))),
         ("rna.csv",), outcome="asked", says="--transpose rna if the columns are samples"),
    Case("R's `write.csv` of genes × samples, with few shared genes",
         both(text("rna.csv", csv(numbers(names=[*"abcdefghi"]).T.rename_axis(""))),
              text("cnv.csv", csv(numbers(1, names=[*"ijklmnop"]).T.rename_axis("")))),
         ("rna.csv", "cnv.csv"), outcome="asked", says="--transpose all if the columns are"),
    Case("two tables of genes × samples",
         both(text("rna.csv", csv(numbers().T.rename_axis(""))),
              text("cnv.csv", csv(numbers(1).T.rename_axis("")))),
         ("rna.csv", "cnv.csv"), outcome="asked", says="--transpose all if the columns are"),
    Case("the same, with labels",
         both(text("rna.csv", csv(numbers().T.rename_axis(""))),
              text("cnv.csv", csv(numbers(1).T.rename_axis(""))), text("classes.csv", LABELS)),
         ("rna.csv", "cnv.csv"), {"labels": "classes.csv"}, says="transposed",
         shapes=((N, 5), (N, 5))),
    Case("a table of labels passed as a view",
         both(text("rna.csv", csv(numbers())), text("classes.csv", LABELS)), ("rna.csv", "classes.csv"),
         outcome="asked", says="give it as --labels"),
    Case("a column of classes among the features",
         text("rna.csv", csv(numbers(names=[*GENES, "x"]).assign(**{"class": [0, 1, 2] * 4}))),
         ("rna.csv",),
         outcome="asked", says="--drop rna=class"),
    Case("ids with leading zeros", text("rna.csv", csv(numbers(ids=[f"{i:05d}" for i in range(1, 13)]))),
         ("rna.csv",), says="'00001'", shapes=((N, 5),)),
    Case("20,000 columns", text("meth.csv", csv(MANY)), ("meth.csv",), shapes=((N, 20_000),)),
    Case("separators at line ends", text("rna.csv", re.sub("(?m)$", ",,", csv(numbers()).strip())),
         ("rna.csv",), says="without a name and without values left out", shapes=((N, 5),)),
    Case("a repeated id", text("rna.csv", csv(numbers(ids=[*IDS[:-1], IDS[0]]))), ("rna.csv",),
         outcome="asked", says="remove or rename the repeated ones"),
]  # fmt: skip


def attempt(case: Case, folder: Path) -> tuple[str, list[str], tuple[tuple[int, int], ...]]:
    """How it ends, what is said, and the sizes of the views."""
    case.write(folder)
    options = {key: value for key, value in case.options.items() if key != "labels"}
    known = clinical_ids(folder / case.options["labels"]) if "labels" in case.options else []
    files = [_in(folder, item) for item in case.files]
    try:
        read = read_views(files, missing="allow", known=known, **options)
    except ValueError as error:
        return "asked", [str(error).replace(f"{folder}/", "")], ()
    shapes = tuple(X.shape for X in read.views.values())
    return "read", [note.replace(f"{folder}/", "") for note in read.told], shapes


def _in(folder: Path, item: str) -> str:
    name, found, file = item.rpartition("=")
    return f"{name}{found}{folder / file}"


def table() -> str:
    """The tables that need an option, as Markdown."""
    questions: dict[str, list[str]] = {}
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            outcome, said, _ = attempt(case, Path(folder))
        if outcome == "asked":
            options = dict.fromkeys(re.findall(r"--[a-z-]+", said[0]))
            remedy = ", ".join(f"`{option}`" for option in options) or "as the message says"
            questions.setdefault(remedy, []).append(case.title)
    rows = [f"| {remedy} | {'; '.join(titles)} |" for remedy, titles in questions.items()]
    return "\n".join(["| what to do | table |", "|---|---|", *rows])


def main(page: Path) -> None:
    before = page.read_text(encoding="utf-8")
    start, end = before.index(BEGIN) + len(BEGIN), before.index(END)
    page.write_text(f"{before[:start]}\n\n{table()}\n\n{before[end:]}", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
