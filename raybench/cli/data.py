"""`raybench data prepare`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.options import Json, NoPlugins, Overrides, flag

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help="A sweep, for all that its trials read; or `shards`, `tokens`, `cifar100`, `ray_data`."
    ),
]

Verify = Annotated[bool, flag("--verify", help="Hash every byte, not only the first and last MB of each file.")]


def prepare(
    *, what: What, overrides: Overrides, verify: Verify = False, no_plugins: NoPlugins = False, as_json: Json = False
) -> None:
    """Make, download or check data on this node, as a run does by itself before a trial that reads it."""
    from raybench.cluster.needs import need

    need("torch")
    from dataclasses import asdict

    from raybench.report.output import print_parts, print_rows
    from raybench.report.preparing import Preparing
    from raybench.report.text import literal
    from raybench.sources.wanted import prepare_all

    nothing = True
    with Preparing() as told:
        for each in prepare_all(what, overrides, no_plugins=no_plugins, all_bytes=verify, told=told):
            nothing = False
            if as_json:
                print_rows([asdict(each) | {"path": str(each.path)}])
                continue
            done = "verified" if verify else "checked" if each.was_there else "prepared"
            print_parts(literal(f"{each.path}  {each.num_bytes / 1e6:,.1f} MB  {done} in {each.seconds:.1f} s"))
    if nothing and not as_json:
        print_parts(literal("nothing to prepare: no trial reads data that is made beforehand"))
