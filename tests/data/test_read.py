"""Files as people have them, and `manyview compare` on them."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from conftest import blobs
from manyview.app.cli.app import app
from manyview.app.cli.inputs import read_labels
from manyview.app.files import read_views

IDS = [f"s{i}" for i in range(12)]


def frame(seed=0, ids=IDS, columns=3):
    values = np.random.default_rng(seed).random((len(ids), columns))
    named = pd.Index(ids, name="sample")  # or it would be asked which side the samples are on
    return pd.DataFrame(values, index=named, columns=[f"g{j}" for j in range(columns)])


def text(folder, name, content):
    (folder / name).write_text(content)
    return str(folder / name)


def test_every_kind_of_file_gives_the_same_numbers(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "a.csv")
    table.to_csv(tmp_path / "b.tsv", sep="\t")
    table.to_parquet(tmp_path / "c.parquet")
    table.to_csv(tmp_path / "d.csv.gz")
    np.save(tmp_path / "e.npy", table.to_numpy())
    np.savez(tmp_path / "f.npz", one=table.to_numpy(), two=table.to_numpy())
    sp.save_npz(tmp_path / "g.npz", sp.csr_array(table.to_numpy()))
    paths = [
        tmp_path / name for name in ("a.csv", "b.tsv", "c.parquet", "d.csv.gz", "e.npy", "f.npz")
    ]
    read = read_views([*paths, f"counts={tmp_path / 'g.npz'}"])
    assert list(read.views) == ["a", "b", "c", "d", "e", "one", "two", "counts"]
    for matrix in read.views.values():
        matrix = matrix.toarray() if sp.issparse(matrix) else matrix
        np.testing.assert_allclose(matrix, table.to_numpy())
    assert list(read.sample_names) == IDS


def test_samples_are_aligned_by_id_and_the_rest_is_told(tmp_path):
    a, b = frame(0), frame(1).iloc[::-1].iloc[:10]
    a.to_csv(tmp_path / "a.csv")
    b.to_csv(tmp_path / "b.csv")
    read = read_views([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert list(read.sample_names) == IDS[2:]
    np.testing.assert_allclose(read.views["b"], frame(1).to_numpy()[2:])
    assert "a.csv: 2 of 12 samples left out" in read.notes
    labels = text(tmp_path, "y.csv", "\n".join(str(i) for i in range(12)))
    assert read_labels(labels, read) == [str(i) for i in range(2, 12)]


@pytest.mark.parametrize(
    "content, shape, named",
    [
        ("id,g0,g1\n7,1,2\n9,3,4\n", (2, 2), ["7", "9"]),
        (",g0,g1\n0,1,2\n1,3,4\n", (2, 2), ["0", "1"]),
        ("g0,g1\n1,2\n3,4\n", (2, 2), None),
        ("1.5,2\n3,4\n", (2, 2), None),
        ("a,1.5,2\nb,3,4\n", (2, 2), ["a", "b"]),
        ("sample,7157,1956\na,3,4\n", (1, 2), ["a"]),
        ("g0,g1\nx,1,2\ny,3,4\n", (2, 2), ["x", "y"]),  # as R writes it
        ("status,g1\nx,1\ny,3\n", (2, 1), ["x", "y"]),
    ],
)
def test_what_a_first_column_and_a_first_line_are(tmp_path, content, shape, named):
    read = read_views([text(tmp_path, "v.csv", content)])
    assert read.views["v"].shape == shape and read.views["v"][-1, -1] in (3, 4)
    assert (None if read.sample_names is None else list(read.sample_names)) == named


BAD = {
    "text in a cell": ("a.csv", "g0,g1\n1,2\nhigh,4\n5,6\n", r"a\.csv has 'high' in row '2', column 'g0'"),
    "ids twice": ("a.csv", "id,g0\nx,1\nx,2\n", r"a\.csv has the sample id 'x' more than once"),
    "id missing": ("a.csv", "id,g0\nx,1\n,2\nz,3\n", "a.csv has no sample id in row 2 below the header"),
    "empty cell": ("a.csv", "id,g0\nx,1\ny,\n", "a.csv has 1 empty cells, the first in row 'y'"),
    "only a header": ("a.csv", "id,g0\n", "a.csv has no rows of data"),
    "only ids": ("a.csv", "id\nx\ny\n", "2 samples and 0 features besides the ids"),
    "ragged": ("a.csv", "id,g0\nx,1\ny,1,2,3\n", "4 cells in line 3"),
    "not an array": ("a.npy", "hello", "a.npy could not be read as an array of numbers"),
    "not parquet": ("a.parquet", "hello", "a.parquet could not be read as a table"),
    "unknown kind": ("a.docx", "", r"a\.docx is of an unknown kind; files may be \.csv"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_answered_by_a_sentence(tmp_path, case):
    name, content, sentence = BAD[case]
    with pytest.raises(ValueError, match=sentence):
        read_views([text(tmp_path, name, content)])


def test_bad_sets_of_files(tmp_path):
    frame().to_csv(tmp_path / "a.csv")
    frame(ids=[f"t{i}" for i in range(12)]).to_csv(tmp_path / "b.csv")
    frame(1).iloc[::-1].to_csv(tmp_path / "c.csv")
    np.save(tmp_path / "d.npy", np.ones((12, 2)))
    np.save(tmp_path / "e.npy", np.ones((5, 2)))
    np.save(tmp_path / "f.npy", np.array([["x"]]))
    np.save(tmp_path / "g.npy", np.ones(3))
    for files, sentence in (
        (["a.csv", "b.csv"], r"b\.csv shares no sample id .*: a\.csv has 's0', b\.csv has 't0'"),
        (["a.csv", "c.csv", "d.npy"], r"d\.npy has no sample ids, and the other files list theirs"),
        (["a.csv", "e.npy"], r"a\.csv has 12 samples and e\.npy has 5"),
        (["f.npy"], r"f\.npy has entries of type"),
        (["g.npy"], r"g\.npy has 1 dimension"),
        (["a.csv", "a.csv"], r"would both be the view 'a'; name one of them"),
        (["none.csv"], "does not exist"),
        ([], "no view file was given"),
    ):
        with pytest.raises(ValueError, match=sentence):
            read_views([tmp_path / name for name in files])
    with pytest.raises(ValueError, match="is not name=path"):
        read_views(["=x"])


def test_labels_by_id_in_file_order_and_their_mistakes(tmp_path):
    frame().to_csv(tmp_path / "a.csv")
    np.save(tmp_path / "b.npy", np.ones((12, 2)))
    named, bare = read_views([tmp_path / "a.csv"]), read_views([tmp_path / "b.npy"])
    classes = [str(i % 3) for i in range(12)]

    def joined(pairs):
        return "\n".join(pairs) + "\n"

    shuffled = joined(
        ["id,label", *(f"{s},{c}" for s, c in reversed(list(zip(IDS, classes, strict=True))))]
    )
    column = joined(classes)
    good = {
        "id.csv": (shuffled, named),
        "id.tsv": (shuffled.replace(",", "\t"), named),
        "bare.csv": (shuffled.split("\n", 1)[1], named),
        "wide.csv": (shuffled.replace(",", ",9,").replace(",9,label", ",age,class"), named),
        "column.csv": (column, bare),
        "headed.csv": ("label\n" + column, bare),
        "pandas.csv": (joined([",label", *(f"{i},{c}" for i, c in enumerate(classes))]), bare),
    }  # fmt: skip
    for name, (content, read) in good.items():
        assert read_labels(text(tmp_path, name, content), read) == classes, name
    np.save(tmp_path / "y.npy", np.arange(12))
    assert read_labels(tmp_path / "y.npy", bare) == [str(i) for i in range(12)]
    bad = {
        "blank.csv": ("label\n" + column.replace("1", "", 1), bare, "11 labels for 12 samples"),
        "few.csv": ("a\nb\n", bare, "few.csv has 1 labels for 12 samples"),
        "absent.csv": ("id,label\ns0,a\n", named, "lacks the labels of 11 of the 12 samples"),
        "two.csv": (shuffled + "s0,9\n", named, "has the id 's0' in 2 rows that differ"),
        "hole.csv": (shuffled.replace("s3,0", "s3,"), named, "labels of 1 of the 12.* 's3'"),
        "which.csv": ("id,a,b\nx,1,2\n", named, "has none of the 12 samples"),
        "unasked.csv": (shuffled, bare, "but the view files have no ids"),
    }  # fmt: skip
    for name, (content, read, sentence) in bad.items():
        with pytest.raises(ValueError, match=sentence):
            read_labels(text(tmp_path, name, content), read)


def run(*arguments):
    return CliRunner().invoke(app, ["compare", *map(str, arguments)])


def test_the_command_from_files_to_page_and_again(tmp_path):
    views, y = blobs(n=30, features=(4, 5, 3, 4))
    ids = [f"p{i}" for i in range(30)]
    frames = [pd.DataFrame(X, index=ids).add_prefix(f"g{s}_") for s, X in enumerate(views)]
    frames[0].to_csv(tmp_path / "rna.csv")
    frames[1].to_csv(tmp_path / "protein.tsv", sep="\t")
    frames[2].to_parquet(tmp_path / "image.parquet")
    np.save(tmp_path / "clinic.npy", views[3])
    pd.DataFrame({"label": y}, index=ids).to_csv(tmp_path / "y.csv")
    out = tmp_path / "out"
    files = [tmp_path / name for name in ("rna.csv", "protein.tsv", "image.parquet")]
    asked = [
        *files,
        f"c={tmp_path / 'clinic.npy'}",
        "--labels",
        tmp_path / "y.csv",
        "--clusters",
        3,
    ]
    asked += ["--out", out, "--methods", "ConcatK-z, SumOfGraphs", "--runs", 1, "--jobs", 2]
    result = run(*asked)
    assert result.exit_code == 0, result.output
    assert "ConcatK-z" in result.output and "comparison.html" in result.output
    expected = {"results.csv", "summary.csv", "comparison.png", "comparison.html", "runs"}
    expected |= {"agreement.csv", "consensus.csv"}
    assert {p.name for p in out.iterdir() if not p.name.startswith(".")} == expected
    table = pd.read_csv(out / "results.csv")
    assert list(table["method"]) == ["ConcatK-z", "SumOfGraphs"] and table["acc"].eq(1).all()
    page = (out / "comparison.html").read_text()
    assert "views and their features: rna (4), protein (5), image (3), c (4)" in page
    assert "--clusters 3" in page and "--runs 1" in page
    before = {p.name: p.stat().st_mtime_ns for p in (out / "runs").iterdir()}
    assert run(*asked).exit_code == 0
    assert before == {p.name: p.stat().st_mtime_ns for p in (out / "runs").iterdir()}
    pd.testing.assert_frame_equal(table, pd.read_csv(out / "results.csv"))


@pytest.mark.parametrize(
    "change, sentence",
    [
        (["--methods", "nonsense"], "there is no method 'nonsense'"),
        (["--clusters", "99"], "--clusters 99 is more than the number of samples"),
        (["--max-seconds", "-1"], "max_seconds must be a number above 0"),
        (["--labels", "none.csv"], "none.csv does not exist"),
        (["--out", "FILE"], "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(tmp_path, change, sentence):
    path = tmp_path / "a.csv"
    frame().to_csv(path)
    change = [str(path) if item == "FILE" else item for item in change]
    result = run(path, "--clusters", 2, "--out", tmp_path / "out", *change)
    assert result.exit_code == 2 and sentence in result.stderr
    said = result.stderr.splitlines()  # how the file was read, and what is wrong
    assert [line for line in said if " in rows, " not in line] == said[-1:]
    assert "Traceback" not in result.output
    assert [p.name for p in tmp_path.iterdir()] == ["a.csv"]


@pytest.mark.parametrize("heading", ["patient_id", "PatientID", "Sample", "MRN", "case no"])
def test_numeric_ids_under_a_telling_heading_are_ids(tmp_path, heading):
    ids = list(range(100, 112))
    frame(0, ids).to_csv(tmp_path / "a.csv", index_label=heading)
    frame(1, ids).iloc[::-1].to_csv(tmp_path / "b.csv", index_label=heading)
    read = read_views([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert list(read.sample_names) == [str(i) for i in ids]
    np.testing.assert_array_equal(read.views["b"], frame(1).to_numpy())
    assert read.features["b"] == ["g0", "g1", "g2"]


def test_whole_numbers_headed_alike_in_every_file_are_ids(tmp_path):
    ids = list(range(100, 112))
    frame(0, ids).to_csv(tmp_path / "a.csv", index_label="nr")
    other = frame(1, ids).add_prefix("other ").iloc[::-1]
    other.to_csv(tmp_path / "b.csv", index_label="nr")
    read = read_views([tmp_path / "a.csv", tmp_path / "b.csv"])
    np.testing.assert_array_equal(read.views["b"], frame(1).to_numpy())
    assert read.notes[0] == "the column 'nr', first in 2 files, is used as the sample ids"
    # A feature with distinct whole numbers in one file only is a feature.
    assert read_views([tmp_path / "a.csv"]).views["a"].shape == (12, 4)


def test_ids_in_another_column_are_found_by_name(tmp_path):
    table = frame().rename_axis("who").reset_index()
    table[["g0", "who", "g1", "g2"]].to_csv(tmp_path / "a.csv", index=False)
    frame(1).to_csv(tmp_path / "b.csv", index_label="id")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for index in (["a=who"], ["a=who", "b=id"]):
        read = read_views(files, index=index)
        assert list(read.sample_names) == IDS and read.features["a"] == ["g0", "g1", "g2"]
    with pytest.raises(
        ValueError, match=r"b\.csv has 0 columns 'who' .* its columns begin 'id', 'g0'"
    ):
        read_views(files, index=["who"])
    with pytest.raises(ValueError, match=r"a\.csv: the column 'who' is text, such as 's0'"):
        read_views(files)


@pytest.mark.parametrize(
    "content, shape",
    [
        ("1.5,2\n3,4\n", (2, 2)),
        ("p1,5,2\np2,3,4\np3,3,4\n", (3, 2)),
        ("x,5,5\ny,3,4\n", (2, 2)),
    ],
)
def test_a_file_without_headings_keeps_its_first_sample_and_says_so(tmp_path, content, shape):
    read = read_views([text(tmp_path, "v.csv", content)])
    assert read.views["v"].shape == shape
    assert "v.csv has no column names" in read.notes[0]


WORDS = "abcdefghijklmnopqrst"
INTEGERS = np.random.default_rng(0).permutation(1000)[:60].reshape(20, 3)


def lines(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in rows)


@pytest.mark.parametrize(
    "content, shape",
    [
        (lines([["alice", "NA", 3], ["bob", 1, 2]]), (2, 2)),  # nobody heads a column NA
        (lines([range(10), *np.ones((20, 10), int)]), (20, 10)),  # headings that pandas invents
    ],
)
def test_a_first_line_of_numbers_is_a_sample_if_it_has_gaps_and_headings_if_it_counts(
    tmp_path, content, shape
):
    read = read_views([text(tmp_path, "v.csv", content)], missing="allow")
    assert read.views["v"].shape == shape
    what = "is a sample" if shape[0] == content.count("\n") else "has column names"
    assert f"the first line {what}" in read.decisions[0]


DOUBTFUL = {
    "names and whole numbers": lines([w, *row] for w, row in zip(WORDS, INTEGERS, strict=True)),
    "counted": lines([[1, 2, 3], *INTEGERS]),
    "two columns": "0,1\n1,2\n3,4\n",
    "one column": "1\n0\n1\n5\n",
    "whole numbers": lines(INTEGERS),
    "ids of genes": lines([[5594, 207, 7157, 1956], *np.random.default_rng(0).random((20, 4))]),
    "out of range": lines([[5594, 2070, 7157], *INTEGERS]),
    "a scale": lines([[400.5, 401, 401.5, 402, 402.5, 403], *np.random.default_rng(0).random((20, 6))]),
}  # fmt: skip


@pytest.mark.parametrize("case", DOUBTFUL)
def test_a_first_line_that_may_be_either_is_asked_about(tmp_path, case):
    content = DOUBTFUL[case]
    file, n = text(tmp_path, "v.csv", content), content.count("\n")
    with pytest.raises(
        ValueError, match=r"v\.csv .* may be column names or the first sample.*--header v="
    ):
        read_views([file])
    for answers, rows in ((["no"], n), (["v=yes"], n - 1), (["yes", "v=no"], n)):
        assert read_views([file], header=answers).views["v"].shape[0] == rows
    with pytest.raises(ValueError, match="--header v=maybe: say yes or no"):
        read_views([file], header=["v=maybe"])
    with pytest.raises(ValueError, match=r"--header w=…: the views are v"):
        read_views([file], header=["no", "w=no"])


def test_rows_that_may_be_features_and_columns_that_count_are_asked_about(tmp_path):
    table = frame().rename_axis("gene_id")
    table.to_csv(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"headed 'gene_id'.*--transpose a .*--index a=gene_id"):
        read_views([tmp_path / "a.csv"])
    assert list(read_views([tmp_path / "a.csv"], index=["gene_id"]).sample_names) == IDS
    turned = read_views([tmp_path / "a.csv"], transpose=["a"])
    assert list(turned.sample_names) == ["g0", "g1", "g2"]
    assert "3 samples in columns, 12 features in rows" in turned.decisions[0]
    frame(1).to_csv(tmp_path / "b.csv")  # whose ids are samples: then so are these
    assert read_views([tmp_path / "a.csv", tmp_path / "b.csv"]).views["a"].shape == (12, 3)
    table.reset_index(drop=True).to_csv(tmp_path / "c.csv", index_label="X")
    with pytest.raises(ValueError, match=r"'X' of c\.csv counts the rows \(0, 1, …, 11\)"):
        read_views([tmp_path / "c.csv"])
    assert read_views([tmp_path / "c.csv"], index=["c=X"]).views["c"].shape == (12, 3)
    assert read_views([tmp_path / "c.csv"], index=["c="]).views["c"].shape == (12, 4)
    with pytest.raises(ValueError, match=r"--index d=…: the views are c"):
        read_views([tmp_path / "c.csv"], index=["c=", "d=X"])


def test_every_decision_is_told(tmp_path):
    frame().to_csv(tmp_path / "a.csv", index_label="who")
    np.save(tmp_path / "b.npy", np.arange(12.0)[:, None] / 7)
    frame(2, list(range(100, 112))).to_csv(tmp_path / "c.csv", index_label="nr")
    assert read_views([tmp_path / name for name in ("a.csv", "b.npy", "c.csv")]).decisions == [
        "a.csv: 12 samples in rows, 3 features in columns; the first line has column names; sample ids "
        "from the column 'who' ('s0', 's1', …)",
        "b.npy: 12 samples in rows, 1 feature in columns; no sample ids; rows are matched by position",
        "c.csv: 12 samples in rows, 4 features in columns; the first line has column names; no sample ids; "
        "rows are matched by position; the first column 'nr' is read as a feature (if it names the "
        "samples, add --index nr)",
    ]


@pytest.mark.parametrize("which", ["a", "b", "c", "ab"])
def test_transposed_tables_are_turned(tmp_path, which):
    frames = {
        name: frame(seed).add_prefix(name).iloc[np.random.default_rng(seed).permutation(12)]
        for seed, name in enumerate("abc")
    }
    for name, table in frames.items():
        (table.T if name in which else table).to_csv(tmp_path / f"{name}.csv")
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    read = read_views(files)
    for name in "abc":
        expected = frames[name].loc[list(read.sample_names)]
        np.testing.assert_array_equal(read.views[name], expected.to_numpy())
        assert read.features[name] == list(frames[name].columns)
    assert sum("transposed" in note for note in read.notes) == len(which)
    asked = read_views(files, transpose=list(which))
    assert not any("transposed" in note for note in asked.notes)
    np.testing.assert_array_equal(asked.views["b"], read.views["b"])


def test_where_both_sides_match_nobody_guesses(tmp_path):
    """The same genes in both files: samples may be either axis."""
    frame(0).to_csv(tmp_path / "a.csv")
    frame(1).T.to_csv(tmp_path / "b.csv")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    with pytest.raises(
        ValueError,
        match=r"samples may be the rows or the columns.*--transpose b if .*--transpose a if",
    ):
        read_views(files)
    assert read_views(files, transpose=["b"]).views["b"].shape == (12, 3)
    frame(0).T.to_csv(tmp_path / "a.csv")
    assert read_views(files, transpose=["a", "b"]).views["b"].shape == (12, 3)
    with pytest.raises(ValueError, match="the views are a, b"):
        read_views(files, transpose=["c"])


def test_union_and_complete_cases(tmp_path):
    a, b = frame(0).iloc[:10], frame(1).iloc[::-1].iloc[:9]
    b.iloc[2, 1] = np.nan
    a.to_csv(tmp_path / "a.csv")
    b.to_csv(tmp_path / "b.csv")
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    union = read_views(files, missing="allow")
    assert set(union.sample_names) == set(IDS)
    pd.testing.assert_frame_equal(
        pd.DataFrame(union.views["b"], index=union.sample_names, columns=b.columns),
        b.reindex(union.sample_names).rename_axis(None),
    )
    assert "7 of 12 samples are in every file; all 12 are used" in " ".join(union.notes)
    assert any("b.csv has 1 empty cells, treated as missing" in n for n in union.notes)
    whole = read_views(files, missing="drop")
    assert list(whole.sample_names) == [i for i in IDS[3:10] if i != b.index[2]]
    assert all(np.isfinite(X).all() for X in whole.views.values())


def test_matlab_and_matrix_market_files(tmp_path):
    import scipy.io

    X, Y = np.arange(12.0).reshape(4, 3), np.ones((4, 2))
    cells = np.empty((1, 2), dtype=object)
    cells[0, 0], cells[0, 1] = X, Y
    scipy.io.savemat(
        tmp_path / "many.mat", {"X": cells, "gt": [[1], [1], [2], [2]], "name": "text"}
    )
    scipy.io.savemat(tmp_path / "one.mat", {"data": X})
    scipy.io.mmwrite(tmp_path / "m.mtx", sp.coo_array(X))
    read = read_views([tmp_path / n for n in ("many.mat", "one.mat", "m.mtx")])
    assert list(read.views) == ["X1", "X2", "one", "m"]
    np.testing.assert_array_equal(read.views["X1"], X)
    assert sp.issparse(read.views["m"]) and (read.views["m"].toarray() == X).all()
    assert "gt (4, 1)" in read.notes[0]
    scipy.io.mmwrite(tmp_path / "dense.mtx", X)
    symmetric = sp.coo_array(X[:3] + X[:3].T)
    scipy.io.mmwrite(tmp_path / "sym.mtx", symmetric, symmetry="symmetric")
    scipy.io.mmwrite(tmp_path / "pattern.mtx", sp.coo_array(Y), field="pattern")
    np.testing.assert_array_equal(read_views([tmp_path / "dense.mtx"]).views["dense"], X)
    found = read_views([tmp_path / "sym.mtx"]).views["sym"]
    np.testing.assert_array_equal(found.toarray(), symmetric.toarray())
    np.testing.assert_array_equal(
        read_views([tmp_path / "pattern.mtx"]).views["pattern"].toarray(), Y
    )
    np.savez(tmp_path / "n.npz", a=X, b=Y, y=np.arange(4))
    assert list(read_views([tmp_path / "n.npz"]).views) == ["a", "b"]
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
        file["A"] = X.T
    raw = bytearray((tmp_path / "new.mat").read_bytes())
    raw[:20] = b"MATLAB 7.3 MAT-file,"
    (tmp_path / "new.mat").write_bytes(raw)
    np.testing.assert_array_equal(read_views([tmp_path / "new.mat"]).views["new"], X)


def test_single_cell_files_keep_ids_features_and_sparsity(tmp_path):
    ad, md = pytest.importorskip("anndata"), pytest.importorskip("mudata")
    import warnings

    one = ad.AnnData(frame(0).add_prefix("rna"))
    two = ad.AnnData(sp.csr_matrix(frame(1).to_numpy()[::-1]), obs=pd.DataFrame(index=IDS[::-1]))
    one.write_h5ad(tmp_path / "one.h5ad")
    with warnings.catch_warnings(action="ignore"):
        md.MuData({"rna": one, "atac": two}).write(tmp_path / "both.h5mu")
    read = read_views([tmp_path / "one.h5ad", tmp_path / "both.h5mu"])
    assert list(read.views) == ["one", "rna", "atac"] and list(read.sample_names) == IDS
    np.testing.assert_array_equal(read.views["atac"].toarray(), frame(1).to_numpy())
    assert sp.issparse(read.views["atac"]) and read.features["rna"][0] == "rnag0"


def test_odd_but_readable_text(tmp_path):
    assert read_views([text(tmp_path, "a.csv", "\ufeffid,g0\nx,1\ny,2\n")]).features["a"] == ["g0"]
    for content in ("id g0  g1\nx 1 2\ny 3 4\n", "id,g0,g1\nx,1,2\ny,3,4\n"):
        read = read_views([text(tmp_path, "b.txt", content)])
        np.testing.assert_array_equal(read.views["b"], [[1, 2], [3, 4]])
    quoted = 'id,"a\nb","c,d"\nx,1,2\ny,3,4\n'
    assert read_views([text(tmp_path, "c.csv", quoted)]).features["c"] == ["a\nb", "c,d"]
    (tmp_path / "d.csv").write_bytes("id,grün\nx,1\n".encode("latin-1"))
    read = read_views([tmp_path / "d.csv"])
    assert read.features["d"] == ["grün"] and "read as Windows-1252" in read.notes[0]
    (tmp_path / "d.csv").write_bytes(b"id,a\nx\xff\0,1\n")
    with pytest.raises(ValueError, match=r"d\.csv could not be read .* not text in UTF-8"):
        read_views([tmp_path / "d.csv"])


def test_files_alike_in_rows_and_columns_are_doubted(tmp_path):
    for seed, name in enumerate(("rna", "prot")):
        frame(seed).T.to_csv(tmp_path / f"{name}.csv")
    files = [tmp_path / "rna.csv", tmp_path / "prot.csv"]
    with pytest.raises(ValueError, match=r"--transpose none if the rows are .* --transpose all if"):
        read_views(files)
    for transpose in (["rna", "prot"], ["all"]):
        turned = read_views(files, transpose=transpose)
        assert turned.notes == [] and list(turned.sample_names) == IDS
    assert read_views(files, transpose=["none"]).views["rna"].shape == (3, 12)
    assert list(read_views(files, known=[IDS]).sample_names) == IDS
    frame(0).add_prefix("other ").to_csv(files[0])  # other headings: nothing to doubt
    frame(1).to_csv(files[1])
    assert read_views(files).notes == []


def test_ids_are_text_and_a_sample_may_be_called_na(tmp_path):
    file = text(tmp_path, "v.csv", "id,g0,g1\nNA,1,2\nNone,3,NA\nnull,5,6\n")
    read = read_views([file], missing="allow")
    assert list(read.sample_names) == ["NA", "None", "null"]
    assert np.isnan(read.views["v"][1, 1])
    # In a first column that is a feature the same words stand for nothing.
    read = read_views([text(tmp_path, "w.csv", "g0,g1\nNA,1.5\n,2\n2.5,3\n")], missing="allow")
    assert read.sample_names is None and np.isnan(read.views["w"][:2, 0]).all()
    # An index elsewhere is text as well.
    file = text(tmp_path, "x.csv", "g0,who\n1,NA\nnan,b\n")
    read = read_views([file], index=["who"], missing="allow")
    assert list(read.sample_names) == ["NA", "b"] and np.isnan(read.views["x"][1, 0])


def test_samples_without_a_value_are_named(tmp_path):
    file = text(tmp_path, "v.csv", "id,g0,g1\na,1,2\nb,3,\nend\n")
    notes = read_views([file], missing="allow").notes
    assert "1 sample without any value in any file: 'end'; remove what is no sample" in notes


def test_labels_may_cover_a_part_of_the_samples(tmp_path):
    frame().to_csv(tmp_path / "v.csv")
    read = read_views([tmp_path / "v.csv"])
    labels = text(tmp_path, "y.csv", "id,label\ns1,a\ns2,NA\ns3,b\n")
    assert read_labels(labels, read, partial=True) == [None, "a", None, "b", *[None] * 8]
    with pytest.raises(ValueError, match=r"lacks the labels of 10 of the 12.*'s0'"):
        read_labels(labels, read)
    with pytest.raises(
        ValueError, match=r"has none of the 12 samples in any column.*begin with 's0'"
    ):
        read_labels(text(tmp_path, "z.csv", "id,label\nt1,a\n"), read, partial=True)


@pytest.mark.parametrize("around", ["\t{}", "{} ", " {}\t", "\u00a0{}"])
def test_ids_with_blanks_around_them_are_trimmed_and_told(tmp_path, around):
    names = [around.format(name) if i % 2 else name for i, name in enumerate(IDS)]
    pd.DataFrame({"id": names, "g": range(len(IDS)), "h": 1.5}).to_csv(
        tmp_path / "v.csv", index=False
    )
    pd.DataFrame({"other": 1.5}, index=pd.Index(names, name="id")).to_parquet(
        tmp_path / "w.parquet"
    )
    read = read_views([tmp_path / "v.csv", tmp_path / "w.parquet"])
    assert list(read.sample_names) == IDS
    told = [note for note in read.notes if "blanks or tabs around them" in note]
    assert len(told) == 2
    assert f"v.csv: {len(IDS) // 2} of {len(IDS)} sample ids" in told[0]
    assert f"({names[1]!r} is {IDS[1]!r})" in told[0]
