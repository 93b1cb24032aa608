"""Gene sets: laws of ranks, planted sets, ids that do not match, files that are no GMT."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import manyview as mv
from manyview.outcomes import gene_sets
from manyview.outcomes.sets import set_tests

GENES = [f"GENE{j}" for j in range(120)]
SETS = {"planted": GENES[:15], "correlated": GENES[40:60], "any": GENES[5:110:6]}


def cohort(seed=0, n=80):
    """Three clusters, of which the last has 15 features higher; features 40 to 59 share a factor."""
    rng = np.random.default_rng(seed)
    codes = np.sort(rng.integers(0, 3, n))
    X = rng.normal(size=(n, len(GENES)))
    X[:, 40:60] += 1.5 * rng.normal(size=(n, 1))
    X[codes == 2, :15] += 0.8
    return codes, pd.DataFrame(X, columns=GENES)


def test_a_planted_set_leads_and_says_its_direction_and_features():
    codes, X = cohort()
    found = gene_sets(codes, {"rna": X}, SETS)
    first = found.top(1).set_index("cluster").loc[2]
    assert (first["set"], first["direction"], first["n_features"]) == ("planted", "up", 15)
    assert set(first["leading"].split(", ")) <= set(SETS["planted"])
    table = found.full_table.set_index(["cluster", "set"])["p_descriptive"]
    assert table[2, "planted"] < 1e-4 and table[2, "correlated"] > 0.01
    assert "descriptive" in " ".join(found.notes) and "planted" in repr(found)


@given(st.integers(0, 10_000))
@settings(max_examples=10, deadline=None)
def test_only_ranks_within_features_matter(seed):
    codes, X = cohort(seed)
    X = X.mask(np.random.default_rng(seed).random(X.shape) < 0.1)
    columns = ["set", "cluster", "effect", "p_descriptive"]
    one = gene_sets(codes, {"rna": X}, SETS).full_table[columns]
    order = np.random.default_rng(seed).permutation(len(X))
    bent = gene_sets(codes[order], {"rna": np.exp(3 * X).iloc[order]}, SETS).full_table[columns]
    pd.testing.assert_frame_equal(one, bent)
    turned = gene_sets(codes, {"rna": -X}, SETS).full_table[columns]
    pd.testing.assert_frame_equal(one, turned.assign(effect=-turned["effect"]))
    renamed = gene_sets(2 - codes, {"rna": X}, SETS).full_table[columns]
    renamed["cluster"] = 2 - renamed["cluster"]
    keys = ["cluster", "set"]
    pd.testing.assert_frame_equal(
        one.sort_values(keys, ignore_index=True), renamed.sort_values(keys, ignore_index=True)
    )


def test_sparse_and_dense_views_give_the_same_and_two_clusters_mirror():
    rng = np.random.default_rng(0)
    X = rng.poisson(0.7, (60, 120)).astype(float)
    codes, members = rng.integers(0, 2, 60), sp.csr_array(rng.random((120, 6)) < 0.2).astype(float)
    dense, sparse = (set_tests(view, codes, 2, members) for view in (X, sp.csr_array(X)))
    for one, other in zip(dense, sparse, strict=True):
        np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(dense[0][0], dense[0][1])
    np.testing.assert_allclose(dense[1][0], -dense[1][1])


def test_leaving_the_view_out_makes_the_p_values_honest():
    data = mv.datasets.make_cohort(90, missing=0, random_state=1)
    frames = {name: frame for name, frame in data.frames().items() if name != "mutation"}
    genes = list(frames["expression"].columns)
    model = mv.RobustWMNMF(4, random_state=0).fit(frames)
    sets = {"first": genes[:20], "others": genes[100:140]}
    found = gene_sets(model, frames, sets, leave_view_out=True)
    assert {"p_value", "q_value"} <= set(found.full_table) and found.left_view_out
    assert set(found.full_table["view"]) == {"expression"}


@pytest.mark.parametrize(
    ("features", "genes", "note"),
    [
        ("ENSG{:011d}.12", "ENSG{:011d}", "without the version"),
        ("TP{}|{}", "TP{}", "before “|”"),
        ("?|{}", "{}", "after “|”"),
        ("Tp{}", "TP{}", "capital letters"),
    ],
)
def test_ids_that_are_written_differently_are_matched_and_told(features, genes, note):
    codes, X = cohort()
    X.columns = [features.format(j, j) for j in range(X.shape[1])]
    sets = {name: [genes.format(int(g[4:])) for g in own] for name, own in SETS.items()}
    same = gene_sets(codes, {"rna": cohort()[1]}, SETS).full_table
    found = gene_sets(codes, {"rna": X}, sets)
    assert note in " ".join(found.notes)
    np.testing.assert_array_equal(found.full_table["p_descriptive"], same["p_descriptive"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"columns": [f"ENSG{j:011d}" for j in range(120)]},
            "'rna' has Ensembl genes such as 'ENSG",
        ),
        ({"columns": [f"{1000 + j}_at" for j in range(120)]}, "gene symbols such as 'GENE0'"),
        ({"min_size": 30}, "0 of 3 sets have 30 to 500"),
        ({"sets": {"a": []}}, "the gene sets are empty"),
        ({"sets": "a\tb\n"}, "has 1 tab: a GMT file has"),
        ({"sets": "a\tb\tG1\na\tb\tG2\n"}, "two sets named 'a'"),
        ({"sets": "\n"}, "holds no gene set"),
        ({"codes": [0] * 80}, "one cluster only"),
    ],
)
def test_bad_sets_are_refused_in_a_sentence(change, words, tmp_path):
    codes, X = cohort()
    sets = change.get("sets", SETS)
    if isinstance(sets, str):
        (tmp_path / "sets.gmt").write_text(sets)
        sets = tmp_path / "sets.gmt"
    X.columns = change.get("columns", X.columns)
    with pytest.raises(ValueError, match="(?s).*".join(words.split("*"))):
        gene_sets(change.get("codes", codes), {"rna": X}, sets, min_size=change.get("min_size", 10))
