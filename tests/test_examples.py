"""What the documentation shows runs: gallery, code in the pages, names of commands and functions."""

import doctest
import re
import runpy
import warnings
from pathlib import Path
from types import ModuleType

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest
import typer

import manyview as mv

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
PAGES = sorted(
    page
    for page in DOCS.rglob("*.md")
    if not {"_build", "gallery", "generated"} & set(page.parts) and ">>> " in page.read_text()
)


def test_there_are_examples_and_pages():
    """Over an empty list the tests below would pass without running."""
    assert EXAMPLES and PAGES


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_draws(path, monkeypatch):
    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    with warnings.catch_warnings(action="error", category=UserWarning):
        # a reader should not meet one unexplained
        runpy.run_path(str(path))
    plt.close("all")
    assert drawn


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_code_of_a_page_does_what_it_says(page):
    # The fence after expected output is not part of it.
    text = re.sub(r"^```.*$", "", page.read_text(), flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0)
    found = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False).run(test)
    assert found.attempted > 0 and found.failed == 0


def command_line():
    from manyview.app.cli.app import app

    return typer.main.get_command(app)


def test_every_command_and_only_existing_options_are_described():
    page = (DOCS / "command_line.md").read_text()
    known = {"--help", "--install-completion", "--show-completion"}
    root = command_line()
    for name in root.commands:
        assert f"manyview {name}" in page
    for command in (root, *root.commands.values()):
        known |= {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", page)) <= known


def test_every_public_name_is_in_the_api_page():
    listed = set((DOCS / "api.rst").read_text().split())
    public = {name for name in mv.__all__ if not isinstance(getattr(mv, name), ModuleType)}
    for module in (mv.baselines, mv.datasets):
        public |= {f"{module.__name__.split('.')[-1]}.{name}" for name in module.__all__}
    assert public - listed == set()
