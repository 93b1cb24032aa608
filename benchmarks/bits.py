"""Are results the same bits as before? One digest per estimator, data set and place of the rows.

    python benchmarks/bits.py --out before.json      # with the code as it was
    python benchmarks/bits.py --against before.json  # with the code as it is

A change of structure must move no bit of labels, α, w or the consensus; what moved is printed. Engines
that are not installed are left out, and told.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import manyview as mv

ATTRIBUTES = ("labels_", "view_weights_", "sample_weights_", "consensus_")

#: What a method needs to take a data set at all: holes, negative values.
SETTINGS = {("WMNMF", "holes"): {"missing": "mask"}, ("WMNMF", "nutrimouse"): {"scale": "minmax"}}


def data_sets() -> dict[str, tuple[dict, int]]:
    """Views and number of clusters: dense, made up, omics, sparse, and with holes."""
    digits = mv.datasets.load_handwritten(views="paper").views
    made_up = mv.datasets.make_synthetic(n_samples=600, random_state=0).views
    mice = mv.datasets.load_nutrimouse().views
    rng = np.random.default_rng(0)
    topics = rng.integers(4, size=400)
    words = [rng.gamma(0.05, 1, (4, 300)) for _ in range(2)]
    rates = [20 * word[topics] / word.sum(axis=1).max() for word in words]
    texts = {f"text{s}": sp.csr_array(rng.poisson(rate)) for s, rate in enumerate(rates)}
    holes = {name: X[:600].astype(float) for name, X in digits.items()}
    holes["fou"][::7] = np.nan
    holes["zer"][rng.random(holes["zer"].shape) < 0.05] = np.nan
    return {
        "digits": (digits, 10),
        "synthetic": (made_up, 10),
        "nutrimouse": (mice, 4),
        "sparse": (texts, 4),
        "holes": (holes, 10),
    }


def as_files(views: dict, folder: Path) -> dict:
    """The same views as .npy files that are read by rows."""
    found = {}
    for name, X in views.items():
        np.save(folder / f"{name}.npy", X)
        found[name] = mv.on_disk(folder / f"{name}.npy")
    return found


def as_dask(views: dict) -> dict:
    import dask.array as da

    return {name: da.from_array(np.asarray(X), chunks=(500, -1)) for name, X in views.items()}


def cases(folder: Path) -> Iterator[tuple[str, Callable, dict]]:
    """Name, maker of an estimator, and views of every case."""
    for data, (views, k) in data_sets().items():
        for method in ("WMNMF", "RobustWMNMF"):
            settings = SETTINGS.get((method, data), {})
            yield f"{method} {data} memory", _maker(method, k, settings), views
            if data == "digits":
                (folder / method).mkdir()
                yield (
                    f"{method} {data} npy",
                    _maker(method, k, {}),
                    as_files(views, folder / method),
                )
                if find_spec("distributed"):
                    yield (
                        f"{method} {data} dask",
                        _maker(method, k, {"engine": "dask"}),
                        as_dask(views),
                    )
            if data in ("digits", "sparse") and find_spec("torch"):
                torch = {"engine": "torch", "device": "cpu"}
                yield f"{method} {data} torch", _maker(method, k, torch), views


def _maker(method: str, k: int, settings: dict) -> Callable:
    return lambda: getattr(mv, method)(k, random_state=0, **settings)


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def verdict(found: dict[str, str], before: dict[str, str] | None) -> str:
    if before is None:
        return "new"
    moved = [name for name in ATTRIBUTES if found[name] != before.get(name)]
    return "moved: " + ", ".join(moved) if moved else "same"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the digests to this file")
    parser.add_argument("--against", type=Path, help="compare with the digests of this file")
    given = parser.parse_args()
    before = json.loads(given.against.read_text()) if given.against else {}
    found: dict[str, dict[str, str]] = {}
    for engine in ("distributed", "torch"):
        if find_spec(engine) is None:
            print(f"{engine} is not installed: its cases are left out")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make, views in cases(Path(folder)):
            model = make().fit(views)
            found[name] = {a: digest(getattr(model, a)) for a in ATTRIBUTES}
            print(f"{name:32s} {verdict(found[name], before.get(name))}", flush=True)
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
