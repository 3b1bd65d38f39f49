"""`raybench doctor`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from raybench.cli.options import Json, flag


def doctor(
    *,
    out: Annotated[str, typer.Option(metavar="OUT", help="Folder of results that is to be tried.")] = "results",
    local: Annotated[bool, flag("--local", help="Look at a private Ray on this machine.")] = False,
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Look at the Ray there.")] = None,
    strict: Annotated[bool, flag("--strict", help="A warning is as good as an error.")] = False,
    inventory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep there what the nodes hold, for `plan --inventory`.")
    ] = None,
    working_dir: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Measure what `ray job submit --working-dir DIR` would upload, too."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Look whether a cluster is fit for a sweep, and say what to do where it is not."""
    from raybench.cluster.needs import DRIVER, need

    need(*DRIVER)
    from dataclasses import asdict

    from raybench.cluster.doctor import diagnose
    from raybench.report.output import print_parts, print_rows
    from raybench.report.text import literal

    found = diagnose(out=out, local=local, address=address, working_dir=working_dir)
    if as_json:
        print_rows([asdict(finding) for finding in found.findings])
    else:
        lines = [*(f"ok: {text}" for text in found.healthy), *(str(finding) for finding in found.findings)]
        print_parts(*(literal(line) for line in lines))
    if inventory is not None and found.inventory is not None:
        from raybench.cluster.inventory_file import write_inventory

        write_inventory(found.inventory, inventory)
    raise typer.Exit(found.exit_code(strict=strict))
