# `make demo` and `make test` do all set-up on a fresh machine with Python >= 3.11.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint docs browser bench lowest fuzz clean
.DELETE_ON_ERROR:

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

demo: $(READY)
	$(BIN)/labelmend demo

# Two processes: a module of tests stays in one, with the runs that it shares.
test: lint browser
	$(BIN)/python -m pytest -n 2 --dist loadfile

lint: $(READY)
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/sphinx-build -q -W -b doctest docs docs/_build/doctest

# Chromium for the browser tests, if there is none; without one they are skipped, but fail where CI=true.
browser: $(READY)
	PYTHONPATH=. $(BIN)/python tests/chromium.py

bench: $(READY)
	$(BIN)/python -m bench digits --out bench/results/digits.json

# The core tests with the lowest versions that are promised, in an environment of their own. Not part of CI: it takes a
# download of gigabytes and some minutes.
LOWEST := .venv-lowest
CORE := tests/inputs tests/ensemble tests/test_api.py tests/test_config.py tests/test_estimator.py \
	tests/storage tests/review/test_apply.py tests/review/test_decisions.py

$(LOWEST)/.ready: pyproject.toml constraints-lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --upgrade pip
	$(LOWEST)/bin/python -m pip install --quiet -c constraints-lowest.txt -e ".[images]" \
		pytest pytest-timeout hypothesis polars
	touch $@

lowest: $(LOWEST)/.ready
	$(LOWEST)/bin/python -m pytest $(CORE)

# Damaged and odd inputs with other seeds than those of the tests; `make fuzz SEED=7 INPUTS=10000`.
SEED ?= 1
INPUTS ?= 10000
fuzz: $(READY)
	PYTHONPATH=. $(BIN)/python bench/fuzz.py --seed $(SEED) --inputs $(INPUTS)

clean:
	rm -rf .venv $(LOWEST)
