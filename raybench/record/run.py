"""What a run tells whoever watches it, as values: the run half emits them, `report` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from raybench.record.trial import Trial


@dataclass(frozen=True, kw_only=True)
class RunOpened:
    """Said once, before the first trial. Counts are trials."""

    sweep: str
    sweep_run_id: str
    ray: str  # which Ray, why, and how to get the other: one line
    hardware: str  # e.g. `2 CPU cores` or `8x NVIDIA H200`
    out: str
    cluster: str
    planned: int
    done_earlier: int
    to_run: int
    groups: int  # worker groups that must start for what is to run
    preflight: str = ""  # what was looked at before; empty: nothing
    findings: int = 0  # of the preflight


@dataclass(frozen=True, kw_only=True)
class TrialStarted:
    """An attempt begins. `position` counts from 1 over the sweep's plan; `label` is what a person recognises it by."""

    trial_id: str
    label: str
    position: int
    planned: int
    opens_group: bool  # a new worker group must start first, which takes seconds


@dataclass(frozen=True, kw_only=True)
class StageFound:
    """What a stage of a search came to: the best so far. All but the first three are None where nothing was usable."""

    stage: int  # from 1
    stages: int
    column: str  # of `trials`, by which the best was chosen
    trial_id: str | None
    label: str | None
    value: float | None  # median over repeats
    ratio: float | None  # over the best of the stage before; in the first stage over its first config


@dataclass(frozen=True, kw_only=True)
class RunClosed:
    """Said once, at the end. `outcomes` counts the latest rows of the planned trials."""

    sweep: str
    cluster: str
    trial_ids: tuple[str, ...]  # the planned trials, in order
    outcomes: Mapping[str, int]
    not_run: int
    invalid: int  # ok, but a rule found the number wrong
    exit_code: int
    out: str
    continue_command: str  # the command that would run what is left
    found: tuple[StageFound, ...] = ()  # of a sweep with stages


class Observer(Protocol):
    """Whoever watches a run. Calls come from one thread at a time; `joining` and `opened` may never come."""

    def joining(self, ray: str) -> None: ...  # a Ray is being joined or started, which takes many seconds

    def opened(self, run: RunOpened) -> None: ...

    def trial_started(self, trial: TrialStarted) -> None: ...

    def trial_ended(self, trial: Trial, label: str, position: int) -> None: ...

    def notice(self, text: str) -> None: ...

    def closed(self, run: RunClosed) -> None: ...
