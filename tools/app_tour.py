"""A stranger's way through `manyview app`, timed, with a picture of each step: `make app-tour`.

Starts the page as a user would, drives Chromium with Playwright, and writes pictures and a table of times.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "chrome")
WIDE, NARROW = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
#: A fit that takes longer than this has gone wrong.
PATIENCE = 300_000


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a page of our own."""
    command = [sys.executable, "-m", "manyview", "app", "--no-browser", "--folder", folder]
    environment = os.environ | {"PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[-1]
        finally:
            process.terminate()


class Tour:
    """Pictures in a folder, and how long each step took."""

    def __init__(self, page: Page, shots: Path):
        self.page, self.shots, self.since = page, shots, time.perf_counter()
        self.times: list[tuple[str, float]] = []

    def step(self, name: str) -> None:
        now = time.perf_counter()
        self.times.append((name, now - self.since))
        self.page.screenshot(path=self.shots / f"{len(self.times):02}-{name}.png", full_page=True)
        self.since = time.perf_counter()


def awkward(folder: Path) -> list[Path]:
    """Two tables whose ids are written differently."""
    paths = []
    for view, ids in (("genes", "Mouse-{}"), ("lipids", "mouse_{}")):
        lines = [f"id,{','.join(f'{view}{j}' for j in range(4))}"]
        for i in range(30):
            values = (f"{(i % 3 == j) * 5 + (i * 7 + j * 3) % 5 / 5:.2f}" for j in range(4))
            lines.append(f"{ids.format(i)},{','.join(values)}")
        paths.append(folder / f"{view}.csv")
        paths[-1].write_text("\n".join(lines), encoding="utf-8")
    return paths


def sample_way(tour: Tour, address: str) -> None:
    """From the first page to the report on the sample tables."""
    page = tour.page
    page.goto(address)
    tour.step("start")
    page.get_by_role("button", name="Use cohort").click()
    page.get_by_role("button", name="Cluster", exact=True).wait_for()
    tour.step("understood")
    page.get_by_role("button", name="Cluster", exact=True).click()
    page.locator("#progress").wait_for()
    page.wait_for_timeout(3000)
    tour.step("progress")
    page.locator("iframe.report").wait_for(timeout=PATIENCE)
    page.frame_locator("iframe.report").locator("h1").wait_for()
    tour.step("report")


def own_way(tour: Tour, address: str, tables: list[Path]) -> None:
    """Tables of one's own, with a problem to mend, and the list of runs."""
    page = tour.page
    page.goto(address)
    page.get_by_role("button", name="Choose your tables").click()
    page.locator("#views").wait_for()
    tour.step("empty")
    page.locator("#views").set_input_files(tables)
    page.get_by_role("alert").wait_for()
    tour.step("problem")
    page.get_by_role("button", name="These ids are the same samples").click()
    page.get_by_role("button", name="Cluster", exact=True).wait_for()
    tour.step("mended")
    page.goto(address)
    tour.step("earlier-runs")


def other_looks(browser: Browser, address: str, runs: dict[str, str], shots: Path) -> None:
    """The same pages on a phone, and in the dark."""
    for look, size, scheme in (("phone", NARROW, "light"), ("dark", WIDE, "dark")):
        page = browser.new_page(viewport=size, color_scheme=scheme)
        for name, path in {"start": address, **runs}.items():
            page.goto(path)
            page.wait_for_timeout(1500)  # the report draws itself
            page.screenshot(path=shots / f"{look}-{name}.png", full_page=True)
        page.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=Path, default=Path("app-tour"))
    shots = parser.parse_args().shots
    shots.mkdir(parents=True, exist_ok=True)
    program = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        sys.exit("the tour needs Chromium")
    begun = time.perf_counter()
    with (
        tempfile.TemporaryDirectory() as place,
        served(Path(place) / "runs") as address,
        sync_playwright() as driver,
    ):
        ready = time.perf_counter() - begun
        browser = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport=WIDE)
        tour = Tour(page, shots)
        sample_way(tour, address)
        runs = {"report": page.url}
        first = time.perf_counter() - begun
        own_way(tour, address, awkward(Path(place)))
        page.go_back()
        runs["mended"] = page.url
        other_looks(browser, address, runs, shots)
        browser.close()
    print(f"{'the server answers':24} {ready:6.1f} s")
    for name, seconds in tour.times:
        print(f"{name:24} {seconds:6.1f} s")
    load = (
        f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if os.name == "posix" else ""
    )
    print(f"first report {first:.1f} s after the start{load}; pictures in {shots}/")


if __name__ == "__main__":
    main()
