"""Each claim of the paper: what the paper reports, what was measured, and a verdict.

A claim has parts, each a mean with its standard error. It holds (or fails) where the intervals of all
parts lie on the side of the limit that it needs (or one lies on the other side). The intervals of a claim
hold together with 95 % confidence: with m parts each has level 1 − .05/m (Bonferroni).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import stdtrit

from .results import DIGITS, LIHC, SCORES, TEXTS, Reproduction, grouped, signed, spread, two, where

HOLDS, PARTLY, UNDECIDED, FAILS = "holds", "partly", "undecided", "fails"
NOT_MEASURED = "not measured"
VERDICTS = (HOLDS, PARTLY, UNDECIDED, FAILS, NOT_MEASURED)
#: Keeps .96 − .94 within .02, and a tie from being above.
TINY = 1e-9
#: Means nearer than this to the paper's are called the same; mean scores that differ by less, alike.
SAME, ALIKE = 0.02, 0.05
#: A run of less ACC has failed. A clustering of less NMI has found no classes.
FAILED, MEANINGLESS = 0.90, 0.1
#: Growth of time up to this exponent is about linear; share of the change of O left once it has converged.
LINEAR, SETTLED = 1.3, 0.05
#: The accuracy of the supervised network that the paper names.
SUPERVISED = 0.951
PROPOSED, MULTINMF = ("WM-NMF", "NMF-W1", "NMF-W2"), ("MultiNMF1", "MultiNMF2")
PARTS = {"seconds_graph": "graph", "seconds_start": "start", "seconds_loop": "loop",
         "seconds_labels": "labels"}  # fmt: skip
#: Noise: on some samples of a view (the synthetic data come with it), on all, or a view of noise added.
KINDS = {"some": ("some samples", "as given"), "replaced": ("replaced",), "added": ("added",)}
WEIGHTS = {"w": "w_noisy", "alpha": "alpha"}


class Gap(NamedTuple):
    """A mean (of differences), its standard error, and the degrees of freedom of that."""

    mean: float
    error: float
    freedom: float

    def interval(self, parts: int) -> tuple[float, float]:
        """At the level 1 − .05/parts; infinite for one run."""
        margin = (
            math.inf if self.freedom < 1 else self.error * stdtrit(self.freedom, 1 - 0.025 / parts)
        )
        return self.mean - margin, self.mean + margin


def mean_of(values: Iterable[float]) -> Gap:
    found = pd.Series(list(values), dtype=float).dropna()
    return Gap(float(found.mean()), float(found.sem()), len(found) - 1)


def paired(rows: pd.DataFrame, others: pd.DataFrame, column: str) -> Gap:
    """The mean difference between runs of the same seed."""
    mine, theirs = (frame.groupby("run")[column].last() for frame in (rows, others))
    return mean_of(mine - theirs)


def between(a: pd.Series, b: pd.Series) -> Gap:
    """The difference of two means over different runs, with Welch's degrees of freedom."""
    va, vb = (float(x.var()) / len(x) if len(x) > 1 else math.nan for x in (a, b))
    if math.isnan(va + vb):
        return Gap(float(a.mean() - b.mean()), math.inf, 0)
    freedom = len(a) + len(b) - 2.0
    if va + vb > 0:
        freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1))
    return Gap(float(a.mean() - b.mean()), math.sqrt(va + vb), freedom)


class Limits(NamedTuple):
    """Where a mean has to lie."""

    low: float
    high: float

    def judge(self, gap: Gap, parts: int = 1) -> str:
        bottom, top = gap.interval(parts)
        if self.low - TINY <= bottom and top <= self.high + TINY:
            return HOLDS
        return FAILS if top < self.low - TINY or bottom > self.high + TINY else UNDECIDED


ABOVE, BELOW = Limits(2 * TINY, math.inf), Limits(-math.inf, -2 * TINY)


def within(tolerance: float) -> Limits:
    return Limits(-tolerance, tolerance)


def together(outcomes: Iterable[str]) -> str:
    """Partly, where some parts hold and others fail."""
    found = set(outcomes)
    if found == {HOLDS}:
        return HOLDS
    if FAILS in found:
        return PARTLY if HOLDS in found else FAILS
    return UNDECIDED


@dataclass(frozen=True)
class Claim:
    """A row of the table of claims."""

    topic: str
    experiment: str
    claim: str
    #: What the paper reports.
    paper: str
    ours: str
    verdict: str
    #: A row per part: its name, mean, interval and outcome.
    parts: list[dict[str, Any]] = field(default_factory=list)


def judged(
    topic: str,
    experiment: str,
    claim: str,
    paper: str,
    ours: str,
    parts: Mapping[str, Gap] | Gap,
    limits: Limits = ABOVE,
) -> Claim:
    """``ours`` may hold {gap}, the part nearest to the limits (or farthest beyond), and {open}."""
    gaps = parts if isinstance(parts, Mapping) else {"": parts}
    m = len(gaps)
    rows: list[dict[str, Any]] = []
    for name, gap in gaps.items():
        low, high = gap.interval(m)
        outcome = limits.judge(gap, m)
        rows.append({"part": name, "mean": gap.mean, "low": low, "high": high, "outcome": outcome})
    worst = max(rows, key=lambda r: max(limits.low - r["low"], r["high"] - limits.high))
    one = (
        "one run"
        if worst["low"] == -math.inf
        else f"[{signed(worst['low'])}, {signed(worst['high'])}]"
    )
    nearest = f"{signed(worst['mean'])} {one}" + (f" for {worst['part']}" if worst["part"] else "")
    open_ = [f"{r['part']} {r['outcome']}" for r in rows if r["outcome"] != HOLDS]
    if len(open_) > 4:
        counts = Counter(r["outcome"] for r in rows if r["outcome"] != HOLDS)
        open_ = [f"{outcome} for {n} of {m} comparisons" for outcome, n in counts.items()]
    said = ours.replace("{gap}", nearest).replace("{open}", "; ".join(open_))
    verdict = together(r["outcome"] for r in rows)
    return Claim(topic, experiment, claim, paper, said.rstrip("; "), verdict, rows)


def claims(results: Reproduction) -> list[Claim]:
    """All claims whose experiment was run."""
    makers: tuple[Callable[[Reproduction], Iterator[Claim]], ...] = (
        digits,
        lihc,
        noise,
        sweeps,
        runtime,
        objective,
    )
    return [claim for make in makers for claim in make(results)]


def by_method(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Rows of each method in the order of the paper's table, others after them."""
    found = grouped(rows, "method")
    return {method: found[method] for method in (*DIGITS, *found) if method in found}


def failures(rows: pd.DataFrame) -> str:
    return f"{(rows.acc < FAILED).sum()} of {len(rows)} runs below {two(FAILED)}"


def digits(results: Reproduction) -> Iterator[Claim]:
    # MLRSSC on fewer digits is another problem.
    runs = by_method(where(results.rows("digits"), dataset="digits"))
    printed = results.rows("printed", variant="printed")
    for experiment, name, mine, score, target in (
        ("digits", "WM-NMF", runs.get("WM-NMF", pd.DataFrame()), "acc", 0.96),
        ("digits", "WM-NMF", runs.get("WM-NMF", pd.DataFrame()), "nmi", 0.93),
        ("printed", "Algorithm 1 as printed", printed, "acc", 0.96),
    ):
        if len(mine):
            more = f"; {failures(mine)}" if score == "acc" else ""
            yield judged(
                "clusters", experiment, f"{name} reaches {SCORES[score]} {two(target)} on the digits",
                two(target), f"{spread(mine[score])}; difference {{gap}}{more}",
                mean_of(mine[score] - target), within(SAME),
            )  # fmt: skip
    if "WM-NMF" in runs and len(runs) > 1:
        yield _best(runs)
    for claim, pairs in (
        ("WM-NMF > NMF-W1 > NMF-W2", list(pairwise(PROPOSED))),
        ("WM-NMF, NMF-W1 and NMF-W2 are all above MultiNMF", list(product(PROPOSED, MULTINMF))),
    ):
        if set().union(*pairs) <= set(runs):
            names = sorted(set().union(*pairs), key=lambda m: -DIGITS[m][0][0])
            theirs = ", ".join(two(DIGITS[m][0][0]) for m in names)
            ours = ", ".join(f"{m} {two(runs[m].acc.mean())}" for m in names)
            gaps = {f"{a} − {b}": between(runs[a].acc, runs[b].acc) for a, b in pairs}
            yield judged("clusters", "digits", claim, theirs, f"{ours}; {{open}}", gaps)
    if "ConcatSpectral" in runs:
        acc, theirs_acc = runs["ConcatSpectral"].acc, DIGITS["ConcatSpectral"][0][0]
        scaled = results.rows("honest", method="ConcatSpectral-z")
        more = "" if scaled.empty else f"; with z-scored features {spread(scaled.acc)}"
        yield judged(
            "clusters", "digits", "Spectral clustering of the concatenated raw views fails",
            f"ACC {two(theirs_acc)}", f"ACC {spread(acc)}{more}", mean_of(acc - theirs_acc), within(SAME),
        )  # fmt: skip


def _best(runs: Mapping[str, pd.DataFrame]) -> Claim:
    """Whether WM-NMF is above every rival on each score; also without rivals that find no classes."""
    mine, rivals = runs["WM-NMF"], {m: rows for m, rows in runs.items() if m != "WM-NMF"}
    idle = {m: rows for m, rows in rivals.items() if rows.nmi.mean() < MEANINGLESS}

    def best(of: Iterable[str]) -> int:
        return sum(all(mine[s].mean() > rivals[m][s].mean() for m in of) for s in SCORES)

    gaps = {f"{m}, {SCORES[s]}": between(mine[s], rivals[m][s]) for m, s in product(rivals, SCORES)}
    ours = f"by the mean {best(rivals)} of 6"
    for m, rows in idle.items():
        scores = f"NMI {two(rows.nmi.mean())}, Recall {two(rows.recall.mean())}"
        n = best(rivals.keys() - idle)
        ours += f", or {n} of 6 without {m}, which finds no classes ({scores})"
    found = judged("clusters", "digits", "", "6 of 6", ours, gaps)
    open_ = {str(part["part"]).split(",")[0] for part in found.parts if part["outcome"] != HOLDS}
    ours += f"; not clearly above {' and '.join(m for m in rivals if m in open_)}" if open_ else ""
    claim = f"WM-NMF is best on all six scores, of {len(runs)} methods"
    return replace(found, claim=claim, ours=ours)


def lihc(results: Reproduction) -> Iterator[Claim]:
    # What the paper claims, it claims of its own methods.
    runs = {m: rows for m, rows in grouped(results.rows("lihc"), "method").items() if m in DIGITS}
    texts: dict[str, str] = TEXTS["lihc_claims"]
    if "WM-NMF" not in runs:
        if not results.rows("digits").empty:
            for claim, theirs in texts.items():
                yield Claim(
                    "clusters", "lihc", claim, theirs, "matrices not available", NOT_MEASURED
                )
        return
    (six, his), (above, yes), (steady, small), (network, ninety) = texts.items()
    ours, about = runs["WM-NMF"], ("clusters", "lihc")
    gaps = {
        SCORES[s]: mean_of(ours[s] - m) for s, (m, _) in zip(SCORES, LIHC["WM-NMF"], strict=True)
    }
    means = ", ".join(two(ours[s].mean()) for s in SCORES)
    yield judged(*about, six, his, f"{means}; {{open}}", gaps, within(SAME))
    pairs = list(product(("WM-NMF", "NMF-W2"), [m for m in runs if m not in ("WM-NMF", "NMF-W2")]))
    if "NMF-W2" in runs and pairs:
        gaps = {f"{a} − {b}": between(runs[a].acc, runs[b].acc) for a, b in pairs}
        yield judged(*about, above, yes, "ACC {gap}; {open}", gaps)
    # Spread: the distance of a run from the median of its method.
    far = {m: (rows.acc - rows.acc.median()).abs() for m, rows in runs.items()}
    if gaps := {m: between(far["WM-NMF"], off) for m, off in far.items() if m != "WM-NMF"}:
        yield judged(
            *about, steady, small, f"sd of ACC {ours.acc.std():.3f}; {{open}}", gaps, BELOW
        )
    yield judged(*about, network, ninety, spread(ours.acc), mean_of(ours.acc - SUPERVISED))


def noise(results: Reproduction) -> Iterator[Claim]:
    for weight, kind in product(WEIGHTS, KINDS):
        views = grouped(before_and_after(results, "WM-NMF", weight, kind), "of_view")
        if views:
            said = (f"{v} {m.before.mean():.3f} → {m.after.mean():.3f}" for v, m in views.items())
            gaps = {v: mean_of(m.after - m.before) for v, m in views.items()}
            claim = TEXTS["noise_claims"][weight][kind]
            ours = f"{', '.join(said)}; {{open}}"
            yield judged(weight, "noise", claim, "stated, not shown", ours, gaps, BELOW)


def before_and_after(results: Reproduction, method: str, weight: str, kind: str) -> pd.DataFrame:
    """By view and run: the weight in the fit without noise of the same seed, and with it."""
    rows = results.rows("noise", method=method)
    if rows.empty:
        return rows
    rows = rows[rows.scenario.isin(KINDS[kind])]
    names = {f"{weight}_before": "before", WEIGHTS[weight]: "after"}
    return rows[["of_view", "run", *names]].rename(columns=names).dropna()


def sweeps(results: Reproduction) -> Iterator[Claim]:
    for dataset, rows in grouped(results.rows("p", "weights"), "dataset").items():
        by = grouped(rows.groupby(["value", "run"], as_index=False).alpha.max(), "value")
        if len(by) < 2:
            continue
        low, *rest = by
        ours = "largest α " + ", ".join(
            f"{mine.alpha.mean():.2f} at p={p:g}" for p, mine in by.items()
        )
        yield judged(
            "tuning", "p", f"Small p gives sparse view weights ({dataset})", "yes", f"{ours}; {{open}}",
            {f"p={low:g} − p={p:g}": paired(by[low], by[p], "alpha") for p in rest},
        )  # fmt: skip
    for name, claim, least in (
        ("p", "Scores are alike for p ≥ 4", 4),
        ("beta", "Scores are alike for all β", 0),
        ("k", "Scores are alike for all K", 0),
    ):
        for dataset, rows in grouped(results.rows(name), "dataset").items():
            by = grouped(rows[rows.value >= least], "value")
            if len(by) > 1:
                yield _alike(name, f"{claim} ({dataset})", by)


def _alike(experiment: str, claim: str, by: Mapping[float, pd.DataFrame]) -> Claim:
    """Every score between the values with its highest and its lowest mean."""

    def widest(values: Iterable[float]) -> tuple[str, pd.DataFrame, dict[str, Gap]]:
        means = pd.DataFrame({v: by[v][list(SCORES)].mean() for v in values}).T
        gaps = {s: paired(by[means[s].idxmax()], by[means[s].idxmin()], s) for s in SCORES}
        score = max(SCORES, key=lambda s: gaps[s].mean)
        said = f"{SCORES[score]} {means[score].min():.3f} to {means[score].max():.3f}"
        return said, means, {SCORES[s]: gap for s, gap in gaps.items()}

    ours, means, gaps = widest(by)
    found = judged("tuning", experiment, claim, "yes", f"{ours}; {{open}}", gaps, within(ALIKE))
    if found.verdict in (FAILS, PARTLY) and len(by) > 2:
        # The value whose removal narrows the range most.
        out = min(by, key=lambda v: max(np.ptp(means.drop(index=v).to_numpy(), axis=0)))
        said, _, rest = widest([v for v in by if v != out])
        verdict = together(within(ALIKE).judge(gap, len(rest)) for gap in rest.values())
        found = replace(found, ours=f"{ours}; without {out:g}: {said}, {verdict}")
    return found


def slope(sizes: Iterable[float], seconds: Iterable[float]) -> float | None:
    """Exponent b of seconds ≈ c · size^b, by least squares on logarithms."""
    x, y = np.asarray(list(sizes), float), np.asarray(list(seconds), float)
    known = (x > 0) & (y > 0)
    if len(np.unique(x[known])) < 2:
        return None
    return float(np.polyfit(np.log(x[known]), np.log(y[known]), 1)[0])


def medians(rows: pd.DataFrame, parts: Iterable[str] = PARTS) -> pd.Series:
    """The median over the repeats at every size, of the parts together."""
    if rows.empty:
        return pd.Series(dtype=float)
    return rows.reindex(columns=list(parts)).sum(axis=1).groupby(rows.value).median()


def runtime(results: Reproduction) -> Iterator[Claim]:
    for axis, words in (("N", "samples"), ("n_v", "views")):
        rows = results.rows("runtime", axis=axis, method="manyview")
        whole = medians(rows)
        if (exponent := slope(whole.index, whole)) is None:
            continue
        gaps = {}
        for part in ("seconds_loop", "seconds_graph"):
            slopes = [slope(mine.value, mine[part]) for mine in grouped(rows, "run").values()]
            gaps[PARTS[part]] = mean_of(b for b in slopes if b is not None)
        plain = medians(results.rows("runtime", axis=axis, method="plain NumPy"))
        ours = ", ".join(f"{name} {axis}^{gap.mean:.2f}" for name, gap in gaps.items())
        ours += f"; whole fit {axis}^{exponent:.2f}"
        if (other := slope(plain.index, plain)) is not None:
            ours += f"; plain NumPy {axis}^{other:.2f}"
        claim = f"Time is about linear in the number of {words}"
        yield judged(
            "cost", "runtime", claim, "about linear", f"{ours}; {{open}}", gaps, Limits(0, LINEAR)
        )


def objective(results: Reproduction) -> Iterator[Claim]:
    by = grouped(results.rows("convergence", scheme="one at a time"), "dataset")
    # Before its first iteration a fit is the same under both schemes.
    starts = results.rows("convergence", scheme="recipe", iteration=0)
    for dataset in ("digits", "lihc") if "digits" in by else ():
        about = (
            "cost",
            "convergence",
            f"The objective converges within 50 iterations ({dataset})",
            "yes",
        )
        if dataset not in by:
            yield Claim(*about, "matrices not available", NOT_MEASURED)
            continue
        every = pd.concat([by[dataset], where(starts, dataset=dataset)])
        at = every.pivot_table(index="run", columns="iteration", values="objective")
        left = {}
        # The paper does not say where its curve begins: the change is counted from both.
        for first, name in ((0, "from the start"), (1, "from the first iteration")):
            if {first, 50, 100} <= set(at):
                known = at[[first, 50, 100]].dropna()
                share = (known[50] - known[100]).abs() / (known[first] - known[100]).abs()
                # A run that ends higher than it began has not converged.
                left[name] = mean_of(share.where(known[first] > known[100], 1.0))
        if left:
            said = ", ".join(f"{gap.mean:.0%} counted {name}" for name, gap in left.items())
            ours = f"change left after it: {said}"
            yield judged(*about, ours, left, Limits(-math.inf, SETTLED))
