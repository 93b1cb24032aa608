"""What is published says the same everywhere: versions, dependencies, links."""

import re
import runpy
import tomllib
from pathlib import Path

import pytest

import manyview

ROOT = Path(__file__).parents[1]
SETUP = runpy.run_path(str(ROOT / "setup.py"))
CHECK = runpy.run_path(str(ROOT / "tools" / "release_check.py"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
RECIPE = (ROOT / "recipe" / "recipe.yaml").read_text(encoding="utf-8")
#: Packages that conda calls by another name.
CONDA = {"matplotlib": "matplotlib-base"}


def without_marks(requirement):
    name, floor = re.fullmatch(r"([A-Za-z0-9-]+)(?:\[.*\])?>=([\d.]+)", requirement).groups()
    return CONDA.get(name, name), floor


def test_the_version_is_named_in_one_place_and_repeated_truly():
    assert SETUP["constants"]()["__version__"] == manyview.__version__
    assert f"\nversion: {manyview.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f'\n  version: "{manyview.__version__}"\n' in RECIPE


def test_the_recipe_has_the_floors_of_the_library_and_of_the_command():
    wanted = [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["app"]]
    run = RECIPE.split("  run:\n")[1].split("  run_constraints:")[0]
    listed = re.findall(r"^    - ([\w-]+) >=([\d.]+)$", run, re.MULTILINE)
    assert sorted(listed) == sorted(map(without_marks, wanted))
    assert f'python_min: "{PROJECT["requires-python"].removeprefix(">=")}"' in RECIPE


def test_the_recipe_constrains_with_the_floors_of_the_extras():
    extras = {n: f for e in PROJECT["optional-dependencies"].values() for n, f in (
        without_marks(item) for item in e if ">=" in item)}  # fmt: skip
    extras["pytorch"] = extras["torch"]
    constraints = RECIPE.split("  run_constraints:\n")[1].split("\ntests:")[0]
    listed = dict(re.findall(r"^    - ([\w-]+) >=([\d.]+)$", constraints, re.MULTILINE))
    assert listed and all(extras[name] == floor for name, floor in listed.items())


def test_classifiers_name_the_versions_that_the_workflows_test():
    told = [c.rsplit(" ", 1)[1] for c in PROJECT["classifiers"] if re.search(r"3\.\d+$", c)]
    text = (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    (tested,) = re.findall(r"^ +python: (\[.*\])$", text, re.MULTILINE)
    assert told == re.findall(r"3\.\d+", tested)
    assert PROJECT["requires-python"] == f">={told[0]}"


def test_workflows_run_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    used = set()
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used |= set(re.findall(r"run: make ([a-z-]+)", path.read_text()))
    assert {"test", "test-slow", "test-newest", "docs", "build-check"} <= used <= targets


def test_links_of_the_package_come_from_one_address():
    assert SETUP["links"]("") == {}
    home = "https://forge.invalid/manyview"
    assert all(link.startswith(home) for link in SETUP["links"](home).values())


@pytest.mark.parametrize("home", ["", "https://forge.invalid/manyview"])
def test_the_long_description_has_no_link_into_the_repository(home):
    text = SETUP["description"]((ROOT / "README.md").read_text(encoding="utf-8"), home, "1.2.3")
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert all(re.match(r"https?:|#", target) for target in targets)
    assert ("](https://forge.invalid/manyview/raw/v1.2.3/docs/report.png)" in text) == bool(home)


def published(folder, **replaced):
    """A folder with the files of a version that is ready to be published, some of them changed."""
    texts = {
        "src/manyview/_version.py": '__version__ = "1.2.3"\nHOME = "https://forge.invalid/manyview"\n',
        "CHANGELOG.md": "# Changelog\n\n## [1.2.3] - 2031-02-03\n",
        "CITATION.cff": "version: 1.2.3\n",
        "recipe/recipe.yaml": 'context:\n  version: "1.2.3"\n',
    }
    for name, text in (texts | replaced).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_is_ready_may_be_published(tmp_path):
    assert CHECK["faults"](published(tmp_path), "v1.2.3") == []


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("src/manyview/_version.py", '__version__ = "1.2.3"\nHOME = ""\n', "no address"),
        ("CHANGELOG.md", "## [Unreleased]\n", "no heading"),
        ("CHANGELOG.md", "## [1.2.3] - soon\n", "no date"),
        ("CITATION.cff", "version: 1.2.2\n", "another version"),
        ("recipe/recipe.yaml", 'context:\n  version: "1.2.2"\n', "another version"),
    ],
)
def test_what_is_forgotten_is_told(tmp_path, name, text, told):
    (fault,) = CHECK["faults"](published(tmp_path, **{name: text}), "v1.2.3")
    assert told in fault
    assert len(CHECK["faults"](published(tmp_path, **{name: text}), "v9")) == 2


def test_the_page_on_installation_lists_every_extra():
    text = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z]+)` \|", text, re.MULTILINE)
    assert sorted(listed) == sorted({*PROJECT["optional-dependencies"]} - {"docs", "dev"})
