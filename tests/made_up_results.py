"""Result files of every experiment with invented numbers, in the form `manyview reproduce` writes."""

import csv
import json

import numpy as np

from manyview.paper.command import MANIFEST, entry_of, manifest_of
from manyview.paper.command import tables_of as files_of
from manyview.paper.experiments import EXPERIMENTS, Options
from manyview.paper.tasks import READINGS

SCORES = ("acc", "nmi", "precision", "recall", "f_score", "ari")
TERMS = ("reconstruction", "consensus", "regularizer", "objective")


def table(path):
    """Rows without the columns of time."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{k: v for k, v in row.items() if "seconds" not in k} for row in rows]


def make_up(out, view="pix", replications=2, lihc="made up"):
    """Write all experiments (LIHC only with its fingerprint); ``view`` is the name of one of the views."""
    out.mkdir(parents=True, exist_ok=True)
    entries = []
    options = Options(replications, lihc=lihc)
    for experiment in EXPERIMENTS.values():
        if experiment.needs_data and not lihc:
            continue
        cells = experiment.cells(options)
        records = {
            cell.key: {
                "status": "ok", "cell_seconds": 1.0, "cpu_seconds": 1.0, "code": "abc",
                "finished": "2026-01-01T00:00:00+00:00",
                "machine": {"processor": f"of {experiment.name}", "cores": 2, "system": "Linux"},
                "tables": tables_of(cell, np.random.default_rng(int(cell.key[:8], 16)), view),
            }
            for cell in cells
        }  # fmt: skip
        files = files_of(experiment, cells, records)
        for name, content in files.items():
            (out / name).write_bytes(content)
        entry = entry_of(experiment, cells, records, list(files))
        command = f"manyview reproduce {experiment.name} --out <&> 'a b'"
        entries.append(entry | {"command": command, "replications": replications})
    (out / MANIFEST).write_bytes(manifest_of(out, out, entries))
    path = out / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | {"cpu_seconds": 720.0}))
    return out


def tables_of(cell, rng, view):
    def scores():
        return {name: float(v) for name, v in zip(SCORES, rng.uniform(0.5, 1, 6), strict=True)}

    views = ["fou", view, "zer", "fac"]
    weights = [
        {"view": v, "alpha": float(a)} for v, a in zip(views, rng.dirichlet([9] * 4), strict=True)
    ]
    rounds = range(1, 21)
    match cell.task.split(".")[1]:
        case "score":
            row = {"remark": "2 rounds", "seconds": 1.0, "consensus_share": 0.1}
            return {"": [scores() | row], "weights": weights}
        case "relabeled":
            seeds = enumerate(cell.settings["seeds"])
            return {
                "": [{"run": i, "seed": s, **scores(), "remark": "7 iterations"} for i, s in seeds]
            }
        case "terms":
            one = cell.labels["scheme"] == "one at a time"
            n = 100 if one else 243
            return {"": [{"iteration": i + one, "step": view, **dict.fromkeys(TERMS, 1 / (i + 1))}
                         for i in range(n)]}  # fmt: skip
        case "weights":
            kinds = {"some samples": view, "replaced": view, "added": "noise"}
            kinds = {"as given": "view5"} if cell.settings["dataset"] == "synthetic" else kinds
            row = {
                "w_before": 0.4,
                "alpha_before": 0.25,
                "alpha": 0.3,
                "w_noisy": 0.1,
                "w_clean": 0.5,
            }
            return {
                "": [{"scenario": k, "of_view": v, **row, **scores()} for k, v in kinds.items()]
            }
        case "ours":
            size = cell.settings["n_samples"] * cell.settings["n_views"] / 1e4
            return {"": [{f"seconds_{p}": size for p in ("graph", "start", "loop", "labels")}]}
        case "numpy":
            return {
                "": [
                    {
                        "seconds_loop": cell.settings["n_samples"] ** 2
                        / 1e6
                        * cell.settings["n_views"]
                    }
                ]
            }
        case "counts":
            row = {"view": view, "N": 10, "M": 5, "K": 2, "nnz": 30, "U_paper": 300, "U_ours": 100}
            return {"": [row | {"V_paper": 500, "V_ours": 160, "V_dense": 400}]}
        case "readings":
            parts = {"smallest_part": 7, "cut_off": bool(rng.integers(2)), "failed": 0.0}
            return {"": [{"reading": name, **scores(), **parts} for name in READINGS]}
        case "collapse":
            rows = [
                {"round": r, **scores(), "objective": 1 / r, "max_alpha": r / 20} for r in rounds
            ]
            return {"": rows, "weights": [{"round": r, **w} for r in rounds for w in weights]}
    sizes = [{"rescale": k, "round": r, "column_sum_of_U": 1.0, "size_of_V": 1.0, "objective": 1.0}
             for k in (True, False) for r in rounds]  # fmt: skip
    return {
        "sizes": sizes,
        "scales": [{"t": t, **dict.fromkeys(TERMS, 1 / t)} for t in (0.5, 1.0, 2.0)],
    }
