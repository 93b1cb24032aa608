"""Are results the same bits as before? One digest per estimator, data set and place of the rows.

    python benchmarks/bits.py --out before.json      # with the code as it was
    python benchmarks/bits.py --against before.json  # with the code as it is

A change of structure must move no bit of what a fit or a prediction returns; what moved is printed.
Every case runs with compiled loops and, in a second process, without numba. Engines that are not
installed are left out, with a line that says so. ``--only TEXT`` runs the cases whose names contain it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

if "--without-numba" in sys.argv:
    sys.modules["numba"] = None  # type: ignore[assignment]

import numpy as np
import scipy.sparse as sp

import manyview as mv

ATTRIBUTES = (
    "labels_",
    "view_weights_",
    "sample_weights_",
    "consensus_",
    "confidence_",
    "embedding_",
    "graph_",
    "components_",
    "coefficients_",
    "objective_",
    "agreement_",
    "redundancy_",
)
PREDICTIONS = ("predict", "transform", "score")

#: What a method needs to take a data set at all: holes, negative values.
SETTINGS = {("WMNMF", "holes"): {"missing": "allow"}, ("WMNMF", "nutrimouse"): {"scale": "minmax"}}
#: Further settings, each on one small data set.
VARIANTS = {
    "RobustWMNMF": {
        "auto": {"n_clusters": "auto"},
        "communities": {"n_clusters": "communities"},
        "equal weights": {"view_weights": "equal"},
        "float32": {"dtype": np.float32},
    },
    "WMNMF": {
        "hals": {"solver": "hals"},
        "sparse term": {"regularizer": "sparse"},
        "orthogonal": {"regularizer": "orthogonal"},
        "no term": {"regularizer": None},
        "heat": {"affinity": "heat"},
        "njw, 3 starts": {"assign_labels": "njw", "n_init": 3},
        "nndsvd": {"init": "nndsvd"},
        "float32": {"dtype": np.float32},
    },
}
#: More rows than all pairs are compared for: the search in cells, and the block iteration.
MANY = 32_000


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


def many_rows() -> dict:
    """More samples than are compared pair by pair: the search for neighbors in cells."""
    rng = np.random.default_rng(1)
    y = rng.integers(6, size=MANY)
    return {f"v{s}": rng.normal(size=(6, 12))[y] + rng.normal(size=(MANY, 12)) for s in range(2)}


def cases(folder: Path) -> Iterator[tuple[str, Callable, dict]]:
    """Name, maker of an estimator, and views of every case."""
    compiled = "" if sys.modules.get("numba", True) else " without numba"
    everything = data_sets()
    for data, (views, k) in everything.items():
        for method in ("WMNMF", "RobustWMNMF"):
            settings = SETTINGS.get((method, data), {})
            yield f"{method} {data} memory{compiled}", _maker(method, k, settings), views
            if data == "digits":
                (folder / method).mkdir()
                files = as_files(views, folder / method)
                yield f"{method} {data} npy{compiled}", _maker(method, k, {}), files
                if find_spec("distributed"):
                    dask = {"engine": "dask"}
                    yield f"{method} {data} dask{compiled}", _maker(method, k, dask), as_dask(views)
            if data in ("digits", "sparse") and find_spec("torch") and not compiled:
                torch = {"engine": "torch", "device": "cpu"}
                yield f"{method} {data} torch", _maker(method, k, torch), views
    for method, variants in VARIANTS.items():
        for name, settings in variants.items():
            views, k = everything["synthetic"]
            yield f"{method} {name}{compiled}", _maker(method, k, settings), views
    yield f"RobustWMNMF {MANY} rows{compiled}", _maker("RobustWMNMF", 6, {}), many_rows()


def _maker(method: str, k: int, settings: dict) -> Callable:
    return lambda: getattr(mv, method)(**{"n_clusters": k, "random_state": 0} | settings)


def first_rows(views: dict, n: int = 150) -> dict | None:
    """Some rows to predict; None where the views are read from files or by workers."""
    if all(isinstance(X, np.ndarray) or sp.issparse(X) for X in views.values()):
        return {name: X[:n] for name, X in views.items()}
    return None


def results(model: object, views: dict) -> dict[str, str]:
    """Digests of everything a fitted model says."""
    found = {a: digest(getattr(model, a)) for a in ATTRIBUTES if hasattr(model, a)}
    rows = first_rows(views)
    if rows is not None:
        found |= {verb: digest(getattr(model, verb)(rows)) for verb in PREDICTIONS}
    return found


def digest(value: object) -> str:
    """Of an array, a sparse matrix, a number, or a list of them."""
    if isinstance(value, list | tuple):
        return hashlib.sha256("".join(map(digest, value)).encode()).hexdigest()[:16]
    if sp.issparse(value):
        value = sp.csr_array(value)
        return digest([value.data, value.indices.astype(int), value.indptr.astype(int)])
    return hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()[:16]


def verdict(found: dict[str, str], before: dict[str, str] | None) -> str:
    if before is None:
        return "new"
    moved = [name for name in found if name in before and found[name] != before[name]]
    return "moved: " + ", ".join(moved) if moved else "same"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the digests to this file")
    parser.add_argument("--against", type=Path, help="compare with the digests of this file")
    parser.add_argument("--only", default="", help="the cases whose names contain this text")
    parser.add_argument("--without-numba", action="store_true", help="only without compiled loops")
    given = parser.parse_args()
    before = json.loads(given.against.read_text()) if given.against else {}
    found: dict[str, dict[str, str]] = {}
    for engine in ("distributed", "torch"):
        if find_spec(engine) is None:
            print(f"{engine} is not installed: its cases are left out")
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, make, views in cases(Path(folder)):
            if given.only in name:
                found[name] = results(make().fit(views), views)
                print(f"{name:44s} {verdict(found[name], before.get(name))}", flush=True)
        if not given.without_numba:
            rest = Path(folder) / "without_numba.json"
            again = [sys.executable, __file__, "--without-numba", "--only", given.only]
            again += ["--against", str(given.against)] if given.against else []
            subprocess.run([*again, "--out", str(rest)], check=True)
            found |= json.loads(rest.read_text())
    if given.out:
        given.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
