"""Do the weights fall where noise is? α and w, under three kinds of noise."""

from __future__ import annotations

from statistics import median
from typing import Any

from manyview.reproduction.page.read import Results, Row, spread

from .judging import NOT_MEASURED, NOT_THEIRS, Verdict, below, paired, together, told

#: Kind of noise: its scenarios in the tables, and in words. The synthetic data come with theirs.
KINDS = {
    "some": (("some observations", "as given"), "noise on some of its observations"),
    "replaced": (("replaced",), "noise in place of all of it"),
    "added": (("added",), "nothing but noise in it, as an added view"),
}
WEIGHTS = {"w": "w_noisy", "alpha": "alpha"}
SYMBOLS = {"w": "w", "alpha": "α"}
CLAIMS = {
    ("w", "some"): "w is smaller for noisy observations of a view",
    ("w", "replaced"): "w of a view falls when it is replaced by noise",
    ("w", "added"): "w of an added view of noise is below that of the others",
    ("alpha", "some"): "α of a view falls with noise on some of its observations",
    ("alpha", "replaced"): "α of a view falls when it is replaced by noise",
    ("alpha", "added"): "α of an added view of noise is below an equal share",
}


def before_and_after(rows: list[Row], weight: str) -> dict[str, tuple[list[Row], list[Row]]]:
    """By view: runs with the weight before the noise, and with it; those without both left out.

    Before is the fit without noise of the same seed; in tables that do not tell it, the clean
    observations of the same view.
    """
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in rows:
        after = row.get(WEIGHTS[weight])
        before = row.get(f"{weight}_before")
        if before is None and weight == "w":
            before = row.get("w_clean")
        if _is_number(before) and _is_number(after):
            pair = found.setdefault(row["of_view"], ([], []))
            for runs, value in zip(pair, (before, after), strict=True):
                runs.append({"run": row["run"], weight: value})
    return found


def of_kind(results: Results, method: str, kind: str) -> list[Row]:
    rows = results.rows("noise", method=method)
    return [row for row in rows if row["scenario"] in KINDS[kind][0]]


def verdicts(results: Results) -> list[Verdict]:
    if not results.rows("noise"):
        return []
    return [
        _falls(method, weight, kind, of_kind(results, method, kind))
        for method in ("WM-NMF", "RobustWMNMF")
        for weight in WEIGHTS
        for kind in KINDS
        if results.rows("noise", method=method)
    ]


def _falls(method: str, weight: str, kind: str, rows: list[Row]) -> Verdict:
    claim = f"{CLAIMS[weight, kind]} ({method})"
    stated = "stated, not shown" if method == "WM-NMF" else NOT_THEIRS
    pairs = before_and_after(rows, weight)
    if not pairs:
        return Verdict(
            "noise", claim, stated, "", "", NOT_MEASURED, "These results do not have it."
        )
    each = {view: below(paired(after, before, weight)) for view, (before, after) in pairs.items()}
    means = {
        view: (b.mean, a.mean)
        for view, (before, after) in pairs.items()
        if (b := spread(before, weight)) and (a := spread(after, weight))
    }
    ratios = sorted(a / b for b, a in means.values() if b > 0)
    between = f" ({ratios[0]:.2f} to {ratios[-1]:.2f})" if len(ratios) > 1 else ""
    measured = ", ".join(f"{view} {b:.3f} → {a:.3f}" for view, (b, a) in means.items())
    return Verdict(
        "noise",
        claim,
        stated,
        measured,
        f"{median(ratios):.2f} times{between}" if ratios else "",
        together(each.values()),
        told(each, "views"),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
