"""`raybench plan`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from raybench.cli.options import All, Json, NoPlugins, Only, Overrides, Quick, Sweep

PLAN_ROWS = 20


def plan(
    *,
    sweep: Sweep,
    overrides: Overrides,
    only: Only,
    quick: Quick = False,
    no_plugins: NoPlugins = False,
    inventory: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plan for the cluster that `doctor --inventory` wrote there.")
    ] = None,
    every: All = False,
    as_json: Json = False,
) -> None:
    """Say what a sweep would run, with sizes and memory; starts nothing."""
    from raybench.report.output import print_left, print_parts, print_rows, stdout_width
    from raybench.report.plan_text import plan_legend, plan_text
    from raybench.report.short_id import short_ids
    from raybench.report.tables import plan_table
    from raybench.results.configs import planned_labels
    from raybench.spec.plan import plan as plan_sweep
    from raybench.spec.reader import read_sweep
    from raybench.workloads.describe import planned_row

    spec = read_sweep(sweep, overrides, no_plugins=no_plugins)
    cluster = _read(inventory)
    workers, machine = _machine(cluster) if spec.uses_auto else ((1,), None)
    planned = plan_sweep(spec, only=only, quick=quick, auto_workers=workers)
    shown = planned.trials if every or as_json else planned.trials[:PLAN_ROWS]
    rows = (planned_row(trial) for trial in shown)
    if as_json:
        print_rows(rows)
        return
    ids = short_ids(trial.trial_id for trial in planned.trials)
    labels = planned_labels(shown)
    named = [
        row | {"short_id": ids[trial.trial_id], "label": labels.get(trial.point_id, row["label"])}
        for trial, row in zip(shown, rows, strict=True)
    ]
    above = plan_text(planned, machine, _missing(cluster, planned))
    print_parts(*above, plan_table(named, stdout_width()), *plan_legend(named))
    print_left(len(planned.trials) - len(shown))


def _read(inventory: Path | None) -> Any:
    if inventory is None:
        return None
    from raybench.cluster.inventory_file import read_inventory

    return read_inventory(inventory)


def _missing(cluster: Any, planned: Any) -> tuple[str, ...]:
    if cluster is None:
        return ()
    from raybench.cluster.inventory_file import what_does_not_fit

    return what_does_not_fit(cluster, planned.trials)


def _machine(cluster: Any) -> tuple[tuple[int, ...], str]:
    """What `num_workers: auto` stands for, and of which machine or cluster."""
    if cluster is None:
        return _this_machine()
    from raybench.cluster.inventory import worker_counts

    return worker_counts(cluster.places), f"the inventory's {cluster.hardware}"


def _this_machine() -> tuple[tuple[int, ...], str]:
    """The same for the machine that this is typed on."""
    from raybench.cluster.checkup import usable_cores
    from raybench.cluster.inventory import worker_counts
    from raybench.engine.environment import visible_gpus

    gpus, cores = len(visible_gpus()), usable_cores()
    places, kind = (gpus, "GPU") if gpus else (cores, "CPU core")
    here = f"this machine's {places} {kind}{'' if places == 1 else 's'} here"
    return worker_counts(places), f"{here}, for the cluster's in a run"
