# One entry point for everything a person or CI does here; `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALL := VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet --require-hashes --only-binary :all:

DEMO_SECONDS ?=
DEMO_REPORT ?=
TEST ?= tests
WORKERS ?= 2
NAME ?= router-1
PORT ?= 8080
ADMIN_PORT ?= 8180

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------

$(BIN)/uv: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else f"Consort needs Python 3.11, 3.12 or 3.13, and {sys.executable} is {sys.version.split()[0]}. Name another one: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

$(VENV)/.run-installed: requirements/run.txt $(BIN)/uv
	$(INSTALL) -r $<
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt $(VENV)/.run-installed
	$(INSTALL) -r $<
	@touch $@

.PHONY: setup
setup: $(VENV)/.dev-installed ## Make .venv with all dependencies, also those for tests and checks

.PHONY: lock
lock: $(BIN)/uv ## Write the lock files again after a change in pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra embedded -o requirements/run.txt pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra embedded --group dev -o requirements/dev.txt pyproject.toml

# --- demo ---------------------------------------------------------------------------------------

.PHONY: demo
demo: $(VENV)/.run-installed ## Run everything on this machine; DEMO_SECONDS=60 DEMO_REPORT=r.json ends by itself
	@$(BIN)/python -m deploy.demo --seconds "$(DEMO_SECONDS)" --report "$(DEMO_REPORT)"

.PHONY: demo-reset
demo-reset: $(VENV)/.run-installed ## Stop what a demo left running and forget all local data (var/)
	@$(BIN)/python -m deploy.demo.reset

# --- one process at a time ----------------------------------------------------------------------

.PHONY: migrate
migrate: $(VENV)/.run-installed ## Start the embedded servers if no URL names others, and bring the tables up to date
	@$(BIN)/python manage.py migrate --verbosity 0

.PHONY: run-web
run-web: migrate ## Console and API on http://127.0.0.1:8000
	$(BIN)/python -m gunicorn controlplane.config.wsgi --bind 127.0.0.1:8000 --workers 2 --threads 4 --no-control-socket

.PHONY: run-worker
run-worker: migrate ## A Celery worker
	$(BIN)/python -m celery -A controlplane.config.celery worker --concurrency 2 --loglevel INFO

.PHONY: run-beat
run-beat: migrate ## The Celery scheduler
	$(BIN)/python -m celery -A controlplane.config.celery beat --loglevel INFO --schedule var/beat-schedule --pidfile=

.PHONY: run-router
run-router: $(VENV)/.run-installed ## A router; NAME, PORT and ADMIN_PORT can be set
	@mkdir -p -m 0700 var/$(NAME) && { test -s var/$(NAME)/token || (umask 077; $(BIN)/python -c 'import secrets; print(secrets.token_hex(32))' > var/$(NAME)/token); }
	$(BIN)/python -m routing.servers --name $(NAME) --host 127.0.0.1 --port $(PORT) --admin-port $(ADMIN_PORT) --state-dir var/$(NAME) --admin-token-file var/$(NAME)/token

# --- tests and checks ---------------------------------------------------------------------------

.PHONY: system-packages
system-packages:
	@.ci/system-packages

.PHONY: test
test: system-packages setup ## Run the whole test suite (set-up included); TEST=path for a part
	$(BIN)/python -m controlplane.config.embedded start
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(TEST)

.PHONY: check
check: setup ## Format, lint, types, import contracts, migrations, templates, translations, schema, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy manage.py controlplane inventory routing deploy
	$(BIN)/python manage.py check --fail-level WARNING
	$(BIN)/python manage.py makemigrations --check --dry-run
	$(BIN)/djade --check $$(git ls-files 'templates/*.html')
	$(BIN)/djlint --lint --quiet templates
	$(BIN)/deptry .
	@$(MAKE) schema && git diff --exit-code --stat -- docs/openapi.yaml docs/pool-document.schema.json
	$(BIN)/python -m pytest -q tests/architecture

.PHONY: bench
bench: setup ## Measure decision, proxy and pages (CPU time, no verdict)
	@for script in tests/benchmarks/bench_*.py; do echo "== $$script"; PYTHONPATH=. $(BIN)/python $$script; done

.PHONY: messages
messages: setup ## Collect the texts to translate and compile the translations (needs gettext)
	$(BIN)/python manage.py makemessages --locale ko --no-location --no-wrap --ignore '.venv/*' --ignore 'tests/*'
	$(BIN)/python manage.py compilemessages --locale ko --ignore '.venv'

.PHONY: schema
schema: setup ## Write docs/openapi.yaml and docs/pool-document.schema.json
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml
	$(BIN)/python -c 'import json; from routing.core.document import document_schema; print(json.dumps(document_schema(), indent=2, sort_keys=True))' > docs/pool-document.schema.json
