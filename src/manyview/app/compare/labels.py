"""Known classes from a file, in the order of the views' samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from manyview.app.files import (
    NOTHING,
    ReadViews,
    cells_of,
    load_npy,
    located,
    text_of,
)
from manyview.app.files.samples import EXACT, smallest_rule
from manyview.datasets._tables import split_suffix
from manyview.io.writing import safe_text

#: Headings of the column of labels in a table of more than two columns.
LABEL_NAMES = {"label", "labels", "class", "classes", "cluster", "target", "y"}


def read_labels(path: str | Path, read: ReadViews, partial: bool = False) -> list[Any]:
    """Known classes for the samples of ``read``: a table of id and label, or one column in file order.

    With ``partial`` a sample may lack one: it gets ``None``.
    """
    found = _labels(path, read)
    name = Path(path).name
    if not partial:
        _refuse_unknown(name, found, read)
    elif all(label is None for label in found):
        raise ValueError(
            f"{name} has a label for none of the {len(found)} samples; {_example(read)}"
        )
    return found


def _example(read: ReadViews) -> str:
    if read.sample_names is None:
        return "fill them in"
    return f"its ids should be those of the views, such as {read.sample_names[0]!r}"


def _refuse_unknown(file: str, labels: list[Any], read: ReadViews) -> None:
    absent = [i for i, label in enumerate(labels) if label is None]
    if absent:
        names = read.first_rows + 1 if read.sample_names is None else read.sample_names
        raise ValueError(
            f"{file} lacks the labels of {len(absent)} of the {len(labels)} samples, the first being "
            f"{str(names[absent[0]])!r}; add them, or remove the samples from the views"
        )


def _labels(path: str | Path, read: ReadViews) -> list[Any]:
    _, path, inside = located(str(path))
    if split_suffix(path.name)[1] == ".npy":
        array = load_npy(path)
        if array.ndim != 1:
            raise ValueError(f"{path.name} has shape {array.shape}; labels are one per sample, 1-D")
        return _in_file_order(path.name, array.tolist(), read)
    frame, header, headed, *_ = cells_of(path, inside)
    texts = [[text_of(cell) for cell in frame.iloc[:, j]] for j in range(frame.shape[1])]
    if len(texts) == 1:
        # A heading cannot be told from a label by its looks, only by being one line too many.
        if len(texts[0]) == read.n_first:
            return _in_file_order(path.name, texts[0], read)
        if header[0].lower() in LABEL_NAMES:  # unless it says so: then a line below is missing
            raise ValueError(
                f"{path.name} has {len(texts[0])} labels under the heading {header[0]!r} for "
                f"{read.n_first} samples (blank lines do not count); give one label each"
            )
        if not headed:  # a number that was no label but the heading pandas invents
            return _in_file_order(path.name, texts[0][len(texts[0]) == read.n_first + 1 :], read)
        return _in_file_order(path.name, [*header, *texts[0]], read)
    column = 1
    if len(texts) > 2:
        matching = [j for j, name in enumerate(header) if name.lower() in LABEL_NAMES]
        if len(matching) != 1:
            raise ValueError(
                f"{path.name} has the columns {', '.join(header)}; keep the id and the label, or head "
                "one column 'label'"
            )
        column = matching[0]
    ids, labels = texts[0], texts[column]
    if read.sample_names is not None and read.rule.key(header[0]) in map(
        read.rule.key, map(str, read.sample_names)
    ):
        ids, labels = [header[0], *ids], [header[column], *labels]  # no heading: a sample
    return _by_id(path.name, ids, labels, read)


def _in_file_order(file: str, labels: list[Any], read: ReadViews) -> list[Any]:
    if len(labels) != read.n_first:
        raise ValueError(
            f"{file} has {len(labels)} lines for {read.n_first} samples; give one label each, or two "
            "columns, id and label"
        )
    if (read.first_rows < 0).any():
        raise ValueError(
            f"{file} has labels in file order, but some samples are not in the first file; give two "
            "columns, id and label"
        )
    return [_known(labels[i]) for i in read.first_rows]


def _by_id(file: str, ids: list[str], labels: list[str], read: ReadViews) -> list[Any]:
    if read.sample_names is None:
        counted = ([str(i) for i in range(read.n_first)], [str(i + 1) for i in range(read.n_first)])
        if ids in counted:
            return _in_file_order(file, labels, read)
        raise ValueError(
            f"{file} gives labels by sample id, but the view files have no ids; give a single column "
            "of labels in the order of the views' rows"
        )
    known: dict[str, str] = {}
    for sample, label in zip(ids, labels, strict=True):
        if known.setdefault(sample, label) != label:
            raise ValueError(f"{file} gives the sample {sample!r} two labels; keep one")
    # Our own tables have an apostrophe before ids that spreadsheets take for formulas.
    wanted = [str(sample) for sample in read.sample_names]
    if read.rule is not EXACT:
        return _by_key(file, known, wanted, read)
    found = [_known(known.get(sample, known.get(safe_text(sample)))) for sample in wanted]
    rule = smallest_rule([wanted, list(known)], None)
    if all(label is None for label in found) and rule is not EXACT:
        raise ValueError(
            f"{file} has other ids than the views ({next(iter(known))!r}, {wanted[0]!r}), which are the "
            f"same if {rule.words}; add --match {rule.match}"
        )
    return found


def _by_key(file: str, known: dict[str, str], wanted: list[str], read: ReadViews) -> list[Any]:
    """Labels by the rule that matched the views' ids; two labels for one sample are refused."""
    by_key: dict[str, str] = {}
    for sample, label in known.items():
        key = read.rule.key(sample)
        if by_key.setdefault(key, label) != label:
            raise ValueError(
                f"{file} gives two labels to {sample!r} and another id that --match "
                f"{read.rule.match} takes for the same sample; keep one"
            )
    return [_known(by_key.get(read.rule.key(sample))) for sample in wanted]


def ids_in(path: str | Path) -> list[str]:
    """The ids of a table of labels, as far as it has any; nothing of a file that is no such table."""
    _, file, inside = located(str(path))
    if split_suffix(file.name)[1] == ".npy":
        return []
    frame, header, *_ = cells_of(file, inside)
    return [header[0], *map(text_of, frame.iloc[:, 0])] if frame.shape[1] > 1 else []


def _known(label: Any) -> Any:
    """The label, ``None`` where the cell is empty or says so."""
    return None if label in NOTHING or label != label else label
