"""The report of a reproduction: verdicts, files, and what a browser makes of the page."""

import ast
import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

import manyview.report
from browser import visit
from made_up_results import make_up
from manyview.cli import app
from manyview.report.reproduction import build, markdown, paper, verdicts
from manyview.report.reproduction.figures import figures
from manyview.report.reproduction.pictures import pictures
from manyview.report.reproduction.read import Results, Spread, two
from manyview.report.reproduction.tables import Table, as_latex, as_markdown, digits
from manyview.report.reproduction.writing import _page

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_up(tmp_path_factory.mktemp("made") / "up", view=EVIL)


@pytest.fixture
def few(folder, tmp_path):
    """A folder of three experiments: drawing all as files takes long."""
    manifest = json.loads((folder / "reproduction.json").read_text())
    kept = ("k", "noise", "operations")
    manifest["experiments"] = [e for e in manifest["experiments"] if e["name"] in kept]
    for name in [file for e in manifest["experiments"] for file in e["files"]]:
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "reproduction.json").write_text(json.dumps(manifest))
    return tmp_path


def test_the_report_imports_nothing_of_the_core():
    root = Path(manyview.report.__file__).parent
    for path in root.rglob("*.py"):
        depth = len(path.relative_to(root).parts)  # how many dots stay inside the report
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level <= depth, (path, node.lineno)
                names = [node.module or ""] if node.level == 0 else []
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            assert not [n for n in names if n.split(".")[0] == "manyview"], (path, node.lineno)


def test_a_browser_shows_every_figure_without_a_word_or_a_request(folder):
    results = Results(folder)
    page = _page(results)
    expected = [p for name in results.experiments for f in figures(results, name) for p in f.panels]
    assert len(expected) > 50 and EVIL not in page
    seen = visit(
        page,
        """(async () => {
          const plots = [...document.querySelectorAll('.plot')];
          const count = () => document.querySelectorAll('#digits .plot .trace.boxes').length;
          const before = count();
          document.querySelector("#digits [data-series='ConcatK']").click();
          await new Promise(done => setTimeout(done, 500));
          return JSON.stringify({
            plots: plots.length,
            empty: plots.filter(p => !p.querySelector('.trace, .boxlayer path')).length,
            titles: plots.map(p => p.querySelector('.gtitle').textContent),
            hidden: before - count(),
            legends: [...document.querySelectorAll('.legendtext')].map(t => t.textContent),
            cells: [...document.querySelectorAll('td')].map(t => t.textContent),
            images: document.images.length,
          });
        })()""",
    )
    assert seen.errors == [] and seen.requests == []
    found = json.loads(seen.value)
    assert found["plots"] == len(expected) and found["empty"] == 0
    assert found["titles"] == [panel.title for panel in expected]
    assert found["hidden"] == 6  # one method in each of six panels
    assert EVIL in found["legends"] and EVIL in found["cells"] and found["images"] == 0


def test_the_page_fits_a_phone(folder):
    seen = visit(
        _page(Results(folder)), "document.documentElement.scrollWidth", width=390, phone=True
    )
    assert seen.value <= 390


def test_figures_and_tables_are_files_too_and_the_same_each_time(few):
    written = build(few)
    names = {str(path.relative_to(few)) for path in written}
    assert {
        "reproduction.html",
        "figures/k.png",
        "figures/k.svg",
        "figures/noise-alpha.png",
    } < names
    assert {"tables/summary.csv", "tables/summary.tex", "tables/noise.csv"} < names
    assert (few / "figures/k.png").read_bytes().startswith(b"\x89PNG")
    assert EVIL not in (few / "figures/noise-alpha.svg").read_text()
    with (few / "tables/operations.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["View"] == EVIL
    before = {path: path.read_bytes() for path in written}
    assert {path: path.read_bytes() for path in build(few)} == before
    assert not list(few.rglob("*.tmp"))


def test_pictures_name_their_methods_and_views(folder):
    form = figures(Results(folder), "digits")[0]
    text = pictures(replace(form, panels=form.panels[:1]))["digits-boxes.svg"].decode()
    assert all(f">{name}<" in text for name in paper.DIGITS)
    (form,) = figures(Results(folder), "p")
    text = pictures(replace(form, panels=form.panels[:1]))["p.svg"].decode()
    assert EVIL not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_markdown_has_the_numbers_and_the_commands(folder):
    text = markdown(folder)
    assert "| WM-NMF | paper | .96 (.02) | .93 (.01) |" in text
    assert text.count("\nmanyview reproduce") == len(Results(folder).experiments)
    assert EVIL not in text and "&lt;script>" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")


def test_every_method_of_the_paper_says_whether_it_lies_in_the_spread(folder):
    rows = digits(Results(folder)).rows
    assert [row[0] for row in rows[::2]] == list(paper.DIGITS) == [row[0] for row in rows[1::2]]
    for row in rows[1::2]:
        assert row[8] in ("yes", "no") or row[8].endswith("of 6 scores")


def test_within_the_spread_means_one_standard_deviation(folder):
    for row in verdicts.digits_rows(Results(folder)):
        for m, sd, ours, inside in row.cells.values():
            assert inside == (abs(ours.mean - m) <= max(sd or 0, 0.005) + 0.005)


@pytest.mark.parametrize(
    "first, second, verdict",
    [
        (Spread(0.95, 0.01, 20), Spread(0.90, 0.01, 20), verdicts.AGREES),
        (Spread(0.90, 0.01, 20), Spread(0.95, 0.01, 20), verdicts.DIFFERS),
        (Spread(0.93, 0.06, 3), Spread(0.95, 0.01, 3), verdicts.UNSURE),
        (Spread(0.93, None, 1), Spread(0.95, None, 1), verdicts.UNSURE),
    ],
)
def test_what_scatter_explains_is_not_called_a_disagreement(first, second, verdict):
    rows = {"a": {"acc": (0.9, 0.1, first, True)}, "b": {"acc": (0.8, 0.1, second, True)}}
    assert verdicts._order(rows, "a is above b", ["a", "b"])[0].verdict == verdict


def test_slopes_are_exponents():
    points = [(x, 3 * x**1.7) for x in (1.0, 2.0, 5.0)]
    assert verdicts.slope(points) == pytest.approx(1.7)
    assert verdicts.slope(points[:1]) is None


def test_numbers_are_printed_as_the_paper_does():
    assert [two(v) for v in (0.957, 1.0, -0.004, -0.25, 0.0)] == [
        ".96",
        "1.00",
        ".00",
        "-.25",
        ".00",
    ]
    assert str(Spread(0.5, None, 1)) == ".50" and str(Spread(0.5, 0.021, 2)) == ".50 (.02)"
    assert verdicts.signed(-0.0001, 2) == "+0.00"


def test_latex_and_markdown_escape_what_they_read_as_markup():
    table = Table("t", "c", ("a_b", "α"), [["50 % & <x>", "p | q"]])
    assert rb"a\_b & $\alpha$ \\" in as_latex(table)
    assert rb"50 \% \& \textless{}x\textgreater{} & p \textbar{} q \\" in as_latex(table)
    assert as_markdown(table).splitlines()[2] == "| 50 % & &lt;x> | p / q |"


def test_a_run_of_few_experiments_gives_a_page_of_those(few):
    page = _page(Results(few))
    assert 'id="k"' in page and 'id="digits"' not in page and "LIHC is not here" in page


@pytest.mark.parametrize(
    "spoil, sentence",
    [
        (
            lambda f: (f / "reproduction.json").unlink(),
            "has no reproduction.json; run `manyview repr",
        ),
        (lambda f: (f / "reproduction.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "reproduction.json").write_text("{}"), "is not of format 1"),
        (lambda f: (f / "k.csv").unlink(), "k.csv is missing though"),
    ],
)
def test_bad_folders_are_answered_by_a_sentence(few, spoil, sentence):
    spoil(few)
    result = CliRunner().invoke(app, ["report", str(few)])
    assert result.exit_code == 2 and sentence in result.output
    assert not (few / "reproduction.html").exists()


def test_the_command_writes_the_page_and_prints_markdown(few):
    result = CliRunner().invoke(app, ["report", str(few), "--markdown"])
    assert result.exit_code == 0 and result.output.startswith("# Reproduction of the paper")
    assert not (few / "reproduction.html").exists()
