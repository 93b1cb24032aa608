"""The frame of pages: escaping, CSV, and what a browser makes of it."""

import csv
import io
import json
import re

import pytest

from browser import visit
from manyview.app.report import page as pg

EVIL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</script><script>alert(1)</script>",
    "{{ 7*7 }}",
    "naïve Ω 漢字 🧬",
    "nul\x00bell\x07\u202etxt.exe",
    "lone \ud800 surrogate",
    "a" * 200,
    "quote ' \" `",
    "<!--",
)


def evil_page():
    rows = [[text, 0.123456789, None] for text in EVIL]
    dots = {
        "ids": EVIL[:2],
        "x": [0, 1000],
        "y": [0, 10],
        "clusters": [0, 0],
        "confidence": [0.5, None],
    }
    dots |= {
        "names": {"0": EVIL[1]},
        "labels": [{"text": EVIL[0], "x": 1, "y": 1, "px": 1, "py": 1}],
    }
    dots["by"] = [
        {"name": EVIL[0], "groups": [0, 1], "names": [EVIL[0], EVIL[1]], "colors": ["red", "blue"]},
        {"name": EVIL[1], "values": [1.0, float("nan")], "percent": False},
    ]
    body = pg.html(
        "{{ text }}{{ table }}{{ figure }}",
        text=EVIL[2],
        table=pg.table([EVIL[0], "number", "nothing"], rows, name=EVIL[1], caption=EVIL[0]),
        figure=pg.figure(dots, label=EVIL[1], name=EVIL[1], caption=EVIL[0]),
    )
    return pg.page(EVIL[0], [pg.Section("a", EVIL[0], body)], lead=EVIL[1], footer=EVIL[2])


def test_nothing_from_outside_becomes_markup():
    text = evil_page()
    text.encode("utf-8")  # a lone surrogate would not encode
    outside = text.replace(pg.asset("page.js"), "")
    assert len(re.findall(r"<script\b", outside)) == 3  # page, a table, a figure
    assert "alert(1)" in outside and not re.search(r"<script[^>]*>alert|<img", outside)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e]", outside)
    assert "{{ 7*7 }}" in outside


def test_json_in_a_script_reads_back_and_cannot_end_it():
    value = {"a": [*EVIL, 1.5, float("inf"), None, True], "b": ("x", {"1": 2})}
    text = str(pg.script_json(value))
    assert not set(text) & set("<>&")
    assert json.loads(text) == {
        "a": [*EVIL, 1.5, None, None, True],
        "b": ["x", {"1": 2}],
    }


@pytest.mark.parametrize("name", [*EVIL, "", "..", "../../etc/passwd", "con/aux\\nul", "."])
def test_file_stems_are_plain(name):
    assert re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,79}", pg.file_stem(name))


def test_a_page_is_small_and_asks_for_nothing():
    text = pg.page("t", [pg.Section("a", "A", pg.html("<p>x</p>"))])
    assert len(text) < 35_000
    assert set(re.findall(r"https?://[^\"']*", text)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, no address


def test_a_browser_draws_it_without_a_word_and_saves_the_csv():
    seen = visit(
        evil_page(),
        """(async () => {
          document.querySelector('button.csv').click();
          await new Promise(done => setTimeout(done, 1000));
          return JSON.stringify({
          drawn: document.documentElement.dataset.drawn,
          dots: document.querySelectorAll('.plot circle').length,
          images: document.images.length,
          labels: [...document.querySelectorAll('.plot text, .legend span')].map(t => t.textContent),
          theme: (document.getElementById('theme').click(), document.documentElement.dataset.theme),
          sorted: (document.querySelector('th button').click(),
                   document.querySelector('th').getAttribute('aria-sort'))});
        })()""",
    )
    assert seen.errors == [] and seen.requests == []
    found = json.loads(seen.value)
    assert found["drawn"] == "1" and found["dots"] == 2 and found["images"] == 0
    assert EVIL[0] in found["labels"] and f"{EVIL[1]} (1)" in found["labels"]
    assert found["theme"] == "dark" and found["sorted"] == "ascending"
    (saved,) = seen.downloads.values()
    rows = list(csv.reader(io.StringIO(saved)))
    assert rows[0] == [EVIL[0], "number", "nothing"] and len(rows) == len(EVIL) + 1
    assert rows[1] == [EVIL[0], "0.123456789", ""] and rows[9][0] == EVIL[8]
