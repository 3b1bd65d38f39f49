"""The columns are a contract with files that already exist and scripts that already read them."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path
from types import NoneType

import pytest

from raybench.record.column import columns
from raybench.record.node import Node
from raybench.record.step import Step
from raybench.record.telemetry import Telemetry
from raybench.record.trial import NEVER_REPLACES_OK, OUTCOMES, RUN_AGAIN, Trial

TABLES = {"trials": Trial, "steps": Step, "telemetry": Telemetry, "nodes": Node}
GOLDEN = json.loads(Path(__file__).with_name("golden_columns.json").read_text())


@pytest.mark.parametrize("table", TABLES)
def test_no_column_was_renamed_retyped_or_moved(table: str):
    """Names and types in order, against the list kept as a file: it may only ever grow at its end."""
    found = [[column.name, column.kind] for column in columns(TABLES[table])]
    assert found == GOLDEN[table]


@pytest.mark.parametrize("table", TABLES)
def test_null_statement_agrees_with_the_type(table: str):
    """`None` is part of the type exactly when the column says when it is null."""
    hints = typing.get_type_hints(TABLES[table])
    for column in columns(TABLES[table]):
        assert column.nullable == (NoneType in typing.get_args(hints[column.name])), column.name


@pytest.mark.parametrize("table", TABLES)
def test_every_column_is_explained_and_defaults_to_null_only(table: str):
    """A meaning for each; a forgotten value of a column that is never null is an error where the record is made."""
    for column, field in zip(columns(TABLES[table]), dataclasses.fields(TABLES[table]), strict=True):
        assert column.meaning
        assert field.default is (None if column.nullable else dataclasses.MISSING), column.name


def test_what_readers_may_rely_on_is_never_null():
    """Identity, outcome and what every trial has: scripts filter and join by these without a check for null."""
    relied_on = (
        "trial_uid", "sweep", "sweep_run_id", "cluster", "config_key", "work_key", "config", "trial_id", "repeat",
        "attempt", "sweep_order", "started_at", "tags", "schema_version", "raybench_version", "outcome", "valid",
        "invalid_reasons", "warnings", "quality", "workload", "model", "num_workers", "precision", "device_requested",
        "isolation", "seed",
    )  # fmt: skip
    nullable = {column.name: column.nullable for column in columns(Trial)}
    assert [name for name in relied_on if nullable[name]] == []


def test_units_are_true_to_their_suffix():
    """A name's suffix is a promise: each says the unit that the column states."""
    units = {"_bytes_per_s": "B/s", "_per_s": "1/s", "_ms": "ms", "_s": "s", "_bytes": "B", "_w": "W", "_j": "J"}
    for table in TABLES.values():
        for column in columns(table):
            suffix = next((suffix for suffix in units if column.name.endswith(suffix)), None)
            assert suffix is None or column.unit == units[suffix], column.name


def test_reductions_over_ranks_are_those_of_the_documentation():
    """The slowest rank's time, everybody's work."""
    reductions = {column.name: column.over_ranks for column in columns(Trial)}
    assert {reductions[name] for name in ("measured_samples", "measured_tokens", "energy_j")} == {"sum"}
    assert {reductions[name] for name in ("measured_s", "data_wait_s", "first_batch_s", "compile_s")} == {"max"}
    assert {name for name in reductions if name.startswith("peak_") and reductions[name] != "max"} == set()
    assert (reductions["power_mean_w"], reductions["gpu_utilization_min"]) == ("mean", "min")


def test_outcomes_that_have_rules_exist():
    """Seventeen ways to end; the sets that resume goes by name only those, and `ok` never runs again."""
    assert len(OUTCOMES) == len(set(OUTCOMES)) == 17
    assert set(OUTCOMES) >= RUN_AGAIN | NEVER_REPLACES_OK
    assert "ok" not in RUN_AGAIN | NEVER_REPLACES_OK
