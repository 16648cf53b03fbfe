# To start, run `make demo` and `make test`. On first use, they create the virtual environment .venv.
# `make docs` builds the site into build/docs, with warnings as errors; open build/docs/index.html.
# `make reproduce` runs the experiments of the paper; ARGS has the arguments of `python -m paper`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
LOWEST := .venv-lowest
PIP    := python -m pip install --quiet --disable-pip-version-check
ARGS   ?= --quick
FUZZ   ?= --cases 20000 --seed 0
STORED ?=
MUTANTS ?= --number 200 --seed 0

.PHONY: demo docs reproduce test test-site check-site test-clean test-explain test-lowest fuzz mutants stored dist lint typecheck format benchmarks clean

demo: $(VENV)/.demo-installed
	$(BIN)/python -m holrr.demo

docs: $(VENV)/.docs-installed
	rm -rf docs/reference/generated build/docs/complete.txt
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto -d build/doctrees docs build/docs
	touch build/docs/complete.txt

reproduce: $(VENV)/.paper-installed
	$(BIN)/python -m paper $(ARGS)

test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest

# Tests of the built wheel and of installations without extras, in separate environments.
test-clean: $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m clean_environment

# The page on SHAP values and MLflow, with the packages that it needs.
test-explain: $(VENV)/.explain-installed
	$(BIN)/python -m pytest tests/test_explanations.py

# Build the site, then test it in a browser.
test-site: docs
	$(MAKE) check-site

check-site: $(VENV)/.docs-installed $(VENV)/.dev-installed
	$(BIN)/python -m pytest -m site tests/test_site.py

# Many seeded random cases; FUZZ has the arguments of tests/fuzz/run.py.
fuzz: $(VENV)/.dev-installed
	$(BIN)/python tests/fuzz/run.py $(FUZZ)

# Break lines of src at random, and run the tests that cover them; MUTANTS has the arguments of
# `python tests/mutants.py break`. Remove build/mutants after a change of src or of tests.
mutants: build/mutants/coverage
	$(BIN)/python tests/mutants.py break $(MUTANTS)

build/mutants/coverage: | $(VENV)/.dev-installed
	$(BIN)/python tests/mutants.py cover

# Compare 3,000 calls with stored results; STORED has the arguments of tests/stored/compare.py.
stored: $(VENV)/.dev-installed
	$(BIN)/python tests/stored/compare.py $(STORED)

# Quick tests with the lowest versions that pyproject.toml allows, in a separate environment.
test-lowest: $(LOWEST)/.installed
	OMP_NUM_THREADS=1 $(LOWEST)/bin/python -m pytest -m "not slow and not clean_environment and not site"

# Source archive, and the wheel built from it.
dist: $(VENV)/.release-installed
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.dev-installed
	$(BIN)/mypy

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Benchmarks in turn; ARGS are words after each, such as --quick. Those of a GPU and of two checkouts
# need arguments or hardware, see docs/benchmarks.md.
BENCHMARKS := real_data choice structured peers intervals robust streams
benchmarks: ARGS =
benchmarks: $(VENV)/.bench-installed
	for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py $(ARGS) || exit 1; done

clean:
	rm -rf $(VENV) $(LOWEST) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis build docs/gallery docs/reference/generated

# One stamp file for each set of extras, which is updated when pyproject.toml changes.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[plot,progress]"
	touch $@

$(VENV)/.paper-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[plot,data]"
	touch $@

$(VENV)/.docs-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[docs]"
	touch $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[dev]"
	touch $@

$(VENV)/.explain-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[dev,explain]"
	touch $@

$(VENV)/.bench-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[all,bench]"
	touch $@

$(VENV)/.release-installed: pyproject.toml | $(BIN)/python
	$(BIN)/$(PIP) --editable ".[release]"
	touch $@

$(LOWEST)/.installed: pyproject.toml constraints/lowest.txt
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/$(PIP) --constraint constraints/lowest.txt --editable ".[test]"
	touch $@
