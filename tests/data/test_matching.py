"""Ids that are written in several ways: joined only when asked, and never two samples of one file."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyview.app.cli.inputs import read_labels
from manyview.app.files import read_views
from manyview.app.files.relations import with_relations
from manyview.app.files.samples import (
    EXACT,
    LOOSE,
    PATIENT,
    TCGA,
    FileView,
    gist,
    matched,
    most_alike,
    n_common,
    smallest_rule,
    tumors_of_patients,
)
from manyview.app.files.text import (
    DecimalDoubt,
    decimal_mark,
    plain_number,
    recognize,
)

IDS = st.lists(
    st.text("aAbB01.-_ X", min_size=1, max_size=6).map(str.strip).filter(bool),
    min_size=1,
    max_size=8,
    unique=True,
)


def parts_of(*listed):
    return {
        str(s): FileView(f"{s}.csv", np.arange(len(ids) * 1.0)[:, None], list(ids), ["x"])
        for s, ids in enumerate(listed)
    }


@given(IDS, IDS, st.sampled_from(["loose", "tcga"]))
def test_no_rule_makes_one_sample_of_two(first, second, match):
    try:
        made, _, rule = matched(parts_of(first, second), match)
    except ValueError as error:
        assert "would make one sample of" in str(error)
        return
    for part, ids in zip(made.values(), (first, second), strict=True):
        assert len(set(part.ids)) == len(part.ids) == part.matrix.shape[0]
        kept = [i for i, sample in enumerate(ids) if rule.key(sample) is not None]
        np.testing.assert_array_equal(part.matrix.ravel(), kept)
    joined = set(made["0"].ids) & set(made["1"].ids)
    assert len(joined) == n_common([first, second], rule) >= n_common([first, second], EXACT)


@given(IDS, IDS)
def test_without_a_word_nothing_is_joined_and_a_better_rule_is_a_question(first, second):
    rule = smallest_rule([first, second], None)
    if rule is EXACT:
        made, notes, used = matched(parts_of(first, second), None)
        assert (made["0"].ids, made["1"].ids, notes, used) == (first, second, [], EXACT)
    else:
        with pytest.raises(
            ValueError, match=f"Add --match {rule.match} if they are, --match exact"
        ):
            matched(parts_of(first, second), None)
    assert matched(parts_of(first, second), "exact")[0]["1"].ids == second


@pytest.mark.parametrize(
    "one, other, match, words",
    [
        ("s1", "S1", "loose", LOOSE[0]),
        ("S-1a", "s.1A", "loose", LOOSE[1]),
        ("101", "X101", "loose", LOOSE[2]),
        ("gene", "gene.1", "loose", LOOSE[2]),
        ("P007", "p7", "loose", LOOSE[3]),
        ("TCGA-A1-0001-01A-11R", "TCGA.A1.0001.01A.22D", "tcga", PATIENT),
        ("TCGA-A1-0001-01A", "TCGA-A1-0001-01A", "tcga", PATIENT),
        ("TCGA-A1-0001-01A-11R", "tcga-a1-0001", "tcga", PATIENT),
    ],
)
def test_the_smallest_rule_is_used(one, other, match, words):
    assert smallest_rule([[one, "u"], [other, "v"]], match) is words
    assert gist(one) == gist(other)


def test_the_finer_rules_are_for_several_tumors_of_a_patient():
    one, other = ["TCGA-A1-0001-01A-11R", "TCGA-A1-0001-01B-11R"], ["TCGA-A1-0001-01B-22D"]
    assert smallest_rule([one, other], "tcga", tumors="all") is TCGA[2]
    assert smallest_rule([one[:1], other], "tcga", tumors="all") is TCGA[1]
    assert smallest_rule([["a"], ["b"]], "tcga") is EXACT  # no barcodes


PATIENTS = [f"TCGA-A1-000{i}" for i in range(1, 5)]
TYPED = st.lists(
    st.tuples(st.sampled_from(PATIENTS), st.sampled_from(["01A", "01B", "02A", "06A", "11A", "20A"]))
    .map("-".join),
    min_size=1,
    max_size=8,
    unique=True,
)  # fmt: skip


@given(TYPED, TYPED, st.sampled_from([None, "one", "all"]), st.booleans())
def test_every_patient_has_the_samples_that_were_asked_for(rna, meth, tumors, keep_normals):
    given = parts_of(rna, meth)
    try:
        made, notes = tumors_of_patients(given, keep_normals, tumors)
    except ValueError as error:
        if "--keep-normals" in str(error):
            assert any(all(n[13] in "12" for n in ids) for ids in (rna, meth)) and not keep_normals
        else:
            assert "--tumors one" in str(error) and "--tumors all" in str(error) and tumors is None
        return
    used = [part.ids for part in made.values()]
    for part, ids, file in zip(made.values(), (rna, meth), given.values(), strict=True):
        np.testing.assert_array_equal(part.matrix.ravel(), [ids.index(i) for i in part.ids])
        assert any(f"{file.file}: " in note for note in notes)
        normal = [i for i in ids if i[13] in "12"]
        assert [i for i in part.ids if i[13] in "12"] == (normal if keep_normals else [])
        if tumors == "all":
            assert set(ids) - set(normal) <= set(part.ids)
    types = {}
    for sample in (i for ids in used for i in ids if i[13] not in "12"):
        types.setdefault(sample[:12], []).append(sample[13:15])
    if tumors != "all":  # a row for each patient and file, of one type for all files
        for found in types.values():
            assert len(set(found)) == 1 and len(found) <= 2
        assert all(len({i[:12] for i in ids if i[13] == "0"}) ==
                   sum(i[13] == "0" for i in ids) for ids in used)  # fmt: skip
    assert set(types) == {i[:12] for i in rna + meth if i[13] not in "12"}  # nobody is lost


def test_the_question_names_two_tumors_and_not_one_tumor_in_two_files():
    a = "TCGA-A1-0001"
    with pytest.raises(ValueError, match=rf"'{a}-01A' \(.*\) and '{a}-06A' \("):
        tumors_of_patients(parts_of([f"{a}-01A"], [f"{a}-01A", f"{a}-06A"]), False, None)


def test_one_tumor_is_that_of_most_files_and_then_the_primary():
    a, b = "TCGA-A1-0001", "TCGA-A1-0002"
    rna, meth, cnv = [f"{a}-01A", f"{a}-06A", f"{b}-01B", f"{b}-01A"], [f"{a}-06A"], [f"{b}-01B"]
    made, notes = tumors_of_patients(parts_of(rna, meth, cnv), False, "one")
    assert [part.ids for part in made.values()] == [[f"{a}-06A", f"{b}-01B"], meth, cnv]
    assert "2 patients have several tumor samples" in notes[-1] and "2 rows left out" in notes[-1]
    made, _ = tumors_of_patients(parts_of([f"{a}-06A"], [f"{a}-01A"], [f"{b}-06A"]), False, "one")
    assert [part.ids for part in made.values()] == [[], [f"{a}-01A"], [f"{b}-06A"]]


def test_samples_are_called_by_what_they_were_matched_by():
    rna, meth = [f"{p}-01A-11R" for p in PATIENTS], [f"{p}-01A-22D" for p in reversed(PATIENTS)]
    normal = "TCGA-A1-0001-11A-11R"
    made, _, _ = matched(parts_of([*rna, normal], meth), "tcga")
    assert made["0"].original == [*rna, normal] and made["1"].original == meth
    lower = [p.lower() for p in PATIENTS]
    cases = [([], ()), ([meth], ()), ([rna], ()), ([meth, lower], ()), ([meth], lower), ([], lower)]
    for others, known in cases:
        ids = known or PATIENTS  # spelled as in the clinical table
        made, _, rule = matched(parts_of([*rna, normal], *others), "tcga", known)
        # Normal tissue is kept apart from the patient.
        assert rule is PATIENT and made["0"].ids == [*ids, "TCGA-A1-0001-11"]


def test_each_tumor_is_its_own_sample_if_asked():
    rna, meth = (
        [f"{PATIENTS[0]}-01A", f"{PATIENTS[1]}-01A"],
        [f"{PATIENTS[0]}-06A", f"{PATIENTS[1]}-01B"],
    )
    made, _, _ = matched(parts_of(rna, meth), "tcga", tumors="all")
    assert made["0"].ids == [f"{PATIENTS[0]}-01", f"{PATIENTS[1]}-01"]
    assert made["1"].ids == [f"{PATIENTS[0]}-06", f"{PATIENTS[1]}-01"]


NUMBERS = st.floats(-1e6, 1e6).map(lambda x: round(x, 2))


@given(st.lists(NUMBERS, min_size=1))
def test_numbers_survive_every_way_to_write_them(values):
    for x in values:
        assert float(plain_number(f"{x:,.2f}")) == x
        european = f"{x:,.2f}".translate(str.maketrans(",.", ".,"))
        assert float(plain_number(european, ",")) == x
        assert float(plain_number(f"{x}".replace(".", ","), ",")) == x


@pytest.mark.parametrize(
    "cells, separator, mark",
    [
        (["0,5", "1,25"], "\t", ","),
        (["1,234", "0,512"], ",", ","),
        (["1,234", "17"], ",", "."),
        (["1,234", "1,234,567"], ",", "."),
        (["1,234", "5,678"], ";", ","),
        (["1.234,5", "2.000,0"], ";", ","),
        (["1.5", "2.5"], ",", "."),
        (["a,b", "c,d"], ",", "."),
        ([], ",", "."),
    ],
)
def test_the_decimal_mark(cells, separator, mark):
    assert decimal_mark(cells, separator) == mark


def test_a_decimal_mark_that_nothing_tells_is_a_doubt():
    with pytest.raises(DecimalDoubt):
        decimal_mark(["1,234", "5,678"], ",")


@given(
    st.sampled_from([",", ";", "\t", "|"]),
    st.integers(2, 6),
    st.integers(2, 8),
    st.integers(0, 3),
    st.randoms(use_true_random=False),
)
def test_a_written_table_is_recognized(separator, width, length, titles, random):
    decimal = "," if separator == ";" else "."
    header = separator.join(["sample", *(f"g{j}" for j in range(width))])
    body = [
        separator.join(
            [f"s{i}", *(f"{random.random():.4f}".replace(".", decimal) for _ in range(width))]
        )
        for i in range(length)
    ]
    lines = [f"A title number {i}" for i in range(titles)] + [header, *body]
    found = recognize(".csv", [f"{line}\r\n" for line in lines])
    assert (found.separator, found.decimal, found.skipped) == (separator, decimal, titles)


def test_a_third_list_that_agrees_with_one_hides_nothing():
    genes, lipids = ["m1", "m2"], ["M1", "M2"]
    assert smallest_rule([genes, lipids, lipids], "loose") is LOOSE[0]
    made, _, _ = matched(parts_of(genes, lipids), "loose", known=["id", *lipids])
    assert made["0"].ids == made["1"].ids == lipids  # as the known table has them
    assert made["0"].original == genes


def test_rows_that_are_not_used_keep_their_place_in_the_file(tmp_path):
    """Labels and relations without ids are in the order of the first file, normal tissue included."""
    ids = ["TCGA-A1-0001-11A", *(f"{p}-01A" for p in PATIENTS), "TCGA-A1-0002-11A"]
    frame = pd.DataFrame(np.arange(18.0).reshape(6, 3), ids, ["u", "v", "w"])
    frame.to_csv(tmp_path / "rna.csv")
    (tmp_path / "labels.csv").write_text("\n".join("nabcdn"))
    np.save(tmp_path / "near.npy", np.ones((6, 6)) - np.eye(6))
    (tmp_path / "links.csv").write_text(
        "from,to\n" + "".join(f"{i},{ids[1]}-11R\n" for i in ids[2:5])
    )
    read = read_views([tmp_path / "rna.csv"], match="tcga")
    assert list(read.sample_names) == PATIENTS and read.original_ids == ids[1:5]
    assert read_labels(tmp_path / "labels.csv", read) == list("abcd")
    graphs = with_relations(
        read, {"graph": [f"{tmp_path}/near.npy", f"{tmp_path}/links.csv"]}
    ).relations
    assert graphs["near"].shape == (4, 4)
    assert graphs["links"].matrix.sum() > 0  # ids are matched there, too


def test_files_read_by_rows_are_used_whole_or_not(tmp_path):
    ids = ["TCGA-A1-0001-11A", *(f"{p}-01A" for p in PATIENTS)]
    frame = pd.DataFrame({"id": ids, "x": np.arange(5.0), "y": 1.0})
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "rna.parquet")
    with pytest.raises(ValueError, match=r"1 of 5 samples would be left out.*--keep-normals"):
        read_views([tmp_path / "rna.parquet"], on_disk=True)
    read = read_views([tmp_path / "rna.parquet"], on_disk=True, keep_normals=True)
    assert "4 primary solid tumor (01), 1 normal solid tissue (11)" in read.notes[0]


def test_ids_of_another_table_may_stand_in_any_of_its_columns():
    ids, stage, count = ["P11", "P12", "P13"], ["I", "II", "I"], ["1", "2", "3"]
    assert most_alike([count, stage, ids], ["p.11", "p.12", "1", "2", "3"]) == ids
    assert most_alike([stage, count], ["1", "2"]) == count
    assert most_alike([stage], ["x"]) == most_alike([], ["x"]) == []
