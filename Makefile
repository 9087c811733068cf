# devtrace. `make lab` to use it, `make test` to check it; `make help` lists the rest.
#
# PYTHON=python3.12 make lab      another Python (3.11 or newer)
# VENV=~/envs/devtrace make lab   another place for the environment
# make lab ARGS="--no-browser --port 8899"

SHELL := /bin/bash -o pipefail
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
ARGS ?=
FILES ?=
BIN := $(abspath $(VENV))/bin
# What is never imported need not be compiled, and Python keeps what it compiled: a third of the time of an install.
PIP := -m pip --disable-pip-version-check -q install --no-compile
PYTEST := $(BIN)/python -m pytest -q
# Two at a time, a file staying with one worker: what a file shares (a kernel, a model) is made once.
PYTEST_APART := $(PYTEST) -n 2 --dist loadfile
# Runs the tests of a target, where something has changed since they passed.
ASKED := $(BIN)/python tools/asked.py
# What is longer than a worker's share of `breadth`; its two workers share it.
ACCELERATED := tests/diagnosis/test_accelerator_programs.py
# Where the tests of a kind are: each pytest would else import all tests, in both of its workers, to find a few.
OF_E2E := tests/e2e
OF_NOTEBOOKS := tests/project/test_notebooks.py
OF_WHEEL := tests/project/test_wheel.py
# What holds of all code and all sentences, in seconds: no program is run.
QUICK := tests/project/test_layers.py tests/project/test_lines.py tests/project/test_named_in_docs.py tests/project/test_near.py \
	tests/project/test_readme.py tests/project/test_vocabulary.py tests/recording/test_one_liners.py \
	tests/words/test_catalogue.py tests/words/test_messages.py tests/words/test_prose.py tests/words/test_text_format.py
JLPM := YARN_ENABLE_TELEMETRY=0 $(BIN)/jlpm
export PATH := $(BIN):$(PATH)
# The sources of this folder, also where the environment belongs to another checkout.
export PYTHONPATH := $(CURDIR)/src
# Tests start hundreds of Pythons; without this each would compile our sources anew where the caller forbids caches.
unexport PYTHONDONTWRITEBYTECODE

# The newest that the pinned versions were run with comes first.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# What marks a step as done. Each names what it was made from, so that a second run does nothing.
BUILDER := $(VENV)/.made-builder
PACKAGES := $(VENV)/.made-packages
MODULES := node_modules/.made
BUILT := build/.made-extension
READY := $(VENV)/.made-ready
SYSTEMS := $(VENV)/.made-systems
CODE_SERVER := build/code-server/.made
MARIMO := build/marimo/.made
REAL := $(VENV)-real
FRAMEWORKS := $(REAL)/.made
INSTALLED := $(VENV)/share/jupyter/labextensions/devtrace
TS_SOURCES := $(shell find labextension -type f -not -path 'labextension/lib/*' -not -path 'labextension/test/*') \
	src/devtrace/notebook/panel/messages.json
RAY := $(VENV)-ray/.made
SITE := $(VENV)-site
NEWEST := $(VENV)-newest
CUDA := $(VENV)-cuda
OLDEST := $(VENV)-oldest
# What runs beside something else prints when it ends, where make can do so (4.0 or newer; macOS has 3.81).
IN_TURN := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
FIRST_NOTEBOOK = $(firstword $(sort $(wildcard notebooks/0*.ipynb)))

.PHONY: help lab test test-simulation near near-record check lint types quick unit breadth breadth-e2e breadth-notebooks coverage ts wheel notebooks e2e compiler chromium vscode e2e-vscode e2e-marimo code-server marimo ticks \
	build dev format golden docs bench suites sweep real ray long-runs harm site \
	gallery notebook-outputs screenshot test-newest test-released test-cuda test-oldest torch-newest torch-cuda torch-oldest clean distclean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

lab: $(READY) ## open JupyterLab on your copy of the first notebook (ARGS are its own: --no-browser --port 8899)
	@$(BIN)/python tools/lab.py $(FIRST_NOTEBOOK) $(ARGS)

# Two at a time: each step of the set-up waits for another server. The browser tests wait half of their time, beside which
# there is what needs one processor; `unit`, which needs two, comes alone.
test: ## lint, types and tests (CI runs more: .ci/run)
	@$(MAKE) --no-print-directory -j3 $(READY) chromium
	@$(MAKE) --no-print-directory -j2 $(IN_TURN) $(SYSTEMS) e2e lint types quick ts wheel compiler notebooks
	@$(MAKE) --no-print-directory unit
	@echo "make test: all passed"

check: lint quick ## the gates that take seconds, before each commit; types come beside them

near: check ## the tests that a change can reach, after the gates of seconds (FILES="a.py b.tsv", ARGS="--since main --list")
	@$(BIN)/python tools/near.py $(ARGS) $(FILES)

near-record: $(READY) $(SYSTEMS) compiler ## record anew which test file runs which function, for `near` (FILES: only these test files)
	@$(BIN)/python tools/near_record.py $(FILES)

lint: $(READY) ## ruff, ESLint, prettier
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(JLPM) lint

types: $(READY) ## mypy --strict and the TypeScript compiler
	$(BIN)/mypy
	$(JLPM) types

quick: $(READY) ## layers, words, vocabulary, one-liners, names in the docs
	$(PYTEST_APART) $(QUICK)

unit: $(READY) $(SYSTEMS) compiler ## Python tests without notebooks and browser, of what has changed since they passed
	$(ASKED) unit $(PYTEST_APART) --no-loadscope-reorder \
		-m "not e2e and not foreign and not notebook and not wheel and not real and not breadth" \
		$(addprefix --ignore=,$(QUICK)) $(ARGS)

test-simulation: $(READY) $(SYSTEMS) ## the tests of simulated devices alone
	$(PYTEST_APART) -m "not breadth" tests/simulation $(ARGS)

breadth: $(READY) $(SYSTEMS) compiler chromium ## what make test asks of one of each kind, asked of all (after make test in CI)
	$(PYTEST) -n 2 -m "breadth and not e2e and not foreign and not notebook and not wheel and not real" $(ACCELERATED)
	$(PYTEST_APART) --no-loadscope-reorder \
		-m "breadth and not e2e and not foreign and not notebook and not wheel and not real" --ignore=$(ACCELERATED)
	@$(MAKE) --no-print-directory -j2 $(IN_TURN) breadth-e2e breadth-notebooks

breadth-e2e: $(READY) chromium
	timeout -k 30 1800 $(PYTEST_APART) -m "e2e and breadth" $(OF_E2E)

breadth-notebooks: $(READY) $(SYSTEMS)
	$(PYTEST) -n 2 -m "notebook and breadth" $(OF_NOTEBOOKS)

# With -: what fails, `make test` says; some tests ask what the tracing of lines changes (frames, references).
coverage: $(READY) $(SYSTEMS) compiler ## lines and branches of our code that the unit tests run, forks and children too (ARGS=--one-in=5)
	rm -rf build/coverage
	-$(BIN)/python -m coverage run -m pytest -q -n 2 --dist loadfile \
		-m "not e2e and not foreign and not notebook and not wheel and not real" $(ARGS)
	$(BIN)/python -m coverage combine -q
	$(BIN)/python -m coverage report --skip-covered --sort=miss

ts: $(READY) ## TypeScript tests
	$(JLPM) test

wheel: $(READY) ## the wheel works where there is neither Node nor a build
	$(ASKED) wheel $(PYTEST) -m wheel $(OF_WHEEL)

notebooks: $(READY) $(SYSTEMS) ## run every notebook from top to bottom
	$(ASKED) notebooks $(PYTEST) -n 2 -m "notebook and not breadth" $(OF_NOTEBOOKS)

e2e: $(READY) chromium ## drive a real JupyterLab in a real Chromium, where what is seen there has changed since it passed
	$(ASKED) e2e timeout -k 30 1800 $(PYTEST_APART) -m "e2e and not breadth" $(OF_E2E)

vscode: $(READY) ## build the renderer extension for VS Code, build/devtrace.vsix
	$(BIN)/python tools/make_vscode.py

e2e-vscode: vscode chromium $(CODE_SERVER) ## drive a real VS Code (code-server: 1.2 GB, two minutes to install)
	DEVTRACE_CODE_SERVER=$(abspath $(dir $(CODE_SERVER))) timeout -k 30 1200 $(PYTEST) -m foreign tests/e2e/test_vscode.py

e2e-marimo: $(READY) chromium $(MARIMO) ## drive a real marimo, and its anywidget (in an environment of its own, half a minute to install)
	DEVTRACE_MARIMO=$(abspath $(dir $(MARIMO))) timeout -k 30 600 $(PYTEST) -m foreign tests/e2e/test_marimo.py tests/e2e/test_live_anywhere.py

# What .ci/run asks for before their tests, so that an install that fails is no test that fails.
code-server: $(CODE_SERVER)

marimo: $(MARIMO)

compiler: $(READY)
	@PYTHONPATH=src:tests:tests/harness $(BIN)/python -m accelerator

chromium: | $(BIN)/python
	@$(BIN)/python tests/e2e/chromium.py

build: $(BUILT) ## build the JupyterLab extension and the stand-alone script

dev: $(READY) ## JupyterLab, with the extension rebuilt on every change (reload the page to see it)
	$(JLPM) build
	@set -m; $(JLPM) watch:lib & $(JLPM) watch:labextension & set +m; \
	trap 'kill -- $$(jobs -p | sed s/^/-/)' EXIT; \
	$(BIN)/python tools/lab.py $(FIRST_NOTEBOOK) $(ARGS)

format: $(READY) ## mend what lint can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(JLPM) lint:fix

screenshot: $(READY) chromium ## take README's pictures again
	$(BIN)/python tools/screenshot.py

notebook-outputs: $(READY) $(SYSTEMS) ## run the notebooks from their sources and keep what they show
	$(BIN)/python tools/make_notebooks.py

golden: $(READY) ## rewrite the golden files from what the code does now; read the diff
	DEVTRACE_GOLDEN=write $(PYTEST) -m "not e2e and not foreign and not notebook and not wheel and not real and not slow" tests

docs: $(READY) ## write the tables and examples of docs/ from the code and the corpus
	$(BIN)/python tools/make_docs.py

bench: $(READY) ## print the tables of docs/performance.md (ARGS=import: only those)
	$(BIN)/python tests/bench $(ARGS)

suites: $(READY) ## PyTorch's own device tests on simulated devices (a sample of 15 minutes; ARGS=all, or files)
	$(BIN)/python tools/suites.py $(ARGS)

sweep: $(READY) ## every sample of torch's own operators on a simulated device (minutes; `make test` asks a few of each)
	DEVTRACE_SWEEP=whole $(PYTEST) -s tests/simulation/test_simulate_sweep.py --durations=2

real: $(FRAMEWORKS) ## programs of large frameworks and large old releases (installs 460 MB beside .venv)
	HF_HUB_OFFLINE=1 $(abspath $(REAL))/bin/python -m pytest -q -m real tests/diagnosis/test_real.py

harm: $(READY) ## each edit of the corpora applied and compared: what breaks or changes a value (ARGS=FOLDER: more, RELEASES: their packages)
	$(BIN)/python tools/fixed.py --costs tests/corpus tests/student tests/zoo $(ARGS)

ticks: $(READY) ## 500 healthy programs with something left on the CPU: over which a green tick stands (ARGS="--seed 3")
	$(BIN)/python tools/ticks.py $(ARGS)

long-runs: $(READY) ## every program in loops of 100 steps, with a budget and without: where the findings differ (ARGS=zoo: only those)
	$(BIN)/python tests/harness/budgeted.py $(ARGS)

ray: $(RAY) ## a job of Ray Train (installs 400 MB beside .venv)
	$(abspath $(VENV)-ray)/bin/python -m pytest -q -m real tests/api/test_ray.py

gallery: $(READY) ## a page with every golden trace, in both themes
	$(BIN)/python tools/gallery.py

site: $(READY) $(SITE)/.made ## docs, notebooks with live reports, gallery and the API as one site, build/site, searchable and offline
	$(BIN)/python tools/make_site.py prepare
	NO_MKDOCS_2_WARNING=1 $(abspath $(SITE))/bin/mkdocs build -q
	$(BIN)/python tools/make_site.py check

test-newest: test-released test-cuda ## what asks most of torch, on the newest release and on a CUDA build of the pinned one (2.4 GB)

test-released: torch-newest
	tools/test-torch $(NEWEST) $(ARGS)

test-cuda: torch-cuda
	tools/test-torch $(CUDA) $(ARGS)

test-oldest: torch-oldest ## the same on the oldest torch, numpy and IPython that devtrace supports (1.3 GB)
	tools/test-torch $(OLDEST) $(ARGS)

# Each asks pip again what there is. A CUDA build of the pinned torch is what three equal signs take, none of two.
torch-newest: $(SYSTEMS)
	$(BIN)/python tools/torch_env.py $(NEWEST) torch

torch-cuda: $(SYSTEMS)
	$(BIN)/python tools/torch_env.py $(CUDA) $$(sed -n 's/^torch==/torch===/p' requirements/constraints.txt)

torch-oldest: $(SYSTEMS)
	$(BIN)/python tools/torch_env.py $(OLDEST) $$(sed -n 's/^  "torch>=\(.*\)",/torch==\1.*/p' pyproject.toml) -r requirements/oldest.txt

clean: ## remove what was built; keep the environment
	rm -rf build dist labextension/lib src/devtrace/labextension src/devtrace/static tests/e2e/pictures
	find . -name __pycache__ -not -path './node_modules/*' -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean ## remove the environment too
	rm -rf $(VENV) .venv-* node_modules .yarn .mypy_cache .ruff_cache .pytest_cache

# --- steps -----------------------------------------------------------------------------------------------------------

$(BIN)/python:
	@if [ -z "$(PYTHON)" ] || ! $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "python-too-old: got $$($(or $(PYTHON),python3) --version 2>&1); devtrace needs Python 3.11 or newer;" \
			"install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 1; fi
	$(PYTHON) -m venv $(VENV)

# What builds the extension comes alone and first, so that make -j2 builds while pip fetches torch. A Node of 20 or newer
# on PATH is used; else the environment gets its own, from PyPI.
$(BUILDER): tools/node requirements/constraints.txt | $(BIN)/python
	$(BIN)/python $(PIP) -c requirements/constraints.txt jupyter-builder
	@tools/node $(BIN)
	@touch $@

# devtrace's own dependencies, and what make runs. After $(BUILDER), as one pip at a time may change an environment.
# ipyparallel is there for its engines: what it adds to JupyterLab would be in every browser test and in `make lab`.
$(PACKAGES): requirements/dev.txt requirements/constraints.txt pyproject.toml $(BUILDER)
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' \
		> $(VENV)/dependencies.txt
	$(BIN)/python $(PIP) -c requirements/constraints.txt -r $(VENV)/dependencies.txt -r requirements/dev.txt
	rm -rf $(VENV)/share/jupyter/labextensions/ipyparallel-labextension $(VENV)/etc/jupyter/*/ipyparallel.json
	@touch $@

$(SYSTEMS): requirements/systems.txt requirements/releases.txt requirements/otter.txt requirements/constraints.txt $(READY)
	$(BIN)/python $(PIP) -c requirements/constraints.txt -r requirements/systems.txt
	$(BIN)/python $(PIP) -c requirements/constraints.txt --no-deps llms-from-scratch
	$(BIN)/python $(PIP) --no-deps -r requirements/releases.txt
	$(BIN)/python $(PIP) --no-deps --target $(VENV)/otter --upgrade -r requirements/otter.txt
	@touch $@

# Frameworks beside the environment, which it sees with its torch. Each old release comes into a folder of its own.
$(FRAMEWORKS): requirements/real.txt requirements/real-releases.txt $(SYSTEMS)
	$(BIN)/python -m venv --clear $(REAL)
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$($(REAL)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/environment.pth
	$(REAL)/bin/python $(PIP) --no-deps -r requirements/real.txt
	grep -v '^#' requirements/real-releases.txt | while read -r folder packages; do \
		$(REAL)/bin/python $(PIP) --no-deps --target $(REAL)/releases/$$folder $$packages || exit 1; done
	@touch $@

# It sees the packages of the environment (torch) behind its own, by a path file.
$(MARIMO): | $(BIN)/python
	$(BIN)/python -m venv $(@D)
	$(@D)/bin/python $(PIP) 'marimo>=0.25,<0.26' 'anywidget>=0.9'
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> "$$($(@D)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/devtrace-env.pth"
	@touch $@

$(CODE_SERVER): tools/code-server
	tools/code-server $(@D)
	@touch $@

# What makes the site sees nothing of the environment: it only reads pages.
$(SITE)/.made: requirements/site.txt requirements/constraints.txt | $(BIN)/python
	$(BIN)/python -m venv --clear $(SITE)
	$(SITE)/bin/python $(PIP) -c requirements/constraints.txt -r requirements/site.txt
	@touch $@

$(RAY): requirements/ray.txt requirements/constraints.txt
	$(BIN)/python -m venv --clear $(VENV)-ray
	$(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
		> $$($(VENV)-ray/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/environment.pth
	$(VENV)-ray/bin/python $(PIP) -r requirements/ray.txt
	@touch $@

$(MODULES): package.json yarn.lock .yarnrc.yml $(BUILDER)
	$(JLPM) install --immutable | grep -vE 'YN0013|YN0066|YN0004' || { $(JLPM) install --immutable; exit 1; }
	@touch $@

# Built afresh, never taken from what lies there: pip alone would ship it (skip-if-exists in pyproject.toml).
$(BUILT): package.json pyproject.toml $(TS_SOURCES) $(MODULES)
	$(JLPM) build:prod
	@mkdir -p $(@D) && touch $@

# Editable, and the extension by a link: what is built later is what runs, without another install. The link is ours, as
# `jupyter-builder develop` leaves an install.json in the build that a wheel then holds twice; and it goes before pip
# comes, which would write through it.
$(READY): $(PACKAGES) | $(BUILT)
	rm -rf $(INSTALLED)
	HATCH_JUPYTER_BUILDER_SKIP_NPM=1 $(BIN)/python $(PIP) --no-deps --no-build-isolation -e .
	rm -rf $(INSTALLED) && ln -s $(CURDIR)/src/devtrace/labextension $(INSTALLED)
	@touch $@
