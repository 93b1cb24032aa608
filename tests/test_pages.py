"""The pages speak of what is there: messages, fitted attributes, options."""

import ast
import re
import runpy
from itertools import pairwise
from pathlib import Path

import pytest
import typer

import manyview as mv
from conftest import blobs
from manyview.app.cli.app import app

DOCS = Path(__file__).parent.parent / "docs"
SOURCE = Path(mv.__file__).parent
#: Options of every command, described once for all.
SHARED = {"--help"}


def said(node):
    """A text of the program with … where a value is put in; None if the node is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else "…" for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = said(node.left), said(node.right)
        return None if left is None and right is None else (left or "…") + (right or "…")
    return None


def texts():
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (text := said(node)) is not None:
                yield text


def in_order(message, text):
    """Whether the parts of a message between its … stand in the text one after the other."""
    place = 0
    for part in message.split("…"):
        place = text.find(part.strip(), place)
        if place < 0:
            return False
        place += len(part.strip())
    return True


def messages():
    page = (DOCS / "troubleshooting.md").read_text(encoding="utf-8")
    lines = page.splitlines()
    heads = [line for line, after in pairwise(lines) if after.startswith(": ")]
    return [message for head in heads for message in re.findall(r"`([^`]+)`", head)]


def test_every_message_of_the_page_is_one_that_the_program_says():
    known = list(texts())
    assert len(messages()) > 20
    assert [m for m in messages() if not any(in_order(m, text) for text in known)] == []


@pytest.mark.parametrize("method", [mv.RobustWMNMF, mv.WMNMF])
def test_every_fitted_attribute_has_its_meaning(method):
    page = (DOCS / "guide" / "attributes.md").read_text(encoding="utf-8")
    described = set(re.findall(r"`(\w+_)`", page))
    model = method(3, random_state=0).fit(blobs(n=40)[0])
    properties = {n for n in dir(method) if isinstance(getattr(method, n), property)}
    fitted = {n for n in {*vars(model), *properties} if n.endswith("_") and not n.startswith("_")}
    assert len(fitted) > 10 and fitted - described == set()
    assert all(hasattr(model, name) for name in fitted)


def test_the_page_of_attributes_names_nothing_that_is_not_there():
    page = (DOCS / "guide" / "attributes.md").read_text(encoding="utf-8")
    models = [m(3, random_state=0).fit(blobs(n=40)[0]) for m in (mv.RobustWMNMF, mv.WMNMF)]
    elsewhere = {"selection_", "feature_names_in_"}  # of "auto", and of one DataFrame
    described = set(re.findall(r"`(\w+_)`", page)) - elsewhere
    assert [n for n in described if not any(hasattr(model, n) for model in models)] == []


@pytest.mark.parametrize("name, command", typer.main.get_command(app).commands.items())
def test_every_option_of_a_command_is_on_its_page(name, command):
    pages = [DOCS / "command_line.md", DOCS / "guide" / "files.md", DOCS / "reproduction.md"]
    told = " ".join(page.read_text(encoding="utf-8") for page in pages)
    options = {
        max(p.opts, key=len) for p in command.params if p.opts[0].startswith("-") and not p.hidden
    }
    assert options - SHARED - set(re.findall(r"--[a-z][a-z-]*", told)) == set()


def test_the_options_on_the_page_are_those_of_the_program():
    tool = runpy.run_path(str(DOCS.parent / "tools" / "write_options.py"))
    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    assert tool["with_options"](page) == page, "run: python tools/write_options.py"
    assert "`--stability N`" in page and "`--report`, `--no-report`" in page
