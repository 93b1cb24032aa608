"""The tables of `quality`: sets before and after, means and ranks, noise, and which targets are met."""

import numpy as np

OURS, COMMUNITIES = "RobustWMNMF", "RobustWMNMF, communities"
#: Square tables given as what they are.
GRAPHS = "RobustWMNMF, links as GraphView"
ELEVEN = [
    *("digits4", "digits6", "bbcsport", "3sources", "mnist_hog4", "100leaves", "bdgp3"),
    *("reuters1200", "scene15", "msrcv1_5", "rosmap"),
]
SCORES = ("acc", "nmi", "ari")
#: The added view of this condition has structure, but that of other samples: its weight is told apart.
IRRELEVANT = "irrelevant_added"
#: Sets, scores and what they should reach.
TARGETS = [
    *(("digits6", "acc", 0.980), ("digits4", "acc", 0.975)),
    *(("webkb_texas", "nmi", 0.30), ("webkb_cornell", "nmi", 0.30), ("proteinfold12", "nmi", 0.44)),
    *(("pairedtag_h3k4me3", "ari", 0.80), ("msrcv1_5", "acc", 0.90), ("reuters1200", "nmi", 0.42)),
]
#: How else a set may reach it.
OTHER_WAYS = {
    "pairedtag_h3k4me3": (COMMUNITIES,),
    "webkb_texas": (GRAPHS,),
    "webkb_cornell": (GRAPHS,),
    "acm": (GRAPHS,),
}
#: Sets that several views should cluster better than any one of them does.
ABOVE_SINGLE = ("acm", "citeseer")
SINGLE = "best single view (oracle)"
#: The largest loss of NMI against the older version, and against a plain baseline.
MAY_LOSE, MAY_LOSE_TO_PLAIN = 0.01, 0.05
PLAIN = ("concat z + kNN-spectral", "concat, our scaling + kNN-spectral", "sum of graphs",
         "concat z + k-means")  # fmt: skip


def report(rows, before=()):
    cases = grouped(rows)
    older = {key: case[OURS] for key, case in grouped(before).items() if OURS in case}
    by_set(cases, older)
    means(cases)
    noise(rows)
    targets(rows, cases, older)


def grouped(rows):
    """(set, condition) → method → rows of its seeds."""
    cases = {}
    for r in rows:
        cases.setdefault((r["set"], r["condition"]), {}).setdefault(r["method"], []).append(r)
    return cases


def mean(rows, field):
    values = [float(r[field]) for r in rows if r.get(field) not in ("", None)]
    return float(np.mean(values)) if values else np.nan


def cell(rows):
    values = (mean(rows, field) for field in SCORES)
    return "/".join("–" if np.isnan(value) else f"{value:.3f}" for value in values)


def by_set(cases, older):
    """ACC/NMI/ARI of every clean set: before, now, and all others."""
    kinds = list(dict.fromkeys(m for key, case in cases.items() if key[1] == "clean" for m in case))
    kinds = [OURS, *(m for m in kinds if m != OURS)]
    print("ACC/NMI/ARI, clean\n")
    print("| set |" + (" before |" if older else "") + "".join(f" {m} |" for m in kinds))
    print("|---|" + ("---|" if older else "") + "---|" * len(kinds))
    for (name, condition), case in cases.items():
        if condition != "clean":
            continue
        line = f"| {name} |"
        if older:
            line += f" {cell(older[name, condition]) if (name, condition) in older else '–'} |"
        print(line + "".join(f" {cell(case[m]) if m in case else '–'} |" for m in kinds))


def means(cases):
    """Means over sets, and the mean rank by NMI among methods that ran everywhere."""
    kinds = list(dict.fromkeys(m for case in cases.values() for m in case))
    everywhere = [m for m in kinds if all(m in case for case in cases.values())]
    filters = {
        "eleven clean": lambda s, c: s in ELEVEN and c == "clean",
        "eleven noisy": lambda s, c: s in ELEVEN and c != "clean",
        "all clean": lambda s, c: c == "clean",
        "all noisy": lambda s, c: c != "clean",
    }
    ranks = {m: [] for m in everywhere}
    for case in cases.values():
        values = np.array([mean(case[m], "nmi") for m in everywhere])
        for m, v in zip(everywhere, values, strict=True):
            ties = (np.abs(values - v) <= 1e-12).sum() - 1
            ranks[m].append(1 + (values > v + 1e-12).sum() + ties / 2)
    print(
        f"\n{len(cases)} cases; mean ACC/NMI, and mean rank by NMI among methods that ran everywhere"
    )
    print(f"{'method':38}" + "".join(f"{f:>16}" for f in filters) + f"{'rank':>8}")
    for m in kinds:
        line = f"{m:38}"
        for keep in filters.values():
            chosen = [case[m] for key, case in cases.items() if keep(*key) and m in case]
            acc, nmi = (
                np.mean([mean(rows, field) for rows in chosen]) if chosen else np.nan
                for field in ("acc", "nmi")
            )
            line += f"{acc:>10.3f}/{nmi:.3f}"
        print(line + f"{np.mean(ranks[m]) if m in ranks else np.nan:8.2f}")


def noise(rows):
    """Noise views, corrupted rows, and what an irrelevant view costs, for methods that have weights."""
    for m in dict.fromkeys(r["method"] for r in rows):
        own = [r for r in rows if r["method"] == m]
        pure = [r for r in own if r["condition"] != IRRELEVANT]
        weights = [float(r["noise_weight"]) for r in pure if r["noise_weight"] != ""]
        loss = irrelevant_loss(own)
        if weights:
            print(
                f"\n{m}: noise view last in {mean(pure, 'noise_last'):.1%} of {len(weights)} runs, its "
                f"weight {np.mean(weights):.3f} on average and {max(weights):.3f} at most; corrupted "
                f"rows found with AUC {mean(own, 'auc'):.3f}"
            )
        if not np.isnan(loss):
            told = mean([r for r in own if r["condition"] == IRRELEVANT], "noise_weight")
            weight = "" if np.isnan(told) else f" (its weight {told:.3f})"
            print(f"{m}: an irrelevant view added costs {loss:.3f} NMI{weight}")


def irrelevant_loss(own):
    """Mean over sets of the NMI lost when a view of other samples is added."""
    cases = grouped(own)
    lost = [
        mean(next(iter(cases[name, "clean"].values())), "nmi")
        - mean(next(iter(case.values())), "nmi")
        for (name, condition), case in cases.items()
        if condition == IRRELEVANT and (name, "clean") in cases
    ]
    return float(np.mean(lost)) if lost else np.nan


def targets(rows, cases, older):
    """What was asked of RobustWMNMF, as far as these sets can tell."""
    own = [r for r in rows if r["method"] == OURS]
    found = []
    for name, field, least in TARGETS:
        if OURS in cases.get((name, "clean"), {}):
            case = cases[name, "clean"]
            asked = (OURS, *OTHER_WAYS.get(name, ()))
            value = max(mean(case[m], field) for m in asked if m in case)
            found.append((f"{name} {field.upper()}, {least:g} or more", value, value >= least))
    for name in ABOVE_SINGLE:
        case = cases.get((name, "clean"), {})
        if OURS in case and SINGLE in case:
            best = max(mean(case[m], "nmi") for m in (OURS, *OTHER_WAYS.get(name, ())) if m in case)
            gain = best - mean(case[SINGLE], "nmi")
            found.append((f"{name} NMI above its best single view", gain, gain > 0))
    behind = {
        key[0]: max(mean(case[m], "nmi") for m in PLAIN if m in case) - mean(case[OURS], "nmi")
        for key, case in cases.items()
        if key[1] == "clean" and OURS in case and any(m in case for m in PLAIN)
    }
    if behind:
        worst = max(behind, key=behind.get)
        text = f"NMI behind a plain baseline ({worst}), {MAY_LOSE_TO_PLAIN:g} at most"
        found.append((text, behind[worst], behind[worst] <= MAY_LOSE_TO_PLAIN))
    both = [key for key in cases if key[1] == "clean" and key in older and OURS in cases[key]]
    if both:
        lost = {key: mean(older[key], "nmi") - mean(cases[key][OURS], "nmi") for key in both}
        worst = max(lost, key=lost.get)
        text = f"largest loss of NMI ({worst[0]}), {MAY_LOSE:g} at most"
        found.append((text, lost[worst], lost[worst] <= MAY_LOSE))
    pure = [r for r in own if r["condition"] != IRRELEVANT and r["noise_weight"] != ""]
    if pure:
        last, weight = mean(pure, "noise_last"), max(float(r["noise_weight"]) for r in pure)
        found.append(("noise view last, in every run", last, last == 1))
        found.append(("its weight below .03, in every run", weight, weight < 0.03))
    for words, sets, least in (("the eleven sets", ELEVEN, 0.93), ("all sets", None, 0.91)):
        auc = mean([r for r in own if sets is None or r["set"] in sets], "auc")
        if not np.isnan(auc):
            found.append((f"AUC of corrupted rows, {words}, {least:g}", auc, auc >= least))
    loss = irrelevant_loss(own)
    if not np.isnan(loss):
        found.append(("NMI lost by an irrelevant view, below .02", loss, loss < 0.02))
    print("\ntargets")
    for text, value, met in found:
        print(f"  {text:58}{value:8.4f}  {'met' if met else 'MISSED'}")
