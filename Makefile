# `make demo` and `make test` do all set-up on a fresh machine with Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint browser bench clean
.DELETE_ON_ERROR:

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/labelmend demo

test: lint browser
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

# Chromium for the browser tests, if there is none; without one they are skipped, but fail where CI=true.
browser: $(READY)
	$(BIN)/python tests/chromium.py

bench: $(READY)
	$(BIN)/labelmend benchmark digits --out benchmarks/results/digits.json

clean:
	rm -rf .venv
