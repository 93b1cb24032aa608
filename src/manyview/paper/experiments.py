"""The experiments as data: which cells each has, with which settings and seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any

from manyview.app.compare.comparison import seed_of
from manyview.app.compare.runs import key_of, versions
from manyview.baselines import honest_methods, paper_methods
from manyview.wmnmf import WMNMF

from .costs import FEATURES, REPEATS
from .results import TEXTS
from .tasks import DEFAULT, LEVEL, MLRSSC, SCHEMES, SHARE, TUNED

LINEAR, KERNEL = MLRSSC[:2], MLRSSC[2:]
HONEST_METHODS = ("WM-NMF", *honest_methods(10), "RobustWMNMF")
#: Without MLRSSC (dense 5000×5000 arrays) and MultiNMF (minutes a run), and without spectral clustering
#: of raw features, whose kernel is 0 for all pairs at these distances.
SYNTHETIC_METHODS = ("BSV-kmeans", "ConcatK", "NMF-W1", "NMF-W2", *HONEST_METHODS)
OMICS_METHODS = (*paper_methods(2), *honest_methods(2), "RobustWMNMF")
NOISE_METHODS = ("WM-NMF", "RobustWMNMF")
#: The parameter that a tuning figure varies, and its values; the others have the estimator's defaults.
SWEEPS: dict[str, tuple[str, tuple[float, ...]]] = {
    "p": ("p", (2, 4, 5, 8, 11)),
    "beta": ("beta", (0.005, 0.01, 0.015, 0.02, 0.025)),
    "k": ("n_components", (8, 9, 10, 11, 12)),
}
DEFAULTS = {"p": 5, "beta": 0.01, "n_components": 10}
#: Sizes of the running times, and what stays while the other varies.
N_SAMPLES, N_VIEWS = (3000, 5000, 7000, 9000, 11000), (2, 3, 4, 5, 6)
DEFAULT_N, DEFAULT_VIEWS = 5000, 4
#: Seconds of a cell on one core, roughly, on the digits; on other data in proportion.
SECONDS = {"MultiNMF1": 45.0, "MultiNMF2": 45.0, "WM-NMF": 1.2, "NMF-W1": 1.2, "NMF-W2": 1.2}
SECONDS |= {"RobustWMNMF": 1.9} | dict.fromkeys(MLRSSC, 110.0)
SIZES = {"digits": 1.0, "digits-50": 1 / 60, "synthetic": 4.0, "lihc": 0.2, "nutrimouse": 0.05}


def _printed() -> dict[str, dict[str, Any]]:
    """What Algorithm 1 as printed changes in the recipe: each choice alone, and all together."""
    plain = WMNMF().get_params()
    whole = {k: v for k, v in WMNMF.as_printed().get_params().items() if v != plain[k]}
    alone = ("rescale", "init_sample_weights", "init_consensus")
    found: dict[str, dict[str, Any]] = {"recipe": {}}
    found |= {name: {name: whole[name]} for name in alone}
    # The tolerance is meant for views whose entries sum to 1.
    found["tol"] = {name: value for name, value in whole.items() if name not in alone}
    return found | {"printed": whole, "printed, V* without Q": whole | {"init_consensus": "mean"}}


@dataclass(frozen=True)
class Cell:
    """One computation. Two experiments that ask for the same cell share its result."""

    #: A name in `tasks.TASKS`, called with the settings.
    task: str
    #: Plain values that decide the result, the seed included.
    settings: Mapping[str, Any]
    #: Values shown in the row of the result: dataset, method, parameter, run.
    labels: Mapping[str, Any] = field(default_factory=dict)
    #: About how many seconds it takes: for the progress bar and the order only.
    cost: float = 1.0
    #: Whether it is timed, and so runs while nothing else does.
    alone: bool = False

    @property
    def key(self) -> str:
        return key_of("cell", self.task, dict(self.settings), versions())


@dataclass(frozen=True)
class Options:
    """The user's choices."""

    replications: int = 20
    random_state: int = 0
    #: Fingerprint of the user's own LIHC data; empty without.
    lihc: str = ""

    @property
    def quick(self) -> bool:
        """Whether this is a first look, which leaves out what only smooths a figure."""
        return self.replications < 10

    def seeds(self, at_most: float = math.inf, times: int = 1) -> list[tuple[int, int]]:
        """Run and seed of every replication (or ``times`` as many, unless it is a first look)."""
        n = int(min(self.replications * (1 if self.quick else times), at_most))
        return [(run, seed_of(self.random_state, run)) for run in range(n)]

    def datasets(self, *names: str) -> list[tuple[str, dict[str, str]]]:
        """Datasets, and for the user's own its fingerprint."""
        found: list[tuple[str, dict[str, str]]] = [(name, {}) for name in names]
        return [*found, ("lihc", {"data": self.lihc})] if self.lihc else found


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
                f"the experiment {name!r} needs your own files: the processed matrices of the paper's "
                "source are not available to us. The page of a reproduction says how to build similar "
                "ones; name their folder with --data FOLDER"
            )
    return [EXPERIMENTS[name] for name in dict.fromkeys(names)]


def grid(
    options: Options,
    dataset: str,
    methods: Iterable[str],
    *,
    params: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
    tuning: str = DEFAULT,
    times: int = 1,
    at_most: float = math.inf,
) -> list[Cell]:
    """A scored clustering per method and seed; all seeds of MLRSSC are one cell.

    WM-NMF has ``times`` as many runs as the others.
    """
    cells = []
    for method in methods:
        about = {"dataset": dataset, "method": method}
        settings: dict[str, Any] = about | ({"data": options.lihc} if dataset == "lihc" else {})
        shown = about | dict(labels or {})
        cost = SECONDS.get(method, 0.5) * SIZES[dataset]
        if method in MLRSSC:
            seeds = [seed for _, seed in options.seeds()]
            settings |= {"tuning": tuning, "seeds": seeds}
            cells.append(Cell("mlrssc.relabeled", settings, shown, cost + len(seeds) / 2))
            continue
        settings |= {"params": dict(params)} if params else {}
        for run, seed in options.seeds(at_most, times if method == "WM-NMF" else 1):
            of_run = {"run": run, "seed": seed}
            cells.append(Cell("fitting.score", settings | {"seed": seed}, shown | of_run, cost))
    return cells


def printed(options: Options) -> list[Cell]:
    return [
        cell
        for variant, params in _printed().items()
        for cell in grid(options, "digits", ["WM-NMF"], params=params, labels={"variant": variant})
    ]


def mlrssc(options: Options) -> list[Cell]:
    """MLRSSC on the digits with its defaults, which the table has as well, and as its authors tuned it."""
    # Without a kernel the tuned ADMM does all its iterations: on all digits that takes hours.
    wanted = {KERNEL: "digits-50" if options.quick else "digits", LINEAR: "digits-50"}
    return [
        cell
        for tuning, (methods, dataset) in product((DEFAULT, TUNED), wanted.items())
        for cell in grid(options, dataset, methods, labels={"tuning": tuning}, tuning=tuning)
    ]


def sweep(options: Options, name: str) -> list[Cell]:
    parameter, values = SWEEPS[name]
    return [
        # At its default the cell is that of the tables, and is not run twice.
        cell
        for dataset, value in product(("digits", "synthetic"), values)
        for cell in grid(
            options, dataset, ["WM-NMF"], labels={"value": value},
            params={} if value == DEFAULTS[parameter] else {parameter: value},
            at_most=1 if options.quick and dataset == "synthetic" else math.inf,
        )
    ]  # fmt: skip


def repeated(
    task: str,
    seeds: Iterable[tuple[int, int]],
    about: Mapping[str, Any],
    cost: float,
    more: Mapping[str, Any] | None = None,
) -> list[Cell]:
    """A cell per seed; ``about`` is shown in its rows, ``more`` is not."""
    return [
        Cell(
            task, {**about, "seed": seed, **(more or {})}, {**about, "run": run, "seed": seed}, cost
        )
        for run, seed in seeds
    ]


def seeds(options: Options) -> list[Cell]:
    return repeated("seeds.readings", options.seeds(times=4), {"dataset": "digits"}, 2.4)


def runtime(options: Options) -> list[Cell]:
    # Repeats only smooth out the machine: three say as much as twenty, and fewer say little.
    repeats = Options(REPEATS, options.random_state).seeds()
    step = 2 if options.quick else 1  # for a first look every second point, the ends among them
    sizes = [("N", n, n, DEFAULT_VIEWS) for n in N_SAMPLES[::step]]
    sizes += [("n_v", n, DEFAULT_N, n) for n in N_VIEWS[::step]]
    found = []
    tasks = (("manyview", "ours", repeats), ("plain NumPy", "numpy", repeats[:1]))
    for (axis, value, n, n_views), (method, task, of) in product(sizes, tasks):
        for run, seed in of:
            labels = {"axis": axis, "value": value, "method": method, "run": run, "seed": seed}
            settings = {"n_samples": n, "n_views": n_views, "n_features": FEATURES, "seed": seed}
            cost = n_views * n / 5000 * (0.5 if task == "ours" else 0.5 * n / 5000)
            found.append(Cell(f"runtime.{task}", settings, labels, cost, alone=True))
    return found


def operations(options: Options) -> list[Cell]:
    # The number is raised when more is counted: a stored cell has less.
    return [
        Cell("operations.counts", {"dataset": name, "counted": 3, **data}, {"dataset": name})
        for name, data in options.datasets("digits", "synthetic")
    ]


def convergence(options: Options) -> list[Cell]:
    few = options.seeds(1 if options.quick else 3)
    return [
        cell
        for (dataset, data), scheme in product(options.datasets("digits", "synthetic"), SCHEMES)
        for cell in repeated("convergence.terms", few, {"dataset": dataset, "scheme": scheme},
                             1.5 * SIZES[dataset], data)
    ]  # fmt: skip


def noise(options: Options) -> list[Cell]:
    most = {"digits": 2, "synthetic": 1} if options.quick else {"digits": 10, "synthetic": 3}
    return [
        cell
        for dataset, method in product(most, NOISE_METHODS)
        for cell in repeated("noise.weights", options.seeds(most[dataset]),
                             {"dataset": dataset, "method": method}, 10 * SECONDS[method],
                             {"share": SHARE, "level": LEVEL})
    ]  # fmt: skip


def degeneracy(options: Options) -> list[Cell]:
    few, about = options.seeds(2 if options.quick else 5), {"dataset": "digits"}
    collapse = repeated("degeneracy.collapse", few, about, 11.0)
    return collapse + repeated("degeneracy.escape", options.seeds(1), about, 18.0)


#: In the order of the appendix; titles and settings in words are in `texts.toml`.
_CELLS: dict[str, Callable[[Options], list[Cell]]] = {
    # WM-NMF has four times the runs of the others here, since a few of its runs fail.
    "digits": partial(grid, dataset="digits", methods=tuple(paper_methods(10)), times=4),
    "printed": printed,
    "mlrssc": mlrssc,
    "honest": partial(grid, dataset="digits", methods=HONEST_METHODS, times=4),
    "synthetic": partial(grid, dataset="synthetic", methods=SYNTHETIC_METHODS),
    "lihc": partial(grid, dataset="lihc", methods=OMICS_METHODS),
    "nutrimouse": partial(grid, dataset="nutrimouse", methods=OMICS_METHODS),
    **{name: partial(sweep, name=name) for name in SWEEPS},
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
