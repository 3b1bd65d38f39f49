"""The Arrow schemas say what the record types say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from raybench.record.column import columns
from raybench.record.rank import RankSteps
from raybench.results.schema import TABLES, from_ranks, from_records, schema
from raybench.version import __version__
from tests.factories import make_node, make_steps, make_trial


@pytest.mark.parametrize("table", TABLES)
def test_fields_are_the_columns(table: str):
    """Same names in the same order, nullable exactly where the column says so."""
    found = [(field.name, field.nullable) for field in schema(table)]
    assert found == [(column.name, column.nullable) for column in columns(TABLES[table])]


def test_types_are_plain_scalars():
    """One column of each kind, as the tables promise it."""
    kinds = {name: schema("trials").field(name).type for name in ("sweep", "attempt", "mfu", "valid", "started_at")}
    assert kinds == {
        "sweep": pa.string(), "attempt": pa.int64(), "mfu": pa.float64(), "valid": pa.bool_(),
        "started_at": pa.timestamp("us", tz="UTC"),
    }  # fmt: skip


def test_metadata_names_table_and_versions():
    """A file tells on its own what it is."""
    assert schema("steps").metadata == {
        b"raybench.schema_version": b"1", b"raybench.table": b"steps", b"raybench.version": __version__.encode(),
    }  # fmt: skip


def test_records_come_back_as_they_were():
    """A trial and a node survive the way through Arrow value by value."""
    for table, record in (("trials", make_trial()), ("nodes", make_node())):
        assert from_records(table, [record]).to_pylist() == [vars(record)]


def test_none_in_a_column_that_is_never_null_is_a_programmers_error():
    """It must not reach a file, where it would break `df[df.valid]` years later."""
    with pytest.raises(AssertionError, match=r"trials\.valid is never null"):
        from_records("trials", [make_trial(valid=None)])


def test_steps_of_ranks_equal_the_same_steps_as_records():
    """The columnar way gives the very rows that one record a step gives, ranks in order."""
    trial = make_trial()
    records = make_steps(trial)
    ranks = {}
    for rank in (1, 0):
        own = [step for step in records if step.rank == rank]
        names = RankSteps.__dataclass_fields__
        ranks[rank] = RankSteps(**{name: tuple(getattr(step, name) for step in own) for name in names})
    assert from_ranks(trial.trial_uid, ranks).equals(from_records("steps", records))


def test_no_ranks_are_no_steps():
    """A trial that never started has no steps, and the table keeps its schema."""
    assert from_ranks("0" * 32, {}).schema.equals(schema("steps"))
