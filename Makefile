# make demo and make test do everything on a fresh machine: environment, install, run.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RECORDED_ON := 1795222583
RECORDED := -f tests/golden/nodes.json -f tests/golden/pods.json -f tests/golden/workloads.json \
	-f tests/golden/runtimeclasses.json --states tests/golden/states.yaml

# One file for every Python and system. setuptools, which builds, has its own: the release and the image need nothing else.
COMPILE := uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 --no-annotate \
	--custom-compile-command 'make lock'

.PHONY: help check-python dist reproduce lock demo test coverage lint bench reports screenshots schema clean

help:
	@echo "make demo     audit the recorded cluster: table here, HTML and Markdown in reports/"
	@echo "make test     all tests"
	@echo "make coverage the same, with what they leave out: half as long again"
	@echo "make lint     ruff and mypy --strict"
	@echo "make bench    cost of an audit at 1,000 to 150,000 pods against raw paging and a bare decode loop (half an hour)"
	@echo "make dist     archives for krew, wheel and source for PyPI, checksums: the same commit gives the same bytes"
	@echo "make reproduce  build the commit twice, in two clones and two environments, and compare every byte"
	@echo "make lock     choose the newest dependencies and write their hashes (needs uv)"
	@echo "make screenshots  photograph the report for reports/screenshots"
	@echo "make schema   write the JSON Schema anew after a change of the audit's types"

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed: make PYTHON=/path/to/python3 ..." >&2; exit 1; }

$(VENV)/ready: pyproject.toml requirements-build.lock requirements-dev.lock | check-python
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --only-binary :all: \
		-r requirements-build.lock -r requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable .
	@touch $@

demo reports: $(VENV)/ready
	@mkdir -p reports
	@SOURCE_DATE_EPOCH=$(RECORDED_ON) $(BIN)/kubectl-cgaudit $(RECORDED) -o table \
		-o html=reports/recorded-cluster.html -o markdown=reports/recorded-cluster.md

screenshots: reports
	$(BIN)/python -m tests.browser.screenshots reports/recorded-cluster.html reports/screenshots

test: $(VENV)/ready
	$(BIN)/python -m pytest -n auto --dist loadfile

coverage: $(VENV)/ready
	$(BIN)/python -m pytest -n auto --dist loadfile --cov=kubectl_cgaudit --cov-report=term:skip-covered

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/ready
	$(BIN)/python -m tools.bench --history benchmarks/history.jsonl

schema: $(VENV)/ready
	$(BIN)/python -c 'import json; from kubectl_cgaudit.report import records as r; \
		[open(f"docs/{n}.schema.json", "w").write(json.dumps(s, indent=2) + "\n") \
		for n, s in (("audit", r.audit_schema()), ("container", r.record_schema()))]'

# Not with the environment of the tests: what builds a release is setuptools, by its hash, and Python.
dist: | check-python
	rm -rf dist
	$(PYTHON) -m tools.release

reproduce: | check-python
	PYTHON=$(PYTHON) .ci/reproduce

lock: | check-python
	@command -v uv >/dev/null || { echo "uv is needed: see https://docs.astral.sh/uv" >&2; exit 1; }
	echo setuptools | $(COMPILE) --output-file requirements-build.lock -
	$(COMPILE) --output-file requirements.lock pyproject.toml
	$(COMPILE) --output-file requirements-dev.lock --extra dev pyproject.toml
	$(PYTHON) -m tools.release.lock

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .coverage *.egg-info
