# `make` lists the targets. Everything is installed into .venv; nothing needs a GPU.

PYTHON ?= python3
BIN := .venv/bin
BIN_2_13 := .venv-2.13/bin
BIN_JAX := .venv-jax/bin
IN_PARALLEL := --numprocesses 2 --dist worksteal
# The releases that the tests passed with: a new one of any library shows in a commit, not in a test of another change.
CONSTRAINTS := --constraint constraints.txt
# Not in there: what is named below, and what torch itself fixes.
NAMED_HERE := ^(torch|torchvision|triton|jax|jaxlib|jax-.*|optax|nvidia-.*|cuda-.*)==
PIP_INSTALL := pip install --quiet --no-compile --disable-pip-version-check

# pip compiles nothing, and where Python is told to keep no bytecode every process of the tests would: of torch, in seven
# seconds. So what most of them import is imported once.
KEEP_BYTECODE := env -u PYTHONDONTWRITEBYTECODE

# The releases that peaksight is tested with.
TORCH := torch==2.14.1 torchvision==0.29.1
TORCH_2_13 := torch==2.13.0
JAX := jax==0.10.2 optax==0.2.8
# XLA's compiler for cards, which needs neither a card nor the libraries of CUDA that it names.
JAX_COMPILER := jax-cuda13-plugin==0.10.2 jax-cuda13-pjrt==0.10.2

# The tools of `make peers`, beside MemTracker, which torch has.
PEERS := torch-preflight==0.5.0 torch-kitsune==0.7.0 alloc==0.0.16

ECHARTS := src/peaksight/reporting/pages/assets/echarts

export HF_HUB_OFFLINE := 1
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9.-]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: demo
demo: .venv/runtime  ## Simulate examples/finetune_gpt2.py on a T4, which it does not fit
	cd examples && ../$(BIN)/peaksight run --gpu t4 finetune_gpt2.py || test $$? -eq 1

.PHONY: test
test: check .venv-2.13/dev test-jax  ## Lint, types and every test, then the tests that need only torch on torch 2.13
	$(BIN)/pytest $(IN_PARALLEL) --ignore tests/unit
	$(BIN_2_13)/pytest $(IN_PARALLEL) -m "not models" --ignore tests/virtual_gpu/script tests/virtual_gpu tests/cli/test_run.py

.PHONY: test-jax
test-jax: .venv-jax/dev  ## The tests of the JAX front-end, in an environment without torch
	$(BIN_JAX)/pytest $(IN_PARALLEL) tests/jax_programs

.PHONY: accuracy-jax
accuracy-jax:  ## Compare predictions under JAX with GPU measurements; needs PYTHON of an environment with jax 0.11.2
	$(PYTHON) -m benchmarks.jax.accuracy $(ARGS)

.PHONY: check
check: .venv/dev  ## Lint, types and unit tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest tests/unit

.PHONY: accuracy
accuracy: .venv/dev  ## Compare predictions with the GPU measurements in benchmarks/truth; writes docs/accuracy.md
	$(BIN)/python -m benchmarks.accuracy $(ARGS)

.PHONY: scale
scale: .venv/dev  ## Simulate models from 1B to 405B on up to 4,096 ranks; writes docs/scale.md
	$(BIN)/python -m benchmarks.scale $(ARGS)

.PHONY: verdicts
verdicts: .venv/dev  ## Compare "fits or not, and where it fails" with benchmarks/truth; writes docs/verdicts.md
	$(BIN)/python -m benchmarks.accuracy.verdicts $(ARGS)

.PHONY: peers
peers: .venv-peers/dev  ## Ask four other tools about the same workloads in the same run; writes docs/peers.md
	$(BIN)/python -m benchmarks.peers --python .venv-peers/bin/python $(ARGS)

.PHONY: operators
operators: .venv/dev  ## Compare single operators with what they took on a GPU; writes docs/operators.md
	$(BIN)/python -m benchmarks.operators publish

.PHONY: controls
controls: .venv/dev  ## Verify pairs of scripts whose verdict is known; writes docs/controls.md
	$(BIN)/python -m benchmarks.controls $(ARGS)

.PHONY: causes
causes: .venv/dev  ## Compare the first finding with the known cause of each script in tests/scripts; writes docs/causes.md
	$(BIN)/python -m benchmarks.causes $(ARGS)

.PHONY: plans
plans: .venv/dev  ## Compare plans of `fix` with what a GPU measured; writes docs/plans.md
	$(BIN)/python -m benchmarks.plans.page

.PHONY: systems
systems: .venv/dev  ## Simulate and certify the five systems of examples/systems; writes docs/systems.md
	$(BIN)/python -m benchmarks.systems.predict $(ARGS)
	$(BIN)/python -m benchmarks.systems.certify $(ARGS)
	$(BIN)/python -m benchmarks.systems.page

.PHONY: times
times: .venv/dev  ## Compare the predicted time of steps with what a GPU took; writes docs/times.md
	$(BIN)/python -m benchmarks.times $(ARGS)

.PHONY: watch
watch: .venv/dev  ## Write docs/watch.md from what watching a run on a GPU was measured to cost
	$(BIN)/python -m benchmarks.watch

.PHONY: bench
bench: .venv/dev  ## Measure what a simulated run costs: time and host memory
	$(BIN)/python -m benchmarks.bench $(ARGS)

.PHONY: read
read: .venv/dev  ## Score `peaksight read` on public reports, and time it
	$(BIN)/python -m benchmarks.read $(ARGS)

.PHONY: docs
docs: .venv/docs  ## Build the documentation site in build/site; its search needs a web server
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

.PHONY: transcripts
transcripts: .venv/dev  ## Write what commands print today into the pages that show them; read the difference
	$(BIN)/python -m tests.docs.pages
	git diff --stat

.PHONY: limits
limits: .venv/dev  ## Measure what loading and training a 7B and a 70B model costs, for docs/limits.md
	$(BIN)/python -m benchmarks.limits $(ARGS)

.PHONY: golden
golden: .venv/dev  ## Take the reports as printed today for tests/golden; read the difference before committing
	-$(BIN)/pytest --quiet tests/unit/reporting tests/unit/test_schemas.py
	-test ! -d tests/actual || mv tests/actual/*.schema.json docs/
	-test ! -d tests/actual || mv tests/actual/* tests/golden/
	git diff --stat tests/golden docs

.PHONY: constraints
constraints: clean  ## Install the newest releases of everything and take them for constraints.txt; then run the tests
	$(MAKE) .venv/dev .venv-2.13/dev .venv-jax/dev CONSTRAINTS=
	for bin in $(BIN) $(BIN_2_13) $(BIN_JAX); do $$bin/pip freeze --exclude-editable; done | grep -Ev '$(NAMED_HERE)' | LC_ALL=C sort -fu > constraints.txt
	git diff --stat constraints.txt

.PHONY: echarts
echarts:  ## Build the charts of pages anew, of the release in tools/echarts; needs npm
	cd tools/echarts && npm ci --ignore-scripts --no-audit --no-fund && npm run build
	cp tools/echarts/node_modules/echarts/LICENSE tools/echarts/node_modules/echarts/NOTICE tools/echarts/node_modules/echarts/licenses/LICENSE-d3 $(ECHARTS)
	cp tools/echarts/node_modules/zrender/LICENSE $(ECHARTS)/LICENSE-zrender
	cp tools/echarts/node_modules/tslib/LICENSE.txt $(ECHARTS)/LICENSE-tslib
	rm -r tools/echarts/node_modules

.PHONY: clean
clean:  ## Remove the environments and what the tools left behind
	rm -rf .venv .venv-2.13 .venv-jax .venv-peers .hypothesis .mypy_cache .pytest_cache .ruff_cache tests/actual

.venv/created .venv-2.13/created .venv-jax/created:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "peaksight needs Python 3.11: make PYTHON=...")'
	$(PYTHON) -m venv $(@D)
	touch $@

.venv/runtime: .venv/created pyproject.toml constraints.txt
	$(BIN)/$(PIP_INSTALL) $(CONSTRAINTS) $(TORCH)
	$(BIN)/$(PIP_INSTALL) $(CONSTRAINTS) --editable ".[models]"
	touch $@

.venv/dev: .venv/runtime
	$(BIN)/$(PIP_INSTALL) $(CONSTRAINTS) --editable ".[dev]"
	$(KEEP_BYTECODE) $(BIN)/python -c "import pytest, peaksight.cli.run, peaksight.virtual_gpu.simulation, torch._inductor.compile_fx"
	$(KEEP_BYTECODE) $(BIN)/python -c "import torchvision, transformers.trainer, transformers.models.gpt2.modeling_gpt2"
	touch $@

# Without torch: the site is made of text.
.venv/docs: .venv/created pyproject.toml constraints.txt
	$(BIN)/$(PIP_INSTALL) $(CONSTRAINTS) --editable ".[docs]"
	touch $@

PURELIB := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'

# The peers see torch and the models of .venv, which are gigabytes.
.venv-peers/dev: .venv/dev
	$(PYTHON) -m venv .venv-peers
	$(BIN)/python $(PURELIB) > "$$(.venv-peers/bin/python $(PURELIB))/venv.pth"
	.venv-peers/bin/$(PIP_INSTALL) $(PEERS)
	touch $@

.venv-jax/dev: .venv-jax/created pyproject.toml constraints.txt
	$(BIN_JAX)/$(PIP_INSTALL) $(CONSTRAINTS) $(JAX)
	$(BIN_JAX)/$(PIP_INSTALL) $(CONSTRAINTS) --no-deps $(JAX_COMPILER)
	$(BIN_JAX)/$(PIP_INSTALL) $(CONSTRAINTS) --editable ".[test]"
	$(KEEP_BYTECODE) $(BIN_JAX)/python -c "import pytest, peaksight.jax, optax"
	touch $@

.venv-2.13/dev: .venv-2.13/created pyproject.toml constraints.txt
	$(BIN_2_13)/$(PIP_INSTALL) $(CONSTRAINTS) $(TORCH_2_13)
	$(BIN_2_13)/$(PIP_INSTALL) $(CONSTRAINTS) --editable ".[test]"
	$(KEEP_BYTECODE) $(BIN_2_13)/python -c "import pytest, peaksight.virtual_gpu.simulation, torch._inductor.compile_fx"
	touch $@
