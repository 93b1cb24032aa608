"""Which side of a table the samples are on: where nobody can tell, it is a question."""

import numpy as np
import pandas as pd
import pytest

from manyview.app.files import read_views
from manyview.engines.files.headings import is_feature_name

GENES = ["TP53", "BRCA1", "EGFR", "KRAS", "MYC"]
SAMPLES = [f"S{i:02d}" for i in range(12)]


def table(rows, columns, seed=0):
    values = np.random.default_rng(seed).normal(size=(len(rows), len(columns)))
    return pd.DataFrame(values, index=rows, columns=columns)


def test_genes_written_alike_do_not_win_over_samples_written_differently(tmp_path):
    table(GENES, SAMPLES).to_csv(tmp_path / "a.csv")
    table([s.lower() for s in SAMPLES], GENES).to_csv(tmp_path / "b.csv")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(ValueError, match=r"transposing b.csv or a.csv makes the ids agree"):
        read_views(files, match="loose")
    found = read_views(files, match="loose", transpose=["a"])
    assert list(found.sample_names) == SAMPLES
    assert found.features["a"] == found.features["b"] == GENES


@pytest.mark.parametrize(
    "name",
    ["ENSG00000141510.12", "ENSMUSG00000059552", "cg00000029", "hsa-mir-21", "NM_000546", "1007_s_at",
     "ILMN_1343291", "rs12345678", "chr1:10468-10469"],
)  # fmt: skip
def test_rows_called_as_in_a_catalogue_of_features_are_a_question(tmp_path, name):
    assert is_feature_name(name)
    rows = [name, *(f"ENSG0000000000{i}" for i in range(9))]
    table(rows, SAMPLES).to_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"10 rows may be features .* --transpose a if .* none if"):
        read_views([tmp_path / "a.csv"])
    assert read_views([tmp_path / "a.csv"], transpose=["a"]).views["a"].shape == (12, 10)
    assert read_views([tmp_path / "a.csv"], transpose=["none"]).views["a"].shape == (10, 12)
    assert read_views([tmp_path / "a.csv"], known=[SAMPLES]).views["a"].shape == (12, 10)


@pytest.mark.parametrize("name", ["P04637", "S01", "RS001", "TCGA-A0-1000", "Mouse_1", "cell_12"])
def test_samples_are_not_called_so(name):
    assert not is_feature_name(name)


def write_as_r(frame, path, function):
    """As write.csv does, with an empty corner, or write.table, with a heading too few."""
    frame.to_csv(path, sep="," if function == "write.csv" else "\t", quoting=2)
    if function == "write.table":
        path.write_text(path.read_text().removeprefix('""\t'))


@pytest.mark.parametrize("function", ["write.csv", "write.table"])
@pytest.mark.parametrize("shared", [1, 5, 20, 38])
def test_headings_that_agree_far_better_than_row_names_are_a_question(tmp_path, function, shared):
    """However few features two tables of features × samples share."""
    names = [f"feature{i}" for i in range(80)]
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    write_as_r(table(names[:40], SAMPLES), files[0], function)
    write_as_r(table(names[40 - shared : 80 - shared], SAMPLES[::-1]), files[1], function)
    sentence = (
        rf"share {shared} row names \('feature.*\) and 12 headings \('S00', .*--transpose all if"
    )
    with pytest.raises(ValueError, match=sentence):
        read_views(files)
    assert list(read_views(files, transpose=["all"]).sample_names) == SAMPLES
    assert read_views(files, transpose=["none"], missing="allow").views["a"].shape == (
        80 - shared,
        12,
    )
    # A clinical table settles it, wherever its ids are.
    clinic = [[str(i) for i in range(12)], [f"s.{i:02d}" for i in range(12)]]
    found = read_views(files, known=clinic)
    assert list(found.sample_names) == SAMPLES and "transposed" in " ".join(found.notes)


@pytest.mark.parametrize("shared", [12, 6, 2])
def test_samples_that_tables_share_in_part_are_no_question(tmp_path, shared):
    """Where the headings do not agree better."""
    others = [*SAMPLES[:shared], *(f"T{i}" for i in range(12 - shared))]
    table(SAMPLES, [f"gene{i}" for i in range(30)]).to_csv(tmp_path / "a.csv")
    table(others, [f"probe{i}" for i in range(28)] + ["gene1", "gene2"]).to_csv(tmp_path / "b.csv")
    found = read_views([tmp_path / "a.csv", tmp_path / "b.csv"], missing="allow")
    assert len(found.sample_names) == 24 - shared


@pytest.mark.parametrize("known", [["SLC25A4", "ZNF12", "TP53"], ["Krt5", "Actb", "Rpl3"]])
def test_a_table_with_well_known_genes_in_rows_is_a_question(tmp_path, known):
    rows = [*known, *(f"anything{i}" for i in range(200))]
    table(rows, SAMPLES).to_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"203 rows may be features .* --transpose a if"):
        read_views([tmp_path / "a.csv"])
    table(SAMPLES, rows).to_csv(tmp_path / "a.csv")
    assert read_views([tmp_path / "a.csv"]).views["a"].shape == (12, 203)
