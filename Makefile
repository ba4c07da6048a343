# Every target works on a fresh clone with Python 3.11 and make alone.
PYTHON ?= python3.11
BIN := .venv/bin

.PHONY: setup demo test test-slow check bench bench-attention ladder experiments clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/regardant demo

test: setup
	$(BIN)/pytest -m 'not slow' -n 2

test-slow: setup
	$(BIN)/pytest -m slow

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

experiments: setup
	$(BIN)/python -m benchmarks.experiments $(EXPERIMENT)

bench: setup
	$(BIN)/python -m benchmarks.recipes $(BENCH)

ladder: setup
	$(BIN)/python -m benchmarks.ladder $(RUNG)

bench-attention: setup
	$(BIN)/python -m benchmarks.attention $(BENCH)

clean:
	rm -rf .venv runs .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
