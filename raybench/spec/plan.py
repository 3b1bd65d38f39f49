"""What a sweep would run, without running it: the value behind the `plan` command. Imports neither torch nor ray."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from raybench.errors import UsageError
from raybench.spec.config import Isolation
from raybench.spec.expand import expand, most_in_stage, nothing_left
from raybench.spec.reader import read_sweep
from raybench.spec.selection import Only
from raybench.spec.sweep import Order, SweepSpec
from raybench.spec.trial import PlannedTrial, worker_group


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A sweep, multiplied out. `trials` are in the order they run, less those that `only` leaves out.

    Of a sweep with stages they are the first one's; `later_stages` holds the most trials that each later one can have,
    and `maximize` the column that decides what they go on from.
    """

    name: str
    question: str
    file: str
    trials: tuple[PlannedTrial, ...]
    warnings: tuple[str, ...]
    repeats: int
    order: Order
    isolation: Isolation
    later_stages: tuple[int, ...] = ()
    maximize: str | None = None

    @property
    def num_configs(self) -> int:
        """Different configs among the trials."""
        return len({trial.point_id for trial in self.trials})

    @property
    def num_groups(self) -> int:
        """Worker groups to start if none fails: one for each kind and, by `isolation`, each repeat or each trial."""
        if self.isolation == "fresh":
            return len(self.trials)
        repeated = self.isolation == "repeat"
        return len({(worker_group(trial.config), trial.repeat if repeated else 0) for trial in self.trials})

    @property
    def max_workers(self) -> int:
        """Workers of the largest trial."""
        return max((trial.config.num_workers for trial in self.trials), default=0)


def plan(
    sweep: SweepSpec | str | os.PathLike[str],
    *,
    overrides: str | Sequence[str] = (),
    only: Only = (),
    quick: bool = False,
    auto_workers: Sequence[int] | None = None,
    no_plugins: bool = False,
) -> Plan:
    """What `run` would run. `overrides` are `--set` texts, `only` are `--only` texts or a mapping of key to value or
    list of values. Overrides are for a sweep by name or path.

    Raises SweepError with all mistakes at once, UsageError for anything else that was asked wrongly.
    """
    spec = sweep if isinstance(sweep, SweepSpec) else read_sweep(sweep, overrides, no_plugins=no_plugins)
    expansion = expand(spec, auto_workers=auto_workers, quick=quick, only=only)
    if not expansion.trials:
        raise UsageError(nothing_left(spec))
    return Plan(
        name=spec.name,
        question=spec.head.question,
        file=spec.file,
        trials=expansion.trials,
        warnings=expansion.warnings,
        repeats=spec.head.repeats,
        order=spec.head.order,
        isolation=spec.head.isolation,
        later_stages=tuple(most_in_stage(spec, n, auto_workers) for n in range(1, len(spec.stages))),
        maximize=spec.head.maximize if spec.stages else None,
    )
