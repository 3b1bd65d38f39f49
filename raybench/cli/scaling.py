"""`raybench scaling`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.loaded import loaded
from raybench.cli.options import All, Json, Outs, Prices, flag


def scaling(
    outs: Outs,
    baseline: Annotated[
        int | None, typer.Option(metavar="N", help="Number of GPUs that the others are put against; else the smallest.")
    ] = None,
    prices: Prices = None,
    averages: Annotated[bool, flag("--averages", help="Only the averages over shapes.")] = False,
    pivot: Annotated[bool, flag("--pivot", help="A number of GPUs a column: times above speed-ups.")] = False,
    include_invalid: Annotated[bool, flag("--include-invalid", help="Speed-ups of invalid rows too.")] = False,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Say what more GPUs bring: speed-up and efficiency, strong and weak."""
    from raybench.judge.scaling import READ, scaling_of
    from raybench.report.columns import rows_of
    from raybench.report.cost_table import cost_parts
    from raybench.report.legend import legend
    from raybench.report.output import TABLE_ROWS, print_frame, print_left, print_parts, stdout_width
    from raybench.report.scaling_pivot import pivot_tables
    from raybench.report.scaling_table import average_table, below_scaling, scaling_table, scaling_text

    frame = loaded(outs, columns=list(READ))
    found = scaling_of(frame, baseline=baseline, prices=prices, include_invalid=include_invalid)
    if as_json:
        print_frame(found.averages if averages else found.table)
        return
    shown, width = found.table if every else found.table.head(TABLE_ROWS), stdout_width()
    if averages:
        print_parts(scaling_text(shown), average_table(found.averages, width))
        return
    tables = pivot_tables(shown, width) if pivot else [scaling_table(shown, width)]
    costs = cost_parts(shown, ["num_workers"], found.unpriced, width)
    print_parts(scaling_text(shown), *tables, *costs, *below_scaling(found, width), *legend(rows_of(shown)))
    print_left(len(found.table) - len(shown))
