"""Clusters that follow a batch are found; clusters that do not are left in peace."""

import numpy as np
import pandas as pd
import pytest

import manyview as mv
from manyview.outcomes import enrichment
from manyview.outcomes.columns import is_technical
from manyview.outcomes.enrich import LEVEL

TECHNICAL = ["batch", "Batch_ID", "plate number", "seqCenter", "Center.Name", "tissue_source_site", "site",
             "run", "lane2", "flow_cell", "SequencingRun", "hospital", "study"]  # fmt: skip
OTHER = ["age", "primary_site", "Tumor Site", "biopsy_site", "site_of_resection", "hospital_days",
         "run_time", "library_size", "study_arm", "lab_ldh", "subtype", "centered", ""]  # fmt: skip


def test_technical_columns_are_known_by_their_headings():
    assert [name for name in TECHNICAL if not is_technical(name)] == []
    assert [name for name in OTHER if is_technical(name)] == []


@pytest.mark.parametrize("levels_per_cluster", [1, 3])
@pytest.mark.parametrize("clusters_per_level", [1, 2])
def test_clusters_within_levels_and_levels_within_clusters_follow(
    levels_per_cluster, clusters_per_level
):
    cells = np.arange(240) % 12
    labels = cells // (levels_per_cluster * 2)
    batch = cells // (clusters_per_level * 2)
    found = enrichment(labels, {"batch": [f"b{b}" for b in batch], "age": np.arange(240)})
    (followed,) = found.followed
    assert followed.column == "batch" and followed.technical
    assert followed.effect > 0.5 and followed.p_value <= LEVEL
    assert "batch=clinical['batch']" in str(found).splitlines()[0]


def test_one_cluster_of_one_batch_among_mixed_ones_follows():
    rng = np.random.default_rng(0)
    labels = np.repeat(range(6), 50)
    batch = np.where(labels == 5, 0, rng.integers(0, 4, 300))
    assert [f.column for f in enrichment(labels, {"lane": batch}).followed] == ["lane"]


@pytest.mark.parametrize(
    ("n", "k", "levels"), [(24, 3, 2), (40, 4, 8), (60, 3, 20), (300, 8, 3), (90, 2, 2)]
)
def test_clusters_that_are_independent_of_the_batch_are_left_in_peace(n, k, levels):
    rng, fired = np.random.default_rng(n), 0
    for _ in range(100):
        labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
        columns = {"plate": rng.integers(0, levels, n)}
        fired += len(enrichment(labels, columns, permutations=199, random_state=rng).followed)
    # 100 tests at the 1% level: 6 or more come by chance once in 1900 times.
    assert fired <= 5


def test_numbers_of_plates_are_levels_and_no_amounts():
    plate = np.arange(400) % 40
    labels = plate % 2  # even and odd plates: the mean rank is the same
    found = enrichment(labels, {"plate": plate, "dose": plate})
    assert found.table["kind"].tolist() == ["category", "number"]
    assert [f.column for f in found.followed] == ["plate"]
    views = {"a": np.random.default_rng(0).normal(size=(400, 5)) + 3 * labels[:, None]}
    assert mv.adjust(views, {"plate": plate}).explained["a"] > 0.5
    assert enrichment(labels, {"plate": plate}, kinds={"plate": "number"}).followed == ()


def test_a_column_of_another_kind_is_named_without_alarm_if_it_is_nearly_the_clusters():
    labels = np.repeat(range(3), 30)
    near = labels.copy()
    near[::10] = (near[::10] + 1) % 3
    loose = np.where(np.arange(90) % 2, labels, 0)
    ward, kind = np.array(["n", "s", "w"])[near], np.array(["x", "y", "z"])[loose]
    (found,) = enrichment(labels, {"ward": ward, "kind": kind}).followed
    assert found.column == "ward" and not found.technical
    assert "nearly coincide" in found.sentence("") and f"{found.effect:.2f}" in found.sentence("")


def test_codes_of_an_unknown_column_are_compared_as_levels():
    labels = np.repeat([1, 0, 2], 30)  # the order of the codes says nothing
    found = enrichment(labels, {"source": np.repeat([1, 2, 3], 30), "dose": np.tile([1, 2, 3], 30)})
    assert [(f.column, f.technical) for f in found.followed] == [("source", False)]
    assert found.table["kind"].tolist() == ["number", "number"]
    assert (
        enrichment(
            labels, {"source": np.repeat([1, 2, 3], 30)}, kinds={"source": "number"}
        ).followed
        == ()
    )


def test_single_cells_that_follow_a_batch_are_a_warning():
    ad = pytest.importorskip("anndata")
    rng = np.random.default_rng(0)
    batch = np.repeat(["one", "two"], 40)
    shift = 6 * (batch == "two")[:, None]
    data = ad.AnnData(
        pd.DataFrame(
            rng.normal(size=(80, 6)) + shift,
            index=[f"c{i}" for i in range(80)],
            columns=list("abcdef"),
        )
    )
    data.obsm["b"] = rng.normal(size=(80, 5)) + shift
    data.obs["donor_age"] = 1
    mv.tl.cluster(data, 2, views=["X", "obsm:b"], random_state=0)
    data.obs["sample_batch"] = pd.Categorical(batch)
    with pytest.warns(
        UserWarning, match="The clusters follow “sample_batch”.*batch_key='sample_batch'"
    ):
        mv.tl.cluster(data, 2, views=["X", "obsm:b"], random_state=0)
