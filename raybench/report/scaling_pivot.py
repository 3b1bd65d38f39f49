"""Scaling turned: a family of shapes to a table, a number of GPUs to a column, times above speed-ups."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from rich.table import Table
from rich.text import Text

from raybench.report.columns import Row, Shown, rows_of, table
from raybench.report.numbers import is_null, ratio, significant, three
from raybench.report.status import told_outcome
from raybench.report.tables import counted, each
from raybench.report.text import literal


def pivot_tables(scaled: pd.DataFrame, width: int) -> Iterator[Text | Table]:
    """For each family of the result of `judge.scaling`: `234.0 ms (58.1 TFLOP/s)` and, below it, `2.63x`."""
    one = each(scaled["device_kind"])
    for family, curves in scaled.groupby("family", sort=False):
        numbers = sorted(curves["num_workers"].unique())
        columns = (
            Shown("work", "work", align="left", least=12),
            *(Shown(counted(int(number), one), str(number)) for number in numbers),
        )
        yield Text(f"\n{literal(str(family))}", style="bold")
        yield table(columns, [row for _, rows in curves.groupby("curve", sort=False) for row in _two_rows(rows)], width)


def _two_rows(curve: pd.DataFrame) -> tuple[Row, Row]:
    """The times of a curve and its speed-ups, by number of GPUs."""
    sides = {str(row["num_workers"]): row for row in rows_of(curve)}
    label = curve["work"].iloc[0] if curve["cluster"].nunique() == 1 else ""
    times = {number: _time(row) for number, row in sides.items()}
    return {"work": label, **times}, {"work": "  speed-up", **{number: _speedup(row) for number, row in sides.items()}}


def _time(row: Row) -> str:
    """Mean time of a step, and what all GPUs together do in it."""
    if is_null(row["step_ms_mean"]):
        return told_outcome(row)
    rate = row["tflops_per_gpu"]
    told = "" if is_null(rate) else f" ({three(rate * row['num_workers'])} TFLOP/s)"
    return f"{significant(row['step_ms_mean'])} ms{told}"


def _speedup(row: Row) -> str:
    return ratio(row["speedup"]) if row["status"] == "ok" else "" if row["status"] == "not measured" else row["status"]
