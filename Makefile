# Two commands to start: `make demo` shows the method at work, `make test` proves it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: demo test lint bench table fuzz clean

demo: $(VENV)/.installed
	@$(BIN)/manyview demo --out demo-results

test: lint
	$(BIN)/python -m pytest

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Slow commands: `table` prints the numbers quoted in README, `bench` ratios of CPU time, `fuzz`
# runs the property tests on thousands of new random examples.
bench: $(VENV)/.installed
	$(BIN)/python benchmarks/speed.py

table: $(VENV)/.installed
	$(BIN)/python benchmarks/digits.py --seeds 20

fuzz: $(VENV)/.installed
	HYPOTHESIS_PROFILE=fuzz $(BIN)/python -m pytest -m hypothesis

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) demo-results build dist src/*.egg-info
