# Every target works on a fresh clone with Python 3.11 or newer and make alone.
PYTHON ?= $(shell for python in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
NO_PYTHON = no Python 3.11 or newer: install one (Debian: apt install python3 python3-venv) or give PYTHON=/path/to/python
BIN := .venv/bin

PEERS := benchmarks/.peers
CHROMIUM = command -v chromium >/dev/null || apt-get install --yes --quiet chromium

.PHONY: setup demo docs test test-slow test-browser mutants check experiments ladder ladder-demo clean
.PHONY: bench bench-attention bench-training bench-long bench-recurrent bench-quality bench-decoding bench-models bench-sampling bench-engines bench-exports bench-memory bench-processes bench-profile
.PHONY: torture bench-accelerator bench-accelerator-training bench-accelerator-translation bench-startup bench-serving bench-smoke bench-families bench-own-files bench-corpora bench-preparing bench-pages bench-sweeps

# Tests start a hundred processes: they keep compiled code, whatever the machine's default is.
test test-slow test-browser mutants: export PYTHONDONTWRITEBYTECODE =

# Each benchmark times steps itself, whatever earlier runs have kept.
bench bench-% experiments ladder ladder-demo: export REGARDANT_CACHE =

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(if $(PYTHON),,$(error $(NO_PYTHON)))
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo:
	@start=$$(date +%s); $(MAKE) --no-print-directory setup && echo "installed in $$(($$(date +%s) - start)) s"
	$(BIN)/regardant demo

docs: .venv/docs
	$(BIN)/python -m docs.build

.venv/docs: .venv/ready
	PIP_CONSTRAINT=constraints.txt $(BIN)/pip install --quiet --disable-pip-version-check --editable '.[docs]'
	touch $@

test: setup tests/.triton/ready
	$(BIN)/pytest -m 'not slow and not browser' -n 2 --dist loadgroup

test-slow: .venv/docs tests/.servers/moto/ready
	$(BIN)/pytest -m slow

test-browser: setup
	$(CHROMIUM) || echo "no Chromium: these tests are skipped"
	$(BIN)/pytest -m browser -rs

mutants: setup tests/.triton/ready
	$(BIN)/python -m tests.mutants $(ROOMS)

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

experiments: setup
	$(BIN)/python -m benchmarks.experiments $(EXPERIMENT)

bench: setup
	$(BIN)/python -m $(if $(NANOGPT),benchmarks.shakespeare $(NANOGPT),benchmarks.recipes) $(BENCH)

ladder: setup
	$(BIN)/python -m benchmarks.ladder $(RUNG)

ladder-demo: setup
	$(BIN)/python -m benchmarks.ladder_demo $(RUNG)

bench-attention: setup
	$(BIN)/python -m benchmarks.attention $(BENCH)

bench-training: setup $(PEERS)/transformers/ready $(PEERS)/x-transformers/ready $(PEERS)/joeynmt/ready
	$(BIN)/python -m benchmarks.training $(BENCH)

bench-long: setup $(PEERS)/transformers/ready $(PEERS)/ctranslate2/ready
	$(BIN)/python -m benchmarks.long_sentences $(BENCH)

bench-recurrent: setup $(PEERS)/joeynmt/ready
	$(BIN)/python -m benchmarks.recurrent $(BENCH)

bench-quality: setup $(PEERS)/transformers/ready $(PEERS)/joeynmt/ready
	$(BIN)/python -m benchmarks.quality $(BENCH)

bench-decoding: setup $(PEERS)/transformers/ready $(PEERS)/ctranslate2/ready
	$(BIN)/python -m benchmarks.decoding $(BENCH)

bench-models: setup $(PEERS)/transformers/ready $(PEERS)/litgpt/ready
	$(BIN)/python -m benchmarks.model_steps $(BENCH)

bench-sampling: setup $(PEERS)/transformers/ready
	$(BIN)/python -m benchmarks.sampling $(BENCH)

bench-engines: setup
	$(BIN)/python -m benchmarks.engines $(BENCH)

bench-exports: setup
	$(BIN)/python -m benchmarks.exports $(BENCH)

bench-accelerator: bench-accelerator-training bench-accelerator-translation

bench-accelerator-training: setup $(PEERS)/transformers/ready
	$(BIN)/python -m benchmarks.accelerator_training $(BENCH)

bench-accelerator-translation: setup $(PEERS)/transformers/ready
	$(BIN)/python -m benchmarks.accelerator_translation $(BENCH)

bench-processes: setup
	$(BIN)/python -m benchmarks.processes $(BENCH)

bench-profile: setup
	$(BIN)/python -m benchmarks.profile_training $(BENCH)
	$(BIN)/python -m benchmarks.profile_decoding $(BENCH)

bench-startup: setup
	$(BIN)/python -m benchmarks.startup $(BENCH)

bench-serving: setup
	$(BIN)/python -m benchmarks.serving $(BENCH)

bench-smoke: setup
	$(BIN)/python -m benchmarks.smoke

bench-families: setup
	$(BIN)/python -m benchmarks.families $(BENCH)

bench-own-files: setup
	$(BIN)/python -m benchmarks.own_files $(BENCH)

bench-sweeps: setup
	$(BIN)/python -m benchmarks.sweeps $(BENCH)

bench-corpora: setup
	$(BIN)/python -m benchmarks.corpora $(BENCH)

bench-preparing: setup
	$(BIN)/python -m benchmarks.preparing $(BENCH)

bench-pages: setup
	$(CHROMIUM)
	$(BIN)/python -m benchmarks.pages $(BENCH)

torture: setup
	$(BIN)/python -m benchmarks.torture $(BENCH)

bench-memory: setup
	$(BIN)/python -m benchmarks.memory $(BENCH)

# Other libraries, each in an environment of its own. JoeyNMT asks for older versions than it needs.
$(PEERS)/%/ready: benchmarks/peers/%.txt
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	$(if $(filter joeynmt,$*),$(@D)/bin/pip install --quiet --disable-pip-version-check --no-deps joeynmt==2.3.0)
	touch $@

# Kernels for accelerators are tested in Triton's interpreter, which the PyTorch of a CPU lacks.
tests/.triton/ready: .venv/ready
	mkdir -p $(@D)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --target $(@D) triton==3.7.1 && touch $@ \
		|| echo "no Triton for this machine: tests of its kernels are skipped"

# A server that speaks like S3, in an environment of its own: it asks for older versions than the package.
tests/.servers/%/ready: tests/servers/%.txt
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/pip install --quiet --disable-pip-version-check --requirement $<
	touch $@

clean:
	rm -rf .venv $(PEERS) tests/.servers tests/.triton runs site .site .screenshots .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
