"""Install an extra where nothing else is, and go from the page to a report: `make test-extras`.

What is asked: `pip check`, `manyview --version`, and `manyview app` on the sample tables, by HTTP as a
browser speaks it. "lowest" is the extra app with the oldest versions that pyproject.toml allows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from build_check import ROOT, fresh, run

#: Seconds until a fit of the sample tables counts as broken.
PATIENCE = 600


def floors() -> list[str]:
    """The oldest versions of the library's and of app's packages, as pip wants them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["app"]]
    return [name.replace(">=", "==") for name in wanted]


def ask(url: str, **fields: str) -> tuple[str, str]:
    """Where a request ends, and what is there; with fields it is a form of the page."""
    parts = urlsplit(url)
    headers = {"Origin": f"{parts.scheme}://{parts.netloc}"}
    data = urlencode(fields).encode() if fields else None
    with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
        return answer.url, answer.read().decode()


def report_of_samples(address: str) -> int:
    """Use the sample tables, fit, and wait; characters of the report."""
    place, page = ask(f"{address}sample", which="nutrimouse")
    assert "40 samples in 2 views" in page, page
    ask(f"{place}/fit", clusters="number", number="2")
    deadline = time.monotonic() + PATIENCE
    while (now := json.loads(ask(f"{place}/state")[1]))["state"] == "running":
        assert time.monotonic() < deadline, now
        time.sleep(0.5)
    assert now["state"] == "done", ask(place)[1]
    report = ask(f"{place}/report")[1]
    assert "2 clusters among 40 samples" in report
    return len(report)


def check(extra: str, folder: Path) -> None:
    """One fresh environment, and what became of it."""
    lowest = extra == "lowest"
    python = fresh(
        folder / "env", f"{ROOT}[{'app' if lowest else extra}]", *(floors() if lowest else [])
    )
    run(python, "-m", "pip", "check", cwd=folder)
    version = run(python, "-m", "manyview", "--version", cwd=folder).strip()
    packages = len(json.loads(run(python, "-m", "pip", "list", "--format", "json", cwd=folder)))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    begun = time.perf_counter()
    command = [str(python), "-u", "-m", "manyview", "app", "--no-browser"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            size = report_of_samples(process.stdout.readline().split()[-1])
        finally:
            process.terminate()
    took = time.perf_counter() - begun
    print(
        f"{extra}: {version}, {packages} packages, a report of {size} characters after {took:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("extras", nargs="+")
    for extra in parser.parse_args().extras:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            check(extra, Path(place))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
