"""Each claim of the paper beside what was measured, with a verdict in plain words."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import mean
from typing import NamedTuple

from . import paper
from .read import SCORES, Results, Row, Spread, grouped, spread, two

#: The paper prints two decimals: differences below half of the last one mean nothing.
ROUNDING = 0.005
#: Mean scores that differ by less are called alike.
ALIKE = 0.05
AGREES, PARTLY, DIFFERS = "agrees", "partly", "does not agree"
#: Against the paper, but by less than two standard errors of our own means.
UNSURE = "too few runs to tell"
#: Verdicts on what the paper does not claim.
OWN = {AGREES: "yes", PARTLY: "partly yes", DIFFERS: "no", UNSURE: UNSURE}
NOT_THEIRS = "not in the paper"


class Verdict(NamedTuple):
    """A row of the summary table."""

    experiment: str
    claim: str
    paper: str
    ours: str
    difference: str
    verdict: str
    words: str


class DigitsRow(NamedTuple):
    """A method of the paper's table: (paper mean, paper sd, ours, inside) by score."""

    method: str
    cells: dict[str, tuple[float, float | None, Spread, bool]]
    dataset: str
    note: str

    @property
    def n_inside(self) -> int:
        return sum(inside for *_, inside in self.cells.values())


def in_order(rows: list[Row]) -> list[Row]:
    """Rows of methods in the order of the paper's table, others after them."""
    names = list(paper.DIGITS)
    return sorted(
        rows, key=lambda r: names.index(r["method"]) if r["method"] in names else len(names)
    )


def digits_rows(results: Results) -> list[DigitsRow]:
    found = []
    for method, rows in grouped(in_order(results.rows("digits")), "method").items():
        if method not in paper.DIGITS:
            continue
        cells = {}
        for score, (m, sd) in zip(paper.COLUMNS, paper.DIGITS[method], strict=True):
            ours = spread(rows, score)
            if ours is not None:
                inside = abs(ours.mean - m) <= max(sd or 0.0, ROUNDING) + ROUNDING
                cells[score] = (m, sd, ours, inside)
        notes = [] if rows[0]["dataset"] == "digits" else ["On the first 50 digits of each class."]
        off = [ours.mean > m for m, _, ours, inside in cells.values() if not inside]
        if off:
            notes.append("Ours is higher." if all(off) else "" if any(off) else "Ours is lower.")
            notes.append(paper.WHY.get(method, ""))
        found.append(DigitsRow(method, cells, rows[0]["dataset"], " ".join(filter(None, notes))))
    return found


def error_of(*means: Spread) -> float:
    """Two standard errors of a difference of means; infinite for single runs, which tell nothing."""
    if any(s.sd is None for s in means):
        return math.inf
    return 2 * math.sqrt(sum((s.sd or 0.0) ** 2 / s.n for s in means))


def verdicts(results: Results) -> list[Verdict]:
    """All claims whose experiment was run, in the order of the page."""
    makers = (_digits, _honest, _lihc, _sweep_p, _sweeps, _runtime, _convergence, _noise, _collapse)
    found = [verdict for make in makers for verdict in make(results)]
    return [v._replace(verdict=OWN[v.verdict]) if v.paper == NOT_THEIRS else v for v in found]


def _digits(results: Results) -> list[Verdict]:
    rows = {row.method: row.cells for row in digits_rows(results)}
    found = []
    if "WM-NMF" in rows:
        for score, target in (("acc", 0.96), ("nmi", 0.93)):
            ours = rows["WM-NMF"][score][2]
            off = ours.mean - target
            close = abs(off) <= 0.02 + ROUNDING
            said = "within .02 of the paper" if close else "more than .02 from the paper"
            sure = abs(off) > 0.02 + error_of(ours)
            found.append(
                Verdict(
                    "digits",
                    f"WM-NMF reaches {SCORES[score]} {two(target)} on the digits",
                    two(target),
                    str(ours),
                    signed(off),
                    AGREES if close else DIFFERS if sure else UNSURE,
                    f"The mean of {ours.n} runs is {said}"
                    + ("." if close or sure else ", but runs scatter by more."),
                )
            )
        found.append(_best(rows))
    found += _order(rows, "WM-NMF > NMF-W1 > NMF-W2", ["WM-NMF", "NMF-W1", "NMF-W2"])
    return found + _above_multinmf(rows)


def _above_multinmf(rows: dict[str, dict]) -> list[Verdict]:
    weighted, others = (
        {name: rows[name]["acc"] for name in names if name in rows}
        for names in (("WM-NMF", "NMF-W1", "NMF-W2"), ("MultiNMF1", "MultiNMF2"))
    )
    if len(weighted) < 3 or len(others) < 2:
        return []
    lowest, highest = (
        min(weighted, key=lambda m: weighted[m][2]),
        max(others, key=lambda m: others[m][2]),
    )
    gap = weighted[lowest][2].mean - others[highest][2].mean
    below = [m for m in weighted if weighted[m][2].mean <= others[highest][2].mean]
    return [
        Verdict(
            "digits",
            "WM-NMF, NMF-W1 and NMF-W2 are all above MultiNMF",
            f"{two(min(c[0] for c in weighted.values()))} > {two(max(c[0] for c in others.values()))}",
            f"lowest {weighted[lowest][2]} ({lowest}), highest MultiNMF {others[highest][2]} ({highest})",
            signed(gap),
            AGREES if not below else PARTLY if len(below) < 3 else DIFFERS,
            "By mean ACC, the lowest of the three is above both."
            if not below
            else f"By mean ACC, {' and '.join(below)} is not above {highest}.",
        )
    ]


def signed(value: float, digits: int = 3) -> str:
    """With its sign, and never "-0.00"."""
    return f"{round(value, digits) + 0.0:+.{digits}f}"


def _best(rows: dict[str, dict]) -> Verdict:
    leads: dict[str, list[bool]] = {}  # by rival: for each score it leads on, whether clearly
    best = 0
    for score in SCORES:
        ours = rows["WM-NMF"][score][2]
        theirs = {
            m: cells[score][2] for m, cells in rows.items() if cells[score][2].mean > ours.mean
        }
        best += not theirs
        for method, s in theirs.items():
            leads.setdefault(method, []).append(s.mean - ours.mean > error_of(s, ours))
    clear = any(any(lead) for lead in leads.values())
    words = f"Best on {best} of 6 scores among the paper's {len(rows)} methods here"
    words += f"; above it on some: {', '.join(leads)}" if leads else ""
    words += ", by less than the runs scatter" if leads and not clear else ""
    if "ConcatSpectral" in leads:
        words += " (recall alone is high for whatever puts nearly all into one cluster)"
    verdict = AGREES if not leads else UNSURE if not clear else PARTLY if best else DIFFERS
    return Verdict(
        "digits",
        "WM-NMF is best on all six scores",
        "6 of 6",
        f"{best} of 6",
        "",
        verdict,
        f"{words}.",
    )


def _order(rows: dict[str, dict], claim: str, names: list[str]) -> list[Verdict]:
    if not all(name in rows for name in names):
        return []
    theirs = [rows[name]["acc"][0] for name in names]
    ours = [rows[name]["acc"][2] for name in names]
    gaps = [a.mean - b.mean for a, b in pairwise(ours)]
    holds = all(gap > 0 for gap in gaps)
    sure = any(b.mean - a.mean > error_of(a, b) for a, b in pairwise(ours))
    kept = (
        "holds" if holds else "does not hold" if sure else "is reversed by less than runs scatter"
    )
    return [
        Verdict(
            "digits",
            claim,
            " > ".join(two(v) for v in theirs),
            ", ".join(f"{s.mean:.3f}" for s in ours),
            ", ".join(signed(gap) for gap in gaps),
            AGREES if holds else DIFFERS if sure else UNSURE,
            f"The order by mean ACC {kept}.",
        )
    ]


def _honest(results: Results) -> list[Verdict]:
    by_method = grouped(results.rows("honest"), "method")
    if not {"WM-NMF", "ConcatSpectral-z"} <= set(by_method):
        return []
    method, plain = (spread(by_method[name], "acc") for name in ("WM-NMF", "ConcatSpectral-z"))
    assert method is not None and plain is not None
    ahead = method.mean > plain.mean
    return [
        Verdict(
            "honest",
            "Spectral clustering of the concatenated views fails: ACC .12",
            ".12",
            f"{plain} with z-scored features",
            signed(plain.mean - 0.12),
            DIFFERS if plain.mean > 0.5 else AGREES,
            "The paper's .12 comes from unscaled features. Scaled, the plain baseline is "
            + ("below" if ahead else "above")
            + f" WM-NMF ({method}).",
        )
    ]


def _lihc(results: Results) -> list[Verdict]:
    by_method = grouped(results.rows("lihc"), "method")
    means = {name: spread(rows, "acc") for name, rows in by_method.items()}
    found = {name: s for name, s in means.items() if s is not None}
    if "WM-NMF" not in found:
        return []
    target, ours = paper.LIHC["WM-NMF"][0], found["WM-NMF"]
    close = abs(ours.mean - target) <= 0.03
    return [
        Verdict(
            "lihc",
            "WM-NMF reaches ACC .97 on LIHC",
            two(target),
            str(ours),
            signed(ours.mean - target),
            AGREES if close else DIFFERS,
            f"Mean of {ours.n} runs on the files given.",
        )
    ]


def _sweep_p(results: Results) -> list[Verdict]:
    found = []
    for dataset, rows in grouped(results.rows("p", "weights"), "dataset").items():
        largest = {}
        for value, mine in grouped(rows, "value").items():
            largest[value] = mean(
                max(r["alpha"] for r in run) for run in grouped(mine, "run").values()
            )
        low, high = min(largest), max(largest)
        holds = largest[low] > largest[high]
        found.append(
            Verdict(
                "p",
                f"Small p gives sparse view weights ({dataset})",
                "yes",
                f"largest α {largest[low]:.2f} at p={low}, {largest[high]:.2f} at p={high}",
                "",
                AGREES if holds else DIFFERS,
                "The largest weight falls as p grows." if holds else "It does not fall as p grows.",
            )
        )
    for dataset, rows in grouped(results.rows("p"), "dataset").items():
        found.append(
            _alike(
                "p", f"Scores are alike for p ≥ 4 ({dataset})", [r for r in rows if r["value"] >= 4]
            )
        )
    return found


def _sweeps(results: Results) -> list[Verdict]:
    return [
        _alike(name, f"Robust to {symbol} ({dataset})", rows)
        for name, symbol in (("beta", "β"), ("k", "K"))
        for dataset, rows in grouped(results.rows(name), "dataset").items()
    ]


def _alike(experiment: str, claim: str, rows: list[Row]) -> Verdict:
    means = {v: s.mean for v, mine in grouped(rows, "value").items() if (s := spread(mine, "acc"))}
    low, high = min(means.values()), max(means.values())
    gap = high - low
    words = f"Mean ACC varies by {gap:.3f} over the values tried"
    return Verdict(
        experiment,
        claim,
        "yes",
        f"ACC {low:.3f} to {high:.3f}",
        f"{gap:.3f}",
        AGREES if gap <= ALIKE else PARTLY if gap <= 2 * ALIKE else DIFFERS,
        words + (f", less than {ALIKE:g}." if gap <= ALIKE else f", more than {ALIKE:g}."),
    )


def slope(points: list[tuple[float, float]]) -> float | None:
    """Exponent b of seconds ≈ c · size^b, by least squares on logarithms."""
    logs = [(math.log(x), math.log(y)) for x, y in points if x > 0 and y > 0]
    if len({x for x, _ in logs}) < 2:
        return None
    mx, my = mean(x for x, _ in logs), mean(y for _, y in logs)
    return sum((x - mx) * (y - my) for x, y in logs) / sum((x - mx) ** 2 for x, _ in logs)


PARTS = ("seconds_graph", "seconds_start", "seconds_loop", "seconds_labels")


def total_seconds(row: Row) -> float:
    return sum(row.get(part) or 0.0 for part in PARTS)


def _runtime(results: Results) -> list[Verdict]:
    found = []
    for axis, words in (("N", "observations"), ("n_v", "views")):
        rows = results.rows("runtime", axis=axis)
        ours = [(r["value"], total_seconds(r)) for r in rows if r["method"] == "manyview"]
        plain = [(r["value"], r["seconds_loop"]) for r in rows if r["method"] != "manyview"]
        b, other = slope(ours), slope(plain)
        if b is None:
            continue
        said = f"seconds ∝ {axis}^{b:.2f}" + (f"; plain NumPy {axis}^{other:.2f}" if other else "")
        found.append(
            Verdict(
                "runtime",
                f"Time is about linear in the number of {words}",
                "about linear",
                said,
                f"{signed(b - 1, 2)} in the exponent",
                AGREES if abs(b - 1) <= 0.3 else PARTLY if abs(b - 1) <= 0.6 else DIFFERS,
                "Fitted slope of the whole fit on logarithmic axes."
                + (" The dense graph of theory is quadratic." if axis == "N" else ""),
            )
        )
    return found


def _convergence(results: Results) -> list[Verdict]:
    found = []
    for dataset, rows in grouped(
        results.rows("convergence", scheme="one at a time"), "dataset"
    ).items():
        at = {
            i: spread([r for r in rows if r["iteration"] == i], "objective") for i in (1, 50, 100)
        }
        if any(value is None for value in at.values()):
            continue
        first, fifty, last = (value.mean for value in at.values() if value is not None)
        left = (fifty - last) / (first - last) if first > last else 0.0
        found.append(
            Verdict(
                "convergence",
                f"The objective converges within 50 iterations ({dataset})",
                "yes",
                f"{1 - left:.0%} of the fall of 100 iterations is done by the 50th",
                "",
                AGREES if left <= 0.02 else PARTLY if left <= 0.15 else DIFFERS,
                f"From iteration 50 to 100 it still falls by {(fifty - last) / fifty:.1%}.",
            )
        )
    return found


def _noise(results: Results) -> list[Verdict]:
    found = []
    for method in ("WM-NMF", "RobustWMNMF"):
        rows = results.rows("noise", method=method)
        marked = [r for r in rows if isinstance(r.get("w_noisy"), float)]
        if marked:
            fell = sum(r["w_noisy"] < r["w_clean"] for r in marked)
            ratio = mean(r["w_noisy"] for r in marked) / mean(r["w_clean"] for r in marked)
            share = fell / len(marked)
            found.append(
                Verdict(
                    "noise",
                    f"w is smaller for noisy observations ({method})",
                    "stated, not shown" if method == "WM-NMF" else NOT_THEIRS,
                    f"in {fell} of {len(marked)} cases",
                    f"{ratio:.2f} of a clean one's",
                    AGREES if share >= 0.9 else PARTLY if share >= 0.6 else DIFFERS,
                    f"A noisy observation has {ratio:.0%} of the weight of a clean one in the same view.",
                )
            )
        found += _noise_alpha(results, method)
    return found


def _noise_alpha(results: Results, method: str) -> list[Verdict]:
    """A view replaced by noise: is its weight below what the view had?"""
    clean = grouped(results.rows("noise", "weights", method=method, scenario="clean"), "of_view")
    replaced = grouped(results.rows("noise", method=method, scenario="replaced"), "of_view")
    pairs = {}
    for view, rows in replaced.items():
        before, after = spread(clean.get(view, []), "alpha"), spread(rows, "alpha")
        if before and after:
            pairs[view] = (before.mean, after.mean)
    if not pairs:
        return []
    fell = [view for view, (before, after) in pairs.items() if after < before]
    told = ", ".join(f"{view} {before:.2f}→{after:.2f}" for view, (before, after) in pairs.items())
    every = len(fell) == len(pairs)
    return [
        Verdict(
            "noise",
            f"α falls when a view is replaced by noise ({method})",
            "stated, not shown" if method == "WM-NMF" else NOT_THEIRS,
            told,
            f"falls for {len(fell)} of {len(pairs)} views",
            AGREES if every else PARTLY if fell else DIFFERS,
            "The weight falls in every case."
            if every
            else "α measures agreement with the consensus, and noise can agree: it is not quality.",
        )
    ]


def _collapse(results: Results) -> list[Verdict]:
    rows = grouped(results.rows("degeneracy"), "round")
    if 2 not in rows or len(rows) < 3:
        return []
    last = max(rows)
    acc = [spread(rows[r], "acc") for r in (2, last)]
    top = [spread(rows[r], "max_alpha") for r in (2, last)]
    assert all(acc) and all(top)
    (a2, an), (t2, tn) = ([s.mean for s in pair if s] for pair in (acc, top))
    return [
        Verdict(
            "degeneracy",
            "Iterating until the objective settles gives the best clusters",
            "stops at a change of 9e-8",
            f"ACC {a2:.3f} after 2 rounds, {an:.3f} after {last}",
            signed(an - a2),
            DIFFERS if an < a2 + ROUNDING else AGREES,
            f"The objective falls on, yet the largest α goes from {t2:.2f} to {tn:.2f}: one view takes "
            "over. Two rounds are early stopping.",
        )
    ]
