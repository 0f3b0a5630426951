# What a developer, CI and the README run. `make help` lists it.
#
# Setting up is done once: a stamp file stands for each finished step, and the files it depends on renew it.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

LIBRARY := layers/epochal/python
VENV := .venv
BIN := $(VENV)/bin

# The first interpreter that is new enough; name another with `make PYTHON=…`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)

# Handed on to the demo: make demo DAYS=7, make demo VIA=library DAYS=365, make demo KEEP=1
export DAYS VIA KEEP

# Of the load: make load MINUTES=10, make load STACK=epochal-dev-store
export MINUTES STACK

# Of the contract: make contract PLACE=aws REGION=eu-west-1 YES=1
export PLACE REGION YES ONLY

# Of the simulation: make simulate SEEDS=100000, make simulate WORLD=streams SEED=17
SEEDS ?= 10000

# Programs that pip cannot bring. Java runs DynamoDB Local, which only tests and benchmarks ask.
NEEDED := node npm
test bench proof contract: NEEDED := node npm java

.PHONY: help setup check test lint format demo docs pictures dist bench contract load simulate proof audit synth lock clean

help: ## this list
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(VENV)/.installed node_modules/.installed ## what the demo and deployments need, once; tests fetch the rest

.PHONY: tested
tested: setup $(VENV)/.dev

# Bytecode is made of what is imported, when it is: that of all packages takes a minute, and as much room as they do.
INSTALL := $(BIN)/python -m tests.support.installing

# What is compiled once is kept, whatever the shell says: the processes that share the tests compile them all.
unexport PYTHONDONTWRITEBYTECODE

# Who runs what, and in which order, is tests/conftest.py's: what is dear begins first, and the processes end together.
PYTEST := $(BIN)/python -m pytest --numprocesses auto --no-loadscope-reorder

# What is slow among the pure tests is left out: large inputs, memory that must stay flat, threads, other programs, the
# year of flights.
check: $(VENV)/.dev ## an answer in two minutes: static checks, the quick tests that need nothing, and some seeds
	@$(MAKE) --no-print-directory --jobs 2 lint pure

.PHONY: pure
pure:
	$(PYTEST) --quiet --hypothesis-profile check -m "(pure or slice) and not (slow or proof)" \
		--ignore tests/surfaces/stacks tests/core tests/surfaces tests/contrib tests/layouts tests/public tests/frozen \
		tests/project tests/doors tests/docs tests/examples tests/simulation

test: tested node_modules/.dev $(VENV)/.dynamodb-local $(VENV)/.postgres $(VENV)/.docs lint ## what CI runs: static checks, then all tests but those of `make proof`
	$(PYTEST) --hypothesis-profile test -m "not proof" --durations 20 --junitxml build/tests.xml; \
		failed=$$?; $(BIN)/python -m tests.budgets build/tests.xml; exit $$failed

lint: $(VENV)/.dev ## ruff, mypy, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(VENV)/.dev ## put every file into the one format
	$(BIN)/ruff check --fix-only --exit-zero .
	$(BIN)/ruff format .

demo: setup ## deploy to the embedded AWS and put real flights in (DAYS=7, VIA=library, KEEP=1)
	@$(BIN)/python -m examples.flights

# In a place of its own: its cleaning removes `.cache`, and what pages load is put beside them.
docs: $(VENV)/.docs ## the documentation as a site, in build/site; a broken link is an error
	$(BIN)/python -m tests.docs.site build

pictures: tested ## those of the console in the guide, taken by its tests
	PICTURES=yes $(BIN)/python -m pytest --quiet tests/browser

dist: tested node_modules/.dev ## what other projects install, and a release publishes: wheel, source distribution and npm package, in build/dist
	rm -rf build/dist
	$(BIN)/python -m build --outdir build/dist
	$(BIN)/python -m twine check --strict build/dist/*
	$(BIN)/python -m pytest --quiet tests/clients/test_typescript*.py tests/clients/test_cut_appends.py
	$(BIN)/python -m tests.clients.packing build/dist

bench: tested $(VENV)/.dynamodb-local ## measure cost and speed against their bounds
	$(BIN)/python -m bench

contract: tested $(VENV)/.dynamodb-local ## what is asked of DynamoDB, tried on it: PLACE=aws REGION=eu-west-1, or PLACE=local
	@$(BIN)/python -m tests.contract

load: tested ## mixed load on a deployment to the embedded AWS, verified to the byte (MINUTES=10)
	@$(BIN)/python -m bench.load

simulate: $(VENV)/.dev ## histories by the thousand (SEEDS=100000, or WORLD=streams SEED=17)
	@$(BIN)/python -m tests.simulation.simulate --seeds $(SEEDS) $(if $(FIRST),--first $(FIRST)) \
		$(if $(WORLD),--world $(WORLD)) $(if $(SEED),--seed $(SEED))

proof: tested node_modules/.dev $(VENV)/.dynamodb-local $(VENV)/.postgres $(VENV)/.docs ## try to break every promise, and say what came of it
	@$(BIN)/python -m tests.proof

audit: $(VENV)/.dev ## known vulnerabilities of what is pinned; asks the OSV database
	@$(BIN)/python -m tests.doors.audit

synth: $(VENV)/.installed node_modules/.installed ## the CloudFormation templates, into cdk.out
	node_modules/.bin/cdk synth --quiet

lock: $(VENV)/.dev $(VENV)/.docs ## write down the versions that are installed now
	@{ echo "# Every version that the tests last passed with; written by \`make lock\`, read through requirements.txt and its like."; \
	$(BIN)/python -m pip --disable-pip-version-check freeze --exclude-editable; } > constraints.txt

clean: ## remove what setup and the tests made
	rm -rf $(VENV) node_modules .cache .epochal cdk.out* build dist .pytest_cache .mypy_cache .ruff_cache \
		.import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: prerequisites
prerequisites:
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "missing: Python 3.11 or newer (tried: $(or $(PYTHON),python3)). To get it: apt-get install python3 python3-venv" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "missing: Python's venv ($(PYTHON)). To get it: apt-get install python3-venv" >&2; exit 1; }
	@PYTHONPATH=$(LIBRARY) "$(PYTHON)" -m tests.support.needed $(NEEDED)
	@test ! -e $(VENV) || $(BIN)/python -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
		echo "in the way: $(VENV) is there, but has no Python 3.11 or newer with pip: remove it, and run this again" >&2; exit 1; }

# The check comes first, so that a fresh machine hears of everything it lacks before anything is downloaded.
$(VENV)/.installed: requirements.txt examples/flights/requirements.txt constraints.txt pyproject.toml
	@$(MAKE) --no-print-directory prerequisites NEEDED="$(NEEDED)"
	@echo "==> installing Python packages into $(VENV)"
	@test -x $(BIN)/python || { "$(PYTHON)" -m venv $(VENV) && $(BIN)/python -m pip uninstall --quiet --yes setuptools; }
	$(INSTALL) -r requirements.txt --editable .
	$(INSTALL) --no-deps -r examples/flights/requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.installed
	@echo "==> installing what tests need"
	$(INSTALL) -r requirements-dev.txt
	@touch $@

node_modules/.installed: package.json package-lock.json
	@$(MAKE) --no-print-directory prerequisites NEEDED="$(NEEDED)"
	@echo "==> installing the CDK command line into node_modules"
	npm ci --omit=dev --ignore-scripts --loglevel=error
	@touch $@

node_modules/.dev: node_modules/.installed
	@echo "==> installing what tests need into node_modules"
	npm ci --ignore-scripts --loglevel=error
	@touch $< $@

$(VENV)/.docs: docs/requirements.txt tests/docs/browser_scripts.py $(VENV)/.installed
	@echo "==> installing what makes the documentation a site"
	$(INSTALL) -r docs/requirements.txt -c constraints.txt
	$(BIN)/python -m tests.docs.browser_scripts
	@touch $@

$(VENV)/.dynamodb-local: tests/support/dynamodb_local.py $(VENV)/.installed
	@$(MAKE) --no-print-directory prerequisites NEEDED="$(NEEDED)"
	@echo "==> fetching DynamoDB Local into .cache"
	@$(BIN)/python -m tests.support.dynamodb_local
	@touch $@

$(VENV)/.postgres: tests/support/postgres.py $(VENV)/.dev
	@echo "==> looking for PostgreSQL, or fetching it into .cache"
	@PYTHONPATH=$(LIBRARY) $(BIN)/python -m tests.support.postgres
	@touch $@
