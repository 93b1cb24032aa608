"""What commands do, loaded when one of them runs: help and completion are there at once."""

from __future__ import annotations

from .later import later

run_compare = later("manyview.cli.compare", "run_compare")
run_datasets = later("manyview.cli.datasets", "run_datasets")
run_demo = later("manyview.cli.demo", "run_demo")
run_fit = later("manyview.cli.fit", "run_fit")
fit_request = later("manyview.cli.fit", "FitRequest")
run_outcomes = later("manyview.cli.outcomes", "run_outcomes")
asked_clinical = later("manyview.cli.clinical", "Asked")
run_report = later("manyview.cli.report", "run_report")
run_predict = later("manyview.cli.predict", "run_predict")
run_select_k = later("manyview.cli.select_k", "run_select_k")
run_reproduce = later("manyview.reproduction.command", "run_reproduce")
build = later("manyview.reproduction.page", "build")
as_markdown = later("manyview.reproduction.page", "markdown")
run_app = later("manyview.web.command", "run_app")
place_of_page = later("manyview.web.place", "place_of")
limits_of_runs = later("manyview.web.jobs", "Limits")
