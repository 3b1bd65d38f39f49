"""The columns of the results' tables, as rows: what `schema --columns` and the README's table are made from."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from raybench.record.column import columns
from raybench.record.node import Node
from raybench.record.step import Step
from raybench.record.telemetry import Telemetry
from raybench.record.trial import Trial


def column_rows() -> list[dict[str, Any]]:
    """Table, name, type, unit, meaning, reduction over ranks and null rule of every column."""
    tables = {"trials": Trial, "steps": Step, "telemetry": Telemetry, "nodes": Node}
    return [{"table": table} | asdict(column) for table, record in tables.items() for column in columns(record)]
