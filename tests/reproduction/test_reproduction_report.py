"""The report of a reproduction: verdicts, files, and what a browser makes of the page."""

import ast
import csv
import html
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from matplotlib.figure import Figure
from typer.testing import CliRunner

import manyview
from browser import visit
from made_up_results import make_up
from manyview.app.cli.app import app
from manyview.paper.claims import MLRSSC, verdicts
from manyview.paper.figures import figures, files, svgs
from manyview.paper.page import _diagram_file, _page, build, markdown, settings_of
from manyview.paper.results import Results, in_print, signed, two
from manyview.paper.tables import Table, as_latex, as_markdown, digits, mlrssc, tables
from manyview.paper.texts import DIGITS

ROOT = Path(__file__).parents[2]
EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_up(tmp_path_factory.mktemp("made") / "up", view=EVIL)


@pytest.fixture(scope="module")
def page(folder):
    """The page of all experiments; drawing it takes a while."""
    return _page(Results(folder))


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


def test_the_page_imports_nothing_that_could_compute_a_result():
    root = Path(manyview.__file__).parent / "paper"
    shown = {"texts", "results", "claims", "tables", "figures"}
    for name in (*shown, "page"):
        for node in ast.walk(ast.parse((root / f"{name}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level:
                names = {node.module} if node.module else {alias.name for alias in node.names}
                assert names <= shown, (name, node.lineno)
            elif isinstance(node, ast.ImportFrom) and node.module.startswith("manyview"):
                allowed = ("manyview.app.report", "manyview.io", "manyview.plot")
                assert node.module.startswith(allowed), (name, node.lineno)


def test_a_browser_shows_every_figure_without_a_word_or_a_request(folder, page):
    results = Results(folder)
    expected = [p for name in results.experiments for f in figures(results, name) for p in f.panels]
    assert len(expected) > 50 and EVIL not in page and len(page) < 4e6
    seen = visit(
        page,
        """JSON.stringify({
          texts: [...document.querySelectorAll('.panels svg')].map(
            s => [...s.querySelectorAll('text')].map(t => t.textContent)),
          sizes: [...document.querySelectorAll('.panels svg')].map(
            s => s.getBoundingClientRect().height),
          twice: [...document.querySelectorAll('[id]')].length
            - new Set([...document.querySelectorAll('[id]')].map(n => n.id)).size,
          cells: [...document.querySelectorAll('td')].map(t => t.textContent),
          images: document.images.length,
        })""",
    )
    assert seen.errors == [] and seen.requests == []
    found = json.loads(seen.value)
    assert len(found["texts"]) == len(expected) and min(found["sizes"]) > 150
    for texts, panel in zip(found["texts"], expected, strict=True):
        assert panel.title in texts
    assert EVIL in {text for texts in found["texts"] for text in texts}
    assert EVIL in found["cells"] and found["images"] == 0


def test_the_page_fits_a_phone(page):
    seen = visit(page, "document.documentElement.scrollWidth", width=390, phone=True)
    assert seen.value <= 390


def test_figures_fit_the_paper_and_do_not_cover_each_other(few):
    seen = visit(
        _page(Results(few)),
        """(async () => {
          window.dispatchEvent(new Event('beforeprint'));
          await new Promise(done => setTimeout(done, 200));
          const svgs = [...document.querySelectorAll('.panels svg')];
          const boxes = svgs.map(p => p.getBoundingClientRect());
          const before = (a, b) => a.right <= b.left || a.bottom <= b.top;
          const apart = (a, b) => before(a, b) || before(b, a);
          return JSON.stringify({
            right: Math.max(...boxes.map(b => b.right)),
            columns: new Set(boxes.map(b => Math.round(b.left))).size,
            covered: boxes.filter((a, i) => boxes.some((b, j) => i !== j && !apart(a, b))).length,
            ink: getComputedStyle(svgs[0].querySelector('text')).fill,
            open: [...document.querySelectorAll('details')].every(d => d.open),
            page: document.documentElement.scrollWidth,
          });
        })()""",
        width=717,  # A4 less Chromium's margins
        media="print",
        dark=True,
    )
    found = json.loads(seen.value)
    assert seen.errors == []
    assert found["right"] <= 717 and found["page"] <= 717 and found["covered"] == 0
    assert found["columns"] == 2 and found["ink"] == "rgb(0, 0, 0)" and found["open"]


def test_all_text_can_be_read_on_the_dark_page(few):
    seen = visit(
        _page(Results(few)),
        """(() => {
          const light = color => {
            const part = color.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
            const linear = part.map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
            return .2126 * linear[0] + .7152 * linear[1] + .0722 * linear[2];
          };
          const back = light(getComputedStyle(document.body).backgroundColor);
          const contrast = (node, property) => {
            const ink = light(getComputedStyle(node)[property]);
            return (Math.max(ink, back) + .05) / (Math.min(ink, back) + .05);
          };
          const least = (selector, property) =>
            Math.min(...[...document.querySelectorAll(selector)].map(n => contrast(n, property)));
          return JSON.stringify({
            back: back,
            text: least('p, li, td, th, b, pre, h2, a', 'color'),
            plots: least('.panels svg text', 'fill'),
          });
        })()""",
        dark=True,
    )
    found = json.loads(seen.value)
    assert seen.errors == [] and found["back"] < 0.02
    assert found["text"] >= 4.5 and found["plots"] >= 4.5


def test_figures_and_tables_are_files_too_and_the_same_each_time(few):
    written = build(few)
    names = {str(path.relative_to(few)) for path in written}
    assert {"reproduction.html", "figures/k.png", "figures/k.svg"} < names
    assert {"tables/summary.csv", "tables/summary.tex", "tables/noise.csv"} < names
    assert ElementTree.parse(few / "figures/method.svg").getroot().tag.endswith("svg")
    assert (few / "figures/k.png").read_bytes().startswith(b"\x89PNG")
    assert EVIL not in (few / "figures/noise-alpha.svg").read_text()
    with (few / "tables/operations.csv").open(newline="") as file:
        assert next(csv.DictReader(file))["View"] == EVIL
    before = {path: path.read_bytes() for path in written}
    assert {path: path.read_bytes() for path in build(few)} == before
    assert not list(few.rglob("*.tmp"))


def test_pictures_name_their_methods_and_views(folder):
    (figure,) = figures(Results(folder), "digits")
    one = replace(figure, panels=figure.panels[:1])
    for text in (files(one)["digits-boxes.svg"].decode(), *svgs(one)):
        assert all(f">{name}<" in text for name in DIGITS)
    (figure,) = figures(Results(folder), "p")
    (text,) = svgs(replace(figure, panels=figure.panels[:1]))
    assert EVIL not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text


def test_the_figure_of_the_docs_is_that_of_the_page():
    drawn = (ROOT / "docs" / "methods" / "flow.svg").read_bytes()
    assert drawn == _diagram_file()
    assert "flow.svg" in (ROOT / "docs" / "methods" / "wmnmf.md").read_text(encoding="utf-8")


def test_boxes_carry_the_means_of_the_paper(folder):
    results = Results(folder)
    for name, n in (("digits", len(DIGITS)), ("lihc", 2), ("nutrimouse", 0)):
        figure = figures(results, name)[0]
        canvas = Figure()
        figure.panels[0].draw(canvas.subplots())
        means = canvas.axes[0].collections[-1].get_offsets()[:, 0]
        assert len(means) == n and ("Grey diamonds" in figure.caption) == (n > 0)
        assert not n or {0.96, 0.97} & set(means)


def test_markdown_has_the_numbers_and_the_commands(folder):
    text = markdown(folder)
    assert "| WM-NMF | paper | .96 (.02) | .93 (.01) |" in text
    # One for each experiment, and one for all.
    assert text.count("\nmanyview reproduce") == len(Results(folder).experiments) + 1
    (line,) = [t for t in text.splitlines() if t.startswith("- Clusters better than those of")]
    assert line.endswith(" of 10 claims.")
    # Without --out, which decides nothing.
    assert "manyview reproduce digits 'a b': 1 to 2 seeds" in text
    assert EVIL not in text and "&lt;script>" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")


def test_rows_of_the_paper_and_ours_alternate(folder):
    rows = digits(Results(folder))[0].rows
    assert [row[0] for row in rows[::2]] == [row[0] for row in rows[1::2]] == list(DIGITS)
    for row in rows[1::2]:
        assert row[8] in ("yes", "not reproduced") or row[8].endswith("of 6 scores")
    rows = mlrssc(Results(folder))[0].rows
    few = ["ours, default, 500 digits", "ours, tuned, 500 digits"]
    for method in MLRSSC:
        assert [r[1] for r in rows if r[0] == method] == ["paper", "ours, default", *few]


def test_every_experiment_has_its_numbers_and_its_claims_are_judged(folder):
    results = Results(folder)
    assert all(tables(results, name) for name in results.experiments)
    judged = {v.experiment for v in verdicts(results)}
    unclaimed = {"synthetic", "nutrimouse", "operations"}  # the paper says nothing of them in words
    assert judged == set(results.experiments) - unclaimed


def test_our_observations_are_not_counted_against_the_paper(folder, page):
    found = verdicts(Results(folder))
    own = {v.verdict for v in found if v.is_own}
    theirs = [v.verdict for v in found if not v.is_own]
    assert own and not own & {"agrees", "does not agree"} and not {*theirs} & {"yes", "no"}
    counted = re.findall(r"<li><b class=\w+>(\d+)</b>", page)
    assert sum(map(int, counted)) == len(theirs)


def test_command_and_settings_stand_under_the_figures_of_an_experiment(folder, page):
    results = Results(folder)
    for name, experiment in results.experiments.items():
        section = page.split(f'id="{name}"')[1].split("</section>")[0]
        assert html.unescape(section).count(f"<pre>{experiment['command']}</pre>") == 1
        assert section.count("<summary>Settings</summary>") == 1
    (told,) = [line for line in settings_of(results, "beta") if line.startswith("WM-NMF: ")]
    assert "beta 0.005, " in told and "0.025" in told and f"<li>{told}</li>" in page


def test_the_page_says_what_was_run_where_and_for_how_long(folder):
    results = Results(folder)
    text = markdown(folder)
    assert "up to 2 runs of every method" in text and "12 minutes of processor time" in text
    assert "P-MLRSSC on all digits took 51.3 minutes" in text
    for name in results.experiments:
        assert f"| {name} | 1 to 2 |" in text and f"of {name}, 2 cores, Linux" in text


def test_numbers_are_printed_as_the_paper_does():
    printed = [two(v) for v in (0.957, 1.0, -0.004, -0.25, 0.0)]
    assert printed == [".96", "1.00", ".00", "-.25", ".00"]
    assert in_print(0.5, math.nan) == ".50" and in_print(0.5, 0.021) == ".50 (.02)"
    assert signed(-0.0001, 2) == "+0.00"


def test_latex_and_markdown_escape_what_they_read_as_markup():
    table = Table("t", "c", ("a_b", "α"), [["50 % & <x>", "p | q"]])
    assert "a\\_b & α \\\\" in as_latex(table).decode()
    assert rb"50 \% \& <x> & p | q \\" in as_latex(table)
    assert as_markdown(table).splitlines()[2] == "| 50 % & &lt;x> | p / q |"


def test_a_run_of_few_experiments_gives_a_page_of_those(few):
    page = _page(Results(few))
    assert 'id="k"' in page and 'id="digits"' not in page and "LIHC is not here" in page
    assert "manyview reproduce lihc convergence --data FOLDER" in page
    assert "LIHC is not here" in markdown(few)


@pytest.mark.parametrize(
    "name, content, sentence",
    [
        ("reproduction.json", None, "has no reproduction.json; run `manyview repr"),
        ("reproduction.json", "{", "cannot be read"),
        ("reproduction.json", "{}", "is not of format 2"),
        ("k.csv", None, "k.csv is missing though"),
    ],
)
def test_bad_folders_are_answered_by_a_sentence(few, name, content, sentence):
    (few / name).unlink() if content is None else (few / name).write_text(content)
    result = CliRunner().invoke(app, ["report", str(few)])
    assert result.exit_code == 2 and sentence in result.output
    assert not (few / "reproduction.html").exists()


def test_the_command_writes_the_page_and_prints_markdown(few):
    result = CliRunner().invoke(app, ["report", str(few), "--markdown"])
    assert result.exit_code == 0 and result.output.startswith("# Reproduction of the paper")
    assert not (few / "reproduction.html").exists()
