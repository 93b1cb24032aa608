"""A server of the page in a process of its own, and Chromium driven by Playwright, for the tests."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Milliseconds for a table to be understood, and for a fit: the machine may be busy.
LOOK, FIT = 90_000, 240_000

DROP = """([zone, files]) => {
  const carried = new DataTransfer();
  for (const [name, text] of files) carried.items.add(new File([text], name));
  const options = { dataTransfer: carried, bubbles: true, cancelable: true };
  for (const kind of ["dragover", "drop"])
    document.querySelector(zone).dispatchEvent(new DragEvent(kind, options));
}"""

#: What a screen reader could not say, and what would be read in a wrong order.
UNNAMED = """() => {
  const wrong = [], label = e => e.labels && [...e.labels].map(l => l.textContent).join(" ");
  const name = e => (e.getAttribute("aria-label") || label(e) || e.title || e.textContent || "").trim();
  for (const e of document.querySelectorAll("a, button, iframe, summary, input:not([type=hidden]), select"))
    if (!name(e)) wrong.push("no name: " + e.outerHTML);
  for (const e of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(e.getAttribute("aria-labelledby")))
      wrong.push("label is not there: " + e.outerHTML);
  for (const e of document.querySelectorAll("[tabindex]"))
    if (e.tabIndex > 0) wrong.push("own order: " + e.outerHTML);
  const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
  if (new Set(ids).size !== ids.length) wrong.push("ids twice: " + ids);
  const levels = [...document.querySelectorAll("h1, h2, h3, h4")].map(e => +e.tagName[1]);
  if (levels[0] !== 1 || levels.filter(l => l === 1).length !== 1) wrong.push("not one h1: " + levels);
  levels.forEach((l, i) => { if (i && l > levels[i - 1] + 1) wrong.push("level left out: " + levels); });
  if (!document.documentElement.lang) wrong.push("no language");
  return wrong;
}"""
#: What is wider than the window, unless it scrolls by itself.
WIDE = """() => document.documentElement.scrollWidth <= window.innerWidth ? [] :
  [...document.querySelectorAll("body *")].filter(e => !e.closest(".scroll") &&
    e.getBoundingClientRect().right > window.innerWidth).map(e => e.outerHTML.slice(0, 200))"""


def program():
    """Where Chromium is; skips where it is not."""
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium here")
    return found


@contextlib.contextmanager
def served(folder, *options, **environment):
    """The address of `manyview app`, and its process."""
    words = ["app", "--no-browser", "--folder", str(folder), *map(str, options)]
    command = [sys.executable, "-m", "manyview", *words]
    known = os.environ | {"PYTHONUNBUFFERED": "1", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=known) as process:
        try:
            yield process.stdout.readline().split()[-1], process
        finally:
            process.terminate()


def axe():
    """The text of axe-core, where npm has put it: `npm install axe-core`; or None."""
    folder = Path(os.environ.get("AXE", Path(__file__).parents[2] / "node_modules/axe-core"))
    path = folder / "axe.min.js"
    return path.read_text(encoding="utf-8") if path.is_file() else None
