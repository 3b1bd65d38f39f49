"""The arguments and options that several commands take, each with its name, help and default said once.

Commands take them as keyword arguments (behind a `*`), so that one with a default made anew may stand anywhere.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


def flag(*names: str, help: str) -> Any:
    """An option without a value."""
    return typer.Option(*names, help=help)


def _sweep_names(incomplete: str) -> list[str]:
    """Shipped sweeps, for completion; where none fits the shell completes files."""
    from raybench.spec.reader import shipped_sweeps

    return [name for name in shipped_sweeps() if name.startswith(incomplete)]


def outcome_names(incomplete: str) -> list[str]:
    """For completion: the outcome that is being typed, behind those that stand already: `timeout,oom_c`."""
    from raybench.record.trial import OUTCOMES

    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in OUTCOMES if name.startswith(last) and name != "ok"]


Sweep = Annotated[
    str,
    typer.Argument(
        metavar="SWEEP", help="A sweep file, or the name of a shipped one: `quick`.", autocompletion=_sweep_names
    ),
]
Outs = Annotated[list[str], typer.Argument(help="Folders of results, or s3://BUCKET/PREFIX.", metavar="OUT...")]
Overrides = Annotated[
    list[str],
    typer.Option(
        "--set",
        metavar="A.B=C",
        default_factory=list,
        show_default=False,
        help="Set a key (also --A.B=C): model.dropout=0.0; a list is an axis: precision=\\[fp32,bf16].",
    ),
]
Only = Annotated[
    list[str],
    typer.Option(
        "--only",
        metavar="KEY=VALUE",
        default_factory=list,
        show_default=False,
        help="Only the trials that match: precision=bf16,num_workers=2.",
    ),
]
Quick = Annotated[bool, flag("--quick", help="Fewer steps: a first look, never mixed with full runs.")]
Prices = Annotated[
    Path | None,
    typer.Option("--prices", metavar="FILE", help="Costs too: USD an hour by GPU model or cluster, in YAML."),
]
NoPlugins = Annotated[bool, flag("--no-plugins", help="Leave installed plug-ins alone: what is built in only.")]
Json = Annotated[bool, flag("--json", help="One JSON object a line instead of a table.")]
All = Annotated[bool, flag("--all", help="Every row, however many.")]
