"""Build the archives and use them as a stranger would: `make build-check`.

Looks into the wheel and the source archive, installs the wheel where nothing else is and fits a model
there, then unpacks the source archive and runs its tests of the core.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What users of the wheel would miss.
IN_WHEEL = (
    "manyview/py.typed",
    "manyview/datasets/data/handwritten.npz",
    "manyview/datasets/data/nutrimouse.npz",
    "manyview/datasets/data/LICENSES.md",
    "manyview/datasets/data/GPL-2.txt",
    "manyview/app/report/assets/fit.html",
    "manyview/app/report/assets/page.css",
    "manyview/app/report/assets/page.html",
    "manyview/app/report/assets/page.js",
    "manyview/paper/assets/diagram.svg",
    "manyview/paper/assets/reproduction.css",
    "manyview/paper/assets/reproduction.md.jinja",
    "manyview/paper/assets/texts.toml",
    "manyview/app/web/assets/app.css",
    "manyview/app/web/assets/app.js",
    "manyview/app/web/assets/frame.html",
    "manyview/app/web/assets/home.html",
    "manyview/app/web/assets/icon.svg",
    "manyview/app/web/assets/run.html",
)
LICENSES = ("LICENSE", "LICENSES.md", "GPL-2.txt")
#: What whoever packages the source archive would miss.
IN_SDIST = (
    "Makefile",
    "README.md",
    "setup.py",
    "tests/conftest.py",
    "docs/index.md",
    "recipe/recipe.yaml",
)
FIT = """
import sys, manyview as mv
data = mv.datasets.load_nutrimouse()
labels = mv.RobustWMNMF(2, random_state=0).fit_predict(data.views)
assert len(set(labels)) == 2
extra = {"pandas", "matplotlib", "typer", "rich", "numba"} & {m.split(".")[0] for m in sys.modules}
assert not extra, extra
print("fitted", len(labels), "mice with manyview", mv.__version__, "from", mv.__file__)
"""


def run(*command: str | Path, cwd: Path = ROOT, may_end_with: int = 0) -> str:
    """Output of a command, which must end well; nothing of the checkout can be imported by it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, capture_output=True, text=True
    )
    if done.returncode != may_end_with:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def fresh(folder: Path, *packages: str | Path) -> Path:
    """The Python of a new environment that has these packages."""
    venv.create(folder, clear=True, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
    return python


def check_wheel(path: Path) -> None:
    """It has all that is needed, and no tests."""
    names = zipfile.ZipFile(path).namelist()
    absent = [name for name in IN_WHEEL if name not in names]
    licenses = {name.rsplit("/", 1)[1] for name in names if ".dist-info/licenses/" in name}
    absent += sorted(set(LICENSES) - licenses)
    sources = ROOT / "src"
    ours = {path.relative_to(sources).as_posix() for path in sources.rglob("*.py")}
    absent += sorted(ours - set(names))
    tops = {name.split("/")[0] for name in names}
    strange = sorted(top for top in tops if top != "manyview" and not top.endswith(".dist-info"))
    if absent or strange:
        sys.exit(f"{path.name} lacks {absent} and holds {strange}, which do not belong there")
    print(f"{path.name}: {len(names)} files, {path.stat().st_size / 2**20:.1f} MiB")


def check_sdist(path: Path, folder: Path) -> Path:
    """It has all that is needed to build, test and document; unpacked."""
    with tarfile.open(path) as archive:
        archive.extractall(folder, filter="data")
    (root,) = folder.iterdir()
    absent = [name for name in IN_SDIST if not (root / name).is_file()]
    strange = [
        p.name for p in root.rglob("*") if p.name in ("__pycache__", ".git", ".venv", "_build")
    ]
    if absent or strange:
        sys.exit(f"{path.name} lacks {absent} and holds {strange}, which do not belong there")
    print(f"{path.name}: {sum(p.is_file() for p in root.rglob('*'))} files")
    return root


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("tests", nargs="*", help="tests of the source archive to run")
    asked = parser.parse_args()
    for old in asked.dist.glob("manyview-*"):
        old.unlink()
    run(sys.executable, "-m", "build", "--outdir", asked.dist, ROOT)
    wheel, sdist = next(asked.dist.glob("*.whl")), next(asked.dist.glob("*.tar.gz"))
    run(sys.executable, "-m", "twine", "check", "--strict", wheel, sdist)
    check_wheel(wheel)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        bare = fresh(folder / "bare", wheel)
        print(run(bare, "-c", FIT, cwd=folder).strip())
        told = run(bare, "-m", "manyview", cwd=folder, may_end_with=1).strip()
        assert "manyview[app]" in told, told
        print(told)
        root = check_sdist(sdist, folder / "source")
        python = fresh(folder / "tested", sdist, "pytest>=8", "hypothesis>=6.100")
        print(run(python, "-m", "pytest", "-p", "no:cacheprovider", *asked.tests, cwd=root).strip())


if __name__ == "__main__":
    main()
