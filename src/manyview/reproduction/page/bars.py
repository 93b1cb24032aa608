"""Figures of bars: the weights and the accuracy under noise."""

from __future__ import annotations

from manyview.reproduction.page.claims.noise import KINDS, SYMBOLS, before_and_after, of_kind

from .forms import Figure, Panel, Series
from .read import Results, Row, grouped, spread

TITLES = {"some": "noise on some observations", "replaced": "view replaced", "added": "view added"}


def noise(results: Results, experiment: str) -> list[Figure]:
    asked = {
        "alpha": "Does the weight α of a view fall where there is noise in it? Grey: without the noise, "
        "same seed (for an added view, an equal share); orange: with it. Means over the runs.",
        "w": "Does the weight w of observations fall where they are noisy? Grey: the same observations "
        "without the noise, same seed (for an added view, the mean of the other views); orange: with it. "
        "Means over the runs.",
    }
    found = [
        Figure(f"noise-{weight}", caption, _panels(results, weight), height=280)
        for weight, caption in asked.items()
    ]
    return [*found, _accuracy(results)]


def _panels(results: Results, weight: str) -> list[Panel]:
    """A row of three kinds of noise for each method."""
    panels = []
    for method in grouped(results.rows("noise"), "method"):
        for kind in KINDS:
            pairs = before_and_after(of_kind(results, method, kind), weight)
            if not pairs:
                continue
            means = [
                [s.mean if (s := spread(runs[i], weight)) else None for runs in pairs.values()]
                for i in (0, 1)
            ]
            series = [
                Series("without noise", list(pairs), means[0], "bar", 9),
                Series("with noise", list(pairs), means[1], "bar", 5),
            ]
            title = f"{method}: {TITLES[kind]}"
            panels.append(Panel(title, "view", SYMBOLS[weight], series))
    return panels


def _accuracy(results: Results) -> Figure:
    series = []
    for i, (method, mine) in enumerate(grouped(results.rows("noise"), "method").items()):
        told = grouped([r for r in mine if r["dataset"] == "digits"], _scenario)
        means = [s.mean if (s := spread(r, "acc")) else None for r in told.values()]
        series.append(Series(method, list(told), means, "bar", (5, 3)[i % 2]))
    caption = (
        "What noise does to the clustering: on some of the observations of a view, on all, or as a view "
        "added. Means over the runs."
    )
    panel = Panel("Accuracy on the digits", "", "ACC", series, y_range=(0, 1))
    return Figure("noise-accuracy", caption, [panel])


def _scenario(row: Row) -> str:
    word = {"clean": "clean", "added": "view added"}.get(row["scenario"])
    return word or f"{row['of_view']} {'all' if row['scenario'] == 'replaced' else 'some'}"
