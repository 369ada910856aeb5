# fairq_ryu: `make help` lists what can be made.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

# Experiments and most tests make network namespaces and load eBPF.
SUDO := $(shell [ "$$(id -u)" -eq 0 ] || echo sudo)
BIN := .venv/bin
BPF := $(wildcard fairq_ryu/agent/bpf/*.[ch] fairq_ryu/agent/bpf/lib/*.h fairq_ryu/agent/bpf/laws/*.[ch] fairq_ryu/laws/*/*.h fairq_ryu/experiments/hostcc/bpf/*.[ch] mininet_topos/delayline/*.c simulator/*.[ch] simulator/*.cc simulator/bpf/*.h)

.PHONY: help setup setup-dev demo test test-faults test-floods soak test-fresh test-vm test-unit test-package fuzz docs lint format bench bpf package sbom audit lock clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## set up what is missing for running: system packages, .venv, eBPF objects, Open vSwitch
	@scripts/setup.sh

setup-dev: ## the same, and the tools for tests and lint
	@scripts/setup.sh --dev

# exec: a signal for the recipe's shell must reach fairq, which then takes down what it put up.
demo: setup ## incast on a real Open vSwitch, without and with FairQ; the table of both
	@exec $(SUDO) $(BIN)/fairq run incast --policy droptail,droptail-rto5,fairq --repeat 3 \
		--set rounds=3 --set warmup_s=1.5 --set elephants_only_s=0 --out results/demo

# Four at a time on two processors, because many tests wait: lint and the unit tests run beside what needs the
# machine for itself; other tests have a network and an Open vSwitch of their own (tests/conftest.py).
test: setup-dev ## lint and every test (as root)
	@exec $(SUDO) $(BIN)/pytest --numprocesses 4

test-faults: setup-dev ## every fault under traffic, on an own Open vSwitch (ROUNDS=20: so often; as root)
	@exec $(SUDO) env FAIRQ_FAULT_ROUNDS=$(or $(ROUNDS),1) FAIRQ_FAULT_RESULTS=$(RESULTS) $(BIN)/pytest tests/faults

test-floods: setup-dev ## every flood beside traffic, and what flows keep of their rate (ROUNDS=3; as root)
	@exec $(SUDO) $(BIN)/python -m tests.floods --rounds $(or $(ROUNDS),3)

soak: setup-dev ## mixed traffic for an hour: flat memory, true counts, short logs (MINUTES=60; as root)
	@exec $(SUDO) $(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60)

# exec: when make is killed, what it put up is taken down.
test-fresh: ## both commands in a minimal root made for them, as on a fresh machine (ARGS="--tests -- tests/unit")
	@exec $(SUDO) scripts/test-fresh.sh $(ARGS)

# Without set-up on this machine: it sets up in the roots of the virtual machines.
test-vm: ## on the distributions' own kernels, in virtual machines (ARGS=--all: everything, hours)
	@exec $(SUDO) python3 -m tests.vm $(ARGS)

test-unit: setup-dev ## the tests that need no root; seconds
	@exec $(BIN)/pytest tests/unit

fuzz: setup-dev ## mutated OpenFlow messages to controller and agent code, 10 minutes
	@exec $(BIN)/python -m tests.fuzz --minutes 10

docs: setup-dev ## write the tables and hex dumps of documents, and the JSON Schemas, that follow from code
	@$(BIN)/python -m docs.generate

lint: setup-dev ## ruff, mypy --strict, clang-format; changes nothing
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "ruff format: not formatted; run: make format" >&2; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(if $(BPF),$(BIN)/clang-format --dry-run --Werror $(BPF))

format: setup-dev ## format Python and C in place, and fix what ruff can fix
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .
	@$(if $(BPF),$(BIN)/clang-format -i $(BPF))

# The other goals are names of benchmarks then: make bench scale
BENCHES := $(if $(filter bench,$(firstword $(MAKECMDGOALS))),$(filter-out bench,$(MAKECMDGOALS)))
$(if $(BENCHES),$(eval .PHONY: $(BENCHES))$(eval $(BENCHES): ; @:))

bench: setup ## what it costs, of a packet to a controller of 20 bridges (make bench scale: that alone)
	@exec $(SUDO) $(BIN)/python -m bench $(BENCHES)

package: ## build the wheel, the Debian packages and their SBOM into dist/, from what set-up has installed
	@scripts/setup.sh --no-ovs
	@$(BIN)/python -m packages

sbom: ## write what is installed, with hashes and licences, into dist/ (CycloneDX)
	@scripts/setup.sh --no-ovs
	@$(BIN)/python -m packages.sbom

audit: ## look for published faults of what is pinned; Error 1: new ones, Error 3: the service does not answer
	@scripts/setup.sh --no-ovs
	@$(BIN)/python -m packages.audit $(ARGS)

lock: ## write the lock files after a change of requirements*.txt
	@scripts/setup.sh --no-ovs
	@$(BIN)/python -m packages.lock

# A second revision, for the upgrade.
test-package: package ## install, upgrade and remove the Debian packages in a minimal root (as root)
	@$(BIN)/python -m packages --out dist/upgrade --revision 2
	@exec $(SUDO) scripts/test-fresh.sh --packages

bpf: ## compile the eBPF objects and the delay line
	@scripts/setup.sh --bpf

# What root has made in the tests, a user cannot remove.
clean: ## remove what was built here; results/ and the system's packages stay
	@shopt -s nullglob; built=(.venv .setup.log .setup.lock .{mypy,ruff,pytest}_cache .hypothesis .schemathesis \
		build dist *.egg-info fairq_ryu/agent/bpf/{generated,*.o,*.o.tmp,.stamp-bpf} simulator/build \
		fairq_ryu/experiments/hostcc/bpf/{*.o,*.o.tmp} mininet_topos/delayline/{delayline,delayline.tmp,.stamp-delayline} \
		$$(find . -path ./.venv -prune -o -path ./results -prune -o -name __pycache__ -type d -print -prune)); \
	rm -rf "$${built[@]}" 2>/dev/null || $(SUDO) rm -rf "$${built[@]}"
