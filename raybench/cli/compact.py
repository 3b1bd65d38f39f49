"""`raybench compact`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.options import Outs


def compact(
    outs: Outs, to: Annotated[str, typer.Option("--to", metavar="DST", help="The new folder; what is read stays.")]
) -> None:
    """Write results anew, in few files."""
    from raybench.report.output import print_parts
    from raybench.report.tables import counted
    from raybench.results.compact import compact as write

    done = write(outs, to=to)
    files = f"{counted(done.files_before, 'file')} before, {done.files_after} now"
    print_parts(f"{counted(done.trials, 'row')} of trials in {to}; {files}")
