"""How long a run will still take: arithmetic over the trials that ended, with the start-up of groups counted apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean


@dataclass(frozen=True)
class Ended:
    """A trial that ended. `startup_s` of its `duration_s` went into a new worker group, 0 in a warm one."""

    duration_s: float
    startup_s: float = 0.0
    opened_group: bool = False


def time_left_s(
    ended: Sequence[Ended], *, trials_left: int, groups_left: int | None = None, running_s: float = 0.0
) -> float | None:
    """Seconds until the last trial ends; None before the first one did.

    Means, because what is left is a sum. `trials_left` counts the running trial, `running_s` is how long it runs.
    `groups_left` None: groups are opened as often as so far.
    """
    if not trials_left:
        return 0.0
    if not ended:
        return None
    opened = [trial.startup_s for trial in ended if trial.opened_group]
    groups = trials_left * len(opened) / len(ended) if groups_left is None else min(groups_left, trials_left)
    work_s = fmean(trial.duration_s - trial.startup_s for trial in ended)
    startup_s = fmean(opened) if opened else 0.0
    return max(trials_left * work_s + groups * startup_s - running_s, 0.0)
