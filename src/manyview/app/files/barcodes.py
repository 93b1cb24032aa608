"""TCGA barcodes: the patient, the sample type and the vial; which samples of a patient are used."""

from __future__ import annotations

import re
from collections import Counter
from itertools import combinations

import numpy as np

from .options import TUMORS
from .part import Part

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
    parts: dict[str, Part], keep_normals: bool, tumors: str | None
) -> tuple[dict[str, Part], list[str]]:
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
            f"the patient {patient} has several tumor samples, {shown}{others}; a patient with two "
            "rows counts twice, and two tumors are no single sample: say --tumors one to use one of "
            "each patient (the sample type that most files have, then the lowest), or --tumors all "
            "to treat every tumor sample as a sample of its own"
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


Sample = tuple[str, int, str]
Samples = list[Sample]


def _several(parts: dict[str, Part]) -> dict[str, Samples]:
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


def _differ(one: Sample, other: Sample) -> bool:
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
