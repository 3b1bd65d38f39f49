"""The Arrow schema of each table, made from the record types, so that a column is described in one place only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import pyarrow as pa

from raybench.record.column import columns
from raybench.record.node import Node
from raybench.record.rank import RankSteps
from raybench.record.step import Step
from raybench.record.telemetry import Telemetry
from raybench.record.trial import SCHEMA_VERSION, Trial
from raybench.version import __version__

TABLES: Final[Mapping[str, type]] = {"trials": Trial, "steps": Step, "telemetry": Telemetry, "nodes": Node}
SCHEMA_VERSION_KEY: Final = b"raybench.schema_version"
TABLE_KEY: Final = b"raybench.table"

ARROW_TYPES: Final[Mapping[str, pa.DataType]] = {
    "string": pa.string(),
    "int64": pa.int64(),
    "double": pa.float64(),
    "bool": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}


@cache
def schema(table: str) -> pa.Schema:
    """The schema of one of `TABLES`; which table, schema version and raybench wrote it stand in its metadata."""
    fields = [
        pa.field(column.name, ARROW_TYPES[column.kind], nullable=column.nullable) for column in columns(TABLES[table])
    ]
    metadata = {
        SCHEMA_VERSION_KEY: str(SCHEMA_VERSION).encode(),
        TABLE_KEY: table.encode(),
        b"raybench.version": __version__.encode(),
    }
    return pa.schema(fields, metadata=metadata)


def from_records(table: str, records: Sequence[Any]) -> pa.Table:
    """The records of one of `TABLES` as Arrow, one row each."""
    return _table(table, {field.name: [getattr(record, field.name) for record in records] for field in schema(table)})


def from_ranks(trial_uid: str, ranks: Mapping[int, RankSteps]) -> pa.Table:
    """The `steps` of one trial as the ranks measured them: no object is made for each step, of which there are many."""
    tables = [_rank_table(trial_uid, rank, steps) for rank, steps in sorted(ranks.items())]
    return pa.concat_tables(tables) if tables else schema("steps").empty_table()


def _rank_table(trial_uid: str, rank: int, steps: RankSteps) -> pa.Table:
    count = len(steps.step_ms)
    values: dict[str, Any] = {
        "trial_uid": pa.repeat(trial_uid, count),
        "rank": pa.repeat(rank, count),
        "step": range(count),
    } | vars(steps)
    return _table("steps", values)


def _table(table: str, values: Mapping[str, Any]) -> pa.Table:
    wanted = schema(table)
    arrays = [_array(values[field.name], field.type) for field in wanted]
    for field, array in zip(wanted, arrays, strict=True):
        assert field.nullable or not array.null_count, f"{table}.{field.name} is never null"
    return pa.Table.from_arrays(arrays, schema=wanted)


def _array(values: Any, kind: pa.DataType) -> pa.Array:
    return values.cast(kind) if isinstance(values, pa.Array) else pa.array(values, type=kind)
