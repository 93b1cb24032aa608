"""Tables as they leave Excel, R and portals are read, or asked about with what to type."""

import re
import sys
from pathlib import Path

import pytest

from awkward_files import BEGIN, CASES, END, attempt, table
from biologist_session import session

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "files.md"


def missing(case):
    name = case.needs
    return bool(name) and pytest.importorskip(name) is None


@pytest.mark.parametrize("case", CASES, ids=[f"{i}-{c.files[0]}" for i, c in enumerate(CASES)])
def test_every_table_is_read_or_asked_about(case, tmp_path):
    missing(case)
    if any(".xls" in f or ".ods" in f for f in case.files) and "text" not in case.title + case.says:
        pytest.importorskip("python_calamine")
    before = sorted(Path.cwd().iterdir())
    outcome, said, shapes = attempt(case, tmp_path)
    assert outcome == case.outcome, said
    assert case.says in " | ".join(said), said
    assert shapes == case.shapes
    assert sorted(Path.cwd().iterdir()) == before
    if outcome == "asked":  # one sentence, and something to do
        assert "\n" not in said[0] and any(mark in said[0] for mark in ("; ", "Add ", ": ")), said


def test_the_page_shows_what_happens():
    for name in ("openpyxl", "python_calamine", "rdata", "xlwt", "pyarrow"):
        pytest.importorskip(name)
    text = PAGE.read_text(encoding="utf-8")
    shown = text[text.index(BEGIN) + len(BEGIN) : text.index(END)].strip()
    assert shown == table(), f"run: {Path(sys.executable).name} tests/awkward_files.py {PAGE.name}"


def masked(text):
    return re.sub(r"\d+(\.\d+)?", "0", text)


def test_the_session_of_the_quick_start_is_as_printed(tmp_path):
    """From tables to figures; numbers may differ from machine to machine."""
    pytest.importorskip("rich")
    page = (PAGE.parents[1] / "quickstart.md").read_text(encoding="utf-8")
    made = session(tmp_path)
    assert masked(made) in masked(page), made
    assert (tmp_path / "run" / "report.html").exists()
