"""What a person may forget before pressing the button: `make release-check TAG=v1.2.3`."""

from __future__ import annotations

import datetime
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def faults(root: Path, tag: str) -> list[str]:
    """A sentence for each thing that is not as it must be to publish ``tag``."""
    known = runpy.run_path(str(root / "src/manyview/_version.py"))
    version = known["__version__"]
    found = []
    if not known["HOME"].startswith("https://"):
        found.append(
            "src/manyview/_version.py: HOME has no address; the package would have no links"
        )
    if tag != f"v{version}":
        found.append(f"the tag is {tag!r}, and the version {version}: it should be v{version}")
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dated = re.search(rf"^## \[{re.escape(version)}\] - (\S+)$", changes, re.MULTILINE)
    if dated is None:
        found.append(f"CHANGELOG.md has no heading '## [{version}] - YEAR-MONTH-DAY'")
    else:
        try:
            datetime.date.fromisoformat(dated[1])
        except ValueError:
            found.append(f"CHANGELOG.md: {dated[1]} is no date")
    return found + [
        f"{name} is of another version than {version}"
        for name, line in (
            ("CITATION.cff", f"version: {version}"),
            ("recipe/recipe.yaml", f'  version: "{version}"'),
        )
        if line not in (root / name).read_text(encoding="utf-8").splitlines()
    ]


if __name__ == "__main__":
    told = faults(ROOT, sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit("\n".join(told) or None)
