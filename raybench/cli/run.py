"""`raybench run`."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Annotated

import typer

from raybench.cli.options import NoPlugins, Only, Overrides, Quick, Sweep, flag, outcome_names
from raybench.cli.plan import plan


def _utc(text: str) -> datetime:
    """A time as `--newer-than` takes it; without an offset it is UTC."""
    try:
        found = datetime.fromisoformat(text.strip().upper().replace("Z", "+00:00"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no time such as 2026-03-01T12:00:00Z") from None
    return found.astimezone(timezone.utc) if found.tzinfo else found.replace(tzinfo=timezone.utc)


def run(
    *,
    sweep: Sweep,
    out: Annotated[
        str,
        typer.Option(metavar="OUT", help="Folder of results, or s3://BUCKET/PREFIX; what it holds is not run again."),
    ] = "results",
    local: Annotated[bool, flag("--local", help="Start a private Ray on this machine.")] = False,
    address: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Join the Ray there.")] = None,
    cluster: Annotated[str | None, typer.Option(metavar="NAME", help="Name of the cluster in the results.")] = None,
    overrides: Overrides,
    only: Only,
    quick: Quick = False,
    no_plugins: NoPlugins = False,
    fresh: Annotated[bool, flag("--fresh", help="Run everything again.")] = False,
    newer_than: Annotated[
        datetime | None, typer.Option(parser=_utc, metavar="UTC", help="Only later rows are done: 2026-03-01T12:00Z.")
    ] = None,
    retry: Annotated[
        str | None,
        typer.Option(
            metavar="OUTCOMES",
            autocompletion=outcome_names,
            help="Run these again too: timeout,oom_cuda; `none`: none.",
        ),
    ] = None,
    accept: Annotated[
        str | None,
        typer.Option(metavar="OUTCOMES", autocompletion=outcome_names, help="Outcomes that are no failure: oom_cuda."),
    ] = None,
    tags: Annotated[
        list[str],
        typer.Option(
            "--tag",
            metavar="K=V",
            default_factory=list,
            show_default=False,
            help="Kept in every row: image=2026-03.",
        ),
    ],
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="A sentence kept in every row.")] = None,
    wait_for_nodes: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Let an autoscaler bring missing nodes, before a trial is infeasible."),
    ] = 0.0,
    strict: Annotated[bool, flag("--strict", help="Start nothing when the preflight finds anything.")] = False,
    verbose: Annotated[bool, flag("-v", "--verbose", help="Let Ray print too.")] = False,
    dry_run: Annotated[bool, flag("--dry-run", help="Only say what would run: the same as `plan`.")] = False,
) -> None:
    """Run what a sweep plans and is not done yet; every attempt becomes one row."""
    named = dict(_pair(tag) for tag in tags)
    if dry_run:
        from raybench.report.output import print_parts

        plan(sweep=sweep, overrides=overrides, only=only, quick=quick, no_plugins=no_plugins)
        print_parts("", f"a run would put its results in {out}; nothing was started")
        return
    from raybench.api import watched
    from raybench.cluster.needs import DRIVER, need

    need(*DRIVER)
    from raybench.cluster.run import run_sweep
    from raybench.report.run_end import print_run_end

    with watched() as observer:
        closed = run_sweep(
            sweep, out=out, local=local, address=address, cluster=cluster, overrides=overrides, only=only,
            quick=quick, no_plugins=no_plugins, fresh=fresh, newer_than=newer_than, retry=retry, accept=accept,
            tags=named, note=note, wait_for_nodes_s=wait_for_nodes, strict=strict, verbose=verbose,
            observer=observer, take_signals=True,
        )  # fmt: skip
    print_run_end(closed)
    raise typer.Exit(closed.exit_code)


def _pair(tag: str) -> tuple[str, str]:
    name, equals, value = tag.partition("=")
    if not equals or not name:
        raise typer.BadParameter(f"--tag {tag}: give a name and a value, as in --tag image=2026-03")
    return name, value
