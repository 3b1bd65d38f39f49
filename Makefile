# Everything happens in .venv, made from the first of these on the path; PYTHON=... chooses another.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
.DEFAULT_GOAL := help
.PHONY: help quick test test-cluster lint soak bench clean

help:               ## what there is
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

quick: $(STAMP)     ## the main job: a real sweep on this machine, to a table of results
	$(BIN)/raybench run quick --local

test: lint          ## lint, types and every test that needs no GPU
	$(BIN)/python -m pytest -m "not soak and not hosts" -q -n 2 --dist loadgroup

test-cluster: $(STAMP)  ## ray up, ray submit and ray job submit on three hosts made on this machine (root, Linux)
	tests/cluster/install_tools.sh
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable ".[cluster]"
	$(BIN)/python -m pytest -m hosts -q -s

lint: $(STAMP)      ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

soak: $(STAMP)      ## the full counts: kills, signals, long sweeps (up to an hour)
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
