# Two commands are all that a newcomer needs: `make demo` and `make test`.
# Each makes its own virtual environment beside the project on first use.
# `make docs` builds the site into build/docs, warnings are errors; open build/docs/index.html.
# `make reproduce` runs the experiments of the paper; ARGS are the words after `python -m paper`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
ARGS   ?= all --quick

.PHONY: demo docs reproduce test lint typecheck format bench clean

demo: $(VENV)/.demo-installed
	$(BIN)/python -m holrr.demo

docs: $(VENV)/.docs-installed
	rm -rf docs/reference/generated
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --jobs auto -d build/doctrees docs build/docs

reproduce: $(VENV)/.paper-installed
	$(BIN)/python -m paper $(ARGS)

test: $(VENV)/.dev-installed
	$(BIN)/python -m pytest

lint: $(VENV)/.dev-installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

typecheck: $(VENV)/.dev-installed
	$(BIN)/mypy

format: $(VENV)/.dev-installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.bench-installed
	$(BIN)/python benchmarks/linear.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build docs/gallery docs/reference/generated

# A stamp for each set of extras: remade when pyproject changes.
$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,progress]"
	touch $@

$(VENV)/.paper-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[plot,progress,data]"
	touch $@

$(VENV)/.docs-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

$(VENV)/.dev-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $@

$(VENV)/.bench-installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[all,bench]"
	touch $@
