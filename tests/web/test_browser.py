"""The page in Chromium, as a person uses it: `make test-browser`. `make test` runs the first test alone."""

import io
import itertools
import json
import signal
import urllib.request
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra 'app'")
pytest.importorskip("playwright.sync_api", reason="needs playwright (make test-browser)")

from driver import DROP, FIT, LOOK, UNNAMED, WIDE, axe, program, served
from playwright import sync_api
from test_app import table

from manyview.datasets import load_handwritten

HOSTILE = "<img src=x onerror=alert(1)>.csv"
browser_test = pytest.mark.browser


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    program()
    return tmp_path_factory.mktemp("app") / "runs"


@pytest.fixture(scope="module")
def address(home):
    with served(home) as (address, _):
        yield address


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program(), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser, address):
    """A tab that fails the test for complaints of the browser and for requests to elsewhere."""
    page = browser.new_page(accept_downloads=True)
    wrong, here = [], "/".join(address.split("/")[:3])
    page.on("console", lambda m: wrong.append(m.text) if m.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    page.on(
        "request",
        lambda r: None if r.url.startswith((here, "data:", "blob:")) else wrong.append(r.url),
    )
    page.set_default_timeout(LOOK)
    page.goto(address)
    yield page
    page.close()
    assert wrong == []


def drop(page, files, zone="#zone"):
    if page.locator("#zone").count() == 0:
        page.get_by_role("button", name="Choose your tables").click()
        page.locator("#zone").wait_for()
    page.wait_for_load_state()  # the script of the page
    with page.expect_navigation():
        page.evaluate(DROP, [zone, [[name, text] for name, text in files.items()]])


def cluster(page, number=None):
    if number:
        page.get_by_label("Number of clusters", exact=True).fill(str(number))
    page.get_by_role("button", name="Cluster", exact=True).click()


def tables(ids=("s{}", "s{}"), names=("genes.csv", "lipids.csv")):
    return {name: table(seed=i, ids=ids[i]).decode() for i, name in enumerate(names)}


LOADED = """() => new Promise(done =>
  document.readyState === "complete" ? done() : addEventListener("load", () => done()))"""


def sound(page):
    """Nothing without a name, nothing wider than the window, nothing that axe finds."""
    # With its style. (A download counts as a page that never loads.)
    page.evaluate(LOADED)
    assert page.evaluate(UNNAMED) == []
    assert page.evaluate(WIDE) == []
    script = axe()
    if script:
        page.evaluate(script)
        found = page.evaluate("axe.run(document, { iframes: false })")["violations"]
        assert [(v["id"], [n["html"] for n in v["nodes"]]) for v in found] == []


def test_tables_that_are_dropped_are_understood(page):
    drop(page, {**tables(), HOSTILE: table(seed=2).decode()})
    assert page.get_by_text("30 samples in 3 views.").is_visible()
    assert page.get_by_text(HOSTILE, exact=True).is_visible()
    assert page.locator("img").count() == 0
    sound(page)


@browser_test
def test_the_digits_from_drop_to_archive(page):
    data = load_handwritten(["fou", "zer", "mor"])
    rows = np.arange(0, 2000, 10)
    files = {
        f"{name}.csv": "\n".join(
            [",".join(["id", *(f"{name}{j}" for j in range(X.shape[1]))])]
            + [",".join([f"d{i}", *map(str, X[i])]) for i in rows]
        )
        for name, X in data.views.items()
    }
    drop(page, files)
    assert page.get_by_text("200 samples in 3 views.").is_visible()
    cluster(page, 10)
    page.locator("#stages li").nth(1).wait_for(timeout=FIT)
    page.locator("iframe.report").wait_for(timeout=FIT)
    report = page.frame_locator("iframe.report")
    assert report.get_by_role("heading", name="10 clusters among 200 samples").is_visible()
    with page.expect_download() as coming:
        page.get_by_role("link", name="Download everything").click()
    archive = zipfile.ZipFile(io.BytesIO(Path(coming.value.path()).read_bytes()))
    labels = next(name for name in archive.namelist() if name.endswith("/labels.csv"))
    assert len(archive.read(labels).splitlines()) == 201
    assert "--clusters 10 --out run" in page.locator("pre").inner_text()
    sound(page)


def turned(text):
    rows = [line.split(",") for line in text.splitlines()]
    return "\n".join(",".join(column) for column in zip(*rows, strict=True))


def labeled(text):
    lines = text.splitlines()
    return "\n".join([lines[0].split(",")[0] + ",group", *(f"s{i},{i % 3}" for i in range(30))])


GENES, LIPIDS = tables().values()
#: name → tables, and the button that answers what is asked of them, if anything is.
AWKWARD = {
    "semicolons and decimal commas": (
        {"a.csv": GENES.replace(",", ";").replace(".", ","), "b.csv": LIPIDS}, None),
    "genes in rows beside samples in rows": (
        {"a.csv": turned(GENES), "b.csv": LIPIDS}, None),
    "ids written in two ways": (
        tables(("Mouse-{}", "mouse_{}")), "These ids are the same samples"),
    "a table that looks like classes": (
        {"a.csv": GENES, "group.csv": labeled(LIPIDS)}, "is a view, use it"),
    "names that are markup": (
        {HOSTILE: GENES, "b.csv": LIPIDS}, None),
}  # fmt: skip


@browser_test
@pytest.mark.parametrize("case", AWKWARD)
def test_awkward_tables_are_understood_or_asked_about(page, case):
    files, answer = AWKWARD[case]
    drop(page, files)
    if answer:
        alert = page.get_by_role("alert")
        assert alert.is_visible() and "--" not in alert.inner_text()
        sound(page)
        page.get_by_role("button", name=answer).click()
    page.get_by_text("30 samples in 2 views.").wait_for()
    assert page.get_by_role("button", name="Cluster", exact=True).is_visible()


@browser_test
def test_a_clinical_table_is_dropped_on_its_button(page):
    drop(page, tables())
    rows = "\n".join(f"s{i},{i + 1},{i % 2}" for i in range(30))
    drop(page, {"known.csv": f"id,os_months,dead\n{rows}"}, "[for=clinical]")
    assert page.get_by_text("known.csv (clinical data, not a view)").is_visible()
    assert page.get_by_text("survival: time from the column 'os_months'").is_visible()


@browser_test
def test_what_cannot_be_read_is_a_sentence(browser, address):
    page = empty_draft(browser, address)
    page.evaluate(DROP, ["#zone", [["x.exe", "MZ"]]])
    page.get_by_text("files of this kind are not read").wait_for()
    assert page.locator(".files").count() == 0
    page.close()


def empty_draft(browser, address):
    page = browser.new_page()
    page.goto(address)
    page.get_by_role("button", name="Choose your tables").click()
    page.locator("#zone").wait_for()
    page.wait_for_load_state()
    return page


def tab_to(page, name, most=40):
    """Press the tab key until something of this name has the focus; what had it on the way."""
    passed = []
    for _ in range(most):
        page.keyboard.press("Tab")
        here = page.evaluate(
            "() => { const e = document.activeElement; const shown = e.labels && e.labels[0] || e;"
            " const b = shown.getBoundingClientRect();"
            " const ringed = x => getComputedStyle(x).outlineStyle !== 'none';"
            " return [(e.getAttribute('aria-label') || shown.textContent || e.value || '').trim(),"
            " b.width > 2 && b.height > 2 && (ringed(e) || ringed(shown)), b.top + scrollY]; }"
        )
        passed.append(here)
        if here[0].startswith(name):
            return passed
    raise AssertionError(f"{name} is not reached by the tab key: {[p[0][:40] for p in passed]}")


@browser_test
def test_the_keyboard_is_enough(page):
    passed = tab_to(page, "Use nutrimouse")
    names = [
        "Skip to the content",
        "manyview",
        "Choose your tables",
        "Use cohort",
        "Use nutrimouse",
    ]
    assert [name for name, _, _ in passed] == names
    assert all(seen for _, seen, _ in passed)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Cluster", exact=True).wait_for()
    passed = tab_to(page, "Cluster")
    assert [name for name, seen, _ in passed if not seen] == []
    heights = [height for *_, height in passed[3:]]  # what is in one line has no height of its own
    assert all(before < after + 30 for before, after in itertools.pairwise(heights))
    page.keyboard.press("Enter")
    page.locator("#progress").wait_for()
    sound(page)
    assert page.locator("[aria-live=polite] > #stages").count() == 1
    page.locator("iframe.report").wait_for(timeout=FIT)
    passed = [name for name, *_ in tab_to(page, "Skip the report")]
    assert passed[-2:] == ["Remove this run", "Skip the report"]
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "made"
    page.reload()  # the focus begins at the top again
    tab_to(page, "Remove this run")
    page.keyboard.press("Enter")
    tab_to(page, "Yes, remove it and its folder")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Cluster your tables").wait_for()


@browser_test
@pytest.mark.parametrize("look", ["phone", "dark"])
def test_phones_and_the_dark(browser, address, home, look):
    size = {"width": 360, "height": 740} if look == "phone" else {"width": 1280, "height": 900}
    page = browser.new_page(viewport=size, color_scheme="dark" if look == "dark" else "light")
    page.set_default_timeout(LOOK)
    page.goto(address)
    drop(page, tables(("Mouse-{}", "mouse_{}"), (f"{'a_very_long_name_' * 4}.csv", "b.csv")))
    sound(page)
    page.get_by_role("button", name="These ids are the same samples").click()
    page.get_by_text("30 samples in 2 views.").wait_for()
    sound(page)
    cluster(page, 999)
    page.get_by_role("heading", name="This run did not finish").wait_for(timeout=FIT)
    sound(page)
    page.get_by_role("link", name="All runs").click()
    page.get_by_role("heading", name="Earlier runs").wait_for()
    sound(page)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (max(json.loads(f"[{paper[4:-1]}]")) < 60) == (look == "dark")
    page.close()


@browser_test
def test_two_tabs_a_reload_and_a_cancel(page, browser):
    page.get_by_role("button", name="Use cohort").click()
    page.get_by_role("button", name="Cluster", exact=True).wait_for()
    other = browser.new_page()
    other.goto(page.url)
    cluster(page)
    page.locator("#progress").wait_for()
    other.set_default_timeout(LOOK)
    cluster(other)  # the same run, not a second one
    other.locator("#progress").wait_for()
    assert other.url == page.url
    page.reload()
    page.locator("#progress").wait_for()
    other.get_by_role("button", name="Cancel").click()
    page.get_by_text("This run was cancelled.").wait_for()
    other.get_by_text("This run was cancelled.").wait_for()
    other.close()


@browser_test
def test_a_killed_server_is_told_and_loses_nothing(browser, tmp_path):
    page = browser.new_page()
    page.set_default_timeout(LOOK)
    with served(tmp_path / "runs") as (address, process):
        page.goto(address)
        page.get_by_role("button", name="Use cohort").click()
        page.get_by_role("button", name="Cluster", exact=True).wait_for()
        cluster(page)
        page.locator("#stages", has_text="reading the files").wait_for(timeout=FIT)
        process.send_signal(signal.SIGKILL)
        page.get_by_text("The connection is lost.").wait_for()
        name = page.url.rsplit("/", 1)[1]
    with served(tmp_path / "runs") as (address, _):
        page.goto(f"{address}r/{name}")
        page.get_by_text("The server stopped during this run.").wait_for()
        page.get_by_role("button", name="Change and run again").click()
        page.get_by_text("240 samples in 3 views.").wait_for()
        log = (tmp_path / "runs" / name / "run" / "report.html").exists()
        assert not log and urllib.request.urlopen(address).status == 200
    page.close()


@browser_test
def test_a_table_that_is_sent_to_nobody_is_told(browser, tmp_path):
    with served(tmp_path / "runs") as (address, _):
        page = empty_draft(browser, address)
    page.evaluate(DROP, ["#zone", [["a.csv", table().decode()]]])
    page.get_by_text("the connection was lost; is manyview app still running?").wait_for()
    page.close()
