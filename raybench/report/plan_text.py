"""What a sweep would run, in words: the lines above the table of `plan`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from rich.text import Text

from raybench.report.tables import counted
from raybench.report.text import literal


class Planned(Protocol):
    """The plan of a sweep, as far as it is told here (`spec.plan.Plan`)."""

    @property
    def name(self) -> str: ...
    @property
    def question(self) -> str: ...
    @property
    def trials(self) -> Sequence[Any]: ...
    @property
    def warnings(self) -> Sequence[str]: ...
    @property
    def repeats(self) -> int: ...
    @property
    def num_configs(self) -> int: ...
    @property
    def num_groups(self) -> int: ...
    @property
    def max_workers(self) -> int: ...
    @property
    def later_stages(self) -> Sequence[int]: ...
    @property
    def maximize(self) -> str | None: ...


def plan_text(plan: Planned, machine: str | None, missing: Sequence[str] = ()) -> list[Text]:
    """Question, counts, warnings. `machine` is what `num_workers: auto` was resolved against, if it was.

    `missing`: what the cluster that is planned for lacks.
    """
    configs = counted(plan.num_configs, "config")
    repeats = f" x {counted(plan.repeats, 'repeat')}" if plan.repeats > 1 else ""
    groups = f"{counted(plan.num_groups, 'worker group')} of at most {counted(plan.max_workers, 'worker')}"
    lines = [
        Text.assemble((f"sweep {literal(plan.name)}", "bold"), f"  {literal(plan.question)}"),
        Text(f"{counted(len(plan.trials), 'trial')} ({configs}{repeats}) in {groups}"),
    ]
    if machine is not None:
        lines.append(Text(f"num_workers: auto stands for {machine}"))
    if plan.later_stages:
        later = ", then ".join(str(most) for most in plan.later_stages)
        best = f"each stage goes on from the best so far by {plan.maximize}"
        lines.append(Text(f"stage 1 of {len(plan.later_stages) + 1}; then at most {later} more: {best}"))
    if any(trial.ladder for trial in plan.trials):
        lines.append(Text("b=auto: the largest power of two that fits is found when it runs, each size tried a row"))
    kept = max((trial.config.data_cpus_held for trial in plan.trials), default=0)
    if kept:
        lines.append(Text(f"each node keeps {counted(kept, 'CPU')} for reading: tasks of ray_data starve without"))
    lines += [Text(f"⚠ {literal(warning)}", style="yellow") for warning in (*plan.warnings, *missing)]
    return [*lines, Text("")]


def plan_legend(rows: Iterable[Mapping[str, Any]]) -> list[Text]:
    """What the words in the table of `plan` mean, as far as they stand there."""
    lines = ["memory/worker: an estimate of device memory; a run's row has the measured peak"]
    if any(row["small_share"] for row in rows):
        lines.append("small: too few rows to fill a GPU; a run's row then has the warning small_share")
    return [Text(""), *(Text(line, style="dim") for line in lines)]
