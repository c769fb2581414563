# Each target does all its own set-up in .venv, once, and again when pyproject.toml changes.
# Another interpreter: make PYTHON=/path/to/python3.11 ...   Another number of test workers: make WORKERS=4 test

SHELL := /bin/sh
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
SEEDS ?= 1..100

# The fastest interpreter on the path that is new enough and can make a venv. One built without optimisations, as pyenv
# builds them, is a fifth slower in everything we measure. Evaluated only during set-up.
PYTHON ?= $(shell IFS=:; for folder in $$PATH; do for python in "$$folder"/python3 "$$folder"/python3.1[1-9]; do \
	test -x "$$python" && "$$python" -c '$(trial)' 2>/dev/null; done; done | sort -n | head -n 1 | cut -d" " -f2-)
trial := import sys, timeit, ensurepip, ssl, venv; assert sys.version_info >= (3, 11); \
	work = "for i in range(1000): known[str(i)] = f(i); known.get(i)"; \
	print(int(1e6 * min(timeit.repeat(work, "known, f = {}, lambda i: (i, i + 1)", number=10, repeat=5))), sys.executable)

# Kubernetes' binaries, for tests/kubernetes: built here, or taken from KUBE_ASSETS (another clone's, say).
# KUBE=1.37 (or VERSION=1.37) chooses the version; tests/kubernetes/go.mod and go-1.37.mod set the releases.
KUBE ?= $(or $(filter 1.36 1.37,$(VERSION)),1.36)
KUBE_DIR := tests/kubernetes
KUBE_SUFFIX := $(if $(filter 1.36,$(KUBE)),,-$(KUBE))
KUBE_MOD := go$(KUBE_SUFFIX).mod
KUBE_TAGS := kube$(subst .,,$(KUBE))
KUBE_BIN := $(or $(KUBE_ASSETS),$(KUBE_DIR)/bin$(KUBE_SUFFIX))
ifeq ($(wildcard $(KUBE_DIR)/$(KUBE_MOD)),)
$(error KUBE is $(KUBE), and there is no $(KUBE_DIR)/$(KUBE_MOD); known are 1.36 and 1.37)
endif
KUBE_PARTS := $(addprefix $(KUBE_BIN)/,etcd kube-apiserver kube-scheduler kubectl kwok)
# For `make bench-whole` only.
KUBE_MANAGER := $(KUBE_BIN)/kube-controller-manager
# For the tests of the Helm chart only, which are left out without it.
KUBE_HELM := $(KUBE_BIN)/helm
# For the tests of a real node only, which are left out without it.
KUBE_KUBELET := $(KUBE_BIN)/kubelet
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2}' $(KUBE_DIR)/$(KUBE_MOD))
GIVEN_ASSETS := $(KUBE_ASSETS)
ifneq ($(KUBE),1.36)
KUBE_ASSETS := $(abspath $(KUBE_BIN))
endif
export KUBE_ASSETS

.PHONY: help demo man test check bench bench-devices bench-kubernetes bench-server bench-store etcd-faults kill-test disk-full hostile-clients oracle fuzz-conformance fuzz-cel fuzz-crd kubernetes kubelet helm format clean format-check lint types contracts docs hooks

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-25s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.ready  ## Start a cluster, run things on it, show where they went and why, and take it down
	@sh examples/up/demo.sh $(BIN)/situate

# The tests on a real cluster share it, in one process. They measure time, so nothing else runs beside them. They kill
# what they talk to, so an unclosed connection at the end of the run is no failure.
test: $(VENV)/.ready-dev  ## Run the whole test suite
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal --ignore=$(KUBE_DIR) --ignore=tests/browser
	@$(BIN)/python -m pytest -q -W "ignore::pytest.PytestUnraisableExceptionWarning" $(KUBE_DIR)
	@for part in $(KUBE_PARTS); do test -x $$part || { \
		echo "left out: the tests on a real API server and etcd. To run them: make kubernetes test (needs Go, builds for ten minutes)"; \
		break; }; done
	@$(BIN)/python -m pytest -q tests/browser
	@PYTHONPATH=tests $(BIN)/python -c 'from browser.chromium import missing; print("left out: the tests of the page in a browser. To run them: make chromium test") if missing() else None'

man: $(VENV)/.ready  ## Write the manual pages into build/man
	@$(BIN)/situate man build/man

check: format-check lint types contracts docs  ## Format, lint, types, import contracts, docs tests

format-check: $(VENV)/.ready-dev  ## (part of check) Check the formatting
	@echo "check: format"
	@$(BIN)/ruff format --quiet --check .

lint: $(VENV)/.ready-dev  ## (part of check) Run the linter
	@echo "check: lint"
	@$(BIN)/ruff check --quiet .

types: $(VENV)/.ready-dev  ## (part of check) Check the types
	@echo "check: types"
	@$(BIN)/mypy --strict --no-error-summary

contracts: $(VENV)/.ready-dev  ## (part of check) Check the import contracts
	@echo "check: import contracts"
	@$(BIN)/lint-imports --no-logo

docs: $(VENV)/.ready-dev  ## (part of check) Check the docs against the program
	@echo "check: docs"
	@$(BIN)/python -m pytest -q -n $(WORKERS) tests/docs

# The generator has an environment of its own, so that the tests need nothing of it.
SITE_VENV := build/site-venv
site: $(SITE_VENV)/.ready $(VENV)/.ready  ## Build the documentation as a site in build/site; a link that leads nowhere fails
	@$(BIN)/python -m tools.reference build/reference
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --quiet
	@echo "the site is in build/site: open build/site/index.html"

$(SITE_VENV)/.ready: pyproject.toml $(VENV)/.made
	@$(call quietly,$(BIN)/python -m venv $(SITE_VENV))
	@$(call quietly,$(SITE_VENV)/bin/python tools/extra.py site $(SITE_VENV)/bin/python)
	@touch $@

.PHONY: site

release: $(VENV)/.ready-dev  ## Check the version and the changelog, and build wheel, source, bill of materials and notes in dist/
	@$(BIN)/python -m tools.release $(if $(DRY_RUN),--dry-run)

.PHONY: release

bench: $(VENV)/.ready-dev  ## Measure the engine, and print the table of docs/internals/performance.md
	@$(BIN)/python bench/run.py

bench-devices: $(VENV)/.ready-dev  ## Place pods that claim devices, beside kube-scheduler's own algorithm (after `make oracle`)
	@$(BIN)/python bench/devices.py

bench-kubernetes: $(VENV)/.ready-dev $(KUBE_PARTS)  ## Run kube-scheduler and situate in turn on the same API server, 5,000 nodes
	@$(BIN)/python bench/real_cluster.py

bench-store: $(VENV)/.ready-dev  ## Measure the stores, and print the table of docs/guides/store.md
	@$(BIN)/python bench/store.py

bench-server: $(VENV)/.ready-dev $(KUBE_PARTS)  ## Compare the control plane with kube-apiserver, etcd and kube-scheduler: 5,000 nodes, 50,000 pods
	@$(BIN)/python bench/server.py

bench-custom: $(VENV)/.ready-dev  ## Compare custom kinds with built-in ones: create, list and watch, and 100 definitions with 100,000 objects
	@$(BIN)/python bench/custom.py

bench-nodes: $(VENV)/.ready-dev  ## Measure how soon 1,000 nodes see their commits, and what 5,000 idle ones cost
	@$(BIN)/python bench/nodes.py

bench-whole: $(VENV)/.ready-dev $(KUBE_PARTS) $(KUBE_MANAGER)  ## Roll out a Deployment of 10,000 on 5,000 live nodes: on SQLite, on etcd, and on Kubernetes' own parts
	@$(BIN)/python bench/whole.py --verbose $(WHOLE)

bench-servers: $(VENV)/.ready-dev $(KUBE_PARTS)  ## One server and scheduler on etcd beside two servers and three schedulers
	@$(BIN)/python bench/servers.py

bench-recovery: $(VENV)/.ready-dev  ## Remove 50 of 500 nodes at once: time until all pods run again, and the API's latency meanwhile
	@$(BIN)/python bench/recovery.py

oracle:  ## Build kube-scheduler's own plugins as a program to compare with (needs Go)
	@command -v go >/dev/null || { echo "make oracle needs Go, and there is none on the path" >&2; exit 1; }
	@echo "building tests/kubernetes/oracle for Kubernetes $(KUBE); the first time this takes a few minutes" >&2
	@cd $(KUBE_DIR) && go build -modfile=$(KUBE_MOD) -trimpath -buildvcs=false -tags $(KUBE_TAGS) -o oracle/oracle$(KUBE_SUFFIX) ./oracle

COUNT ?= 5000
fuzz-conformance: $(VENV)/.ready-dev oracle  ## Compare with kube-scheduler on COUNT new random clusters: make fuzz-conformance COUNT=500 SEED=7 VERSION=1.37
	@PYTHONPATH=tests $(BIN)/python -m kubernetes.oracle.fuzz --kubernetes-version $(KUBE) --count $(COUNT) --workers $(WORKERS) $(if $(SEED),--seed $(SEED))

fuzz-cel: COUNT = 20000
fuzz-cel: $(VENV)/.ready-dev oracle  ## Compare CEL with cel-go on COUNT random selectors and devices: make fuzz-cel COUNT=20000 SEED=7
	@PYTHONPATH=tests $(BIN)/python -m kubernetes.oracle.cel --count $(COUNT) $(if $(SEED),--seed $(SEED))

fuzz-crd: COUNT = 5000
fuzz-crd: $(VENV)/.ready-dev $(KUBE_PARTS)  ## Compare custom resources with kube-apiserver on COUNT random schemas: make fuzz-crd COUNT=5000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m kubernetes.custom_comparison --count $(COUNT) $(if $(SEED),--seed $(SEED))

kubelet: $(KUBE_KUBELET)  ## Build a kubelet and install containerd, runc and busybox to test with a real node (needs Go, root and apt)
	@missing=; for one in containerd runc busybox; do command -v $$one >/dev/null || missing=1; done; test -d /usr/lib/cni || missing=1; \
		test -z "$$missing" || apt-get install --yes --no-install-recommends containerd runc busybox-static containernetworking-plugins

kubernetes: $(KUBE_PARTS)  ## Build etcd, kube-apiserver, kube-scheduler, kubectl and kwok to test with, once (needs Go): make kubernetes KUBE=1.37
	@echo "kubernetes $(KUBE_VERSION): all parts are in $(KUBE_BIN)"

# As root, and where Debian's packages can be reached.
chromium: $(VENV)/.ready-dev  ## Install Playwright, and Chromium from Debian's packages if there is none, to test the page
	@$(call quietly,$(BIN)/python -m pip install --disable-pip-version-check --quiet -e '.[browser]')
	@command -v chromium >/dev/null || { apt-get update -qq && apt-get install -qq -y chromium >/dev/null; }
	@echo "chromium: $$(chromium --version 2>/dev/null)"

browser: chromium  ## Test the page in a browser
	@$(BIN)/python -m pytest -q tests/browser

pictures: chromium  ## Make the pictures of the docs again, from what the commands print and what the page shows, and the dashboard
	@$(BIN)/python -m tools.pictures
	@PYTHONPATH=tests $(BIN)/python -m browser.pictures
	@$(BIN)/python -m tools.dashboard

bench-page: chromium  ## Measure the page on 5,000 nodes and 20,000 pods: first paint, updates, the server's share
	@PYTHONPATH=tests $(BIN)/python bench/page.py

.PHONY: chromium browser pictures bench-page

timed-journeys: $(VENV)/.ready-dev  ## Time the three journeys of a new user, by the commands that the pages show: JOURNEY=2 for one
	@PYTHONPATH=tests $(BIN)/python -m docs.journeys $(JOURNEY)

.PHONY: timed-journeys

helm: $(KUBE_HELM)  ## Build helm, once, for the tests of the chart (needs Go)
	@echo "helm is in $(KUBE_BIN)"

basic-integration-test:  ## A pod is scheduled and runs: on a real API server here, or on your own cluster: KUBECONFIG=file make ...
priority-integration-test:  ## A high-priority pod preempts a low one; the same clusters
group-integration-test:  ## A gang is scheduled whole or not at all; the same clusters

# With KUBECONFIG, on that cluster, by the scheduler of situate that is there (SCHEDULER=name names another), and with
# kubectl alone. Without, on an API server that is started here.
JOURNEYS := basic-integration-test priority-integration-test group-integration-test
.PHONY: $(JOURNEYS)
$(JOURNEYS): $(VENV)/.ready-dev $(if $(KUBECONFIG),,$(KUBE_PARTS))
	@JOURNEYS_KUBECONFIG="$(KUBECONFIG)" SCHEDULER="$(SCHEDULER)" $(BIN)/python -m pytest -q -s -n0 $(KUBE_DIR)/test_journeys.py \
		-k "test_$(@:-integration-test=) and $(if $(KUBECONFIG),reader,situate)"

LOCAL_CLUSTER ?= .situate-local
LOCAL_NODES ?= 5
local-cluster: $(VENV)/.ready  ## Start a cluster with hollow nodes in LOCAL_CLUSTER (.situate-local), and print how to use it
	@$(BIN)/situate up --dir $(LOCAL_CLUSTER) --nodes $(LOCAL_NODES) --port 0
	@echo "export KUBECONFIG=$(abspath $(LOCAL_CLUSTER))/kubeconfig"

local-cluster-down: $(VENV)/.ready  ## Stop it again, and delete its directory
	@$(BIN)/situate down --dir $(LOCAL_CLUSTER) --delete

setup: $(VENV)/.ready-dev  ## Set up .venv with situate and the development tools; other targets do so when they need it

.PHONY: local-cluster local-cluster-down setup

# `make test` runs the same with fewer pods, shorter leases and three kills.
fault-test: $(VENV)/.ready-dev kubernetes  ## On a real API server: faults at length; no pod is lost, none is bound twice
	@FAULTS=long $(BIN)/python -m pytest -q -s --durations=0 --durations-min=5 $(KUBE_DIR)/test_faults.py \
		$(KUBE_DIR)/test_side_by_side.py $(KUBE_DIR)/test_outsiders.py $(KUBE_DIR)/test_bad_input.py

.PHONY: fault-test
.PHONY: bench-custom bench-nodes bench-recovery bench-servers bench-whole sim-nodes

# From Debian's packages, without Docker. IMAGE=name:tag names it.
image: $(VENV)/.ready-dev  ## Build the scheduler's container image in build/image, without Docker (needs apt): make image IMAGE=...
	@$(BIN)/python -m tools.image $(if $(IMAGE),--name $(IMAGE))

.PHONY: image

# docs/guides/deploy.md explains IMAGE, VARIANT, YES and WAIT.
deploy-scheduler:  ## Install the scheduler in the cluster of the current kubeconfig context: make deploy-scheduler IMAGE=...
	@deploy/scheduler.sh deploy

remove-scheduler:  ## Remove it again
	@deploy/scheduler.sh remove

.PHONY: deploy-scheduler remove-scheduler

fleet-test: $(VENV)/.ready-dev  ## Run three schedulers that share the work, and kill one every ten seconds
	@$(BIN)/python tests/kubernetes/fleet.py --nodes 1000 --rate 150 --calm 30 --disturbed 100 --every 10
	@$(BIN)/python tests/kubernetes/fleet.py --nodes 1000 --rate 150 --calm 30 --disturbed 60 --every 10 --pools

.PHONY: fleet-test

FAULTS ?=
etcd-faults: $(VENV)/.ready-dev  ## Break etcd and the servers on it under load: make etcd-faults FAULTS=frozen,killed
	@$(BIN)/python tests/kubernetes/etcd_faults.py --only "$(FAULTS)"

KILLS ?= 100
kill-test: $(VENV)/.ready-dev  ## Kill the API server KILLS times under load, and compare every answer with what is stored
	@KILLS=$(KILLS) $(BIN)/python -m pytest -q -s -n0 tests/server/faults/test_kill.py

authorization-matrix: $(VENV)/.ready-dev kubernetes  ## Perform the same 42,930 requests by the same users on kube-apiserver and here, and compare
	@MATRIX=all $(BIN)/python -m pytest -q -s -n0 $(KUBE_DIR)/test_authorization_matrix.py

mutants: COUNT = 60
mutants: $(VENV)/.ready-dev  ## Change COUNT lines of the code, one at a time, and check that a test fails: make mutants COUNT=60 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m mutants.run --count $(COUNT) --workers $(WORKERS) $(if $(SEED),--seed $(SEED)) \
		$(addprefix --only ,$(ONLY))

.PHONY: authorization-matrix mutants

DISK_FULL_S ?= 300
disk-full: $(VENV)/.ready-dev  ## Fill the API server's disk for DISK_FULL_S seconds under load, and compare every answer with what is stored (as root)
	@DISK_FULL_S=$(DISK_FULL_S) $(BIN)/python -m pytest -q -s -n0 tests/server/faults/test_disk_full_load.py

fuzz-server: COUNT = 20000
fuzz-server: $(VENV)/.ready-dev  ## Send a whole control plane COUNT objects of every kind with odd values: make fuzz-server COUNT=20000 SEED=1
	@PYTHONPATH=tests $(BIN)/python -m server.fuzz.run --count $(COUNT) --seed $(or $(SEED),1)

.PHONY: fuzz-server

# What is built and copied for the suites: two programs of 100 MB, and sources. All clones share it.
JUDGES_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/situate-judges
judges: $(VENV)/.ready-dev  ## Run Kubernetes' own suites, and operators', against our API server, and print what is left (needs Go): make judges SUITE=conformance ONLY=Deployment
	@JUDGES_CACHE=$(JUDGES_CACHE) PYTHONPATH=tests $(BIN)/python -m kubernetes.judges $(addprefix --suite ,$(SUITE)) $(addprefix --only ,$(ONLY))

.PHONY: judges

HOSTILE_SECONDS ?= 15
hostile-clients: $(VENV)/.ready-dev  ## Create and bind 100 pods a second beside one hostile client of each kind, and compare with the latency alone
	@PYTHONPATH=tests $(BIN)/python -m server.hostile.suite --seconds $(HOSTILE_SECONDS)

sim: $(VENV)/.ready  ## Run simulated clusters with faults: make sim SEEDS=1..3000
	@$(BIN)/situate sim --seeds $(SEEDS) --workers $(WORKERS)

sim-nodes: $(VENV)/.ready  ## The same with node agents and the whole control plane: make sim-nodes SEEDS=1..2000
	@$(BIN)/situate sim --nodes --seeds $(SEEDS) --workers $(WORKERS)

format: $(VENV)/.ready-dev  ## Format the code, and fix what the linter can fix
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format .

hooks: $(VENV)/.ready-dev  ## Have git run `make check` before each commit
	@$(BIN)/pre-commit install

clean:  ## Remove everything that make made, .venv included
	@rm -rf $(VENV) $(KUBE_DIR)/bin $(KUBE_DIR)/oracle/oracle $(KUBE_DIR)/oracle/oracle-1.37 $(KUBE_DIR)/bin-1.37 build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# ── Kubernetes' binaries ─────────────────────────────────────────────────────────────────────────────────────────────

ifneq ($(GIVEN_ASSETS),)

$(KUBE_PARTS) $(KUBE_MANAGER) $(KUBE_HELM) $(KUBE_KUBELET):
	@echo "KUBE_ASSETS is $(KUBE_ASSETS), and there is no $(@F) in it; unset it to have one built" >&2; exit 1

else

# Unstamped, the server calls itself v0.0.0, and clients refuse it.
kube_stamp = -X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBE_VERSION:v%=%))) \
	-X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBE_VERSION:v%=%)))

$(KUBE_BIN)/etcd: package = go.etcd.io/etcd/server/v3
$(KUBE_BIN)/kwok: package = sigs.k8s.io/kwok/cmd/kwok
$(KUBE_HELM): package = helm.sh/helm/v4/cmd/helm
$(KUBE_BIN)/kube%: package = k8s.io/kubernetes/cmd/$(@F)

$(KUBE_BIN)/kwok: $(KUBE_DIR)/kwok/go.mod $(KUBE_DIR)/kwok/go.sum
$(KUBE_KUBELET): $(KUBE_DIR)/kubelet/go.mod $(KUBE_DIR)/kubelet/go.sum
$(KUBE_HELM): $(KUBE_DIR)/helm/go.mod $(KUBE_DIR)/helm/go.sum
$(filter-out %/kwok,$(KUBE_PARTS)) $(KUBE_MANAGER): $(KUBE_DIR)/$(KUBE_MOD) $(KUBE_DIR)/go$(KUBE_SUFFIX).sum

# Build under another name first, so that an interrupted build leaves nothing that looks complete.
$(KUBE_PARTS) $(KUBE_MANAGER) $(KUBE_HELM) $(KUBE_KUBELET):
	@command -v go >/dev/null || { echo "make kubernetes needs Go, and there is none on the path; install it (https://go.dev/dl), or say where the parts are: KUBE_ASSETS=dir" >&2; exit 1; }
	@echo "kubernetes: building $(@F) from $(package); the first time this takes minutes" >&2
	@mkdir -p $(@D)
	@started=$$(date +%s); cd $(<D) && go build -modfile=$(<F) -trimpath -buildvcs=false -ldflags '-s -w $(kube_stamp)' -o $(CURDIR)/$@.new $(package) \
		&& mv $(CURDIR)/$@.new $(CURDIR)/$@ && touch $(CURDIR)/$@ \
		&& echo "kubernetes: built $(@F) in $$(( $$(date +%s) - started )) s" >&2

endif

# ── set-up ──────────────────────────────────────────────────────────────────────────────────────────────────────────

# Run a command quietly; show its output if it fails.
quietly = said=$$($(1) 2>&1) || { printf '%s\n' "$$said" >&2; echo "make: set-up failed at: $(strip $(1))" >&2; exit 1; }
new_enough = -c 'import sys; sys.exit(sys.version_info < (3, 11))'

$(VENV)/.made:
	@test -n "$(PYTHON)" || { echo "situate needs Python 3.11 or newer with venv (Debian: apt install python3-venv), and none is on the path; say where one is: make PYTHON=/path/to/python3.11" >&2; exit 1; }
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
