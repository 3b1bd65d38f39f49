"""`raybench verify`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.options import Json, flag


def verify(
    out: Annotated[str, typer.Argument(help="Folder of results, or s3://BUCKET/PREFIX.", metavar="OUT")],
    strict: Annotated[bool, flag("--strict", help="A warning is as good as an error.")] = False,
    as_json: Json = False,
) -> None:
    """Look whether results are whole and agree with themselves, and say what to do where not."""
    from dataclasses import asdict

    from raybench.report.output import print_parts, print_rows
    from raybench.report.tables import counted
    from raybench.report.text import literal
    from raybench.results.verify import verify as look

    found = look(out)
    if as_json:
        print_rows([asdict(finding) for finding in found.findings])
    else:
        looked = f"looked at {counted(found.attempts, 'row')} of trials in {counted(found.files, 'file')}"
        verdict = counted(len(found.findings), "finding") if found.findings else "nothing is wrong"
        print_parts(*(literal(str(finding)) for finding in found.findings), f"{looked}: {verdict}")
    raise typer.Exit(found.exit_code(strict=strict))
