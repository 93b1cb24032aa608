"""Which side of a table the samples are on: where nobody can tell, it is a question."""

import numpy as np
import pandas as pd
import pytest

from manyview.data.read import read_views
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
    assert read_views([tmp_path / "a.csv"], known=SAMPLES).views["a"].shape == (12, 10)


@pytest.mark.parametrize("name", ["P04637", "S01", "RS001", "TCGA-A0-1000", "Mouse_1", "cell_12"])
def test_samples_are_not_called_so(name):
    assert not is_feature_name(name)
