"""Which attempt at a trial counts. Resume and `load` go by the same rule, stated once over attempts in order."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, TypeVar

from raybench.record.trial import NEVER_REPLACES_OK


class Attempt(Protocol):
    """What the rule needs to know of an attempt; `record.Trial` is one."""

    @property
    def cluster(self) -> str: ...
    @property
    def trial_id(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def started_at(self) -> datetime: ...
    @property
    def trial_uid(self) -> str: ...
    @property
    def outcome(self) -> str: ...


AnyAttempt = TypeVar("AnyAttempt", bound=Attempt)


def latest(attempts: Iterable[AnyAttempt]) -> dict[tuple[str, str], AnyAttempt]:
    """The latest attempt at each (`cluster`, `trial_id`) of one sweep.

    It is the highest (`attempt`, `started_at`, `trial_uid`), but an interrupted, unstored or skipped one leaves an
    `ok` one before it in place.
    """
    chosen: dict[tuple[str, str], AnyAttempt] = {}
    for attempt in sorted(attempts, key=lambda one: (one.attempt, one.started_at, one.trial_uid)):
        key = (attempt.cluster, attempt.trial_id)
        if attempt.outcome in NEVER_REPLACES_OK and key in chosen and chosen[key].outcome == "ok":
            continue
        chosen[key] = attempt
    return chosen
