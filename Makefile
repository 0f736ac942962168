# Everything runs in a local .venv that these rules make themselves; nothing is installed elsewhere.
PYTHON ?= python3
BIN := .venv/bin
UV_VERSION := 0.13.7
export UV_PROJECT_ENVIRONMENT := .venv
export UV_LINK_MODE := copy

SCHEDULER_TESTS = $(if $(PACKAGE),tests/scheduler/$(PACKAGE),tests/scheduler tests/promises)

.PHONY: help setup demo test test-scheduler test-full oracle oracle-search lint pages format e2e e2e-conformance e2e-workloads site sbom audit faults faults-selftest soak day bench bench-guard bench-cluster bench-pressure bench-search clean

help:  ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

setup: .venv/.ready  ## make the local environment

.venv/.ready: pyproject.toml uv.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv==$(UV_VERSION)
	@$(BIN)/uv sync --quiet --frozen --inexact
	@touch $@

demo: setup  ## the main job, end to end, in under a minute
	@$(BIN)/muster demo

test: setup  ## the tests to run while working: a quarter of the examples of each property, nothing slow
	$(BIN)/pytest -n 2 -m "not e2e and not slow" --hypothesis-profile=quick

test-scheduler: setup  ## the same for the scheduler alone; PACKAGE=planning for one package of it
	$(BIN)/pytest -n 2 -m "not e2e and not slow" --hypothesis-profile=quick $(SCHEDULER_TESTS)

test-full: setup  ## the same with all examples and coverage
	$(BIN)/pytest -n 2 -m "not e2e and not slow" --hypothesis-profile=full --cov --cov-report=
	@$(BIN)/coverage report --skip-covered --sort=cover | sed -n 1,40p
	@echo "api and scheduler, which must have 90 %:"
	@$(BIN)/coverage report --include='src/muster/api/*,src/muster/scheduler/*' --fail-under=90 --format=total

oracle: setup  ## 10,000 random sequences of events: a scheduler at rest has decided what a new one decides
	ORACLE_SEQUENCES=$(or $(SEQUENCES),10000) $(BIN)/pytest -n 2 --timeout 7200 tests/promises/test_waiting_equals_oracle.py

oracle-search: setup  ## 100,000 small worlds: the planner's verdict is that of trying everything
	ORACLE_CASES=$(or $(CASES),100000) $(BIN)/pytest -n 0 -m slow tests/promises/test_verdict_equals_oracle.py

lint: setup  ## format, lint, types, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright
	$(BIN)/lint-imports

pages: tools/pages/node_modules/.package-lock.json  ## check the types of the dashboard's pages, where npm is installed
	@cd tools/pages && npx tsc -p tsconfig.json && echo "the pages' types are right"

tools/pages/node_modules/.package-lock.json: tools/pages/package-lock.json
	@cd tools/pages && npm ci --silent --no-fund --no-audit && touch node_modules/.package-lock.json

format: setup  ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# These tests start real processes and race with the clock of a busy machine: what fails is run once more, alone, and
# what passes only then is listed at the end.
e2e: setup  ## slow tests: kills, full disks, processes, real kubectl, a real kube-apiserver where Go is installed
	$(BIN)/python tools/rerun_failed.py -m "(e2e or slow) and not workloads" -p no:randomly --hypothesis-profile=full --timeout 1800

e2e-conformance: setup  ## the specs of Kubernetes' own suite that need no container, on `muster up`; builds for minutes
	$(BIN)/python -m e2e.conformance.run --shards $(or $(SHARDS),2)

e2e-workloads: setup  ## the real managers of workloads (JobSet, LeaderWorkerSet, Kueue …); builds for minutes
	$(BIN)/python tools/rerun_failed.py -m workloads -n 0 -p no:randomly --timeout 1800 -rs

site: setup  ## the documentation as a site, into site/
	@$(BIN)/uv sync --quiet --frozen --inexact --group site
	$(BIN)/zensical build --strict

sbom: setup  ## what an installation consists of, as CycloneDX, into dist/
	@mkdir -p dist
	@$(BIN)/uv export --quiet --frozen --no-dev --format cyclonedx1.5 --output-file dist/muster.cdx.json
	@echo "dist/muster.cdx.json"

audit: setup  ## known vulnerabilities of the locked packages, where the advisory service can be reached
	@$(BIN)/python tools/audit.py

faults: setup  ## bad days in virtual time, each from its seed: SEEDS=100 FIRST=0
	$(BIN)/python -m tests.simulation --first $(or $(FIRST),0) --seeds $(or $(SEEDS),100)

faults-selftest: setup  ## thirty-one planted bugs, each of which the bad days must find
	$(BIN)/python -m tests.simulation.selftest

soak: setup  ## long runs under load
	$(BIN)/python -m bench.soak

day: setup  ## a day of a busy cluster in simulated time
	$(BIN)/python -m bench.day --hours $(or $(HOURS),24)

bench-search: setup  ## how often, and how fast, the search finds planted placements; INSTANCES=20 for fewer a row
	$(BIN)/python -m bench.search --instances $(or $(INSTANCES),200)

bench: setup  ## all figures, and one table of those with a bar
	$(BIN)/python -m bench

bench-guard: setup  ## the quick form: counts exactly as recorded, times at most twice as long
	$(BIN)/python -m bench.guard

bench-cluster: setup  ## side by side with kube-scheduler on a real kube-apiserver
	$(BIN)/python -m bench.cluster

bench-pressure: setup  ## a small pod beside thousands of waiting groups, on a real kube-apiserver, beside kube-scheduler
	$(BIN)/python -m bench.pressure

clean:  ## remove what these rules made
	rm -rf .venv .hypothesis .coverage htmlcov dist
