"""`raybench data prepare`."""

from __future__ import annotations

from typing import Annotated

import typer

from raybench.cli.options import Json, NoPlugins, Overrides

What = Annotated[
    str,
    typer.Argument(
        metavar="WHAT", help="A sweep, for all that its trials read; or `shards`, `tokens`, `cifar100`, `ray_data`."
    ),
]


def prepare(*, what: What, overrides: Overrides, no_plugins: NoPlugins = False, as_json: Json = False) -> None:
    """Make, download or check data on this node, as a run does by itself before a trial that reads it."""
    from raybench.cluster.needs import need

    need("torch")
    from dataclasses import asdict

    from raybench.report.output import print_parts, print_rows
    from raybench.report.text import literal
    from raybench.sources.wanted import prepare_all

    found = prepare_all(what, overrides, no_plugins=no_plugins)
    if as_json:
        print_rows(asdict(each) | {"path": str(each.path)} for each in found)
        return
    nothing = True
    for each in found:
        nothing, done = False, "checked" if each.was_there else "prepared"
        print_parts(literal(f"{each.path}  {each.num_bytes / 1e6:,.1f} MB  {done} in {each.seconds:.1f} s"))
    if nothing:
        print_parts(literal("nothing to prepare: no trial reads data that is made beforehand"))
