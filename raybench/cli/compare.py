"""`raybench compare`."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from raybench.cli.loaded import loaded
from raybench.cli.options import All, Json, Outs, Prices, flag
from raybench.errors import UsageError


def compare(
    outs: Outs,
    by: Annotated[
        str, typer.Option(metavar="AXIS", help="What to compare along: num_workers, or source,precision.")
    ] = "cluster",
    baseline: Annotated[
        str | None, typer.Option(metavar="VALUE", help="What the others are put against: 1, or device,fp32.")
    ] = None,
    prices: Prices = None,
    allow_quick: Annotated[bool, flag("--allow-quick", help="Put quick rows against full ones.")] = False,
    include_invalid: Annotated[bool, flag("--include-invalid", help="Ratios of invalid rows too.")] = False,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Put equal work side by side across clusters or along any axis."""
    from raybench.judge.compare import columns_for, side_by_side
    from raybench.judge.varying import NothingVaries, what_varies
    from raybench.report.compare_text import below_text, compare_text
    from raybench.report.cost_table import cost_parts
    from raybench.report.output import TABLE_ROWS, print_frame, print_left, print_parts, stdout_width
    from raybench.report.tables import axes_of, compare_table

    frame = loaded(outs, columns=columns_for(by))
    try:
        compared = side_by_side(
            frame, by=by, baseline=baseline, prices=prices, allow_quick=allow_quick, include_invalid=include_invalid
        )
    except NothingVaries as error:
        instead = f": raybench compare {shlex.join(outs)} --by {error.varying[0]}" if error.varying else ""
        raise UsageError(f"{error.told}{what_varies(error.varying)}{instead}") from None
    if as_json:
        print_frame(compared.table)
        return
    shown = compared.table if every else compared.table.head(TABLE_ROWS)
    costs = cost_parts(shown, axes_of(shown), compared.unpriced, stdout_width())
    print_parts(compare_text(compared.table), compare_table(shown, stdout_width()), *costs, *below_text(compared))
    print_left(len(compared.table) - len(shown))
