"""What commands do, loaded when one of them runs: help and completion are there at once."""

from __future__ import annotations

from .later import later

run_compare = later("manyview.app.cli.compare", "run_compare")
run_datasets = later("manyview.app.cli.datasets", "run_datasets")
run_demo = later("manyview.app.cli.demo", "run_demo")
run_fit = later("manyview.app.cli.fit", "run_fit")
fit_request = later("manyview.app.cli.fit", "FitRequest")
run_outcomes = later("manyview.app.cli.outcomes", "run_outcomes")
asked_clinical = later("manyview.app.cli.clinical", "Asked")
run_report = later("manyview.app.cli.report", "run_report")
run_predict = later("manyview.app.cli.predict", "run_predict")
run_select_k = later("manyview.app.cli.select_k", "run_select_k")
run_reproduce = later("manyview.paper.command", "run_reproduce")
build = later("manyview.paper.page", "build")
as_markdown = later("manyview.paper.page", "markdown")
run_app = later("manyview.app.web.command", "run_app")
place_of_page = later("manyview.app.web.place", "place_of")
limits_of_runs = later("manyview.app.web.jobs", "Limits")
