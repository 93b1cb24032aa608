"""All experiments by name, in the order of the page."""

from __future__ import annotations

from .cells import Experiment
from .convergence import CONVERGENCE
from .degeneracy import DEGENERACY
from .noise import NOISE
from .operations import OPERATIONS
from .runtime import RUNTIME
from .score_tables import SCORED
from .seeds import SEEDS

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (*SCORED, SEEDS, RUNTIME, OPERATIONS, CONVERGENCE, NOISE, DEGENERACY)
}


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
