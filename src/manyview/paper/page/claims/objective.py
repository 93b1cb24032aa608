"""The objective: whether it settles, and the two weaknesses of its form."""

from __future__ import annotations

from manyview.paper.page.read import (
    Results,
    Row,
    grouped,
    spread,
)

from .judging import (
    ABOVE,
    AGREES,
    BELOW,
    DIFFERS,
    NOT_THEIRS,
    Rule,
    Verdict,
    interval,
    judged,
    of_one,
    paired,
    signed,
    together,
)
from .lihc import not_measured
from .runtime import slope

#: Of the whole change of the objective, what may be left after 50 iterations where it has converged.
SETTLED = Rule(-1e-9, 0.05, "at most 5%")
#: The paper does not say where its curve begins: the change is counted from both.
COUNTS = {0: "the count from the start", 1: "the count from the first iteration"}
#: The paper shows the objective on these.
SHOWN = ("digits", "lihc")
#: (tU, V/t) is arithmetic: what is left of a difference is rounding.
ROUNDING = 1e-6
#: Column, claim, what it should do, and what is said where it does or does not.
COLLAPSE = (
    ("objective", "The objective falls on", BELOW, "It falls.", "It does not fall."),
    ("max_alpha", "The largest α of the views grows", ABOVE,
     "One view gains weight.", "No view gains weight."),
    ("acc", "ACC falls", BELOW, "The clusters get worse.", "The clusters do not get worse."),
)  # fmt: skip


def verdicts(results: Results) -> list[Verdict]:
    rows = grouped(results.rows("convergence", scheme="one at a time"), "dataset")
    # Before its first iteration a fit is the same under both schemes.
    starts = grouped(results.rows("convergence", scheme="recipe", iteration=0), "dataset")
    found = [v for data, mine in rows.items() for v in _converges(data, mine, starts.get(data, []))]
    if "digits" in rows and "lihc" not in rows:
        found.append(not_measured("convergence", _settles("lihc")))
    return [*found, *_collapse(results), *_scales(results), *_drift(results)]


def _settles(dataset: str) -> str:
    return f"The objective converges within 50 iterations ({dataset})"


def _converges(dataset: str, rows: list[Row], starts: list[Row]) -> list[Verdict]:
    start = {row["run"]: {0: row["objective"]} for row in starts}
    left: dict[str, list[float]] = {}
    rose: dict[str, int] = {}
    later = []
    for run, mine in grouped(rows, "run").items():
        at = {row["iteration"]: row["objective"] for row in mine} | start.get(run, {})
        later.append((at[100] - at[50]) / at[50] if {50, 100} <= set(at) else 0.0)
        for first, name in COUNTS.items():
            if {first, 50, 100} <= set(at):
                change = abs(at[first] - at[100])
                left.setdefault(name, []).append(abs(at[50] - at[100]) / change if change else 0.0)
                rose[name] = rose.get(name, 0) + (at[first] <= at[100])
    if not left:
        return []
    shares = {name: interval(values) for name, values in left.items()}
    each = {name: DIFFERS if rose[name] else SETTLED(found) for name, found in shares.items()}
    said = ", ".join(f"{found.mean:.0%} by {name}" for name, found in shares.items())
    change = interval(later)
    words = (
        f"From iteration 50 to 100 it {'falls' if change.mean <= 0 else 'rises'} by "
        f"{abs(change.mean):.1%} of its value; converged means that at most {SETTLED.high:.0%} of the "
        f"change is left, and the paper does not say from where it counts."
    )
    if any(rose.values()):
        words = f"In {max(rose.values())} of {change.n} runs it ends higher than it began. {words}"
    elif change.n < 2:
        words += " One run is too little to judge by."
    paper = "yes" if dataset in SHOWN else NOT_THEIRS
    ours = f"of the change over 100 iterations, after the 50th: {said}"
    return [judged("convergence", _settles(dataset), paper, ours, each, SETTLED, words=words)]


def _collapse(results: Results) -> list[Verdict]:
    """After the recipe's two rounds, and after many more."""
    rounds = grouped(results.rows("degeneracy"), "round")
    if 2 not in rounds or max(rounds) <= 2:
        return []
    last = max(rounds)
    return [
        _moved(
            f"{claim} from round 2 to round {last}", rounds[2], rounds[last], column, rule, yes, no
        )
        for column, claim, rule, yes, no in COLLAPSE
    ]


def _moved(
    claim: str, before: list[Row], after: list[Row], column: str, rule: Rule, yes: str, no: str
) -> Verdict:
    gap = paired(after, before, column)
    ours = " → ".join(f"{s.mean:.3g}" for rows in (before, after) if (s := spread(rows, column)))
    said = (yes, no, "One run, shown without a judgement." if gap.n < 2 else "")
    return of_one("degeneracy", claim, NOT_THEIRS, ours, gap, rule, said)


def _scales(results: Results) -> list[Verdict]:
    """O at (tU, V/t), for factors of one run: arithmetic, so one run is enough."""
    rows = {row["t"]: row for row in results.rows("degeneracy", "scales")}
    if 1 not in rows or max(rows) <= 1:
        return []
    most, plain = max(rows), rows[1]
    off = max(
        abs(row[term] / plain[term] - 1)
        for row in rows.values()
        for term in ("reconstruction", "consensus")
    )
    b = slope([(t, row["regularizer"]) for t, row in rows.items()]) or 0.0
    lower = rows[most]["objective"] < plain["objective"]
    holds = [off <= ROUNDING, abs(b + 2) <= ROUNDING, lower]
    same = "stay as they are" if holds[0] else f"change by up to {off:.1%}"
    return [
        Verdict(
            "degeneracy",
            "Scaling U up and V down lowers the objective, whatever they fit",
            NOT_THEIRS,
            f"objective {plain['objective']:.3f} at (U, V), {rows[most]['objective']:.3f} at "
            f"({most:g} U, V/{most:g})",
            signed(rows[most]["objective"] - plain["objective"]),
            together([AGREES if held else DIFFERS for held in holds]),
            f"Reconstruction and consensus {same}; the graph's term goes as t^{b:.2f}. Without a rule "
            f"for the scale the objective {'has no minimum' if all(holds) else 'may still have one'}.",
            "Another objective: this is arithmetic.",
        )
    ]


def _drift(results: Results) -> list[Verdict]:
    """Whether the iterations go that way where nothing holds the scale."""
    rounds = grouped(results.rows("degeneracy", "sizes", rescale="False"), "round")
    if len(rounds) < 2:
        return []
    first, last = rounds[min(rounds)], rounds[max(rounds)]
    claim = (
        f"Left unscaled, the mean column sum of U grows from round {min(rounds)} to {max(rounds)}"
    )
    return [_moved(claim, first, last, "column_sum_of_U", ABOVE, "It grows.", "It does not grow.")]
