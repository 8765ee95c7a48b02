# One entry point for everything a person or CI does here. `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

DEMO_SECONDS ?=
DEMO_REPORT ?=

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/uv: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info[:2] <= (3, 13) else f"Consort needs Python 3.11, 3.12 or 3.13; {sys.executable} is {sys.version.split()[0]}. Set PYTHON=python3.x.")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements/bootstrap.txt
	@touch $@

$(VENV)/.run-installed: requirements/run.txt $(BIN)/uv
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --only-binary :all: -r requirements/run.txt
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt $(VENV)/.run-installed
	VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --only-binary :all: -r requirements/dev.txt
	@touch $@

.PHONY: setup
setup: $(VENV)/.dev-installed ## Make .venv with everything, also the tools for tests and checks
