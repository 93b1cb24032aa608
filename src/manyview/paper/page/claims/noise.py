"""Do the weights fall where noise is? α and w, under three kinds of noise."""

from __future__ import annotations

from statistics import median

from manyview.paper.page.read import Results, Row, spread

from .judging import (
    BELOW,
    NOT_THEIRS,
    Verdict,
    is_number,
    judged,
    paired,
)

#: Kinds of noise, and their scenarios in the tables. The synthetic data come with theirs.
KINDS = {
    "some": ("some observations", "as given"),
    "replaced": ("replaced",),
    "added": ("added",),
}
#: The column of a weight, and its symbol.
WEIGHTS = {"w": ("w_noisy", "w"), "alpha": ("alpha", "α")}
CLAIMS = {
    ("w", "some"): "w is smaller for noisy observations of a view",
    ("w", "replaced"): "w of a view falls when it is replaced by noise",
    ("w", "added"): "w of an added view of noise is below that of the others",
    ("alpha", "some"): "α of a view falls with noise on some of its observations",
    ("alpha", "replaced"): "α of a view falls when it is replaced by noise",
    ("alpha", "added"): "α of an added view of noise is below an equal share",
}


def before_and_after(
    results: Results, method: str, weight: str, kind: str
) -> dict[str, tuple[list[Row], list[Row]]]:
    """By view: runs with the weight in the fit without noise of the same seed, and with it."""
    found: dict[str, tuple[list[Row], list[Row]]] = {}
    for row in results.rows("noise", method=method):
        values = row.get(f"{weight}_before"), row.get(WEIGHTS[weight][0])
        if row["scenario"] in KINDS[kind] and all(map(is_number, values)):
            pair = found.setdefault(row["of_view"], ([], []))
            for runs, value in zip(pair, values, strict=True):
                runs.append({"run": row["run"], weight: value})
    return found


def verdicts(results: Results) -> list[Verdict]:
    return [
        _falls(method, weight, kind, pairs)
        for method in ("WM-NMF", "RobustWMNMF")
        for weight, kind in CLAIMS
        if (pairs := before_and_after(results, method, weight, kind))
    ]


def _falls(
    method: str, weight: str, kind: str, pairs: dict[str, tuple[list[Row], list[Row]]]
) -> Verdict:
    gaps = {view: paired(after, before, weight) for view, (before, after) in pairs.items()}
    means = {
        view: (b.mean, a.mean)
        for view, (before, after) in pairs.items()
        if (b := spread(before, weight)) and (a := spread(after, weight))
    }
    ratios = sorted(a / b for b, a in means.values() if b > 0)
    between = f" ({ratios[0]:.2f} to {ratios[-1]:.2f})" if len(ratios) > 1 else ""
    return judged(
        "noise",
        f"{CLAIMS[weight, kind]} ({method})",
        "stated, not shown" if method == "WM-NMF" else NOT_THEIRS,
        ", ".join(f"{view} {b:.3f} → {a:.3f}" for view, (b, a) in means.items()),
        BELOW.each(gaps),
        BELOW,
        difference=f"{median(ratios):.2f} times{between}" if ratios else "",
        parts="views",
        topic=weight,
    )
