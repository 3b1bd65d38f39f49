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


@dataclass(frozen=True)
class Running:
    """The trial that runs now, for `for_s` so far."""

    for_s: float
    opens_group: bool = False


def time_left_s(
    ended: Sequence[Ended], *, waiting: int, groups_left: int | None = None, running: Running | None = None
) -> float | None:
    """Seconds until the last trial ends; None before the first one did.

    Means, because what is left is a sum. `waiting` trials have not started; they open `groups_left` worker groups
    (None: as often as so far). A trial that runs longer than expected takes nothing from the others' time.
    """
    if not waiting and running is None:
        return 0.0
    if not ended:
        return None
    opened = [trial.startup_s for trial in ended if trial.opened_group]
    groups = waiting * len(opened) / len(ended) if groups_left is None else min(groups_left, waiting)
    work_s = fmean(trial.duration_s - trial.startup_s for trial in ended)
    startup_s = fmean(opened) if opened else 0.0
    expected_s = waiting * work_s + groups * startup_s
    if running is not None:
        expected_s += max(work_s + startup_s * running.opens_group - running.for_s, 0.0)
    return expected_s
