"""`raybench export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raybench.cli.options import Outs, flag


def _forms(incomplete: str) -> list[str]:
    from raybench.report.exports.export import FORMS

    return [name for name in FORMS if name.startswith(incomplete)]


def export(
    outs: Outs,
    form: Annotated[
        str,
        typer.Option(
            "--as",
            metavar="FORM",
            autocompletion=_forms,
            help="bench-json, step-csv, training-metrics or run-summary.",
        ),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="Folder that the files are put in.")],
    include_invalid: Annotated[bool, flag("--include-invalid", help="Invalid rows too.")] = False,
) -> None:
    """Write results in the shapes of other tools."""
    from raybench.report.exports.export import export as write
    from raybench.report.output import print_parts
    from raybench.report.tables import counted

    written = write(outs, form=form, to=to, include_invalid=include_invalid)
    print_parts(f"{counted(len(written), 'file')} in {to}")
