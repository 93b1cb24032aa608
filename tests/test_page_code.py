"""Every block of code in the README and the documentation runs, or says why not.

Blocks with prompts run in `test_examples.py`, and generated parts have tests of their own. Here Python
without prompts runs on small data of the names that it uses, commands are parsed as the program parses
them, and scripts that are named for a number exist with their options. A block that cannot run is marked in
the line above: ``<!-- not run: the reason -->``.
"""

import re
import shlex
import sys
import tomllib
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import pytest
import typer

import manyview as mv
from manyview.app.cli.app import app

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {"_build", "gallery", "generated"} & set(page.parts)]
MADE = re.compile(r"<!-- made by .*?<!-- end.*?-->", re.DOTALL)
FENCE = re.compile(
    r"(?:^<!-- not run: (?P<why>.+) -->\n)?^```(?P<kind>[^`\n]*)\n(?P<code>.*?)^```$", re.M | re.S
)
COMMANDS = typer.main.get_command(app).commands
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def written(page):
    return MADE.sub("", page.read_text(encoding="utf-8"))


def blocks(page, kind=None):
    """(kind, code) of the blocks that run here."""
    return [
        (m["kind"], m["code"])
        for m in FENCE.finditer(written(page))
        if not (m["why"] or m["kind"].startswith("{") or ">>> " in m["code"])
        if kind in (None, m["kind"])
    ]


def of_pages(kind):
    return [pytest.param(page, id=page.stem) for page in PAGES if blocks(page, kind)]


def test_every_block_has_a_language_that_is_tested():
    kinds = {(page.name, kind) for page in PAGES for kind, _ in blocks(page)}
    assert {kind for _, kind in kinds} == {"python", "sh", "text"}, sorted(kinds)
    reasons = [m["why"] for page in PAGES for m in FENCE.finditer(written(page)) if m["why"]]
    assert 0 < len(reasons) < 6


def data_of(folder):
    """Small data under the names that the pages use; files of such data in the folder."""
    cells = mv.datasets.make_single_cells(150, 3, n_features={"rna": 60, "adt": 12}, random_state=0)
    frames = mv.datasets.make_cohort(60, missing=0).frames()
    rng = np.random.default_rng(0)
    X, A = rng.random((60, 8)), np.ones((60, 60))
    views = {"a": X, "b": rng.random((60, 5))}
    np.save(folder / "rna.npy", X)
    return {
        "mv": mv, "sc": MagicMock(), "views": views, "batches": [views, views], "X": X, "A": A,
        "S": X @ X.T, "D": np.abs(X[:, :1] - X[:, 0]), "X_new": X[:4], "A_new": A[:4],
        "rna": frames["expression"], "methylation": frames["methylation"],
        "new_rna": frames["expression"].iloc[:5], "cells": cells,
    }  # fmt: skip


def cells_in_objects(names):
    """MuData and AnnData, where they are installed."""
    anndata, mudata = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    parts = {
        view: anndata.AnnData(frame.astype("float32"))
        for view, frame in names["cells"].frames().items()
    }
    names["mdata"] = mudata.MuData({v: part.copy() for v, part in parts.items()})
    names["new_mdata"] = mudata.MuData({v: part[:9].copy() for v, part in parts.items()})
    names["new_adata"] = parts["rna"][:9].copy()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("page", of_pages("python"))
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "scanpy", MagicMock())
    names, code = data_of(tmp_path), [code for _, code in blocks(page, "python")]
    if "mdata" in "".join(code):
        cells_in_objects(names)
    if "h5" in "".join(code):
        h5py, anndata = pytest.importorskip("h5py"), pytest.importorskip("anndata")
        with h5py.File("measured.h5", "w") as file:
            file["protein"] = names["X"]
        anndata.AnnData(names["X"]).write_h5ad("peaks.h5ad")
    for part in code:
        exec(part, names)


@pytest.mark.parametrize("page", of_pages("sh"))
def test_the_commands_of_a_page_are_understood(page):
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for _, code in blocks(page, "sh"):
        for line in code.replace("\\\n", " ").splitlines():
            program, *words = shlex.split(line, comments=True) or [""]
            if program == "manyview":
                COMMANDS[words[0]].make_context(words[0], list(words[1:]))
            elif program == "make":
                assert words[0] in targets
            elif program == "pip":
                named = re.findall(r"\[(.*)\]", words[-1])
                assert {e for part in named for e in part.split(",")} <= set(EXTRAS)
            else:
                assert program in ("", "python"), line


def test_scripts_named_on_the_pages_exist_and_have_their_options():
    named = {
        (path, options)
        for page in PAGES
        for path, options in re.findall(
            r"`(?:\w+=\w+ )?python ((?:benchmarks|tests|tools)/\w+\.py)([^`]*)`", page.read_text()
        )
    }
    known = "".join(p.read_text() for p in (ROOT / "benchmarks").glob("*.py"))
    assert len(named) > 20
    for path, options in named:
        text = (ROOT / path).read_text()
        for option in re.findall(r"--[a-z][\w-]*", options):
            assert f'"{option}"' in text or (f'"{option}"' in known and "import" in text), (
                path,
                option,
            )
