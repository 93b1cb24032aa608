"""The figures of a run as files: SVG, PNG and PDF, drawn by `manyview.plot`."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from manyview._colors import PALETTE
from manyview._types import Views
from manyview.app.report.panels.heatmap import chosen_bars
from manyview.app.report.run_files import Run
from manyview.models import Estimator
from manyview.plot import convergence, crosstab, enrichment, pyplot, view_weights
from manyview.plot import survival as draw_survival
from manyview.plot.heat import draw_agreement, draw_consensus, draw_heatmap
from manyview.plot.model import draw_bars, draw_points, draw_weights

from .meaning import Meaning
from .tables import Rows

KINDS = ("svg", "png", "pdf")
#: Figures of outcomes; a later comparison draws these anew.
MEANING_FIGURES = ("survival", "clinical", "classes")
MODEL_FIGURES = ("map", "view_weights", "convergence", "reliance", "agreement", "leave_view_out",
                 "consensus", "heatmap")  # fmt: skip
#: Inches.
WIDE, SQUARE = (7.5, 4.5), (6.0, 5.2)


def figure_files() -> list[str]:
    """Names of all files that may be drawn."""
    return [
        f"figures/{name}.{kind}" for name in (*MODEL_FIGURES, *MEANING_FIGURES) for kind in KINDS
    ]


def meaning_figures(found: Meaning) -> dict[str, bytes]:
    """File name → content, for the outcomes there are."""
    unit = (found.about.get("survival") or {}).get("unit")
    draw: dict[str, Callable[..., Any]] = {
        "survival": partial(draw_survival, time_label=f"time ({unit})" if unit else "time"),
        "clinical": enrichment,
        "classes": crosstab,
    }
    files: dict[str, bytes] = {}
    for name in MEANING_FIGURES:
        if name in found.results:
            result = found.results[name]
            lines = _lines(result) if name == "clinical" else 0
            size = (7.5, max(3.0, 1.2 + 0.24 * lines)) if lines else WIDE
            files |= _drawn(name, size, partial(draw[name], result))
    return files


def model_figures(
    model: Estimator, views: Views, tables: Mapping[str, Rows], projection: str
) -> dict[str, bytes]:
    """File name → content, for the model and the tables of its run."""
    files: dict[str, bytes] = {}
    points = tables["embedding.csv"]
    xy = np.array([[row["x"], row["y"]] for row in points], dtype=float).reshape(-1, 2)
    codes = np.array([row["cluster"] for row in points])
    files |= _drawn("map", SQUARE, lambda ax: _map(ax, xy, codes, projection))
    files |= _drawn("view_weights", WIDE, lambda ax: view_weights(model, ax=ax))
    files |= _drawn("convergence", WIDE, lambda ax: convergence(model, ax=ax))
    if len(views) > 1:
        files |= _reliance(tables["sample_weights.csv"], list(views.names))
        matrix = np.array([list(row.values())[1:] for row in tables["agreement.csv"]], dtype=float)
        files |= _drawn("agreement", SQUARE, lambda ax: draw_agreement(ax, matrix, views.names))
    if left_out := tables.get("leave_view_out.csv"):
        names = [row["view"] for row in left_out]
        values = np.array([row["agreement"] for row in left_out])
        text = "Agreement with clusters found without the view"
        files |= _drawn(
            "leave_view_out", WIDE, lambda ax: draw_bars(ax, names, values, text, PALETTE[2])
        )
    if pairs := tables.get("consensus.csv"):
        shares = np.array([list(row.values())[2:] for row in pairs], dtype=float)
        of = np.array([row["cluster"] for row in pairs])
        files |= _drawn("consensus", SQUARE, lambda ax: draw_consensus(ax, shares, of))
    return files


def _map(ax: Any, points: Any, codes: Any, projection: str) -> None:
    draw_points(ax, points, codes)
    ax.set_xlabel(projection, fontsize="small")


def _reliance(rows: Rows, views: list[str]) -> dict[str, bytes]:
    """Blank, as in the page, where an observation lacks a view."""
    rows = [row for row in rows if row["cluster"] >= 0]
    values = np.array([[row[f"reliance:{view}"] for view in views] for row in rows], dtype=float)
    codes = np.array([row["cluster"] for row in rows])

    def draw(ax: Any) -> None:
        draw_weights(ax, values, codes, views)
        ax.set_title("Reliance on each view")

    return _drawn("reliance", WIDE, draw) if rows else {}


def heatmap_figure(run: Run) -> dict[str, bytes]:
    """The heat map of a run with the bars that its page has: class, clinical columns, reliance."""
    rows, features = run.tables["heatmap"], run.about.get("heatmap") or []
    if not rows or not features:
        return {}
    values = np.array([[row[item["heading"]] for row in rows] for item in features], dtype=float)
    codes = np.array([row["cluster"] for row in rows])
    bars: dict[str, list[Any]] = {}
    for item in chosen_bars(run):
        name = f"{item.name} (clinical)" if item.name in bars else item.name
        bars[name] = [item.values.get(row["id"]) for row in rows]
    names = [str(item["feature"]) for item in features]
    size = (8.0, 2.0 + 0.16 * (len(names) + len(bars)))
    return _drawn("heatmap", size, lambda ax: draw_heatmap(ax, values, names, codes, bars))


def _lines(found: Any) -> int:
    return min(40, sum(max(1, len(c.levels)) for c in found.columns if c.residual is not None))


def _drawn(name: str, size: tuple[float, float], draw: Callable[[Any], Any]) -> dict[str, bytes]:
    plt = pyplot()
    files = {}
    # Text stays text in the files; the same figure has the same bytes.
    with plt.rc_context({"svg.fonttype": "none", "pdf.fonttype": 42, "svg.hashsalt": name}):
        figure = plt.figure(figsize=size, layout="constrained")
        try:
            draw(figure.subplots())
            for kind in KINDS:
                content = io.BytesIO()
                meta = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
                figure.savefig(
                    content, format=kind, dpi=300, facecolor="white", bbox_inches="tight",
                    metadata=meta,
                )  # fmt: skip
                files[f"figures/{name}.{kind}"] = content.getvalue()
        finally:
            plt.close(figure)
    return files
