"""The objective: whether it settles, and the two weaknesses of its form."""

from __future__ import annotations

from manyview.reproduction.page.read import Results, Row, grouped, spread

from .judging import (
    AGREES,
    DIFFERS,
    NOT_THEIRS,
    Verdict,
    above,
    below,
    interval,
    judge,
    paired,
    sentence,
    signed,
    together,
)
from .runtime import slope

#: Of the whole change of the objective, what may be left after 50 iterations where it has converged.
LEFT = 0.02
#: The paper shows the objective on these.
SHOWN = ("digits", "lihc")
#: (tU, V/t) is arithmetic: what is left of a difference is rounding.
ROUNDING = 1e-6


def verdicts(results: Results) -> list[Verdict]:
    rows = grouped(results.rows("convergence", scheme="one at a time"), "dataset")
    found = [v for dataset, mine in rows.items() for v in _converges(dataset, mine)]
    return [*found, *_collapse(results), *_scales(results), *_drift(results)]


def _converges(dataset: str, rows: list[Row]) -> list[Verdict]:
    left, later, fell = [], [], []
    for mine in grouped(rows, "run").values():
        at = {row["iteration"]: row["objective"] for row in mine}
        if {1, 50, 100} <= set(at):
            fell.append(at[1] > at[100])
            later.append((at[100] - at[50]) / at[50])
            left.append(abs(at[50] - at[100]) / abs(at[1] - at[100]) if at[1] != at[100] else 0.0)
    if not left:
        return []
    share, change = interval(left), interval(later)
    outcome = judge(share, high=LEFT) if all(fell) else DIFFERS
    words = (
        f"From iteration 50 to 100 it {'falls' if change.mean <= 0 else 'rises'} by "
        f"{abs(change.mean):.1%}; converged means that at most {LEFT:.0%} of the change is left."
    )
    if not all(fell):
        words = f"In {fell.count(False)} of {len(fell)} runs it ends higher than it began. {words}"
    elif share.n < 2:
        words += " One run is too little to judge by."
    return [
        Verdict(
            "convergence",
            f"The objective converges within 50 iterations ({dataset})",
            "yes" if dataset in SHOWN else NOT_THEIRS,
            f"{share.mean:.0%} of the change over 100 iterations comes after the 50th",
            "",
            outcome,
            words,
        )
    ]


def _collapse(results: Results) -> list[Verdict]:
    """After the recipe's two rounds, and after many more."""
    rounds = grouped(results.rows("degeneracy"), "round")
    if 2 not in rounds or max(rounds) <= 2:
        return []
    last = max(rounds)
    first, final = rounds[2], rounds[last]
    found = []
    for column, claim, asked, yes, no in (
        ("objective", "falls on", below, "It falls.", "It does not fall."),
        (
            "max_alpha",
            "of the views grows",
            above,
            "One view gains weight.",
            "No view gains weight.",
        ),
        ("acc", "falls", below, "The clusters get worse.", "The clusters do not get worse."),
    ):
        gap = paired(final, first, column)
        before, after = spread(first, column), spread(final, column)
        if before is None or after is None:
            continue
        name = {"objective": "The objective", "max_alpha": "The largest α", "acc": "ACC"}[column]
        found.append(
            Verdict(
                "degeneracy",
                f"{name} {claim} from round 2 to round {last}",
                NOT_THEIRS,
                f"{before.mean:.3f} → {after.mean:.3f}",
                str(gap),
                asked(gap),
                sentence(asked(gap), yes, no),
            )
        )
    return found


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
    kept = "stay as they are" if holds[0] else f"change by up to {off:.1%}"
    return [
        Verdict(
            "degeneracy",
            "Scaling U up and V down lowers the objective, whatever they fit",
            NOT_THEIRS,
            f"objective {plain['objective']:.3f} at (U, V), {rows[most]['objective']:.3f} at "
            f"({most:g} U, V/{most:g})",
            signed(rows[most]["objective"] - plain["objective"]),
            together([AGREES if held else DIFFERS for held in holds]),
            f"Reconstruction and consensus {kept}; the graph's term goes as t^{b:.2f}. Without a rule "
            f"for the scale the objective {'has no minimum' if all(holds) else 'may still have one'}.",
        )
    ]


def _drift(results: Results) -> list[Verdict]:
    """Whether the iterations go that way where nothing holds the scale."""
    rows = results.rows("degeneracy", "sizes", rescale="False")
    rounds = grouped(rows, "round")
    if len(rounds) < 2:
        return []
    first, last = min(rounds), max(rounds)
    gap = paired(rounds[last], rounds[first], "column_sum_of_U")
    before, after = (spread(rounds[r], "column_sum_of_U") for r in (first, last))
    if before is None or after is None:
        return []
    one = f"One run: from {before.mean:.3g} to {after.mean:.3g}, shown without a judgement."
    return [
        Verdict(
            "degeneracy",
            "Left unscaled, U grows from round to round",
            NOT_THEIRS,
            f"mean column sum {before.mean:.3g} in round {first}, {after.mean:.3g} in round {last}",
            str(gap),
            above(gap),
            sentence(above(gap), "It grows.", "It does not grow.", one if gap.n < 2 else ""),
        )
    ]
