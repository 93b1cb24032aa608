"""Links, similarities and distances from files, on the command line."""

import csv

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from command import done, refused
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import manyview as mv
from conftest import blobs
from manyview.app.files import read_views
from manyview.app.files.relations import with_relations

N = 60
IDS = [f"s{i}" for i in range(N)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Features by id, and the neighbors of another view in every kind of file."""
    here = tmp_path_factory.mktemp("graphs")
    (X, Y), _ = blobs(N, (6, 5), noise=0.8)
    pd.DataFrame(X, index=IDS).to_csv(here / "words.csv", index_label="id")
    A = sp.coo_array(kneighbors_graph(Y, 6))
    with (here / "links.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["from", "to", "weight"])
        out.writerows((IDS[i], IDS[j], w) for i, j, w in zip(A.row, A.col, A.data, strict=True))
        out.writerow(["s1", "stranger", 1])
    sp.save_npz(here / "links.npz", sp.csr_array(A))
    scipy.io.mmwrite(here / "links.mtx", sp.coo_matrix(A))
    order = np.random.default_rng(0).permutation(N)
    names = [IDS[i] for i in order]
    D = cdist(Y, Y)
    pd.DataFrame(D[np.ix_(order, order)], names, names).to_csv(here / "far.csv", index_label="id")
    np.save(here / "kernel.npy", Y @ Y.T)
    return here, sp.csr_array(A), D


@pytest.mark.parametrize("file", ["links.csv", "links.npz", "links.mtx"])
def test_every_kind_of_file_gives_the_same_graph(folder, file):
    here, A, _ = folder
    data = with_relations(read_views([here / "words.csv"]), {"graph": [f"g={here / file}"]})
    assert abs(data.relations["g"].matrix - A).max() == 0
    told = " ".join(data.told)
    assert ("'stranger'" in told) == (file == "links.csv")


def test_a_square_table_is_brought_to_the_order_of_the_samples(folder):
    here, _, D = folder
    data = with_relations(read_views([here / "words.csv"]), {"distance": [f"{here / 'far.csv'}"]})
    np.testing.assert_allclose(data.relations["far"].matrix, D)
    kernel = with_relations(data, {"kernel": [f"k={here / 'kernel.npy'}"]})
    assert list(kernel.collection().names) == ["words", "far", "k"]


def test_fit_and_predict_with_links(folder, tmp_path):
    here, A, _ = folder
    words, links = here / "words.csv", here / "links.csv"
    done("fit", words, "--graph", f"cites={links}", "--clusters", 3, "--out", tmp_path / "r")
    model = mv.load(tmp_path / "r" / "model.npz")
    assert list(model.view_names_in_) == ["words", "cites"] and model._relations == [None, "graph"]
    assert "cites" in (tmp_path / "r" / "report.html").read_text()
    new = pd.read_csv(words, index_col=0).iloc[:5].set_axis([f"new{i}" for i in range(5)])
    new.to_csv(tmp_path / "words.csv", index_label="id")
    ends = sp.coo_array(A[:5])
    lines = [f"new{i},{IDS[j]}" for i, j in zip(ends.row, ends.col, strict=True)]
    (tmp_path / "new.csv").write_text("from,to\n" + "\n".join(lines) + "\n")
    asked = ("--graph", f"cites={tmp_path / 'new.csv'}", "--out", tmp_path / "labels.csv")
    done("predict", tmp_path / "r", tmp_path / "words.csv", *asked)
    found = pd.read_csv(tmp_path / "labels.csv")["cluster"].to_numpy()
    assert (found == model.labels_[:5]).all()
    without = done("predict", tmp_path / "r", tmp_path / "words.csv", "--out", tmp_path / "l2.csv")
    assert "no file for the view 'cites'" in without.output


@pytest.mark.parametrize(
    ("option", "file", "sentence"),
    [
        ("--graph", "a,b\nx,y\n", "lists no link between samples"),
        ("--graph", "a,b,w\ns1,s2,heavy\n", "'heavy' in link"),
        ("--distance", np.zeros((7, 7)), "7 rows and no sample ids"),
    ],
)
def test_relations_of_no_samples_are_refused(folder, tmp_path, option, file, sentence):
    path = tmp_path / ("links.csv" if isinstance(file, str) else "far.npy")
    path.write_text(file) if isinstance(file, str) else np.save(path, file)
    asked = [option, path, "--clusters", 3, "--out", tmp_path / "r"]
    refused(sentence, "fit", folder[0] / "words.csv", *asked)
    assert not (tmp_path / "r").exists()
