"""The experiments as data: which cells each has, with which settings and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from manyview.app.compare.comparison import seed_of
from manyview.app.compare.runs import key_of, versions
from manyview.baselines import honest_methods, paper_methods

from .costs import FEATURES, REPEATS
from .tasks import DEFAULT, LEVEL, MLRSSC, SCHEMES, SHARE, TUNED, load
from .texts import TEXTS

#: In which order, and how many at a time, cells are run.
TOGETHER, ALONE, SLOW = "together", "alone", "slow"
LINEAR, KERNEL = MLRSSC[:2], MLRSSC[2:]
HONEST_METHODS = ("WM-NMF", *honest_methods(10), "RobustWMNMF")
#: Without MLRSSC (dense 5000×5000 arrays) and MultiNMF (minutes a run), and without spectral clustering
#: of raw features, whose kernel is 0 for all pairs at these distances.
SYNTHETIC_METHODS = ("BSV-kmeans", "ConcatK", "NMF-W1", "NMF-W2", *HONEST_METHODS)
OMICS_METHODS = (*paper_methods(2), *honest_methods(2), "RobustWMNMF")
NOISE_METHODS = ("WM-NMF", "RobustWMNMF")
#: The estimator's defaults, of which a tuning figure varies one.
DEFAULTS = {"p": 5, "beta": 0.01, "n_components": 10}
#: Sizes of the running times, and what stays while the other varies.
N_SAMPLES, N_VIEWS = (3000, 5000, 7000, 9000, 11000), (2, 3, 4, 5, 6)
DEFAULT_N, DEFAULT_VIEWS = 5000, 4
#: Seconds of one fit on one core, roughly: (2000 digits, 5000 synthetic observations).
SECONDS = {
    "MultiNMF1": (45.0, 300.0),
    "MultiNMF2": (45.0, 300.0),
    "P-MLRSSC": (100.0, 0.0),
    "C-MLRSSC": (100.0, 0.0),
    "P-KMLRSSC": (120.0, 0.0),
    "C-KMLRSSC": (120.0, 0.0),
    "NMF-W1": (1.2, 4.5),
    "NMF-W2": (1.2, 4.5),
    "WM-NMF": (1.2, 5.0),
    "RobustWMNMF": (1.9, 9.6),
}
#: The same for the exact variants, whose ADMM does all the iterations it is allowed.
TUNED_SECONDS = {"P-MLRSSC": 8000.0, "C-MLRSSC": 2600.0}


@dataclass(frozen=True)
class Cell:
    """One computation. Two experiments that ask for the same cell share its result."""

    #: A name in `tasks.TASKS`, called with the settings.
    task: str
    #: Plain values that decide the result, the seed included.
    settings: Mapping[str, Any]
    #: Values shown beside the result: dataset, method, parameter, run.
    labels: Mapping[str, Any] = field(default_factory=dict)
    #: About how many seconds it takes: for the progress bar and the order only.
    cost: float = 1.0
    #: Cells of one group follow each other in one process, and may share a fit there.
    group: str = ""
    phase: str = TOGETHER

    @property
    def key(self) -> str:
        return key_of("cell", self.task, dict(self.settings), versions())


@dataclass(frozen=True)
class Options:
    """What the user asked for."""

    replications: int = 20
    random_state: int = 0
    #: "full" runs MLRSSC as tuned for the digits on all 2000, "small" on 50 per class, "skip" not at all.
    linear_mlrssc: str = "small"
    #: Fingerprint of the user's own LIHC data; empty without.
    lihc: str = ""

    @property
    def quick(self) -> bool:
        """Whether a first look is asked for: then what only smooths a figure is left out."""
        return self.replications < 10

    def seeds(self, at_most: float = math.inf) -> list[tuple[int, int]]:
        """Run and seed of every replication, or of the first few where more would add nothing."""
        return self.first(int(min(self.replications, at_most)))

    def pooled(self) -> list[tuple[int, int]]:
        """Four times those for the method under study, whose rare failures need more runs."""
        return self.first(self.replications * (1 if self.quick else 4))

    def first(self, n: int) -> list[tuple[int, int]]:
        return [(run, seed_of(self.random_state, run)) for run in range(n)]


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper."""

    name: str
    title: str
    #: The settings in sentences.
    about: str
    cells: Callable[[Options], list[Cell]]
    #: Whether it needs the user's own files.
    needs_data: bool = False


def chosen(names: list[str], with_data: bool) -> list[Experiment]:
    """Experiments by name; "all" leaves out the one that needs data where none are given."""
    if not names or names == ["all"]:
        return [e for e in EXPERIMENTS.values() if with_data or not e.needs_data]
    for name in names:
        if name not in EXPERIMENTS:
            known = ", ".join(["all", *EXPERIMENTS])
            raise ValueError(f"there is no experiment {name!r}; known are {known}")
        if EXPERIMENTS[name].needs_data and not with_data:
            raise ValueError(
                f"the experiment {name!r} needs your own files, which may not be redistributed; name "
                "their folder with --data FOLDER"
            )
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def grid(
    options: Options,
    dataset: str,
    methods: Iterable[str],
    *,
    params: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    size: float = 1.0,
    at_most: float = math.inf,
    tuning: str = DEFAULT,
    pooled: bool = False,
) -> list[Cell]:
    """A scored clustering per method and replication; ``size`` scales the cost guessed for a dataset.

    With ``pooled``, WM-NMF has more runs than the others.
    """
    cells = []
    for method in methods:
        shared = method in MLRSSC
        seeds = options.pooled() if pooled and method == "WM-NMF" else options.seeds(at_most)
        slow = shared and tuning == TUNED and method in LINEAR and dataset == "digits"
        for run, seed in seeds:
            settings: dict[str, Any] = {"dataset": dataset, "method": method, "seed": seed}
            settings |= {"params": dict(params)} if params else {}
            settings |= {"data": options.lihc} if dataset == "lihc" else {}
            settings |= {"tuning": tuning} if shared else {}
            shown = {"dataset": dataset, "method": method, **(labels or {})}
            shown |= {"run": run, "seed": seed}
            group = f"{method} {dataset} {tuning}" if shared else ""
            cost = _cost(dataset, method, run, tuning, size)
            phase = SLOW if slow else TOGETHER
            cells.append(Cell("fitting.score", settings, shown, cost, group, phase))
    return cells


def _cost(dataset: str, method: str, run: int, tuning: str, size: float) -> float:
    """Seconds of a cell, roughly."""
    if method in MLRSSC and run > 0:
        return 0.5  # after the first, MLRSSC only draws its k-means again
    if method in MLRSSC and not dataset.startswith("digits"):
        return 1.0  # a few hundred observations at most
    small, large = SECONDS.get(method, (0.5, 1.5))
    small = TUNED_SECONDS.get(method, small) if tuning == TUNED else small
    return (large if dataset == "synthetic" else small) * size


def tuned(options: Options) -> list[Cell]:
    """MLRSSC on the digits with its defaults, which the table has as well, and as its authors tuned it."""
    whole, few = ("digits", 1.0), ("digits-50", 1 / 60)  # an ADMM is so much cheaper on 500
    wanted = {KERNEL: few if options.quick else whole}
    if options.linear_mlrssc != "skip":
        wanted[LINEAR] = whole if options.linear_mlrssc == "full" else few
    found = []
    for tuning, (methods, (dataset, size)) in product((DEFAULT, TUNED), wanted.items()):
        labels = {"tuning": tuning}
        found += grid(options, dataset, methods, labels=labels, size=size, tuning=tuning)
    return found


def sweep(parameter: str, values: Sequence[float], options: Options) -> list[Cell]:
    found = []
    for dataset, at_most in (("digits", math.inf), ("synthetic", 1 if options.quick else math.inf)):
        for value in values:
            # At its default the cell is that of the tables, and is not run twice.
            params = {} if value == DEFAULTS[parameter] else {parameter: value}
            shown: dict[str, Any] = {"labels": {"value": value}, "at_most": at_most}
            found += grid(options, dataset, ["WM-NMF"], params=params, **shown)
    return found


def repeated(
    task: str,
    seeds: Iterable[tuple[int, int]],
    about: Mapping[str, Any],
    cost: float,
    more: Mapping[str, Any] | None = None,
    group: str = "",
) -> list[Cell]:
    """A cell per seed; ``about`` is shown beside the result, ``more`` is not."""
    return [
        Cell(task, {**about, "seed": seed, **(more or {})}, {**about, "run": run, "seed": seed},
             cost, f"{group} {seed}" if group else "")
        for run, seed in seeds
    ]  # fmt: skip


def seeds(options: Options) -> list[Cell]:
    return repeated("seeds.readings", options.pooled(), {"dataset": "digits"}, 2.4)


def runtime(options: Options) -> list[Cell]:
    # Repeats only smooth out the machine: three say as much as twenty, and fewer say little.
    repeats = options.first(REPEATS)
    step = 2 if options.quick else 1  # for a first look every second point, the ends among them
    sizes = [("N", n, n, DEFAULT_VIEWS) for n in N_SAMPLES[::step]]
    sizes += [("n_v", n, DEFAULT_N, n) for n in N_VIEWS[::step]]
    found = []
    tasks = (("manyview", "ours", repeats), ("plain NumPy", "numpy", repeats[:1]))
    for axis, value, n, n_views in sizes:
        for method, task, of in tasks:
            for run, seed in of:
                labels = {"axis": axis, "value": value, "method": method, "run": run, "seed": seed}
                settings = {"n_samples": n, "n_views": n_views, "n_features": FEATURES}
                settings |= {"seed": seed}
                cost = n_views * n / 5000 * (0.5 if task == "ours" else 0.5 * n / 5000)
                found.append(Cell(f"runtime.{task}", settings, labels, cost, phase=ALONE))
    return found


def operations(options: Options) -> list[Cell]:
    # The number is raised when more is counted: a stored cell has less.
    return [
        Cell("operations.counts", {"dataset": name, "counted": 2, **data}, {"dataset": name})
        for name, data in _with_lihc(options, "digits", "synthetic")
    ]


def _with_lihc(options: Options, *names: str) -> list[tuple[str, dict[str, str]]]:
    """Datasets, and for the user's own what tells them from others."""
    found: list[tuple[str, dict[str, str]]] = [(name, {}) for name in names]
    return [*found, ("lihc", {"data": options.lihc})] if options.lihc else found


def convergence(options: Options) -> list[Cell]:
    few, costs = options.seeds(1 if options.quick else 3), {"digits": 1.5, "synthetic": 6.0}
    found = []
    for dataset, data in _with_lihc(options, "digits", "synthetic"):
        for scheme in SCHEMES:
            about, cost = {"dataset": dataset, "scheme": scheme}, costs.get(dataset, 0.5)
            found += repeated("convergence.terms", few, about, cost, data)
    return found


def noise(options: Options) -> list[Cell]:
    most = {"digits": 2, "synthetic": 1} if options.quick else {"digits": 10, "synthetic": 3}
    views = list(load("digits").views)
    found = []
    for dataset, scenario, of in (
        ("digits", "clean", [""]),
        ("digits", "some observations", views),
        ("digits", "replaced", views),
        ("digits", "added", ["noise"]),
        ("synthetic", "as given", [""]),
    ):
        for view in of:
            for method in NOISE_METHODS:
                about = {"dataset": dataset, "method": method, "scenario": scenario, "view": view}
                small, large = SECONDS[method]
                found += repeated(
                    "noise.weights", options.seeds(most[dataset]), about,
                    2 * large if dataset == "synthetic" else small, {"share": SHARE, "level": LEVEL},
                    # In one process, the scenarios of a seed share the fit without noise.
                    f"noise {dataset} {method}",
                )  # fmt: skip
    return found


def degeneracy(options: Options) -> list[Cell]:
    few, about = options.seeds(2 if options.quick else 5), {"dataset": "digits"}
    collapse = repeated("degeneracy.collapse", few, about, 11.0)
    return collapse + repeated("degeneracy.escape", options.seeds(1), about, 18.0)


#: In the order of the page; titles and settings in words are in `texts`.
_CELLS: dict[str, Callable[[Options], list[Cell]]] = {
    # WM-NMF has four times the runs of the others here, for a few of its runs fail.
    "digits": partial(grid, dataset="digits", methods=tuple(paper_methods(10)), pooled=True),
    "mlrssc": tuned,
    "honest": partial(grid, dataset="digits", methods=HONEST_METHODS, pooled=True),
    "synthetic": partial(grid, dataset="synthetic", methods=SYNTHETIC_METHODS),
    "lihc": partial(grid, dataset="lihc", methods=OMICS_METHODS, size=0.2),
    "nutrimouse": partial(grid, dataset="nutrimouse", methods=OMICS_METHODS, size=0.05),
    "p": partial(sweep, "p", (2, 4, 5, 8, 11)),
    "beta": partial(sweep, "beta", (0.005, 0.01, 0.015, 0.02, 0.025)),
    "k": partial(sweep, "n_components", (8, 9, 10, 11, 12)),
    "seeds": seeds,
    "runtime": runtime,
    "operations": operations,
    "convergence": convergence,
    "noise": noise,
    "degeneracy": degeneracy,
}
EXPERIMENTS: dict[str, Experiment] = {
    name: Experiment(name, **TEXTS["experiments"][name], cells=cells, needs_data=name == "lihc")
    for name, cells in _CELLS.items()
}
