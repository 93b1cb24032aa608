"""When two ids are the same sample: as written, or by the smallest rule that brings files together.

A rule makes a key of an id. It is used only if somebody asks for it, and never if it would give two
samples of one file the same key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from .barcodes import barcode, pieces
from .part import Part


@dataclass(frozen=True)
class Rule:
    """A name of `--match`, what does not count under it, and the key of an id."""

    match: str
    words: str
    key: Callable[[str], str]


def _case(text: str) -> str:
    return " ".join(text.lower().split())


def _marks(text: str) -> str:
    return re.sub(r"[-._/:\s]+", "", _case(text))


def _suffix(text: str) -> str:
    # R writes X before a name that begins with a number, and .1 after one it has seen.
    return re.sub(r"^x(?=\d)", "", _marks(re.sub(r"\.\d$", "", text.strip())))


def _zeros(text: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", _suffix(text))


EXACT = Rule("exact", "as they are written", lambda text: text)
#: From the smallest change to the largest.
LOOSE = (
    Rule("loose", "upper and lower case do not count", _case),
    Rule("loose", "case and the marks - . _ do not count", _marks),
    Rule("loose", "case, marks, R's X in front and .1 behind do not count", _suffix),
    Rule("loose", "case, marks and leading zeros do not count", _zeros),
)
#: Normal tissue is its patient's only up to the sample, see `barcode`.
PATIENT = Rule("tcga", "barcodes count up to the patient (TCGA-XX-XXXX)", lambda t: barcode(t, 3))
#: The finer ones are for several tumors of a patient.
TCGA = (
    PATIENT,
    Rule("tcga", "barcodes count up to the sample (TCGA-XX-XXXX-01)", lambda t: barcode(t, 4)),
    Rule("tcga", "barcodes count up to the vial (TCGA-XX-XXXX-01A)", lambda t: barcode(t, 5)),
)


def is_barcode(text: str) -> bool:
    return bool(pieces(text))


def gist(text: str) -> str:
    """What is left of an id when nothing but its letters and digits count, of a barcode the patient.

    Good enough to tell on which side of a table samples are; never used to join them.
    """
    return "-".join(pieces(text)[:3]).lower() or _zeros(text)


def n_links(listed: Sequence[Iterable[str]], rule: Rule, known: Iterable[str] = ()) -> int:
    """How often an id is met again in another list; −1 if two ids of one list would become the same.

    Ids of ``known`` may become the same: a rule that they need is not used for them alone.
    """
    counts = _counts(listed, rule)
    if counts is None:
        return -1
    counts.update({rule.key(name) for name in known})
    return sum(n - 1 for n in counts.values())


def n_common(listed: Sequence[Iterable[str]], rule: Rule) -> int:
    """How many samples are in every list."""
    counts = _counts(listed, rule) or Counter()
    return sum(n == len(listed) for n in counts.values())


def _counts(listed: Sequence[Iterable[str]], rule: Rule) -> Counter[str] | None:
    """key → number of lists that have it; nothing if a list would have it twice."""
    counts: Counter[str] = Counter()
    for ids in listed:
        keys = list(map(rule.key, ids))
        if len(set(keys)) < len(keys):
            return None
        counts.update(keys)
    return counts


def smallest_rule(
    listed: Sequence[Sequence[str]],
    match: str | None,
    known: Sequence[str] = (),
    tumors: str | None = None,
) -> Rule:
    """The first rule that brings as many samples together as any; of one family if asked.

    Where barcodes were asked for, samples are called by patient even if their ids agree as written.
    """
    if match == "exact":
        return EXACT
    families = {"loose": LOOSE, "tcga": TCGA, None: (*LOOSE, *TCGA)}
    best, most = EXACT, n_links(listed, EXACT, known)
    if match == "tcga" and any(is_barcode(name) for ids in listed for name in ids):
        most -= 1
    for rule in families[match]:
        found = n_links(listed, rule, known)
        # Where each tumor is a sample, two of one patient are never the same.
        if found > most and found >= 0 and not (rule is PATIENT and tumors == "all"):
            best, most = rule, found
    return best


def most_alike(candidates: Iterable[Sequence[str]], names: Iterable[str]) -> list[str]:
    """The list that shares most ids with these names, however they are written; empty if none does.

    Numbers, which may only count rows, give way to other ids.
    """
    lists = [list(dict.fromkeys(ids)) for ids in candidates]
    wanted = set(map(gist, names)) if lists else set[str]()
    hits = [(len(wanted.intersection(map(gist, ids))), ids) for ids in lists]
    found = [(not all(map(str.isdecimal, ids)), n, ids) for n, ids in hits if n]
    return max(found, key=lambda item: item[:2])[2] if found else []


def matched(
    parts: dict[str, Part],
    match: str | None,
    known: Sequence[str] = (),
    tumors: str | None = None,
) -> tuple[dict[str, Part], list[str], Rule]:
    """The parts with one spelling for one sample, as the rule asked for has it.

    ``known`` are ids of another table, such as that of the labels, which a rule is to bring together
    with the files, too. Without a word from the user, ids that differ only in how they are written
    are a question.
    """
    listed = [part.ids for part in parts.values() if part.ids is not None]
    known = known if match is not None else ()
    few = len(listed) + bool(known) < 2 and match != "tcga"
    if match == "exact" or not listed or few or any(_repeats(ids) for ids in listed):
        return parts, [], EXACT
    rule = smallest_rule(listed, match, known, tumors)
    if match is None:
        _propose(parts, listed, rule)
        return parts, [], EXACT
    if rule is EXACT:
        _refuse_merging(parts, match, n_links(listed, EXACT))
        told = [f"--match {match}: the ids match as they are written"]
        return parts, told, replace(EXACT, match=match)
    return _respelled(parts, rule, known)


def _repeats(ids: Sequence[str]) -> bool:
    return len(set(ids)) < len(ids)


def _propose(parts: dict[str, Part], listed: Sequence[Sequence[str]], rule: Rule) -> None:
    if rule is EXACT:
        return
    exact, found = n_common(listed, EXACT), n_common(listed, rule)
    files = [part.file for part in parts.values() if part.ids is not None]
    one, other = _example(listed, rule)
    raise ValueError(
        f"{files[0]} and {files[1] if len(files) == 2 else 'the other files'} share {exact or 'no'} "
        f"sample id{'s' * (exact != 1)} as written, and {found} if {rule.words}: {one!r} and {other!r} "
        f"would be one sample. Add --match {rule.match} if they are, --match exact if they are not"
    )


def _example(listed: Sequence[Sequence[str]], rule: Rule) -> tuple[str, str]:
    first: dict[str, str] = {}
    for ids in listed:
        for sample in ids:
            key = rule.key(sample)
            if first.setdefault(key, sample) != sample:
                return first[key], sample
    return listed[0][0], listed[1][0]


def _refuse_merging(parts: dict[str, Part], match: str, exact: int) -> None:
    """Say which samples stand in the way, where a rule would help but for them."""
    for rule in LOOSE if match == "loose" else TCGA:
        listed = [{rule.key(i): i for i in part.ids or ()} for part in parts.values()]
        if sum(n - 1 for n in Counter(key for keys in listed for key in keys).values()) <= exact:
            continue
        for part, last in zip(parts.values(), listed, strict=True):
            for sample in part.ids or ():
                other = last[rule.key(sample)]
                if other != sample:
                    raise ValueError(
                        f"--match {match} would make one sample of {sample!r} and {other!r} of "
                        f"{part.file}; keep one of the two in the file, or give them ids that differ "
                        "in more" + ", or add --tumors one" * (match == "tcga")
                    )


def _respelled(
    parts: dict[str, Part], rule: Rule, known: Sequence[str]
) -> tuple[dict[str, Part], list[str], Rule]:
    """One spelling for one sample, by which other tables find it.

    That of the ``known`` table; else of a barcode what was matched, of another id the first file's.
    """
    times = Counter(map(rule.key, known))
    spelled = {rule.key(name): name for name in known if times[rule.key(name)] == 1}
    made = {}
    for view, part in parts.items():
        made[view] = part
        if part.ids is not None:
            keys = {i: rule.key(i) for i in part.ids}
            own = {i: k if rule.match == "tcga" and is_barcode(i) else i for i, k in keys.items()}
            ids = [spelled.setdefault(keys[i], own[i]) for i in part.ids]
            made[view] = replace(part, ids=ids, original=part.ids)
    n = n_common([part.ids for part in made.values() if part.ids is not None], EXACT)
    told = f"ids matched: {rule.words}"
    return made, [told + f"; {n} samples are in every file" * (len(made) > 1)], rule
