# `make demo` and `make test` do all set-up on a fresh machine with Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint bench clean
.DELETE_ON_ERROR:

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/labelmend demo

test: lint
	$(BIN)/python -m pytest

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

bench: $(READY)
	$(BIN)/labelmend benchmark digits --out benchmarks/results/digits.json

clean:
	rm -rf .venv
