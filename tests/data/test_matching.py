"""Ids that are written in several ways: joined only when asked, and never two samples of one file."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyview.data.read.dialect import DecimalDoubt, decimal_mark, plain_number, recognise
from manyview.data.read.matching import EXACT, LOOSE, TCGA, gist, matched, n_common, smallest_rule
from manyview.data.read.part import Part

IDS = st.lists(
    st.text("aAbB01.-_ X", min_size=1, max_size=6).map(str.strip).filter(bool),
    min_size=1,
    max_size=8,
    unique=True,
)


def parts_of(*listed):
    return {
        str(s): Part(f"{s}.csv", np.arange(len(ids) * 1.0)[:, None], list(ids), ["x"])
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
        ("TCGA-A1-0001-01A-11R", "TCGA.A1.0001.01A.22D", "tcga", TCGA[0]),
        ("TCGA-A1-0001-01A", "TCGA-A1-0001-01B", "tcga", TCGA[1]),
        ("TCGA-A1-0001-01A-11R", "tcga-a1-0001", "tcga", TCGA[2]),
    ],
)
def test_the_smallest_rule_is_used(one, other, match, words):
    assert smallest_rule([[one, "u"], [other, "v"]], match) is words
    assert gist(one) == gist(other)


def test_normal_tissue_is_no_tumour_of_the_patient():
    rna = ["TCGA-A1-0001-01A", "TCGA-A1-0001-11A", "TCGA-A1-0002-11A", "TCGA-A1-0003-03A"]
    made, notes, _ = matched(
        parts_of(rna, ["TCGA-A1-0001", "TCGA-A1-0002", "TCGA-A1-0003"]), "tcga"
    )
    assert made["0"].ids == [rna[0], rna[3]] and made["1"].ids == [rna[0], "TCGA-A1-0002", rna[3]]
    assert "2 samples of normal tissue left out" in notes[0]


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
def test_a_written_table_is_recognised(separator, width, length, titles, random):
    decimal = "," if separator == ";" else "."
    header = separator.join(["sample", *(f"g{j}" for j in range(width))])
    body = [
        separator.join(
            [f"s{i}", *(f"{random.random():.4f}".replace(".", decimal) for _ in range(width))]
        )
        for i in range(length)
    ]
    lines = [f"A title number {i}" for i in range(titles)] + [header, *body]
    found = recognise(".csv", [f"{line}\r\n" for line in lines])
    assert (found.separator, found.decimal, found.skipped) == (separator, decimal, titles)


def test_a_third_list_that_agrees_with_one_hides_nothing():
    genes, lipids = ["m1", "m2"], ["M1", "M2"]
    assert smallest_rule([genes, lipids, lipids], "loose") is LOOSE[0]
    made, _, _ = matched(parts_of(genes, lipids), "loose", known=["id", *lipids])
    assert made["1"].ids == genes
