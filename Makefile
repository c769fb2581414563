# Each target does all its own set-up in .venv, once, and again when pyproject.toml changes.
# Another interpreter: make PYTHON=/path/to/python3.11 ...   Another number of test workers: make WORKERS=4 test

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SEEDS ?= 1..100

# The first interpreter on the path that is new enough; asked for only when there is something to set up.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

.PHONY: help demo test check bench oracle format clean format-check lint types contracts docs hooks

help:  ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# Exit code 1 says that some pods fit nowhere; in the example, three are made not to.
demo: $(VENV)/.ready  ## Place the example workload on the example cluster, and say where each pod went and why
	@$(BIN)/situate place -f examples/cluster.yaml -f examples/workload.yaml || test $$? -eq 1

test: $(VENV)/.ready-dev  ## Run the whole test suite
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

check: format-check lint types contracts docs  ## Format, lint, types, import contracts, docs tests

format-check: $(VENV)/.ready-dev  ## (part of check) Is the code formatted?
	@echo "check: format"
	@$(BIN)/ruff format --quiet --check .

lint: $(VENV)/.ready-dev  ## (part of check) Does the linter agree?
	@echo "check: lint"
	@$(BIN)/ruff check --quiet .

types: $(VENV)/.ready-dev  ## (part of check) Do the types agree?
	@echo "check: types"
	@$(BIN)/mypy --strict --no-error-summary

contracts: $(VENV)/.ready-dev  ## (part of check) Do imports go the right way?
	@echo "check: import contracts"
	@$(BIN)/lint-imports --no-logo

docs: $(VENV)/.ready-dev  ## (part of check) Do the docs say what the program does?
	@echo "check: docs"
	@$(BIN)/python -m pytest -q -n $(WORKERS) tests/docs

bench: $(VENV)/.ready-dev  ## Measure, and print the table of docs/PERFORMANCE.md
	@$(BIN)/python bench/run.py

oracle:  ## Build kube-scheduler's own plugins into tests/oracle/oracle, to compare with and to time (needs Go)
	@command -v go >/dev/null || { echo "make oracle needs Go, and there is none on the path" >&2; exit 1; }
	@echo "building tests/oracle; the first time this takes a few minutes" >&2
	@cd tests/oracle && go build -o oracle .

sim: $(VENV)/.ready  ## Run virtual worlds full of faults: make sim SEEDS=1..3000
	@$(BIN)/situate sim --seeds $(SEEDS) --workers $(WORKERS)

format: $(VENV)/.ready-dev  ## Format the code, and fix what can be fixed
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

hooks: $(VENV)/.ready-dev  ## Have git run `make check` before each commit
	@$(BIN)/pre-commit install

clean:  ## Remove everything made here, .venv too
	@rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# ── set-up ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Run a command quietly; show all it said if it fails.
quietly = said=$$($(1) 2>&1) || { printf '%s\n' "$$said" >&2; echo "make: set-up failed at: $(strip $(1))" >&2; exit 1; }
new_enough = -c 'import sys; sys.exit(sys.version_info < (3, 11))'

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "situate needs Python 3.11 or newer, and none is on the path; say where one is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) --version >/dev/null 2>&1 || { echo "$(PYTHON) does not run; say where Python 3.11 or newer is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) $(new_enough) || { echo "situate needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1); say where one is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "setting up $(VENV) with $$($(PYTHON) --version); this happens once" >&2
	@$(BIN)/python $(new_enough) 2>/dev/null && $(BIN)/python -m pip --version >/dev/null 2>&1 || { \
		$(call quietly,$(PYTHON) -m venv --clear $(VENV)); }
	@touch $@

$(VENV)/.ready: pyproject.toml $(VENV)/.made
	@$(call quietly,$(BIN)/python -m pip install --disable-pip-version-check --quiet -e .)
	@touch $@

$(VENV)/.ready-dev: pyproject.toml $(VENV)/.made
	@echo "setting up the development tools" >&2
	@$(call quietly,$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[dev]')
	@touch $@ $(VENV)/.ready
