"""`manyview fit --clinical` and `manyview outcomes`: what clusters mean, from files, mistakes included."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from command import done, refused, rows

import manyview as mv
from browser import visit
from manyview.app.files.clinical import read_clinical, split_column
from manyview.app.files.samples import EXACT
from manyview.outcomes import enrichment, gene_sets, survival
from manyview.outcomes.endpoints import recognize, unit_of

MEANINGS = {"survival.csv", "survival_pairs.csv", "survival_curves.csv", "survival_at_risk.csv",
            "survival_cox.csv",
            "clinical_tests.csv", "clinical_summary.csv", "clinical_cells.csv", "classes.csv",
            "annotations.csv"}  # fmt: skip


@pytest.fixture(scope="module")
def cohort(tmp_path_factory):
    """Two views and a clinical table of a cohort, as files; and a finished run without the table."""
    folder = tmp_path_factory.mktemp("cohort")
    data = mv.datasets.make_cohort(90, n_features=(80, 80, 40), missing=0, random_state=1)
    frames = data.frames()
    for view in ("expression", "methylation"):
        frames[view].to_csv(folder / f"{view}.csv", index_label="id")
    table = data.clinical_frame()
    order = np.random.default_rng(0).permutation(len(table))
    table.iloc[order].to_csv(folder / "clinical.csv", index_label="patient")
    files = [folder / "expression.csv", folder / "methylation.csv"]
    done("fit", *files, "--clusters", 4, "--out", folder / "plain", "--no-report")
    return folder, files, data


@pytest.fixture(scope="module")
def reported(cohort):
    """The same run with its report, to be copied."""
    folder, files, _ = cohort
    done("fit", *files, "--clusters", 4, "--out", folder / "reported")
    return folder / "reported"


def test_a_clinical_table_gives_survival_columns_and_classes(cohort, tmp_path):
    folder, files, data = cohort
    asked = ["--clinical", folder / "clinical.csv", "--time", "os_months", "--event", "dead",
             "--labels", f"{folder / 'clinical.csv'}:subtype"]  # fmt: skip
    out = tmp_path / "run"
    result = done("fit", *files, "--clusters", 4, "--out", out, *asked, "--json", "--no-report")
    summary = json.loads(result.stdout)
    assert set(summary["files"]) >= MEANINGS
    labels = {row["id"]: int(row["cluster"]) for row in rows(out / "labels.csv")}
    table = data.clinical_frame()
    given = pd.Series(labels)
    expected = survival(given, table["os_months"], table["dead"])
    assert summary["outcomes"]["survival"]["p_value"] == pytest.approx(expected.p_value)
    medians = [float(row["median"] or "nan") for row in rows(out / "survival.csv")]
    np.testing.assert_allclose(medians, [curve.median for curve in expected.curves])
    tested = enrichment(given, table[["age", "sex", "stage", "batch"]])
    found = {row["column"]: float(row["q_value"]) for row in rows(out / "clinical_tests.csv")}
    assert found == pytest.approx(tested.table.set_index("column")["q_value"].to_dict())
    assert summary["scores"]["ari"] == pytest.approx(summary["outcomes"]["classes"]["ari"])


def test_hazard_ratios_are_adjusted_for_the_covariates_named(cohort, tmp_path):
    pytest.importorskip("lifelines")
    folder, _files, data = cohort
    out = tmp_path / "run"
    shutil.copytree(folder / "plain", out)
    asked = ["--clinical", folder / "clinical.csv", "--covariates", "age, sex"]
    result = done("outcomes", out, *asked)
    assert "adjusted for age, sex" in " ".join(result.output.split()).lower()
    table, labels = data.clinical_frame(), pd.read_csv(out / "labels.csv", index_col="id")
    found = pd.read_csv(out / "survival_cox.csv")
    covariates = table[["age", "sex"]]
    expected = survival(labels["cluster"], table["os_months"], table["dead"], covariates=covariates)
    assert found["model"].tolist() == expected.ratios["model"].tolist()
    numbers = ["hazard_ratio", "lower", "upper", "wald_p", "p_value"]
    np.testing.assert_allclose(found[numbers], expected.ratios[numbers], rtol=1e-6)
    refused("no such column", "outcomes", out, *asked[:3], "age,weight")
    refused("is a column of the survival outcome", "outcomes", out, *asked[:3], "dead")
    refused("--covariates names a column", "outcomes", out, "--covariates", "age")


def test_gene_sets_are_tested_at_the_fit_and_later_and_leave_the_rest_alone(cohort, tmp_path):
    folder, files, data = cohort
    genes, file = list(data.frames()["expression"].columns), tmp_path / "sets.gmt"
    file.write_text("".join(f"SET_{j}\t–\t" + "\t".join(genes[j::4]) + "\n" for j in range(4)))
    (tmp_path / "other.gmt").write_text("A\t-\tENSG00000141510\tENSG00000146648\n")
    asked = ["fit", *files, "--clusters", 4, "--no-report", "--out", tmp_path / "new"]
    result = done(*asked, "--gene-sets", file, "--json")
    found = pd.read_csv(tmp_path / "new" / "gene_sets.csv")
    labels = pd.read_csv(tmp_path / "new" / "labels.csv", index_col="id")["cluster"]
    expected = gene_sets(labels, {"expression": data.frames()["expression"]}, str(file)).full_table
    pd.testing.assert_frame_equal(found, expected, check_dtype=False, rtol=1e-6)
    assert json.loads(result.stdout)["outcomes"]["gene_sets"]["sets"] == 4
    out = tmp_path / "run"
    shutil.copytree(folder / "plain", out)
    done("outcomes", out, "--clinical", folder / "clinical.csv")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    assert "(gene_sets.csv)" in done("outcomes", out, "--gene-sets", file).output
    after = {p.name: p.read_bytes() for p in out.iterdir()}
    changed = {name for name in after if after[name] != before.get(name)}
    assert changed - {"run.json", ".manyview.json"} == {"gene_sets.csv"} and set(before) < set(
        after
    )
    done("outcomes", out, "--clinical", folder / "clinical.csv")
    assert (out / "gene_sets.csv").read_bytes() == after["gene_sets.csv"]
    other = ["--gene-sets", tmp_path / "other.gmt", "--force"]
    refused("such as 'ENSG00000141510'", *asked, *other)
    refused("'expression' has gene symbols", "outcomes", out, *other[:2])


def test_a_second_cohort_gets_labels_a_check_of_its_platform_and_a_report(cohort, tmp_path):
    folder, files, data = cohort
    rna = pd.read_csv(files[0], index_col="id").iloc[:60, 8:]
    (3 * rna + 4).to_csv(tmp_path / "new.csv")
    asked = ["predict", folder / "plain", f"expression={tmp_path / 'new.csv'}"]
    asked += ["--clinical", folder / "clinical.csv", "--out"]
    refused("need --report FOLDER", *asked, tmp_path / "labels.csv")
    out = tmp_path / "cohort"
    result = done(*asked, tmp_path / "labels.csv", "--report", out, "--rescale", "--json")
    summary = json.loads(result.stdout)
    assert "'expression' differs between the new cohort and the fit" in result.stderr
    features = {row["view"]: row for row in summary["features"]}
    assert features["expression"]["lacking"] == 8 and features["methylation"]["present"] == 0
    labels = pd.read_csv(tmp_path / "labels.csv")
    assert (labels["confidence"] > 0.5).mean() == summary["confident"]
    pd.testing.assert_frame_equal(labels, pd.read_csv(out / "labels.csv"))
    shift = pd.read_csv(out / "cohort_shift.csv").set_index("view")
    assert shift.loc["expression", "p_value"] <= 0.002
    expected = survival(labels.set_index("id")["cluster"], data.clinical_frame()["os_months"],
                        data.clinical_frame()["dead"])  # fmt: skip
    assert json.loads((out / "run.json").read_text())["survival"]["p_value"] == expected.p_value
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "differs between the new cohort" in page and "New samples in the clusters" in page
    done("outcomes", out, "--clinical", folder / "clinical.csv", "--covariates", "age")
    model = mv.load(out / "model.npz")
    assert len(model.labels_) == 90
    after = {row["view"]: row["after_rescaling"] for row in summary["cohorts"]}
    assert after["expression"] < shift.loc["expression", "difference"] / 2
    plain = done(*asked[:3], "--out", tmp_path / "r.csv")
    assert "or rescale each feature" in plain.stderr and "labels are confident" in plain.stdout


def test_a_finished_run_can_be_asked_later_and_again(cohort, reported, tmp_path):
    folder, files, _data = cohort
    out = shutil.copytree(reported, tmp_path / "run")
    before = {p.name: p.read_bytes() for p in out.iterdir()}
    result = done("outcomes", out, "--clinical", folder / "clinical.csv", "--json")
    assert "time from the column 'os_months', event from 'dead'" in result.stderr
    assert "it has 90 of 90 samples" in result.stderr
    names = {p.name for p in out.iterdir()}
    assert names == set(before) | {"fusion_outcomes.csv"} | MEANINGS - {"classes.csv"}
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Survival" in page and "Clinical columns" in page
    kept = set(before) - {"run.json", "report.html", ".manyview.json"}
    assert all((out / name).read_bytes() == before[name] for name in kept)
    # Asked again with classes alone, nothing of the earlier answer is left over.
    done("outcomes", out, "--labels", f"{folder / 'clinical.csv'}:subtype", "--figures")
    assert {p.name for p in out.glob("*.csv")} & MEANINGS == {"classes.csv", "annotations.csv"}
    assert {p.name for p in (out / "figures").iterdir()} == {
        f"{name}.{kind}" for name in ("classes", "heatmap") for kind in ("svg", "png", "pdf")
    }
    assert (out / "figures" / "classes.pdf").read_bytes().startswith(b"%PDF")
    done("fit", *files, "--clusters", 4, "--out", out, "--no-report", "--force")
    assert not MEANINGS & {p.name for p in out.iterdir()} and not (out / "figures").exists()


def test_a_covariate_is_regressed_out_and_the_report_says_whether_it_is_gone(cohort, tmp_path):
    folder, files, data = cohort
    shifted = tmp_path / "expression.csv"
    frame = pd.read_csv(files[0], index_col=0)
    batch = pd.Series(data.clinical["batch"], index=data.sample_names).loc[frame.index]
    frame.add(batch.map({"batch1": 0, "batch2": 9, "batch3": 18}), axis=0).to_csv(shifted)
    out = tmp_path / "run"
    asked = ["--clinical", folder / "clinical.csv", "--adjust", "BATCH", "--clusters", 4]
    result = done("fit", shifted, files[1], "--out", out, *asked)
    assert "batch regressed out; it explained of the variance: expression" in result.stderr
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "No sign that clusters follow it" in page
    assert json.loads((out / "run.json").read_text())["adjusted"] == ["batch"]
    refused("fitted on views without batch", "predict", out, *files, "--out", tmp_path / "new.csv")
    asked += ["--out", tmp_path / "b", "--method", "wmnmf"]
    refused("use --method robust", "fit", *files, *asked)


def test_a_batch_called_by_numbers_is_looked_for_level_by_level(cohort, tmp_path):
    """Ranks of batch 1, 2, 3 would not show that a cluster is batch 2."""
    _folder, files, data = cohort
    code = {"batch1": 1, "batch2": 2, "batch3": 3}
    table = pd.DataFrame({"id": data.sample_names})
    table["site"] = [code[b] for b in data.clinical["batch"]]
    table.to_csv(tmp_path / "sites.csv", index=False)
    out = tmp_path / "run"
    asked = ["--clinical", tmp_path / "sites.csv", "--adjust", "site", "--clusters", 4]
    result = done("fit", *files, "--out", out, *asked, "--no-report")
    assert "'site' has 3 whole numbers, each treated as a separate level" in result.stderr
    tested = pd.read_csv(out / "clinical_tests.csv").iloc[0]
    assert (tested["column"], tested["kind"]) == ("site", "category")


DATES = "id,b\n" + "".join(f"P{i:04d},2019-05-{i % 28 + 1:02d}\n" for i in range(1, 91))
CENSORED = "id,os_months,censorship\n" + "".join(f"P{i:04d},{i},{i % 2}\n" for i in range(1, 91))
SAME = "id,b\n" + "".join(f"P{i:04d},1\n" for i in range(1, 91))
MISTAKES = {
    "no such time": (None, ["--time", "when", "--event", "dead"], "when: clinical.csv has no such column"),
    "time alone": (None, ["--time", "age"], "--time without --event"),
    "censored or not": (CENSORED, ["--event", "censorship"], "which value means that the event happened"),
    "another value": (CENSORED, ["--event", "censorship=no"], "never has the value 'no'"),
    "an event of another time": (CENSORED, ["--event", "seen", "--time", "b"], "no such column"),
    "event is a name": (None, ["--time", "os_months", "--event", "sex"], "event must be 1 (it happened)"),
    "time is text": (None, ["--time", "stage", "--event", "dead"], "are no numbers, such as 'Stage"),
    "strangers": ("id,age\nx,3\ny,4\n", [], "has none of the 90 samples in any column"),
    "two rows of one": ("id,age\nP0001,3\nP0001,4\n", [], "has the id 'P0001' in 2 rows that differ"),
    "two headings": ("id,a,a\nP0001,3,4\n", [], "has two columns headed 'a'"),
    "ids alone": ("id\nP0001\nP0002\n", [], "clinical columns are needed"),
    "negative time": ("id,os_days,dead\nP0001,-3,1\nP0002,4,0\n", [], "time must be 0 or more"),
    "no such class": (None, ["--labels", "clinical.csv:kind"], "kind: clinical.csv has no such column"),
    "no covariate": (None, ["--adjust", "site"], "--adjust site: clinical.csv has no such column"),
    "covariate of one value": (SAME, ["--adjust", "b"], "has one value only"),
    "a date to adjust for": (DATES, ["--adjust", "b"], "it holds dates"),
}  # fmt: skip


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_gets_a_sentence_before_anything_is_fitted(cohort, tmp_path, case):
    folder, files, _ = cohort
    content, extra, sentence = MISTAKES[case]
    table, out = tmp_path / "clinical.csv", tmp_path / "out"
    table.write_text((folder / "clinical.csv").read_text() if content is None else content)
    extra = [item.replace("clinical.csv", str(table)) for item in extra]
    refused(sentence, "fit", *files, "--clusters", 4, "--out", out, "--clinical", table, *extra)
    assert not out.exists()


def test_a_censoring_column_is_asked_about_and_read_as_said(cohort, tmp_path):
    """The law: whichever way the event is coded, survival is the same."""
    folder, _, data = cohort
    table = tmp_path / "clinical.csv"
    frame = data.clinical_frame()[["os_months", "dead", "age"]]
    frame = frame.assign(censorship=1 - frame["dead"], **{"PFI.time": frame["os_months"] / 2})
    frame.drop(columns="dead").to_csv(table, index_label="id")
    out = tmp_path / "run"
    shutil.copytree(folder / "plain", out)
    assert "--event censorship=0 or" in done("outcomes", out, "--clinical", table).stderr
    assert not (out / "survival.csv").exists()
    # No time of follow-up is tested as a plain number, whether or not survival could be compared.
    assert [r["column"] for r in rows(out / "clinical_tests.csv")] == ["age", "censorship"]
    assert "“PFI.time” is a time of follow-up" in (out / "run.json").read_text(encoding="utf-8")
    found = []
    for event in ("dead", "censorship=0"):
        source = folder / "clinical.csv" if event == "dead" else table
        said = done("outcomes", out, "--clinical", source, "--event", event, "--json")
        found.append(json.loads(said.stdout)["outcomes"]["survival"])
    assert found[0].pop("notes") != found[1]["notes"] and "censorship" in found[1].pop("notes")[0]
    assert [about.pop("event") for about in found] == ["dead", "censorship"]
    assert found[0] == found[1]


def test_a_batch_is_the_first_thing_said_and_the_remedy_works(tmp_path):
    """The sample cohort of the app, from the command line."""
    data = mv.datasets.make_cohort()
    files = [tmp_path / f"{view}.csv" for view in data.views]
    for file, frame in zip(files, data.frames().values(), strict=True):
        frame.to_csv(file, index_label="id")
    table = tmp_path / "clinical.csv"
    data.clinical_frame().to_csv(table, index_label="id")
    asked = ["--no-report", "--clinical", table, "--labels", f"{table}:subtype", "--clusters"]
    result = done("fit", *files, "--out", tmp_path / "a", *asked, 7)  # the number that auto takes
    assert "warning: The clusters follow “batch” (Cramér's V 0.99" in result.stderr
    assert "Fit again with --batch batch." in result.stderr
    assert result.output.index("The clusters follow") < result.output.index("240 samples     ")
    asked += ["auto", "--batch", "batch", "--json"]
    result = done("fit", *files, "--out", tmp_path / "b", *asked)
    summary = json.loads(result.stdout)
    assert summary["n_clusters"] == 4 and summary["scores"]["ari"] > 0.95
    assert summary["outcomes"]["clinical"]["followed"] == []
    assert not any("follow" in text for text in summary["warnings"])


def test_options_that_need_a_table_or_a_run_say_so(cohort, tmp_path):
    folder, files, _ = cohort
    asked = ["fit", *files, "--clusters", 4, "--out", tmp_path / "out", "--time", "os_months"]
    refused("give --clinical FILE", *asked)
    refused("give --clinical FILE, --labels", "outcomes", folder / "plain")
    asked = ["outcomes", tmp_path / "nowhere", "--clinical", folder / "clinical.csv"]
    refused("has no labels.csv", *asked)


EVIL = "<script>alert(1)</script>"


def test_hostile_clinical_files_are_only_ever_text(cohort, tmp_path):
    _folder, files, data = cohort
    n = data.n_samples
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "id": data.sample_names,
            "seen": pd.date_range("2019-01-01", periods=n).strftime("%d/%m/%Y"),
            "mixed": [1, "two", 3.5] * (n // 3),
            "who": [f"name {i}" for i in range(n)],
            EVIL: rng.choice(["=HYPERLINK(1)", EVIL], n),
            "=1+1": rng.choice(["@SUM(A1)", "+1+1", "a"], n),
            "$x$": rng.normal(size=n),
            "__proto__": rng.choice(["constructor", "%{x}"], n),
        }
    )
    table = pd.concat([table, table.iloc[:1]])  # one row twice, and the same
    table.to_csv(tmp_path / "evil.csv", index=False)
    out = tmp_path / "run"
    asked = ["--clinical", tmp_path / "evil.csv", "--labels", f"{tmp_path / 'evil.csv'}:{EVIL}"]
    result = done("fit", *files, "--clusters", 4, "--out", out, *asked)
    assert "1 ids have several equal rows" in result.stderr
    found = {row["column"]: row for row in rows(out / "clinical_tests.csv")}
    assert "dates" in found["seen"]["note"] and "mixes" in found["mixed"]["note"]
    assert "names or free text" in found["who"]["note"] and found["$x$"]["kind"] == "number"
    assert "'=1+1" in found  # no spreadsheet runs it
    cells = [cell for row in rows(out / "annotations.csv") for cell in row.values()]
    assert not [cell for cell in cells if cell.startswith(("=", "@"))]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script>alert" not in page
    switch = """(async () => { const box = document.querySelector('.switch select');
      for (let i = 0; i < box.options.length; i++)
        { box.value = i; box.dispatchEvent(new Event('change')); }
      return box.options.length })()"""
    seen = visit(page, switch)
    assert seen.errors == [] and seen.requests == [] and seen.value == 8


def test_very_many_categories_are_told_and_not_drawn(cohort, reported, tmp_path):
    data, out = cohort[2], shutil.copytree(reported, tmp_path / "run")
    table = pd.DataFrame({"id": data.sample_names, "code": [f"c{i}" for i in range(90)]})
    table["name"] = table["code"] + " of ninety"
    ids = [f"X{i}" for i in range(10_000)]
    more = pd.DataFrame({"id": ids, "code": range(10_000), "name": "x"})
    pd.concat([table, more]).to_csv(tmp_path / "many.csv", index=False)
    asked = ["--clinical", tmp_path / "many.csv", "--labels", f"{tmp_path / 'many.csv'}:code"]
    result = done("outcomes", out, *asked)
    assert "10000 of its rows belong to no sample here" in result.stderr
    assert "90 of its 90 values differ" in rows(out / "clinical_tests.csv")[0]["note"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "too many classes to list" in page
    assert visit(page).errors == []


def test_ids_are_found_in_any_column_and_rows_are_counted_where_there_are_none(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("age,who\n3,b\n4,a\n5,z\n")
    table = read_clinical(path, ["a", "b", "c"], 3)
    assert table.columns == {"age": ["4", "3", None]} and list(table.present) == [1, 1, 0]
    table = read_clinical(path, None, 3)
    assert table.columns["who"] == ["b", "a", "z"] and "matched by position" in table.notes[0]
    with pytest.raises(ValueError, match="has 3 rows for 4 samples without ids"):
        read_clinical(path, None, 4)
    assert split_column(f"{path}:age") == (str(path), "age")
    (tmp_path / "d.csv:age").write_text("")
    assert split_column(str(tmp_path / "d.csv:age")) == (str(tmp_path / "d.csv:age"), None)
    assert split_column("book.xlsx:sheet") == ("book.xlsx:sheet", None)


@pytest.mark.parametrize(
    ("columns", "time", "event"),
    [
        (["os_months", "dead", "age"], "os_months", "dead"),
        (["OS", "OS.time"], "OS.time", "OS"),
        (["Survival (Months)", "Vital Status"], "Survival (Months)", "Vital Status"),
        (["time", "status"], "time", "status"),
        (["os_days", "os_months", "dead"], None, None),
        (["time_of_day", "events"], None, None),
    ],
)
def test_columns_of_survival_are_recognized_or_nothing_is_guessed(columns, time, event):
    found = recognize({name: ["dead", "alive"] for name in columns})
    assert (found.time, found.event) == (time, event)
    assert bool(found.note) == any(c in columns for c in ("dead", "OS", "status", "Vital Status"))


def test_units_are_read_from_headings():
    assert [unit_of(n) for n in ("os_months", "Days to death", "OS.time")] == ["months", "days", ""]


@pytest.mark.parametrize("given", [False, True])
def test_every_table_of_samples_merges_with_the_clinical_table(tmp_path, given):
    """Barcodes of aliquots in the views, of patients in the clinical table."""
    rng, kinds = np.random.default_rng(0), np.arange(24) % 3
    patients = [f"TCGA-A{i % 3}-{1000 + i}" for i in range(24)]
    for name, end in (("rna", "-01A-11R-07"), ("meth", "-01B-22D-05")):
        ids = [p + end for p in patients] + [patients[0] + "-11A" + end[4:]]
        X = np.eye(3, 8)[[*kinds, 1]] * 6 + rng.normal(size=(25, 8))
        pd.DataFrame(X, ids, [f"{name}{j}" for j in range(8)]).to_csv(tmp_path / f"{name}.csv")
    # The ids are in no first column, and not written as in the barcodes if the table is given.
    spelled = [p.lower() for p in patients] if given else patients
    clinic = pd.DataFrame({"n": range(24), "patient": spelled, "stage": kinds})
    clinic.to_csv(tmp_path / "clinical.csv", index=False)
    out, files = tmp_path / "run", [tmp_path / "rna.csv", tmp_path / "meth.csv"]
    asked = ["--clinical", tmp_path / "clinical.csv"] if given else []
    asked += ["--match", "tcga", "--clusters", 3, "--out", out, "--no-report"]
    result = done("fit", *files, *asked)
    assert "1 normal solid tissue (11); the 1 normal" in " ".join(result.output.split())
    done("outcomes", out, "--clinical", tmp_path / "clinical.csv")
    done("report", out, "--stability", 2)
    original = {f"{p}-01A-11R-07" for p in patients}
    tables = [path for path in out.glob("*.csv") if "id" in rows(path)[0]]
    assert {p.stem for p in tables} >= {"labels", "annotations", "embedding", "sample_weights",
                                        "stability", "heatmap", "consensus"}  # fmt: skip
    for path in tables:
        table = pd.read_csv(path)
        assert list(table.columns[:2]) == ["id", "original_id"]
        merged = table.merge(clinic, left_on="id", right_on="patient")
        assert len(merged) == len(table) and set(table["original_id"]) <= original
        assert merged["original_id"].str[:12].str.lower().equals(merged["patient"].str.lower())
    labels = pd.read_csv(out / "labels.csv")
    assert set(labels["original_id"]) == original
    for more in ([], ["--force"]):
        done("predict", out, *files, "--match", "tcga", "--out", tmp_path / "new.csv", *more)
        assert set(pd.read_csv(tmp_path / "new.csv")["original_id"]) == original


def test_two_tumors_of_a_patient_have_the_clinical_row_of_their_patient(tmp_path):
    table = tmp_path / "clinical.csv"
    table.write_text("patient,stage\nTCGA-A1-0001,I\nTCGA-A1-0002,II\n")
    samples = ["TCGA-A1-0001-01", "TCGA-A1-0001-06", "TCGA-A1-0002-01"]
    found = read_clinical(table, samples, 3, replace(EXACT, match="tcga"))
    assert found.columns["stage"] == ["I", "I", "II"]


def test_new_samples_of_a_run_with_batches_need_theirs(tmp_path):
    rng = np.random.default_rng(0)
    kind, batch = np.arange(120) % 3, np.arange(120) // 60
    ids = pd.Index([f"s{i}" for i in range(120)], name="id")
    files = []
    for name, width in (("a", 12), ("b", 9)):
        X = 4 * rng.normal(size=(3, width))[kind] + 3 * rng.normal(size=(2, width))[batch]
        files.append(tmp_path / f"{name}.csv")
        pd.DataFrame(X + rng.normal(size=X.shape), ids).to_csv(files[-1])
    table = tmp_path / "clinical.csv"
    pd.DataFrame({"plate": batch, "lab": "x"}, ids).to_csv(table)
    asked = ["--no-report", "--clinical", table, "--batch", "plate", "--batch", "lab"]
    asked += ["--clusters", 3]
    done("fit", *files, "--out", tmp_path / "run", *asked)
    labels = pd.read_csv(tmp_path / "run" / "labels.csv")
    assert len(set(zip(kind, labels["cluster"], strict=True))) == 3
    again = ["predict", tmp_path / "run", *files, "--out", tmp_path / "new.csv"]
    refused("--batch", *again)
    new = done(*again, "--batch", "another")
    assert "'another' is not a batch of the fit (0 / x, 1 / x)" in new.stderr
    assert len(pd.read_csv(tmp_path / "new.csv")) == 120
    refused("--batch works only with --method robust", "fit", *files, "--out", tmp_path / "c", *asked,
            "--method", "wmnmf")  # fmt: skip
