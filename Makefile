# Everything happens in .venv, made from the first of these on the path; PYTHON=... chooses another.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
.DEFAULT_GOAL := help
.PHONY: help quick test tests-on-ray tests-without-ray test-cluster lint soak bench clean

help:               ## what there is
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

quick: $(STAMP)     ## the main job: a real sweep on this machine, to a table of results
	$(BIN)/raybench run quick --local

# Tests that start a Ray wait more than they compute, so the others run beside them; each part is printed when it ends.
test: lint          ## lint, types and every test that needs no GPU
	$(MAKE) --no-print-directory --jobs=2 --output-sync=target tests-on-ray tests-without-ray
	$(BIN)/python -m pytest -q -m "alone and not soak and not hosts"

tests-on-ray: MARKS := ray
tests-without-ray: MARKS := not ray
tests-on-ray tests-without-ray: $(STAMP)
	$(BIN)/python -m pytest -q -o cache_dir=.pytest_cache/$@ -m "$(MARKS) and not alone and not soak and not hosts"

test-cluster: $(STAMP)  ## ray up, ray submit and ray job submit on three hosts made on this machine (root, Linux)
	tests/cluster/install_tools.sh
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cluster]"
	$(BIN)/python -m pytest -m "hosts and not soak" -q -s

lint: $(STAMP)      ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

soak: $(STAMP)      ## the full counts: kills, signals, long sweeps (up to an hour)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[deepspeed]"
	$(BIN)/python -m pytest -m soak -s

bench: $(STAMP)     ## what raybench itself costs, as ratios measured side by side
	$(BIN)/python -m tests.bench.run

clean:              ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis

# pip 25.1 knows dependency groups; the system's own pip may be older.
$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable . --group dev
	touch $(STAMP)
