"""Clinical columns and classes by cluster: equal to SciPy, and sentences for hostile tables."""

import datetime
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import manyview as mv
from manyview.outcomes import crosstab, enrichment, survival
from manyview.outcomes.columns import read_column
from manyview.outcomes.endpoints import read_events
from manyview.outcomes.enrich import of_counts, of_numbers, rank_residuals, residuals


def rng(seed=0):
    return np.random.default_rng(seed)


def clinical(n=120, seed=0):
    draw = rng(seed)
    labels = np.arange(n) % 3
    table = pd.DataFrame(
        {
            "age": draw.normal(60, 9, n) + 4 * labels,
            "sex": draw.choice(["f", "m"], n),
            "site": draw.choice(["a", "b", "c"], n),
            "stage": draw.choice(["Stage I", "Stage IIA", "Stage IIB", "Stage IV"], n),
        },
        index=[f"P{i}" for i in range(n)],
    )
    return labels, table


def column(found, name):
    return found.table.set_index("column").loc[name]


# --- equal to SciPy ------------------------------------------------------------------------------


def test_large_counts_equal_scipys_chi_square():
    labels, table = clinical(300)
    ours = column(enrichment(labels, table, permutations=0), "site")
    theirs = stats.chi2_contingency(pd.crosstab(labels, table["site"].to_numpy()), correction=False)
    assert ours["test"] == "χ²" and ours.permutations == 0
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-12)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-10)


def test_two_by_two_equals_fishers_exact_test():
    labels, table = clinical(40)
    two = labels[labels < 2], table[labels < 2]
    ours = column(enrichment(*two), "sex")
    theirs = stats.fisher_exact(pd.crosstab(two[0], two[1]["sex"].to_numpy()))
    assert ours["test"] == "Fisher's exact" and ours.p_value == pytest.approx(
        theirs.pvalue, rel=1e-12
    )


@pytest.mark.parametrize("ties", [False, True])
def test_numbers_equal_kruskal_and_wallis(ties):
    labels, table = clinical(120)
    values = table["age"].round(-1) if ties else table["age"]
    given = {"age": values.to_numpy()}
    ours = column(enrichment(labels, given, permutations=0), "age")
    theirs = stats.kruskal(*(values[labels == k] for k in range(3)))
    assert ours.statistic == pytest.approx(theirs.statistic, rel=1e-10)
    assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    permuted = column(enrichment(labels, given), "age")
    assert permuted.p_value == 1e-4 and permuted.permutations == 9999


def test_small_counts_are_permuted_and_agree_with_the_exact_answer():
    table = np.array([[6, 1, 0], [1, 4, 3]])
    ours = of_counts(table, 20_000, rng())
    exact = stats.fisher_exact(table, method=stats.PermutationMethod(n_resamples=20_000, rng=1))
    # The two order tables differently (χ², probability) but not by much here.
    assert ours.permutations == 20_000 and ours.p_value == pytest.approx(exact.pvalue, abs=0.02)
    values, codes = np.array([1.0, 2, 3, 4, 5, 6, 7, 8]), np.array([0, 0, 0, 1, 1, 1, 1, 1])
    exact = stats.mannwhitneyu(values[:3], values[3:], method="exact").pvalue
    assert of_numbers(values, codes, 20_000, rng()).p_value == pytest.approx(exact, abs=0.004)


def test_q_values_are_benjamini_and_hochberg_over_the_tested_columns():
    labels, table = clinical()
    table["same"], table["seen"] = 1, "2020-01-01"
    found = enrichment(labels, table)
    tested = found.table[found.table["p_value"].notna()]
    assert len(tested) == 4
    expected = stats.false_discovery_control(tested["p_value"])
    np.testing.assert_allclose(tested["q_value"], expected)
    assert found.significant() == ("age",)


def test_effects_are_zero_by_chance_and_one_for_the_same_partition():
    labels = np.arange(90) % 3
    found = enrichment(labels, {"same": np.array(list("xyz"))[labels], "other": list("abc") * 30})
    assert column(found, "same")["effect"] == pytest.approx(1)
    drawn = [rng(i).multinomial(100, [1 / 6] * 6).reshape(2, 3) for i in range(200)]
    V = [of_counts(table, 0, rng()).effect for table in drawn]
    assert np.mean(V) < 0.06  # the usual V has a mean of 0.13 here
    assert of_numbers(labels.astype(float), labels, 0, rng()).effect == pytest.approx(1, abs=0.02)


@given(st.integers(0, 1000), st.integers(2, 4), st.integers(2, 4))
def test_residuals_cancel(seed, k, levels):
    counts = rng(seed).integers(0, 9, (k, levels)) + 1
    z = residuals(counts)
    expected = counts.sum(1)[:, None] * counts.sum(0) / counts.sum()
    assert (np.sign(z) == np.sign(np.round(counts - expected, 9))).all()
    codes, values = rng(seed).integers(0, k, 40), rng(seed).normal(size=40)
    r = rank_residuals(values, codes, k)
    assert r.shape == (k,) and (r.max() >= 0 >= r.min())


def test_residuals_of_two_clusters_are_the_z_of_mann_and_whitney():
    values, codes = rng().normal(size=50), np.arange(50) % 2
    z = rank_residuals(values, codes, 2)
    how = {"method": "asymptotic", "use_continuity": False}
    p = stats.mannwhitneyu(values[codes == 0], values[codes == 1], **how).pvalue
    assert z[0] == pytest.approx(-z[1]) and 2 * stats.norm.sf(abs(z[0])) == pytest.approx(p)


# --- kinds ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "kind", "levels"),
    [
        ([1.5, 2, 3, None], "number", ()),
        (["1.5", " 2", "3", "NA"], "number", ()),
        ([True, False, True], "category", (0, 1)),
        ([0, 1, 1, 0], "category", (0, 1)),
        (["b", "a ", "b", ""], "category", ("a", "b")),
        (["Stage IV", "stage ii", "Stage IIA", "I"], "ordered", ("I", "stage ii", "Stage IIA", "Stage IV")),
        (["T2", "T10", "T1"], "category", ("T1", "T2", "T10")),
        (["T2", "T1", "T1a"], "ordered", ("T1", "T1a", "T2")),
        (["high", "Low", "medium"], "ordered", ("Low", "medium", "high")),
        (pd.Series(pd.Categorical(["b", "a"], ["b", "a"], ordered=True)), "ordered", ("b", "a")),
        (pd.Series([1, 2, 3]).astype("category"), "category", (1, 2, 3)),
        (pd.Series([1, 2, None], dtype="Int64"), "category", (1, 2)),
        (np.array([1, 2, 3], dtype=np.int8), "number", ()),
    ],
)  # fmt: skip
def test_kinds_of_columns(values, kind, levels):
    found = read_column("x", values)
    assert (found.kind, found.levels, found.reason) == (kind, levels, "")


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (pd.date_range("2020-01-01", periods=5), "holds dates ('2020-01-01"),
        (["2020-01-01", "2020-02-01", "NA"], "holds dates ('2020-01-01')"),
        (["01/02/2020", "3.4.20", "5-Jan-2020"], "holds dates"),
        ([datetime.date(2020, 1, 1)] * 3, "holds dates"),
        (pd.to_timedelta([1, 2, 3], "D"), "spans of time"),
        (["12", "13", "about 14"], "mixes 2 numbers and 1 texts such as 'about 14'"),
        ([1, 2, "x"], "mixes 2 numbers"),
        (["1,5", "2,5", "3,25"], "decimal comma"),
        ([1.0, math.inf, 2.0], "1 entries are infinite"),
        ([None, "NA", "", math.nan], "every value is missing"),
        ([[1], [2]], "holds a list"),
        ([{"a": 1}, None], "holds a dict"),
        ([1 + 2j, 2j], "holds a complex"),
        ([f"patient {i}" for i in range(50)], "50 of its 50 values differ"),
        ([f"c{i % 10_000}" for i in range(40_000)], "it has 10000 levels, 100 at most"),
    ],
)
def test_columns_that_are_not_tested_say_why(values, words):
    found = read_column("x", values)
    assert found.kind is None and words in found.reason and np.isnan(found.values).all()


def test_whole_numbers_that_may_be_codes_are_told():
    words = "Its 3 whole numbers are treated as amounts"
    assert words in read_column("site", [1, 2, 3] * 20).note
    for other in ([1.5, 2, 3] * 20, list(range(60)), [0, 1] * 30):
        assert "amounts" not in read_column("x", other).note
    assert read_column("site", [1, 2, 3] * 20, "number").note == ""
    assert read_column("site", [1, 2, 3] * 20, "category").note == ""


def test_the_user_may_say_what_a_column_is():
    labels = np.arange(60) % 3
    table = {"grade": [1, 2, 3] * 20, "dose": ["low", "much", "some"] * 20}
    found = enrichment(labels, table, kinds={"grade": "category", "dose": ["low", "some", "much"]})
    assert found.table["kind"].tolist() == ["category", "ordered"]
    cells = found.cells[found.cells["column"] == "dose"]
    assert cells["level"].unique().tolist() == ["low", "some", "much"]
    with pytest.raises(ValueError, match="kinds names 'grad', which is no column"):
        enrichment(labels, table, kinds={"grad": "number"})
    with pytest.raises(ValueError, match="must be one of"):
        enrichment(labels, table, kinds={"grade": "numeric"})
    plain = enrichment(labels, {"grade": table["grade"]}, kinds={"grade": "ordered"})
    assert plain.table["kind"][0] == "ordered" and plain.cells["median"].notna().sum() == 3
    wrong = enrichment(labels, table, kinds={"dose": "number", "grade": [1, 2]})
    assert "60 entries are no numbers" in column(wrong, "dose")["note"]
    assert "3 is not among the levels" in column(wrong, "grade")["note"]


# --- tables of people ----------------------------------------------------------------------------


def test_a_hostile_table_gives_sentences_and_safe_output():
    n = 60
    evil = '<script>alert("x")</script>'
    table = pd.DataFrame(
        {
            "=cmd|' /C calc'!A0": np.tile([1.0, 2.0, 3.0], 20),
            evil: np.tile([evil, "=1+1"], 30),
            "long": np.tile(["y" * 500, "line\nbreak"], 30),
            "seen": pd.date_range("2020-01-01", periods=n),
            "same": "constant",
            "empty": [None] * n,
        }
    )
    found = enrichment(np.arange(n) % 3, table)
    assert "every value is the same" in column(found, "same")["note"]
    assert (
        "holds dates" in column(found, "seen")["note"]
        and "every value is missing" in column(found, "empty")["note"]
    )
    assert max(len(line) for line in str(found).splitlines()) < 400
    assert "<script" not in crosstab(np.arange(n) % 3, table[evil]).table._repr_html_()
    assert "\nbreak" not in str(found)


def test_ids_are_matched_and_those_left_out_are_told():
    labels, table = clinical(60)
    known = pd.Series(labels, index=table.index)
    shuffled = table.sample(frac=1, random_state=1)
    whole, moved = enrichment(known, table), enrichment(known, shuffled)
    assert whole.table["p_value"].equals(moved.table["p_value"])
    mapping = enrichment(dict(known), shuffled)
    assert whole.table["p_value"].equals(mapping.table["p_value"])
    part = enrichment(known.iloc[5:], shuffled)
    assert any("5 rows of clinical without a label" in text for text in part.notes)
    part = enrichment(known, shuffled.drop(index=["P3", "P4"]))
    assert part.sizes.sum() == 58 and any("Absent from clinical: 2" in text for text in part.notes)
    named = enrichment(labels, shuffled, ids=table.index)
    assert whole.table["p_value"].equals(named.table["p_value"])
    unnamed = enrichment(labels, table)
    assert any("have no ids" in text for text in unnamed.notes)


@pytest.mark.parametrize(
    ("labels", "table", "words"),
    [
        ([0, 1], {"x": [1, 2, 3]}, "labels has 2 entries and clinical has 3"),
        (pd.Series([0, 1], ["a", "b"]), pd.DataFrame({"x": [1, 2]}, [1, 2]), "share no id"),
        (pd.Series([0, 1], ["a", "b"]), pd.DataFrame({"x": [1, 2]}, ["a", "a"]), "clinical has the id 'a'"),
        (pd.Series([0, 1], ["a", "a"]), {"x": [1, 2]}, "the id 'a' more than once"),
        (pd.Series([0, 1], ["a", None]), {"x": [1, 2]}, "row 1 of labels has no id"),
        ([-1, None, math.nan], {"x": [1, 2, 3]}, "none of the 3 samples has a cluster"),
        (np.zeros((2, 2)), {"x": [1, 2]}, "must be 1-D"),
        ([[0], [1]], {"x": [1, 2]}, "entry 0 is a list"),
        ("abc", {"x": [1, 2, 3]}, "must hold one value per sample"),
        ([0, 1], {}, "clinical has no columns"),
        (mv.RobustWMNMF(2), {"x": [1]}, "has no labels yet; call fit first"),
        ([0, 1], {"x": [1, 2], "y": [1]}, "differ in length"),
        ([0, 1], pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), "two columns named 'x'"),
        (list(range(200)), {"x": list(range(200))}, "200 different values"),
    ],
)  # fmt: skip
def test_bad_labels_and_tables_are_refused_in_a_sentence(labels, table, words):
    with pytest.raises(ValueError, match=words):
        enrichment(labels, table)


def test_rows_that_pandas_numbered_are_matched_after_sorting_and_filtering():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 40)
    table = pd.DataFrame({"age": rng.normal(60, 5, 80) + 20 * labels, "dead": 1})
    shuffled = table.sample(frac=1, random_state=0)
    right = enrichment(labels, table[["age"]]).table["p_value"][0]
    for mine, other in (
        (pd.Series(labels), shuffled),
        (pd.Series(labels).sample(frac=1, random_state=1), table),
        (pd.Series(labels).sample(frac=1, random_state=1), shuffled),
    ):
        assert enrichment(mine, other[["age"]]).table["p_value"][0] == right
    part = pd.Series(labels)[::2]
    alone = enrichment(labels[::2], {"age": table["age"].to_numpy()[::2]})
    pd.testing.assert_frame_equal(enrichment(part, table[["age"]]).table, alone.table)
    # Times of one frame, events of the other: each patient keeps both.
    straight = survival(labels, table["age"], table["dead"]).test.statistic
    mixed = survival(pd.Series(labels), table["age"], shuffled["dead"]).test.statistic
    assert mixed == straight
    # Patients called 1 to n are no rows 0 to n - 1.
    called = pd.Series(labels, index=range(1, 81))
    assert enrichment(called, table[["age"]]).table["p_value"][0] == right


def test_levels_that_pandas_orders_stay_ordered_where_samples_are_absent():
    grade = pd.Categorical(["mild", "bad", "mild", "bad"] * 5, ["mild", "bad"], ordered=True)
    table = pd.DataFrame({"grade": grade}, index=[f"P{i}" for i in range(20)])
    labels = pd.Series(np.arange(20) % 2, table.index)
    found = enrichment(labels, table.drop(index=["P3"]))
    assert found.table["kind"][0] == "ordered"
    assert found.cells["level"].unique().tolist() == ["mild", "bad"]


def test_polars_and_plain_dicts_give_the_same():
    labels, table = clinical(60)
    plain = enrichment(labels, {name: table[name].tolist() for name in table})
    frame = enrichment(labels, pl.DataFrame({name: table[name].tolist() for name in table}))
    assert plain.table["p_value"].equals(frame.table["p_value"])


def test_missing_values_are_counted_by_cluster_and_left_out():
    labels, table = clinical(60)
    table.loc[table.index[:6], "age"] = np.nan
    found = column(enrichment(labels, table), "age")
    assert (found["n"], found["missing"]) == (54, 6)
    lines = enrichment(labels, table).summary.set_index(["column", "level"])
    assert lines.loc[("age", "missing")].tolist()[:4] == ["2", "2", "2", "6"]
    assert found["p_value"] == column(enrichment(labels[6:], table[6:]), "age")["p_value"]
    only = enrichment([0, 0, 1, 1], {"x": [1, 2, None, None]})
    assert "fewer than two clusters have values" in column(only, "x")["note"]


def test_the_summary_counts_everybody():
    labels, table = clinical(60)
    table.loc[table.index[0], "sex"] = None
    found = enrichment(labels, table)
    rows = [r for r in found.summary.to_dict("records") if r["column"] == "sex"]
    assert sum(int(r["all"].split()[0]) for r in rows) == 60
    cells = found.cells
    assert cells[cells["column"] == "sex"]["count"].sum() == 59
    age = cells[(cells["column"] == "age") & (cells["cluster"] == 1)].iloc[0]
    assert age["median"] == pytest.approx(np.median(table["age"][labels == 1]))


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**20), 10**20), st.floats(), st.text(max_size=6),
    st.sampled_from(["=1", "NA", "Stage I", "T1", "2020-01-01", "1,5", "low", "1e400", "١"]),
    st.dates(), st.lists(st.integers(), max_size=2), st.binary(max_size=3),
)  # fmt: skip


def test_numbers_of_any_size_are_printed_and_written():
    found = enrichment([0, 0, 1, 1], {"x": [0, 2**64, 0, 2**64], "y": [1e300, -1e300, 5, 0]})
    assert str(2**64) in found.summary.to_csv() and str(found)


@given(st.data(), st.integers(1, 25))
def test_any_table_is_tested_or_told(data, n):
    labels = data.draw(st.lists(st.integers(-1, 3), min_size=n, max_size=n))
    values = data.draw(st.lists(JUNK, min_size=n, max_size=n))
    try:
        found = enrichment(labels, {"x": values, "y": values[:1] * n}, permutations=9)
    except ValueError as error:
        assert "has a cluster" in str(error)
        return
    for row in found.table.to_dict("records"):
        assert np.isnan(row["p_value"]) == bool("not tested" in row["note"])
        assert np.isnan(row["p_value"]) or 0 < row["p_value"] <= 1
    assert str(found) and all(table.to_csv() for table in found.tables.values())


@given(st.data(), st.integers(1, 25))
def test_any_cohort_gives_numbers_or_sentences(data, n):
    few = st.lists(st.integers(0, 4), min_size=n, max_size=n)
    labels, time = data.draw(few), data.draw(few)
    event = data.draw(st.lists(st.sampled_from([0, 1, None]), min_size=n, max_size=n))
    try:
        found = survival(labels, time, event, permutations=9)
    except ValueError as error:
        assert "no sample has" in str(error)
        return
    assert np.isnan(found.p_value) or 0 < found.p_value <= 1
    assert not np.isnan(found.p_value) or any(
        word in " ".join(found.notes) for word in ("no test", "Fewer than two clusters")
    )
    assert str(found) and all(table.to_csv() for table in found.tables.values())


# --- events ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 0, True, np.nan], [1, 0, 1, np.nan]),
        (["dead", "Alive", "NA"], [1, 0, np.nan]),
        (["1:DECEASED", "0:LIVING"], [1, 0]),
        (["1", "0", "1.0"], [1, 0, 1]),
    ],
)
def test_events_are_read(values, expected):
    read, said = read_events(values)
    np.testing.assert_array_equal(read, expected)
    assert bool(said) == any(str(v).lower() in ("dead", "1:deceased") for v in values)


@pytest.mark.parametrize(
    ("time", "event", "words"),
    [
        *(([1, 2], [1, bad], r"event must be 1 .* got")
          for bad in (2, "perhaps", 0.5, datetime.date(2020, 1, 1))),
        ([1, -2], [1, 0], "1 entries are negative"),
        ([1, np.inf], [1, 0], "time: 1 entries are infinite"),
        (["a", "b"], [1, 0], "time: 2 entries are no numbers, such as 'a'"),
        (pd.date_range("2020-01-01", periods=2), [1, 0], "time: it holds dates"),
        ([None, None], [1, 0], "no sample has a label, a time and an event"),
        ([1, 2, 3], [1, 0], "labels has 2 entries and time has 3"),
    ],
)  # fmt: skip
def test_bad_times_and_events_are_refused(time, event, words):
    with pytest.raises(ValueError, match=words):
        survival([0, 1], time, event)


# --- classes --------------------------------------------------------------------------------------


def test_crosstab_counts_and_scores():
    labels, table = clinical(60)
    known = pd.Series(labels, index=table.index)
    found = crosstab(known, table["site"].sample(frac=1, random_state=0))
    frame = pd.crosstab(labels, table["site"].to_numpy())
    np.testing.assert_array_equal(found.counts, frame)
    assert found.ari == adjusted_rand_score(table["site"], labels)
    assert found.nmi == pytest.approx(normalized_mutual_info_score(table["site"], labels))
    assert found.table["majority"].tolist() == frame.idxmax(axis=1).tolist()
    np.testing.assert_allclose(found.table["majority_share"], frame.max(axis=1) / frame.sum(axis=1))
    assert found.table["n"].sum() == 60


def test_crosstab_tells_ties_missing_classes_and_ids_for_classes():
    found = crosstab([0, 0, 1, 1, 1, -1], ["a", "b", "a", None, "unknown", "a"])
    assert found.n == 3 and found.table["majority"].tolist() == ["a", "a"]
    text = " ".join(found.notes)
    assert "equally common in: 0" in text and "2 samples without a class" in text
    assert "'unknown'" in text and "without a cluster" in text
    ids = crosstab(np.arange(300) % 2, [f"P{i}" for i in range(300)])
    assert any("they may be ids" in n for n in ids.notes) and len(str(ids)) < 1000
    with pytest.raises(ValueError, match="no sample has both"):
        crosstab([0, 1], [None, None])


def test_single_columns_may_be_dicts_of_ids():
    labels = {"a": 0, "b": 0, "c": 1}
    assert crosstab(labels, {"c": "y", "b": "x", "a": "x"}).ari == 1
    found = survival(labels, {"c": 3, "b": 2, "a": 1}, {"a": 1, "b": 1, "c": 0}, permutations=0)
    assert [c.n_events for c in found.curves] == [2, 0]
    with pytest.raises(ValueError, match="classes must be one column, got a table of 2"):
        crosstab([0, 1], pd.DataFrame({"a": [1, 2], "b": [1, 2]}))


def test_one_and_the_text_one_are_two_classes():
    found = crosstab([0, 0, 1, 1], [1, "1", 1, "1"])
    assert found.counts.tolist() == [[1, 1], [1, 1]] and found.table.shape[1] == 6
