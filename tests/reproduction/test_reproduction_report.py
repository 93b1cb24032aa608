"""The report of a reproduction: page, appendix, files, and what a browser makes of them."""

import ast
import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import manyview
from browser import visit
from made_up_results import make_up
from manyview.app.cli.app import app
from manyview.paper.figures import drawn, figures
from manyview.paper.page import APPENDIX, ON_PAGE, PAGE, build, diagram, is_inside, markdown
from manyview.paper.results import DIGITS, Reproduction, in_print, signed, two
from manyview.plot import COLORS as PALETTE

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """All experiments, and their page and appendix."""
    made = make_up(tmp_path_factory.mktemp("made") / "up", view=EVIL)
    build(made)
    return made


@pytest.fixture
def few(folder, tmp_path):
    """A folder of three experiments: drawing all takes long."""
    manifest = json.loads((folder / "reproduction.json").read_text())
    kept = ("k", "noise", "operations")
    manifest["experiments"] = [e for e in manifest["experiments"] if e["name"] in kept]
    for name in [file for e in manifest["experiments"] for file in e["files"]]:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "reproduction.json").write_text(json.dumps(manifest))
    return tmp_path


def test_the_page_imports_nothing_that_could_compute_a_result():
    root = Path(manyview.__file__).parent / "paper"
    shown = {"results", "claims", "figures"}
    for name in (*shown, "page"):
        for node in ast.walk(ast.parse((root / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                assert node.module in shown, (name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("manyview"):
                allowed = ("manyview.app.report", "manyview.io", "manyview.plot")
                assert node.module.startswith(allowed), (name, node.lineno)


def test_a_browser_shows_every_figure_without_a_word_or_a_request(folder):
    seen_figures = list(figures(Reproduction(folder)))
    assert [f.name for f in seen_figures[:3]] == list(ON_PAGE)
    for name, expected in ((PAGE, seen_figures[:3]), (APPENDIX, seen_figures[3:])):
        page = (folder / name).read_text(encoding="utf-8")
        assert EVIL not in page and len(page) < 4e6
        assert f"stroke: {PALETTE[1].lower()}" in page  # colors are no names of elements
        seen = visit(
            page,
            """JSON.stringify({
              panels: [...document.querySelectorAll('p > svg')].map(
                s => s.querySelectorAll('g[id*=axes_]').length),
              sizes: [...document.querySelectorAll('p > svg')].map(
                s => s.getBoundingClientRect().height),
              twice: [...document.querySelectorAll('[id]')].length
                - new Set([...document.querySelectorAll('[id]')].map(n => n.id)).size,
              cells: [...document.querySelectorAll('td')].map(t => t.textContent),
              images: document.images.length,
            })""",
        )
        assert seen.errors == [] and seen.requests == []
        found = json.loads(seen.value)
        assert found["panels"] == [len(figure.panels) for figure in expected]
        assert min(found["sizes"]) > 150 and found["images"] == 0 and found["twice"] == 0
        assert any(EVIL in cell for cell in found["cells"])


def test_the_page_fits_a_phone_and_its_pictures_follow_the_theme(few):
    build(few)
    page = (few / APPENDIX).read_text(encoding="utf-8")
    seen = visit(page, "document.documentElement.scrollWidth", width=390, phone=True)
    assert seen.value <= 390
    seen = visit(
        page,
        """[...new Set([...document.querySelectorAll('p > svg text')].map(
             n => getComputedStyle(n).fill))].join(' ')""",
        dark=True,
    )
    light = [int(part) for part in seen.value.removeprefix("rgb(").rstrip(")").split(",")]
    assert seen.errors == [] and min(light) > 180


def test_figures_and_tables_are_files_too_and_the_same_each_time(few):
    written = build(few)
    names = {str(path.relative_to(few)) for path in written}
    assert {PAGE, APPENDIX, "reproduction.md", "appendix.md"} < names
    assert {"figures/noise.png", "figures/noise.svg", "tables/claims.csv"} < names
    assert (few / "figures/noise.png").read_bytes().startswith(b"\x89PNG")
    assert EVIL not in (few / "figures/noise.svg").read_text()
    with (few / "tables/operations.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["View"] == EVIL
    assert "\\toprule" in (few / "tables/operations.tex").read_text()
    before = {path: path.read_bytes() for path in written}
    assert {path: path.read_bytes() for path in build(few)} == before
    assert not list(few.rglob("*.tmp"))


def test_pictures_name_their_methods_and_views(folder):
    found = {figure.name: figure for figure in figures(Reproduction(folder))}
    text = drawn(found["methods"])["methods.svg"].decode()
    assert all(f">{name}<" in text for name in DIGITS)
    text = drawn(found["tuning"])["tuning.svg"].decode()
    assert EVIL not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_drawing_of_the_docs_is_that_of_the_page():
    assert (ROOT / "docs" / "methods" / "flow.svg").read_bytes() == diagram()
    assert "flow.svg" in (ROOT / "docs" / "methods" / "wmnmf.md").read_text(encoding="utf-8")


def test_the_page_is_short_and_has_its_parts(folder):
    text = markdown(folder)
    parts = [
        "Five answers",
        "Claims",
        "Digits",
        "As printed",
        "Figures",
        "LIHC",
        "How to repeat it",
    ]
    assert [line[3:] for line in text.splitlines() if line.startswith("## ")] == parts
    assert len(text.split()) < 2500  # of these, no verdict is short
    answers = [line for line in text.splitlines() if line.startswith("1. **")]
    assert len(answers) == 5 and all("Claims: " in line for line in answers)
    assert "| WM-NMF | .96 (.02) | " in text and EVIL not in text and "&lt;script>" in text
    assert "| Claim | Paper | Measured | Verdict |" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")
    assert "four choices" in text.split("## ")[0]


def test_the_appendix_has_every_experiment_its_command_and_provenance(folder):
    text, results = markdown(folder, "appendix"), Reproduction(folder)
    for name, experiment in results.experiments.items():
        section = text.split(f"## {experiment['title']}\n")[1].split("\n## ")[0]
        assert experiment["command"] in section and "| " in section, name
        assert f"of {name}, 2 cores, Linux" in text and "abc (" in text


@pytest.mark.parametrize("seed", range(4))
def test_whatever_cells_are_missing_there_is_a_page(folder, tmp_path, seed):
    """Of few of the rows, as after a run of which cells failed."""
    rng = np.random.default_rng(seed)
    manifest = json.loads((folder / "reproduction.json").read_text())
    for name in [file for e in manifest["experiments"] for file in e["files"]]:
        head, *rows = (folder / name).read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [row for row in rows if rng.random() < (0.01, 0.05, 0.3, 0.7)[seed]]
        (tmp_path / name).write_text("".join([head, *(kept or rows[:1])]), encoding="utf-8")
    (tmp_path / "reproduction.json").write_text(json.dumps(manifest))
    text = markdown(tmp_path)
    answers = text.split("## Five answers\n")[1].split("\n## ")[0].strip()
    assert answers.startswith("1. ") and "\n\n" not in answers  # one list
    assert markdown(tmp_path, "appendix").startswith("# Appendix")


def test_lihc_is_said_to_be_not_available_unless_measured(tmp_path, few):
    assert "not available to us" in markdown(few) and "UCSC Xena" in markdown(few)
    made = make_up(tmp_path / "without", replications=1, lihc="")
    text = markdown(made)
    assert "not measured 4" in text and "not measured 1" in text and "| not measured" not in text
    assert "The claims on LIHC are not measured" in text


def test_numbers_are_printed_as_the_paper_does():
    printed = [two(v) for v in (0.957, 1.0, -0.004, -0.25, 0.0)]
    assert printed == [".96", "1.00", ".00", "-.25", ".00"]
    assert in_print(0.5, math.nan) == ".50" and in_print(0.5, 0.021) == ".50 (.02)"
    assert signed(-0.0001, 2) == "+0.00"


@pytest.mark.parametrize(
    "ours, theirs, sd, inside",
    [
        (0.9449, 0.96, 0.02, True),  # printed as .94
        (0.9349, 0.96, 0.02, False),  # printed as .93
        (0.684, 0.68, math.nan, True),
        (0.686, 0.68, math.nan, False),
    ],
)
def test_the_spread_is_that_of_the_numbers_printed(ours, theirs, sd, inside):
    assert is_inside(ours, theirs, sd) is inside


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("reproduction.json", None, "has no reproduction.json; run `manyview repr"),
        ("reproduction.json", "{", "cannot be read"),
        ("reproduction.json", "{}", "is not of format 3"),
        ("k.csv", None, "k.csv is missing though"),
    ],
)
def test_bad_folders_are_answered_by_a_sentence(few, name, content, sentence):
    (few / name).unlink() if content is None else (few / name).write_text(content)
    result = CliRunner().invoke(app, ["report", str(few)])
    assert result.exit_code == 2 and sentence in result.output
    assert not (few / PAGE).exists()


def test_the_command_prints_markdown(few):
    result = CliRunner().invoke(app, ["report", str(few), "--markdown"])
    assert result.exit_code == 0 and result.output.startswith("# Reproduction of the paper")
    assert not (few / PAGE).exists()
