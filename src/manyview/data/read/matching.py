"""When two ids are the same sample: as written, or by the smallest rule that brings files together.

A rule makes a key of an id. It is used only if somebody asks for it, and never if it would give two
samples of one file the same key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from .part import Part

#: Patient, sample and vial of a barcode; other marks than "-" come from R and from file systems.
BARCODE = re.compile(
    r"(tcga)[-._ ]([a-z0-9]{2})[-._ ]([a-z0-9]{4})(?:[-._ ](\d{2})([a-z])?(?:[-._ ].*)?)?", re.I
)
#: Sample types from 10 on are normal tissue and controls.
FIRST_NORMAL = 10


@dataclass(frozen=True)
class Rule:
    """A name of `--match`, what does not count under it, and the key of an id; None leaves it out."""

    match: str
    words: str
    key: Callable[[str], str | None]


def _case(text: str) -> str:
    return " ".join(text.lower().split())


def _marks(text: str) -> str:
    return re.sub(r"[-._/:\s]+", "", _case(text))


def _suffix(text: str) -> str:
    # R writes X before a name that begins with a number, and .1 after one it has seen.
    return re.sub(r"^x(?=\d)", "", _marks(re.sub(r"\.\d$", "", text.strip())))


def _zeros(text: str) -> str:
    return re.sub(r"(?<!\d)0+(?=\d)", "", _suffix(text))


def _barcode(text: str, parts: int) -> str | None:
    """The first parts of a TCGA barcode; normal tissue is no patient's tumour."""
    found = BARCODE.fullmatch(text.strip())
    if found is None:
        return text
    pieces = [piece for piece in found.groups() if piece is not None]
    if parts == 3 and len(pieces) > 3 and int(pieces[3]) >= FIRST_NORMAL:
        return None
    return "-".join(pieces[:parts]).upper()


EXACT = Rule("exact", "as they are written", lambda text: text)
#: From the smallest change to the largest.
LOOSE = (
    Rule("loose", "upper and lower case do not count", _case),
    Rule("loose", "case and the marks - . _ do not count", _marks),
    Rule("loose", "case, marks, R's X in front and .1 behind do not count", _suffix),
    Rule("loose", "case, marks and leading zeros do not count", _zeros),
)
TCGA = (
    Rule("tcga", "barcodes count up to the vial (TCGA-XX-XXXX-01A)", lambda t: _barcode(t, 5)),
    Rule("tcga", "barcodes count up to the sample (TCGA-XX-XXXX-01)", lambda t: _barcode(t, 4)),
    Rule("tcga", "barcodes count up to the patient (TCGA-XX-XXXX)", lambda t: _barcode(t, 3)),
)


def is_barcode(text: str) -> bool:
    return BARCODE.fullmatch(text.strip()) is not None


def gist(text: str) -> str:
    """What is left of an id when nothing but its letters and digits count, of a barcode the patient.

    Good enough to tell on which side of a table samples are; never used to join them.
    """
    return (_barcode(text, 3) or text.strip()[:12]).lower() if is_barcode(text) else _zeros(text)


def n_links(listed: Sequence[Iterable[str]], rule: Rule) -> int:
    """How often an id is met again in another list; −1 if two ids of one list would become the same."""
    counts = _counts(listed, rule)
    return -1 if counts is None else sum(n - 1 for n in counts.values())


def n_common(listed: Sequence[Iterable[str]], rule: Rule) -> int:
    """How many samples are in every list."""
    counts = _counts(listed, rule) or Counter()
    return sum(n == len(listed) for n in counts.values())


def _counts(listed: Sequence[Iterable[str]], rule: Rule) -> Counter[str] | None:
    """key → number of lists that have it; nothing if a list would have it twice."""
    counts: Counter[str] = Counter()
    for ids in listed:
        keys = [key for key in map(rule.key, ids) if key is not None]
        if len(set(keys)) < len(keys):
            return None
        counts.update(keys)
    return counts


def smallest_rule(listed: Sequence[Sequence[str]], match: str | None) -> Rule:
    """The first rule that brings as many samples together as any; of one family if asked."""
    families = {"loose": LOOSE, "tcga": TCGA, None: (*LOOSE, *TCGA)}
    best, most = EXACT, n_links(listed, EXACT)
    for rule in families[match]:
        found = n_links(listed, rule)
        if found > most:
            best, most = rule, found
    return best


def matched(
    parts: dict[str, Part], match: str | None, known: Iterable[str] = ()
) -> tuple[dict[str, Part], list[str], Rule]:
    """The parts with one spelling for one sample, as the rule asked for has it.

    ``known`` are ids of another table, such as that of the labels, which a rule is to bring together
    with the files, too. Without a word from the user, ids that differ only in how they are written
    are a question.
    """
    listed = [part.ids for part in parts.values() if part.ids is not None]
    if match is not None and listed and known:
        listed = [*listed, list(dict.fromkeys(known))]
    if match == "exact" or len(listed) < 2 or any(_repeats(ids) for ids in listed):
        return parts, [], EXACT
    rule = smallest_rule(listed, match)
    if match is None:
        _propose(parts, listed, rule)
        return parts, [], EXACT
    if rule is EXACT:
        _refuse_merging(parts, match, n_links(listed, EXACT))
        return parts, [f"--match {match}: the ids match as they are written"], EXACT
    return _respelled(parts, rule)


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
            if key is not None and first.setdefault(key, sample) != sample:
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
                if other != sample and rule.key(sample) is not None:
                    raise ValueError(
                        f"--match {match} would make one sample of {sample!r} and {other!r} of "
                        f"{part.file}; keep one of the two in the file, or give them ids that differ "
                        "in more"
                    )


def _respelled(parts: dict[str, Part], rule: Rule) -> tuple[dict[str, Part], list[str], Rule]:
    """One spelling for one key: that of the file which has it first."""
    spelled: dict[str, str] = {}
    made, notes = {}, []
    for view, part in parts.items():
        if part.ids is None:
            made[view] = part
            continue
        keys = [rule.key(sample) for sample in part.ids]
        kept = np.array([i for i, key in enumerate(keys) if key is not None], dtype=np.intp)
        ids = [spelled.setdefault(str(keys[i]), part.ids[i]) for i in kept]
        if len(kept) < len(keys):
            notes.append(
                f"{part.file}: {len(keys) - len(kept)} samples of normal tissue left out, since files "
                "are matched by patient"
            )
            part = replace(part, matrix=part.matrix[kept])
        made[view] = replace(part, ids=ids)
    n = n_common([part.ids for part in made.values() if part.ids is not None], EXACT)
    notes.append(f"ids matched: {rule.words}; {n} samples are in every file")
    return made, notes, rule
