"""What the command prints when a run is over: the trials it planned, and what to type next."""

from __future__ import annotations

import shlex

import pandas as pd

from raybench.record.run import RunClosed
from raybench.report.legend import legend
from raybench.report.output import TABLE_ROWS, print_left, print_parts, stdout_width
from raybench.report.run_lines import fastest_line, found_line, next_line, varying_axis, why_line
from raybench.report.tables import trial_rows, trial_table
from raybench.results.load import load


def print_run_end(closed: RunClosed) -> None:
    """The latest rows of the planned trials on this cluster, in the sweep's order, and the next command."""
    if not closed.outcomes:
        print_parts(next_line(closed, None))
        return
    rows = _planned_rows(closed)
    print_parts("", trial_table(rows.head(TABLE_ROWS), stdout_width(), rows["trial_id"]))
    print_parts(*legend(rows.head(TABLE_ROWS).to_dict("records")))
    print_left(len(rows) - TABLE_ROWS, f"raybench show {shlex.quote(closed.out)} --all")
    if closed.found:
        best = fastest_line(closed.found)
        print_parts("", *map(found_line, closed.found), *([best] if best else []))
    failed = [str(row["short_id"]) for row in trial_rows(rows) if row["outcome"] != "ok"]
    print_parts("", *([why_line(closed, failed)] if failed else []), next_line(closed, varying_axis(rows)))


def _planned_rows(closed: RunClosed) -> pd.DataFrame:
    frame = load(closed.out)
    mine = frame["sweep"].eq(closed.sweep) & frame["cluster"].eq(closed.cluster)
    planned = frame[mine & frame["trial_id"].isin(closed.trial_ids)]
    rows: pd.DataFrame = planned.sort_values("sweep_order", ignore_index=True)
    return rows
