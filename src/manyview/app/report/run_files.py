"""The folder of a run, read again: `run.json` and its tables as plain values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from manyview.io.safe_csv import read_csv

Rows = list[dict[str, Any]]
#: Tables of a fit, by their files without ``.csv``; one that would be empty is not there.
OF_FIT = ("labels", "clusters", "view_weights", "sample_weights", "embedding",
          "agreement", "redundancy", "cluster_view_weights", "history", "stability", "baseline",
          "markers", "leave_view_out", "heatmap", "consensus", "cluster_features", "parallel_features",
          "fusion", "fusion_labels")  # fmt: skip
#: Those of a clinical table or known classes, which a later comparison replaces.
OF_MEANING = ("survival", "survival_pairs", "survival_curves", "survival_at_risk", "survival_cox",
              "clinical_tests",
              "clinical_summary", "clinical_cells", "classes", "annotations",
              "fusion_outcomes")  # fmt: skip
#: That of gene sets, which is made anew with them only.
OF_SETS = ("gene_sets",)
TABLES = (*OF_FIT, "selection", *OF_MEANING, *OF_SETS)
IDS = {"id", "original_id"}
#: Columns that are names, whatever they look like.
TEXT = {*IDS, "view", "feature", "clustering", "scaling", "column", "level", "note", "most_marked",
        "model", "term", "reference", "set", "direction", "leading",
        "like", "kind", "views", "altered"}  # fmt: skip
#: Other names where headings are users' words ("view" may be a class) or "view" is a position.
OWN_TEXT = {"history": set(), "classes": {"majority"}, "heatmap": IDS, "consensus": IDS,
            "fusion_labels": IDS}  # fmt: skip
#: Here every cell is text; what is a number is known from elsewhere.
TEXT_ONLY = "annotations"


class Run(NamedTuple):
    """What the files say: `run.json`, and every table by its name without ``.csv``."""

    about: dict[str, Any]
    tables: dict[str, Rows]

    @property
    def views(self) -> list[str]:
        return [view["name"] for view in self.about["views"]]

    @property
    def clusters(self) -> Rows:
        return self.tables["clusters"]

    @property
    def hazards(self) -> Rows:
        """Hazard ratio of each cluster against all others, with its members and events."""
        lives = {row["cluster"]: row for row in self.tables["survival"]}
        rows = [r for r in self.tables["survival_cox"] if r["model"] == "against all others"]
        return [
            {"cluster": int(row["term"]), **{key: lives[int(row["term"])][key] for key in ("n", "events")},
             **{key: row[key] for key in ("hazard_ratio", "lower", "upper", "p_value")}}
            for row in rows
        ]  # fmt: skip

    @property
    def names(self) -> dict[Any, str]:
        """Cluster → its number and the name that the user gave it."""
        return {int(k): f"{k} {name}" for k, name in (self.about.get("names") or {}).items()}

    def name_of(self, cluster: int) -> str:
        return self.names.get(cluster, str(cluster))


def read_run(folder: Path, otherwise: Path | None = None) -> Run:
    """The files of a run as plain values."""
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    tables = {}
    for name in TABLES:
        path = folder / f"{name}.csv"
        if otherwise is not None and not path.exists() and name not in (*OF_MEANING, *OF_SETS):
            path = otherwise / f"{name}.csv"
        tables[name] = _read_table(path, name) if path.exists() else []
    return Run(about, tables)


def _read_table(path: Path, table: str) -> Rows:
    """The rows of a table; cells that are no text are numbers where they can be, else None or text."""
    texts = OWN_TEXT.get(table, TEXT)

    def value(key: str, text: str) -> Any:
        if key in texts or table == TEXT_ONLY:
            return text
        for kind in (float,) if "." in text else (int, float):
            try:
                return kind(text)
            except ValueError:
                pass
        return text or None

    return [{key: value(key, text) for key, text in row.items()} for row in read_csv(path)]
