"""Lines around a table, marks in its numbers, and sentences about what cannot be read."""

import io

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manyview.app.files import read_views
from manyview.app.files.text import drop_closing_lines, plain_number, recognize, second_line

BODY = [["s1", "1,5", "2"], ["s2", "3,5", "4"], ["s3", "5", ""]]


def write(folder, content, name="a.csv"):
    (folder / name).write_text(content, encoding="utf-8")
    return [folder / name]


def test_words_below_the_headings():
    merged = second_line(["id", "A", ""], [["", "x", "y"], *BODY], ",")
    assert merged is not None and merged[0] == ["id", "x", "y"] and "second names" in merged[1]
    units = second_line(["id", "A", "B"], [["unit", "kg", "kg"], *BODY], ",")
    assert (
        units is not None and units[0] == ["id", "A", "B"] and "left out ('kg', 'kg')" in units[1]
    )
    assert second_line(["id", "A", "B"], BODY, ",") is None
    assert second_line(["id", "A", "B"], [["s0", "NA", ""], *BODY], ",") is None
    texts = [["s1", "f", "II"], ["s2", "m", "I"], ["s3", "m", "I"]]
    assert second_line(["id", "sex", "stage"], texts, ".") is None


def test_remarks_below_go_and_samples_without_values_stay():
    text = "s1,1,2\ns2,3,4\ns3,,\nlost,,\n,,\n* s2 was measured twice,,\nSource: a portal,,\n"
    frame = pd.read_csv(io.StringIO(text), header=None)
    (told,) = drop_closing_lines(frame)
    assert told == "2 lines below the table left out ('* s2 was measured twice', …)"
    assert frame[0].tolist() == ["s1", "s2", "s3", "lost"]


def test_a_blank_line_and_numbers_below_it_are_no_remark(tmp_path):
    with pytest.raises(
        ValueError, match="row 3 below the header; fill it in, or remove the row and"
    ):
        read_views(write(tmp_path, "id,a,b\ns1,1,2\ns2,3,4\n,,\nMean,2,3\n"), missing="allow")


@given(st.integers(-(10**9), 10**9), st.sampled_from(" \u00a0\u202f'\u2019"), st.sampled_from(".,"))
def test_blanks_and_apostrophes_between_thousands(n, blank, mark):
    written = f"{n:,}".replace(",", blank) + f"{mark}25"
    assert float(plain_number(written, mark)) == float(f"{n}.25")
    assert float(plain_number(written.replace("-", "\u2212"), mark)) == float(f"{n}.25")


@pytest.mark.parametrize("text", ["12 34", "1 2345", "1 234'567", "0 123", "a 123", "–", "x−1 2"])
def test_other_texts_stay_as_they_are(text):
    assert plain_number(text) == text


@pytest.mark.parametrize("mark", [";", "\t", "|", ","])
def test_a_line_that_names_the_separator(mark):
    lines = [f"sep={mark}\r\n", f"id{mark}a{mark}b\r\n", f"s1{mark}1{mark}2\r\n"]
    assert (recognize(".csv", lines).separator, recognize(".csv", lines).skipped) == (mark, 1)


def test_values_beyond_a_limit_are_said_with_what_to_do(tmp_path):
    with pytest.raises(ValueError, match=r"beyond a limit .* --na '<0.5'"):
        read_views(write(tmp_path, "id,a,b\ns1,0,2\ns2,<0.5,3\ns3,<0.5,4\n"))


@pytest.mark.parametrize("name, command", [("a b.zip", "unzip"), ("a.csv.xz", "unxz")])
def test_archives_are_to_be_unpacked(tmp_path, name, command):
    with pytest.raises(ValueError, match=f"unpack it: {command}"):
        read_views(write(tmp_path, "", name))


def test_ids_are_told_as_each_file_spells_them(tmp_path):
    files = write(tmp_path, "id,a,b\nS1,1,2\nS2,3,4\n") + write(
        tmp_path, "id,c\ns1,1.5\ns2,3\n", "b.csv"
    )
    told = read_views(files, match="loose").decisions
    assert "('S1', 'S2')" in told[0] and "('s1', 's2')" in told[1]


@pytest.mark.parametrize(
    "name", ["Subtype_mRNA", "iCluster", "cluster_k3", "PAM50", "days_to_death"]
)
def test_more_names_of_answers(tmp_path, name):
    rows = "".join(f"s{i},{i}.5,{i % 3}\n" for i in range(12))
    with pytest.raises(ValueError, match=f"the column '{name}', which looks like known classes"):
        read_views(write(tmp_path, f"id,age,{name}\n{rows}"))
