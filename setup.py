"""What pyproject.toml cannot compute: the links of the package, all from one address.

The page of the package is README.md. There its links into the repository lead nowhere by themselves:
they get the address of the repository, or, while there is none, become plain words.
"""

import ast
import re
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!https?:|#)([^)\s]+)\)")


def constants() -> dict[str, str]:
    """The names that _version.py gives to texts; nothing is imported."""
    tree = ast.parse((ROOT / "src/manyview/_version.py").read_text(encoding="utf-8"))
    given = [node for node in tree.body if isinstance(node, ast.Assign)]
    return {node.targets[0].id: ast.literal_eval(node.value) for node in given}


def description(text: str, home: str, version: str) -> str:
    """README for readers who are not in the repository."""

    def outward(found: re.Match) -> str:
        picture, words, target = found.groups()
        if not home:
            return "" if picture else words
        kind = "raw" if picture else "blob"
        return f"{picture}[{words}]({home}/{kind}/v{version}/{target})"

    return LINK.sub(outward, text)


def links(home: str) -> dict[str, str]:
    """The addresses beside the package."""
    if not home:
        return {}
    files = {"Documentation": "docs/index.md", "Changelog": "CHANGELOG.md"}
    named = {name: f"{home}/blob/main/{path}" for name, path in files.items()}
    return {"Source": home, "Issues": f"{home}/issues", **named}


if __name__ == "__main__":
    known = constants()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    setup(
        project_urls=links(known["HOME"]),
        long_description=description(readme, known["HOME"], known["__version__"]),
        long_description_content_type="text/markdown",
    )
