"""The verdicts on the paper's claims: judged by intervals, the same way for and against."""

import math

import pandas as pd
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from manyview.paper import claims as judge
from manyview.paper.claims import (
    ABOVE,
    BELOW,
    FAILS,
    HOLDS,
    NOT_MEASURED,
    PARTLY,
    SAME,
    UNDECIDED,
    between,
    claims,
    judged,
    mean_of,
    paired,
    together,
    within,
)
from manyview.paper.results import DIGITS, LIHC, SCORES, where

JITTER = (0.0, 0.002, -0.002, 0.001, -0.001)


class Made:
    """Results without files."""

    def __init__(self, **tables):
        self.tables = {name.replace("_", "-"): rows for name, rows in tables.items()}

    def rows(self, experiment, table="", **wanted):
        rows = self.tables.get(f"{experiment}-{table}" if table else experiment, [])
        return where(pd.DataFrame(rows), **wanted)


def of(part, made):
    """The claims of one experiment."""
    return list(getattr(judge, part)(made))


def runs(method="WM-NMF", level=0.9, dataset="digits", n=5, **more):
    """Runs of a method with all scores near a level; the jitter is not shared between methods."""
    shift = sum(map(ord, method)) % 5
    values = [level + JITTER[(i + shift) % 5] for i in range(n)]
    return [
        {"method": method, "dataset": dataset, "run": i, **dict.fromkeys(SCORES, v), **more}
        for i, v in enumerate(values)
    ]


def only(found, words):
    (claim,) = [c for c in found if words in c.claim]
    return claim


def table(**levels):
    names = {"W1": "NMF-W1", "W2": "NMF-W2", "WM": "WM-NMF"}
    return [row for name, level in levels.items() for row in runs(names.get(name, name), level)]


# --- how verdicts come about ---


@pytest.mark.parametrize("values", [[0.1, 0.11, 0.12], [0.1, -0.2, 0.3], [0.1]])
def test_the_opposite_of_a_finding_gets_the_opposite_verdict(values):
    mirror = {HOLDS: FAILS, FAILS: HOLDS, UNDECIDED: UNDECIDED}
    found = ABOVE.judge(mean_of(values))
    assert ABOVE.judge(mean_of([-v for v in values])) == mirror[found]
    assert BELOW.judge(mean_of([-v for v in values])) == found


def test_one_run_never_decides_and_a_tie_is_not_above():
    for question in (ABOVE, BELOW, within(1.0)):
        assert (
            question.judge(mean_of([0.5]))
            == question.judge(between(*2 * [pd.Series([0.5])]))
            == UNDECIDED
        )
    assert ABOVE.judge(mean_of([0.0, 0.0])) == FAILS


def test_intervals_are_those_of_student_and_welch():
    a, b = [0.9, 0.92, 0.91, 0.95], [0.8, 0.85, 0.7]
    for found, theirs in (
        (mean_of(a), ttest_1samp(a, 0)),
        (between(pd.Series(a), pd.Series(b)), ttest_ind(a, b, equal_var=False)),
    ):
        for parts in (1, 7):
            limits = theirs.confidence_interval(1 - 0.05 / parts)
            assert found.interval(parts) == pytest.approx((limits.low, limits.high))


def test_runs_are_compared_with_the_run_of_the_same_seed():
    a = pd.DataFrame({"run": range(4), "acc": [0.51, 0.61, 0.71, 0.81]})
    b = pd.DataFrame({"run": range(4), "acc": [0.5, 0.6, 0.7, 0.8]})[::-1]
    gap = paired(a, b, "acc")  # scatters far less than either
    assert gap.mean == pytest.approx(0.01) and gap.error == pytest.approx(0, abs=1e-9)
    assert ABOVE.judge(gap) == HOLDS and paired(a, b[:2], "acc").freedom == 1


@pytest.mark.parametrize(
    "off, verdict",
    [(0.02, HOLDS), (-0.02, HOLDS), (0.94 - 0.96, HOLDS), (0.0201, FAILS), (-0.0249, FAILS)],
)
def test_the_same_means_within_the_tolerance_and_no_more(off, verdict):
    assert within(SAME).judge(mean_of([off, off])) == verdict


def test_partly_needs_parts_that_hold_and_parts_that_fail():
    assert together([HOLDS, HOLDS]) == HOLDS
    assert together([HOLDS, UNDECIDED]) == UNDECIDED
    assert together([HOLDS, FAILS, UNDECIDED]) == PARTLY
    assert together([UNDECIDED, FAILS]) == FAILS


def test_more_comparisons_widen_every_interval_and_names_of_users_stay_as_they_are():
    gap = mean_of([0.2, 0.3, 0.4, 0.3])  # alone clearly above 0
    verdicts = []
    for m in (1, 2, 100):
        names = {f"view {{{i}}}": gap for i in range(m)}
        claim = judged("", "", "", "", "{gap} {x}", names)
        verdicts.append(claim.verdict)
        assert "for view {0} {x}" in claim.ours and len(claim.parts) == m
    assert verdicts == [HOLDS, HOLDS, UNDECIDED]


# --- the digits ---


def test_the_order_of_the_ablations_can_hold_fail_and_be_open():
    def order(**levels):
        return only(of("digits", Made(digits=table(**levels))), "WM-NMF > NMF-W1").verdict

    assert order(WM=0.96, W1=0.92, W2=0.81) == HOLDS
    assert order(WM=0.81, W1=0.92, W2=0.96) == FAILS
    assert order(WM=0.92, W1=0.96, W2=0.81) == PARTLY
    assert order(WM=0.92, W1=0.92, W2=0.81) == UNDECIDED


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.95, 0.96, 0.96, 0.95], HOLDS),
        ([0.99, 0.99, 0.99, 0.80], UNDECIDED),  # the mean is near, chance could move it away
        ([0.90, 0.91, 0.90, 0.91], FAILS),
        ([0.96], UNDECIDED),
    ],
)
def test_a_mean_reaches_the_papers_only_where_its_whole_interval_does(values, verdict):
    rows = [row | {"acc": v} for row, v in zip(runs(n=len(values)), values, strict=True)]
    assert only(of("digits", Made(digits=rows)), "reaches ACC").verdict == verdict
    printed = Made(printed=[row | {"variant": "printed"} for row in rows])
    assert only(of("digits", printed), "as printed reaches ACC").verdict == verdict


def test_few_digits_are_not_judged_and_a_rival_without_classes_is_named():
    few = runs("P-MLRSSC", 0.99, dataset="digits-50")
    rows = table(WM=0.96, W1=0.92, W2=0.81)
    assert only(of("digits", Made(digits=rows + few)), "best on all").verdict == HOLDS
    whole = runs("P-MLRSSC", 0.99)
    assert only(of("digits", Made(digits=rows + whole)), "best on all").verdict == PARTLY
    idle = [row | {"nmi": 0.01, "recall": 0.99} for row in runs("ConcatSpectral", 0.11)]
    found = only(of("digits", Made(digits=table(WM=0.96) + idle)), "best on all")
    assert (
        found.verdict == PARTLY
        and "by the mean 5 of 6, or 6 of 6 without ConcatSpectral" in found.ours
    )
    assert found.ours.endswith("; not clearly above ConcatSpectral")


def test_a_baseline_is_judged_by_its_own_row_and_not_by_the_scaled_one():
    honest = runs("ConcatSpectral-z", 0.97) + runs("WM-NMF", 0.93)
    found = claims(Made(digits=runs("ConcatSpectral", 0.11), honest=honest))
    fails = only(found, "concatenated raw views fails")
    assert fails.verdict == HOLDS and "with z-scored features .97" in fails.ours


# --- LIHC ---


def test_every_claim_on_lihc_is_judged_or_not_measured():
    rivals = [m for m in DIGITS if m not in ("WM-NMF", "NMF-W2")]
    rows = [row for m in rivals for row in runs(m, 0.6, dataset="lihc", n=40)]
    rows += runs("NMF-W2", 0.96, dataset="lihc", n=40)
    about = {"method": "WM-NMF", "dataset": "lihc"}
    means = dict(zip(SCORES, [m for m, _ in LIHC["WM-NMF"]], strict=True))
    steady = [about | means | {"run": i} for i in range(5)]
    assert [c.verdict for c in of("lihc", Made(lihc=rows + steady))] == [HOLDS] * 4
    worse = [row | dict.fromkeys(SCORES, 0.5 + 0.1 * (row["run"] % 2)) for row in steady]
    assert HOLDS not in [c.verdict for c in of("lihc", Made(lihc=rows + worse))]
    absent = of("lihc", Made(digits=runs()))
    assert [c.verdict for c in absent] == [NOT_MEASURED] * 4 and all(c.paper for c in absent)


# --- sweeps, time, objective ---


def sweep(values):
    return [row for v, level in values.items() for row in runs("WM-NMF", level, value=v)]


def test_alike_compares_all_scores_and_names_the_value_that_differs():
    assert only(of("sweeps", Made(beta=sweep({0.01: 0.9, 0.02: 0.9}))), "β").verdict == HOLDS
    off = [row | {"recall": row["recall"] - 0.2} if row["value"] == 0.02 else row
           for row in sweep({0.01: 0.9, 0.02: 0.9})]  # fmt: skip
    found = only(of("sweeps", Made(beta=off)), "β")
    assert found.verdict == PARTLY and found.ours.startswith("Recall 0.")
    found = only(of("sweeps", Made(p=sweep({2: 0.1, 4: 0.8, 5: 0.95, 8: 0.95}))), "p ≥ 4")
    assert found.verdict == FAILS and "without 4: " in found.ours and found.ours.endswith(HOLDS)


def test_sparse_weights_are_compared_at_every_p():
    def sparse(tops):
        rows = [
            {"dataset": "digits", "value": p, "run": i, "view": view, "alpha": alpha}
            for p, top in tops.items()
            for i in range(3)
            for view, alpha in (("a", top), ("b", top / 2))
        ]
        return only(of("sweeps", Made(p_weights=rows)), "sparse").verdict

    assert sparse({2: 0.9, 4: 0.5, 11: 0.3}) == HOLDS
    assert sparse({2: 0.5, 4: 0.9, 11: 0.3}) == PARTLY
    assert sparse({2: 0.3, 4: 0.5, 11: 0.9}) == FAILS


def test_growth_of_the_loop_and_of_the_graph_are_judged_apart():
    def timed(loop, graph, repeats=3):
        rows = [
            {"axis": "N", "value": n, "method": "manyview", "run": i,
             "seconds_loop": n**loop * (1 + 0.01 * i), "seconds_graph": 1e-9 * n**graph}
            for n in (1000, 2000, 4000) for i in range(repeats)
        ]  # fmt: skip
        (found,) = of("runtime", Made(runtime=rows))
        return found

    assert judge.slope([1.0], [3.0]) is None
    found = timed(1.1, 2.0)
    assert found.verdict == PARTLY and found.ours.startswith("loop N^1.10, graph N^2.00")
    assert found.ours.endswith("graph fails")
    assert timed(2.0, 2.0).verdict == FAILS and timed(1.0, 1.0).verdict == HOLDS
    assert timed(1.0, 1.0, repeats=1).verdict == UNDECIDED


@pytest.mark.parametrize(
    "values, start, verdict",
    [
        ((10.0, 1.01, 1.0), None, HOLDS),
        ((10.0, 1.01, 1.0), 50.0, HOLDS),
        ((3.0, 1.4, 1.0), 21.0, PARTLY),  # 2 % from the start, 20 % after
        ((10.0, 5.0, 1.0), 12.0, FAILS),
        ((10.0, 1.0, 2.0), None, FAILS),
        ((1.0, 2.0, 3.0), None, FAILS),
    ],
)
def test_convergence_is_counted_from_the_start_and_from_the_first_iteration(values, start, verdict):
    def rows(dataset):
        about = {"dataset": dataset, "scheme": "one at a time"}
        found = [about | {"run": i, "iteration": at, "objective": value}
                 for i in range(3) for at, value in zip((1, 50, 100), values, strict=True)]  # fmt: skip
        first = {"dataset": dataset, "scheme": "recipe", "iteration": 0, "objective": start}
        return found + [first | {"run": i} for i in range(3) if start is not None]

    found, lihc = of("objective", Made(convergence=rows("digits")))
    assert (found.verdict, lihc.verdict) == (verdict, NOT_MEASURED)
    assert ("from the start" in found.ours) == (start is not None)
    assert claims(Made(convergence=rows("synthetic"))) == []  # the paper does not show it


def test_both_weights_are_judged_under_three_kinds_of_noise():
    def noisy(scenario, view, after, before):
        return [
            {"dataset": "digits", "method": "WM-NMF", "scenario": scenario, "of_view": view, "run": i,
             "w_noisy": after[0] + JITTER[i], "alpha": after[1] + JITTER[i],
             "w_before": before[0], "alpha_before": before[1]}
            for i in range(3)
        ]  # fmt: skip

    rows = [
        *noisy("some samples", "fou", (0.1, 0.4), (0.4, 0.2)),
        *noisy("some samples", "zer", (0.1, 0.1), (0.2, 0.2)),
        *noisy("replaced", "fou", (0.1, 0.1), (0.2, 0.2)),
        *noisy("added", "noise", (0.5, 0.5), (0.2, 0.2)),
    ]
    found = of("noise", Made(noise=rows))
    assert [c.verdict for c in found] == [HOLDS, HOLDS, FAILS, PARTLY, HOLDS, FAILS]
    assert [c.topic for c in found] == ["w"] * 3 + ["alpha"] * 3
    assert "fou fails" in found[3].ours and claims(Made()) == []
    assert math.isnan(mean_of([]).mean)
