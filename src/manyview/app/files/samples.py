"""Samples of several files: TCGA barcodes, when two ids are one sample, and one order of rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from shlex import quote

import numpy as np
import scipy.sparse as sp

from manyview._types import Array, Matrix
from manyview.app.options import TUMORS
from manyview.engines.numpy.sources import is_streamed
from manyview.views.ids import (
    named_rows,
    places,
    refuse_lookalikes,
    refuse_repeated,
    refuse_strangers,
    take_rows,
)


@dataclass(frozen=True, eq=False)
class FileView:
    file: str
    matrix: Matrix
    ids: list[str] | None = None
    features: list[str] | None = None
    #: Heading and entries of a first column of whole numbers that was taken for a feature.
    first: tuple[str, list[str]] | None = None
    notes: list[str] = field(default_factory=list)
    path: Path | None = None
    #: Heading of the column the ids come from, if it was one.
    heading: str | None = None
    #: Whether the first line is headings; None where the kind of file leaves no doubt.
    headed: bool | None = None
    #: Whether the user named the ids.
    asked: bool = False
    turned: bool = False
    #: Columns that the user dropped.
    dropped: list[str] = field(default_factory=list)
    #: The ids as the file spells them, where ``ids`` are those that files were matched by.
    original: list[str] | None = None
    #: The rows of the file that are used, if not all are.
    used: Array | None = None

    def rows(self, kept: Array) -> FileView:
        """Some of the rows, with their ids."""
        lost = self.matrix.shape[0] - len(kept)
        if is_streamed(self.matrix):
            if lost:
                raise ValueError(
                    f"{lost} of {self.matrix.shape[0]} samples would be left out of {self.file} (normal "
                    "tissue, controls or further tumors of a patient), and files that are read by rows "
                    "are used whole; remove these rows from the file, or add --keep-normals or --tumors "
                    "all to use them"
                )
            return self
        ids = None if self.ids is None else [self.ids[i] for i in kept]
        used = kept if self.used is None else self.used[kept]
        return replace(self, matrix=self.matrix[kept], ids=ids, used=used)

    def transposed(self) -> FileView:
        """Rows and columns exchanged, and their names with them."""
        matrix = self.matrix.T
        matrix = np.ascontiguousarray(matrix) if isinstance(matrix, np.ndarray) else matrix.tocsr()
        return replace(
            self,
            matrix=matrix,
            ids=self.features,
            features=self.ids,
            first=None,
            turned=not self.turned,
        )

    @property
    def decision(self) -> str:
        """How the file was read: orientation, first line, ids."""
        rows, columns = ("columns", "rows") if self.turned else ("rows", "columns")
        n, m = self.matrix.shape
        told = [
            f"{self.file}: {n} sample{'s' * (n != 1)} in {rows}, {m} feature{'s' * (m != 1)} in {columns}"
        ]
        if self.headed is not None:
            told.append(f"the first line {'has column names' if self.headed else 'is a sample'}")
        if self.ids is None:
            told.append("no sample ids; rows are matched by position")
        else:
            place = "the headings" if self.turned and self.headed else "the file"
            if self.heading is not None and not self.turned:
                place = f"the column {self.heading!r}" if self.heading else "the first column"
            shown = ", ".join(repr(sample) for sample in self.ids[:2])
            told.append(f"sample ids from {place} ({shown}{', …' * (n > 2)})")
        if self.first is not None:
            told.append(
                f"the first column {self.first[0]!r} is read as a feature (if it names the samples, add "
                f"--index {quote(self.first[0])})"
            )
        return "; ".join(told)

    def check_ids(self) -> None:
        """Labels and tables of results are looked up by id: every sample has one, and its own."""
        if self.ids is None:
            return
        empty = [row + 1 for row, sample in enumerate(self.ids) if sample == ""]
        if empty:
            raise ValueError(
                f"{self.file} has no sample id in {named_rows(empty)} below the header; fill it in, or "
                "remove the row and what is no sample below it"
            )
        refuse_repeated(
            self.ids,
            self.file,
            "ids must be unique, so remove or rename the repeated ones, or, if this is not the column of "
            "ids, name that one by --index",
            first=1,
        )


# --- TCGA barcodes: patient, sample type and vial; which samples of a patient are used ------------


#: Patient, sample type and vial; other marks than "-" come from R and from file systems.
BARCODE = re.compile(
    r"(tcga)[-._ ]([a-z0-9]{2})[-._ ]([a-z0-9]{4})(?:[-._ ](\d{2})([a-z])?(?:[-._ ].*)?)?", re.I
)
#: TCGA's sample types, at positions 14 and 15 of a barcode.
TYPES = {
    1: "primary solid tumor",
    2: "recurrent solid tumor",
    3: "primary blood cancer, from blood",
    4: "recurrent blood cancer, from bone marrow",
    5: "additional new primary",
    6: "metastatic tumor",
    7: "additional metastatic tumor",
    8: "original tumor cells",
    9: "primary blood cancer, from bone marrow",
    10: "normal blood",
    11: "normal solid tissue",
    12: "normal buccal cells",
    13: "EBV-immortalized normal",
    14: "normal bone marrow",
    20: "control analyte",
    40: "recurrent blood cancer, from blood",
    50: "cell line",
    60: "primary xenograft",
    61: "cell-line xenograft",
}
#: Types of normal tissue (10 to 19) and of controls (20 to 29).
NORMAL = range(10, 30)


def pieces(text: str) -> list[str]:
    """TCGA, site, participant, and as far as they are there type and vial; nothing of another id."""
    found = BARCODE.fullmatch(text.strip())
    return [] if found is None else [piece.upper() for piece in found.groups() if piece]


def barcode(text: str, length: int) -> str:
    """The first pieces of a barcode. Normal tissue is never named by its patient alone."""
    found = pieces(text)
    if not found:
        return text
    length = max(length, 4) if _is_normal(found) else length
    return "-".join(found[: min(length, 4)]) + "".join(found[4:length])


def _is_normal(found: list[str]) -> bool:
    return len(found) > 3 and int(found[3]) in NORMAL


def tumors_of_patients(
    parts: dict[str, FileView], keep_normals: bool, tumors: str | None
) -> tuple[dict[str, FileView], list[str]]:
    """The parts without normal tissue and controls, and what sample types there are.

    A patient with several tumor samples is a question, unless ``tumors`` says "one" or "all".
    """
    notes, made = [], dict(parts)
    for view, part in parts.items():
        found = [pieces(sample) for sample in part.ids or ()]
        counts = Counter(int(f[3]) for f in found if len(f) > 3)
        if not counts:
            continue
        told = ", ".join(
            f"{n} {TYPES.get(t, 'of unknown type')} ({t:02d})" for t, n in sorted(counts.items())
        )
        normal = np.array([_is_normal(f) for f in found])
        if normal.all() and not keep_normals:
            raise ValueError(
                f"{part.file} has only normal tissue and controls ({told}), which are left out; add "
                "--keep-normals to use them"
            )
        left_out = (
            f"; the {normal.sum()} normal samples and controls are left out. To use them, add "
            "--keep-normals"
        )
        notes.append(
            f"{part.file}: sample types: {told}"
            + left_out * bool(normal.any() and not keep_normals)
        )
        made[view] = part if keep_normals else part.rows(np.flatnonzero(~normal))
    several = _several(made)
    if several and tumors is None:
        patient, samples = next(iter(several.items()))
        pair = next(p for p in combinations(samples, 2) if _differ(*p))
        shown = " and ".join(f"{sample!r} ({parts[view].file})" for view, _, sample in pair)
        n = len(several) - 1
        others = f"; so {'has' if n == 1 else 'have'} {n} other patient{'s' * (n > 1)}" if n else ""
        raise ValueError(
            f"the patient {patient} has several tumor samples, {shown}{others}: add --tumors one to use "
            "one tumor sample of each patient (the sample type that most files have, then the lowest), "
            "or --tumors all to use all as separate samples (these patients then have more weight)"
        )
    if several and tumors == TUMORS[0]:
        dropped = _all_but_one(several)
        for view, part in made.items():
            kept = [i for i in range(len(part.ids or ())) if (view, i) not in dropped]
            made[view] = part if part.ids is None else part.rows(np.array(kept, dtype=np.intp))
        n, lost = len(several), len(dropped)
        notes.append(
            f"{n} patient{'s have' if n > 1 else ' has'} several tumor samples: of each one is used, of "
            "the sample type that most files have, then the lowest type and vial; "
            f"{lost} row{'s' * (lost > 1)} left out"
        )
    return made, notes


Samples = list[tuple[str, int, str]]


def _several(parts: dict[str, FileView]) -> dict[str, Samples]:
    """Patient → (view, row, id) of each tumor sample, if two are in one file or of two types."""
    found: dict[str, Samples] = {}
    for view, part in parts.items():
        for i, sample in enumerate(part.ids or ()):
            name = pieces(sample)
            if len(name) > 3 and not _is_normal(name):
                found.setdefault("-".join(name[:3]), []).append((view, i, sample))
    return {
        patient: samples
        for patient, samples in found.items()
        if any(_differ(*pair) for pair in combinations(samples, 2))
    }


def _differ(one: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    """Whether two rows of a patient are no single sample: of one file, or of two types."""
    return one[0] == other[0] or pieces(one[2])[3] != pieces(other[2])[3]


def _all_but_one(several: dict[str, Samples]) -> set[tuple[str, int]]:
    """(view, row) of every tumor sample but one for each patient and view, all of one type."""
    dropped = set()
    for samples in several.values():
        files = {s: set[str]() for _, _, sample in samples for s in _levels(sample)}
        for view, _, sample in samples:
            for level in _levels(sample):
                files[level].add(view)
        # Type before vial before the rest of the barcode; what most files have, then what is lower.
        best = sorted(
            samples,
            key=lambda s: (*((-len(files[level]), level) for level in _levels(s[2])), s[2], s[1]),
        )
        type_of_best, taken = _levels(best[0][2])[0], set[str]()
        for view, i, sample in best:
            if view in taken or _levels(sample)[0] != type_of_best:
                dropped.add((view, i))
            else:
                taken.add(view)
    return dropped


def _levels(sample: str) -> tuple[str, str]:
    """The barcode up to the sample type, and up to the vial."""
    return barcode(sample, 4), barcode(sample, 5)


# --- when two ids are the same sample: as written, or by the smallest rule that brings files together ---


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
    Rule("loose", "upper and lower case are ignored", _case),
    Rule("loose", "case and the marks - . _ are ignored", _marks),
    Rule("loose", "case, marks, R's X in front and .1 behind are ignored", _suffix),
    Rule("loose", "case, marks and leading zeros are ignored", _zeros),
)
#: Normal tissue is its patient's only up to the sample, see `barcode`.
PATIENT = Rule(
    "tcga", "barcodes are compared up to the patient (TCGA-XX-XXXX)", lambda t: barcode(t, 3)
)
#: The finer ones are for several tumors of a patient.
TCGA = (
    PATIENT,
    Rule(
        "tcga", "barcodes are compared up to the sample (TCGA-XX-XXXX-01)", lambda t: barcode(t, 4)
    ),
    Rule(
        "tcga", "barcodes are compared up to the vial (TCGA-XX-XXXX-01A)", lambda t: barcode(t, 5)
    ),
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

    With barcodes, samples are named by patient even if their ids agree as written.
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
    parts: dict[str, FileView],
    match: str | None,
    known: Sequence[str] = (),
    tumors: str | None = None,
) -> tuple[dict[str, FileView], list[str], Rule]:
    """The parts with one spelling for one sample, by the requested rule.

    ``known`` are ids of another table, such as that of the labels, which a rule is to bring together
    with the files, too. Without a word from the user, ids that differ only in how they are written
    are a question.
    """
    listed = [part.ids for part in parts.values() if part.ids is not None]
    known = known if match is not None else ()
    few = len(listed) + bool(known) < 2 and match != "tcga"
    if match == "exact" or not listed or few or any(len(set(ids)) < len(ids) for ids in listed):
        return parts, [], EXACT
    rule = smallest_rule(listed, match, known, tumors)
    if match is None and rule is not EXACT:
        exact, found = n_common(listed, EXACT), n_common(listed, rule)
        files = [part.file for part in parts.values() if part.ids is not None]
        first: dict[str, str] = {}
        one, other = next(
            (first[rule.key(i)], i)
            for ids in listed
            for i in ids
            if first.setdefault(rule.key(i), i) != i
        )
        raise ValueError(
            f"{files[0]} and {files[1] if len(files) == 2 else 'the other files'} share {exact or 'no'} "
            f"sample id{'s' * (exact != 1)} as written, and {found} if {rule.words}: {one!r} and "
            f"{other!r} would be one sample. Add --match {rule.match} if they are, --match exact if they "
            "are not"
        )
    if match is None:
        return parts, [], EXACT
    if rule is EXACT:
        _refuse_merging(parts, match, n_links(listed, EXACT))
        told = [f"--match {match}: the ids match as they are written"]
        return parts, told, replace(EXACT, match=match)
    return _respelled(parts, rule, known)


def _refuse_merging(parts: dict[str, FileView], match: str, exact: int) -> None:
    """Name the samples that prevent a rule from matching."""
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
    parts: dict[str, FileView], rule: Rule, known: Sequence[str]
) -> tuple[dict[str, FileView], list[str], Rule]:
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


# --- rows by id -----------------------------------------------------------------------------------


#: From this many rows on, a column that counts them is a question.
FEWEST_COUNTED = 5


def with_common_ids(parts: dict[str, FileView]) -> tuple[dict[str, FileView], list[str]]:
    """A first column of distinct whole numbers, headed alike in several files, holds ids.

    Read as a feature it would let samples be joined by position.
    """
    seen = [part.first for part in parts.values() if part.first is not None]
    for heading in {first[0] for first in seen}:
        values = [set(first[1]) for first in seen if first[0] == heading]
        if len(values) > 1 and len(set.intersection(*values)) > len(values[0]) / 2:
            changed = dict(parts)
            for view, part in parts.items():
                if part.first is not None and part.first[0] == heading:
                    features = None if part.features is None else part.features[1:]
                    changed[view] = replace(
                        part,
                        matrix=part.matrix[:, 1:],
                        ids=part.first[1],
                        features=features,
                        first=None,
                        heading=heading,
                    )
            return changed, [
                f"the column {heading!r}, first in {len(values)} files, is used as the sample ids"
            ]
    return parts, []


def ask_if_rows_are_counted(parts: dict[str, FileView]) -> None:
    """A first column 1, 2, 3, … is hardly a feature, and as one it would weigh as much as any."""
    for view, part in parts.items():
        if part.first is None:
            continue
        heading, values = part.first
        start = [str(i) for i in range(len(values))], [str(i + 1) for i in range(len(values))]
        if len(values) >= FEWEST_COUNTED and values in start:
            raise ValueError(
                f"the first column {heading!r} of {part.file} counts the rows ({values[0]}, {values[1]}, "
                f"…, {values[-1]}) and may be ids or a feature; say which: --index "
                f"{quote(f'{view}={heading}')} for ids, --index {quote(view)}= for a feature"
            )


@dataclass(frozen=True, eq=False)
class Aligned:
    """Matrices with common rows, the ids of these, their rows in the first file, and what was noticed."""

    matrices: dict[str, Matrix]
    ids: list[str] | None
    first_rows: Array
    notes: list[str]


def align(parts: dict[str, FileView], union: bool) -> Aligned:
    """Rows by id, in the order of the first file; the union or the intersection of the samples."""
    for part in parts.values():
        part.check_ids()
    listed = [part.ids for part in parts.values() if part.ids is not None]
    same = all(ids == listed[0] for ids in listed)
    if len(listed) < len(parts) or same:
        return _in_one_order(parts, listed, same)
    if any(is_streamed(part.matrix) for part in parts.values()):
        first, other = listed[0], next(part for part in parts.values() if part.ids != listed[0])
        pairs = enumerate(zip(first, other.ids or (), strict=False))
        row = next((f", row {i}: {a!r} and {b!r}" for i, (a, b) in pairs if a != b), "")
        raise ValueError(
            "files read by rows must list the same samples in one order, but "
            f"{next(iter(parts.values())).file} ({len(first)} samples) and {other.file} "
            f"({len(other.ids or ())}) do not{row}"
        )
    sets = [set(ids) for ids in listed]
    files = [part.file for part in parts.values()]
    refuse_strangers(listed, files, union, _common_headings(list(parts.values())))
    refuse_lookalikes(listed, files)
    shared, everyone = set.intersection(*sets), dict.fromkeys(i for ids in listed for i in ids)
    order = list(everyone) if union else [i for i in listed[0] if i in shared]
    matrices, notes, first_rows = {}, [], np.arange(0)
    for s, (view, part) in enumerate(parts.items()):
        n = len(part.ids or ())
        rows = places(order, part.ids or ())
        first_rows = rows if s == 0 else first_rows
        X = part.matrix
        if (rows < 0).any() and not sp.issparse(X):
            X = X.astype(np.result_type(X.dtype, np.float32), copy=False)
        matrices[view] = take_rows(X, rows)
        if not union and n > len(order):
            notes.append(f"{part.file}: {n - len(order)} of {n} samples left out")
        if union and (rows < 0).any():
            notes.append(f"{part.file} lacks {int((rows < 0).sum())} of {len(order)} samples")
    if union:
        notes.append(
            f"{len(shared)} of {len(order)} samples are in every file; all {len(order)} are used, "
            "with missing views where a file lacks a sample"
        )
    elif notes:
        notes.append(f"{len(order)} samples are in every file and are used")
    return Aligned(matrices, order, first_rows, notes)


def _common_headings(parts: list[FileView]) -> str:
    """Where no row has a sample of the other files, the headings may."""
    both = len(set.intersection(*(set(part.features or ()) for part in parts)))
    return f". Their columns share {both} names: if these are the samples, add --transpose all" * (
        both > 0
    )


def _in_one_order(parts: dict[str, FileView], listed: list[list[str]], same: bool) -> Aligned:
    """Files of which some have no ids, or all the same: row i is the same sample in all."""
    first, *others = parts.values()
    if not same:
        bare = next(part for part in parts.values() if part.ids is None)
        raise ValueError(
            f"{bare.file} has no sample ids, and the other files list theirs in different orders; "
            "give every file a first column of ids, or name its column by --index"
        )
    n = first.matrix.shape[0]
    for part in others:
        if part.matrix.shape[0] != n:
            columns = {p.matrix.shape[1] for p in parts.values()}
            hint = ""
            if len(columns) == 1:
                hint = (
                    f". All have {columns.pop()} columns: if these are samples, add --transpose all"
                )
            raise ValueError(
                f"{first.file} has {n} samples and {part.file} has {part.matrix.shape[0]}; without "
                f"ids in every file the rows must be the same samples in the same order{hint}"
            )
    notes = []
    if len(parts) > 1 and len(listed) < len(parts):
        without = [part.file for part in parts.values() if part.ids is None]
        notes = [f"no sample ids in {', '.join(without)}: rows are matched by position"]
    matrices = {view: part.matrix for view, part in parts.items()}
    return Aligned(matrices, listed[0] if listed else None, np.arange(n), notes)
