# Two commands to start: `make demo` shows the method at work, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
# Where an environment has its programs.
IN     := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN    := $(VENV)/$(IN)
PIP    := -m pip install --quiet --disable-pip-version-check

.PHONY: demo test test-slow test-torch test-browser app-tour test-minimal test-newest test-extras build-check release-check lint bench table fuzz docs clean

demo: $(VENV)/.installed
	@$(BIN)/manyview demo --out demo-results

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The tests that kill processes or wait for limits, ten seconds and more each.
test-slow: $(VENV)/.installed
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Slow commands: `table` prints the numbers quoted in README, `bench` ratios of CPU time, `fuzz`
# runs the property tests on thousands of new random examples.
bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed.py

table: $(VENV)/.installed
	$(BIN)/python benchmarks/digits.py --seeds 20

fuzz: $(VENV)/.installed
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m hypothesis -W default

# The torch engine: its tests need PyTorch, for CPUs unless the machine has another already.
test-torch: $(VENV)/.torch
	$(BIN)/python -m pytest tests/engines/test_torch.py

$(VENV)/.torch: $(VENV)/.installed
	$(BIN)/python $(PIP) torch==2.13.0
	@touch $@

# The page of `manyview app` in Chromium, which must be there; axe-core, if npm can get it, looks for
# what bars people. `app-tour` takes a stranger's way, with times and pictures in app-tour/.
test-browser: $(VENV)/.browser
	-npm install --no-save --silent axe-core
	$(BIN)/python -m pytest -m 'browser or not browser' tests/web/test_browser.py

app-tour: $(VENV)/.browser
	$(BIN)/python tools/app_tour.py --shots app-tour

$(VENV)/.browser: $(VENV)/.installed
	$(BIN)/python $(PIP) playwright
	@touch $@

# The tests of the core with the oldest versions that pyproject.toml allows and nothing else. They have
# wheels for Python 3.11 and 3.12: `make test-minimal PYTHON=python3.11` where python3 is newer.
MINIMAL := .venv-minimal
FLOORS  := import tomllib; \
           project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
           print(*(name.replace(">=", "==") for name in project["dependencies"]))
CORE    := maths/test_equations methods/test_assign methods/test_fit methods/test_golden methods/test_robust \
           methods/test_wmnmf baselines/test_mlrssc baselines/test_multinmf data/test_views \
           test_metrics test_environment

test-minimal: $(MINIMAL)/.installed
	$(MINIMAL)/$(IN)/python -m pytest $(CORE:%=tests/%.py)

$(MINIMAL)/.installed: pyproject.toml
	$(PYTHON) -m venv --clear $(MINIMAL)
	$(MINIMAL)/$(IN)/python $(PIP) \
	    $$($(PYTHON) -c '$(FLOORS)') 'pytest>=8' 'hypothesis>=6.100'
	$(MINIMAL)/$(IN)/python $(PIP) --no-deps -e .
	@touch $@

# The newest versions there are of everything; `make test-newest PRE=--pre` takes those that are not out yet.
NEWEST := .venv-newest
PRE    :=
TESTS  := tests

test-newest:
	$(PYTHON) -m venv --clear $(NEWEST)
	$(NEWEST)/$(IN)/python $(PIP) $(PRE) --upgrade --upgrade-strategy eager -e '.[dev]'
	$(NEWEST)/$(IN)/python -m pytest -n 2 --dist loadfile $(TESTS)

# Each extra in a fresh environment of its own, from `manyview app` to a report on sample tables;
# "lowest" is app with the oldest versions that pyproject.toml allows.
EXTRAS := app all

test-extras:
	$(PYTHON) tools/extras_check.py $(EXTRAS)

# Wheel and source archive, looked into and used in fresh environments; they stay in dist/.
BUILD := .venv-build
SDIST := test_environment test_release test_portable methods/test_assign data/test_views test_metrics

build-check: $(BUILD)/.installed
	$(BUILD)/$(IN)/python tools/build_check.py $(SDIST:%=tests/%.py)

$(BUILD)/.installed:
	$(PYTHON) -m venv --clear $(BUILD)
	$(BUILD)/$(IN)/python $(PIP) build twine
	@touch $@

# Before a tag is published: version, changelog, citation and recipe agree, and there is an address.
release-check:
	$(PYTHON) tools/release_check.py $(TAG)

# The documentation, in docs/_build/index.html; a warning is an error.
docs: $(VENV)/.docs
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python $(PIP) -e '.[docs]'
	@touch $@

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) $(MINIMAL) $(NEWEST) $(BUILD) demo-results app-tour node_modules build dist src/*.egg-info docs/_build docs/gallery docs/generated
