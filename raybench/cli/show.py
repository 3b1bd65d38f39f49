"""`raybench show`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.loaded import loaded
from raybench.cli.options import All, Json, Outs


def show(
    outs: Outs,
    trial: Annotated[
        str | None, typer.Option(metavar="ID", help="Everything about this trial (or a beginning of its id).")
    ] = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Show results, one line a trial, or everything about one."""
    from raybench.report.legend import legend
    from raybench.report.output import TABLE_ROWS, print_frame, print_left, print_parts, stdout_width
    from raybench.report.tables import trial_table

    if trial is not None:
        _show_trial(outs, trial, as_json)
        return
    frame = loaded(outs).sort_values(["cluster", "sweep", "sweep_order"], ignore_index=True)
    if as_json:
        print_frame(frame)
        return
    shown = frame if every else frame.head(TABLE_ROWS)
    print_parts(trial_table(shown, stdout_width(), frame["trial_id"]), *legend(shown.to_dict("records")))
    print_left(len(frame) - len(shown))


def _show_trial(outs: list[str], asked: str, as_json: bool) -> None:
    from raybench.report.find_trial import find_trial, traceback_file
    from raybench.report.output import print_parts, print_rows, stdout_width
    from raybench.report.trial_page import trial_page

    row = find_trial(loaded(outs, latest=False), loaded(outs), asked)
    path = traceback_file(outs, row)
    if as_json:
        print_rows([row | {"traceback": path}])
    else:
        print_parts(trial_page(row, path, stdout_width()))
