"""Result files of every experiment with invented numbers, in the form `manyview reproduce` writes."""

import json

import numpy as np

from manyview.paper.command import MANIFEST, manifest_of
from manyview.paper.command import tables_of as files_of
from manyview.paper.experiments import EXPERIMENTS, Options
from manyview.paper.tasks import READINGS

SCORES = ("acc", "nmi", "precision", "recall", "f_score", "ari")
#: What the manifest says of the whole.
WHOLE = {
    "cpu_seconds": 720.0,
    "slow": [{"method": "P-MLRSSC", "minutes": 51.3}],
    "command": "manyview reproduce all --out <&>",
}


def make_up(out, view="pix", replications=2):
    """Write all experiments, LIHC too; ``view`` is the name of one of the views."""
    out.mkdir(parents=True, exist_ok=True)
    told = []
    options = Options(replications, lihc="made up")
    for experiment in EXPERIMENTS.values():
        cells = experiment.cells(options)
        records = {}
        for cell in cells:
            rng = np.random.default_rng(int(cell.key[:8], 16))
            tables = tables_of(cell, rng, view)
            records[cell.key] = {
                "status": "ok", "tables": tables, "cell_seconds": 1.0, "cpu_seconds": 1.0,
            }  # fmt: skip
        files = files_of(experiment, cells, records)
        for name, content in files.items():
            (out / name).write_bytes(content)
        told.append(
            {
                "name": experiment.name,
                "title": experiment.title,
                "about": experiment.about,
                "command": f"manyview reproduce {experiment.name} --out <&> 'a b'",
                "files": list(files),
                "replications": replications,
                "cells": len(cells),
                "cell_seconds": 1.0,
                "cpu_seconds": 1.0,
                "failed": 0,
                "reasons": [],
                "runs": {"least": 1, "most": replications},
                "versions": {"python": "3.11", "manyview": "0.1"},
                "machine": {"processor": f"of {experiment.name}", "cores": 2, "system": "Linux"},
                "finished": "2026-01-01T00:00:00+00:00",
                "code": "abc",
            }
        )
    (out / MANIFEST).write_bytes(manifest_of(out, out, told))
    path = out / "reproduction.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | WHOLE))
    return out


def tables_of(cell, rng, view):
    scores = {name: float(v) for name, v in zip(SCORES, rng.uniform(0.5, 1, 6), strict=True)}
    views = ["fou", view, "zer", "fac"]
    weights = [
        {"view": v, "alpha": float(a)} for v, a in zip(views, rng.dirichlet([9] * 4), strict=True)
    ]
    task = cell.task.split(".")[1]
    if task == "score":
        return {"": [scores | {"remark": "", "seconds": 1.0}], "weights": weights}
    if task == "terms":
        n = 243 if cell.labels["scheme"] == "recipe" else 100
        parts = dict.fromkeys(("reconstruction", "consensus", "regularizer", "objective"), 1.0)
        fall = [dict.fromkeys(parts, 1 / (i + 1)) for i in range(n)]
        return {
            "": [
                {"iteration": i + (n == 100), "round": 1, "step": view, **f}
                for i, f in enumerate(fall)
            ]
        }
    if task == "weights":
        names = [cell.settings["view"]] if cell.settings["view"] else ["view5", "view6"]
        whole = cell.settings["scenario"] in ("replaced", "added")
        before = {"w_before": 0.4, "alpha_before": 0.25}
        weights_of = {"alpha": 0.3, "w_noisy": 0.1, "w_clean": None if whole else 0.5, **before}
        rows = [{"of_view": n, "rank": 1, **weights_of} for n in names]
        if cell.settings["scenario"] == "clean":
            rows = [{"of_view": "", "alpha": None}]
        named = [{"of_view": w["view"], "alpha": w["alpha"]} for w in weights]
        return {
            "": [row | scores | {"n_views": 4, "seconds": 1.0} for row in rows],
            "weights": named,
        }
    if task == "ours":
        size = cell.settings["n_samples"] * cell.settings["n_views"] / 1e4
        return {"": [{f"seconds_{p}": size for p in ("graph", "start", "loop", "labels")}]}
    if task == "numpy":
        return {
            "": [{"seconds_loop": cell.settings["n_samples"] ** 2 / 1e6 * cell.settings["n_views"]}]
        }
    if task == "counts":
        row = {"view": view, "N": 10, "M": 5, "K": 2, "nnz": 30, "U_paper": 100, "U_ours": 100}
        whole = {
            "view": view,
            "update": "U",
            "additions": 90,
            "multiplications": 100,
            "divisions": 10,
        }
        return {"": [row | {"V_paper": 300, "V_ours": 160}], "whole": [whole]}
    if task == "readings":
        parts = {"parts": 2, "smallest_part": int(rng.integers(1, 100))}
        return {"": [{"reading": name, **scores, **parts} for name in READINGS]}
    if task == "collapse":
        rounds = [
            {"round": r, **scores, "objective": 1 / r, "max_alpha": r / 20} for r in range(1, 21)
        ]
        return {"": rounds, "weights": [{"round": r, **w} for r in range(1, 21) for w in weights]}
    assert task == "escape"
    sizes = [
        {"rescale": k, "round": r, "column_sum_of_U": 1.0, "size_of_V": 1.0, "objective": 1.0}
        for k in (True, False) for r in range(1, 21)
    ]  # fmt: skip
    terms = ("reconstruction", "consensus", "regularizer", "objective")
    return {
        "sizes": sizes,
        "scales": [{"t": t, **dict.fromkeys(terms, 1 / t)} for t in (0.5, 1.0, 2.0)],
    }
