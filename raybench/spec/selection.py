"""`--only key=value`: which of a sweep's trials to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from raybench.errors import UsageError
from raybench.spec.criteria import WRITTEN_MODEL, agrees
from raybench.spec.document import core_schema
from raybench.spec.mistakes import instead, printable
from raybench.spec.settings import SETTINGS, known_key
from raybench.spec.trial import PlannedTrial

_OF_TRIAL = ("trial_id", "config_key", "repeat")
Selection = Mapping[str, tuple[str, ...]]
"""For each key the values of which a trial must have one."""


def read_selection(only: Sequence[str]) -> Selection:
    """`key=value` or `key=value,value`; the same key again adds values. Raises UsageError."""
    selection: dict[str, tuple[str, ...]] = {}
    for text in only:
        key, equals, values = text.partition("=")
        key = key.strip()
        if not equals or not values:
            raise UsageError(f"--only {printable(text)}: must be key=value")
        if key not in _OF_TRIAL and not known_key(key):
            raise UsageError(f"--only {printable(text)}: unknown key{instead(key, (*SETTINGS, *_OF_TRIAL))}")
        selection[key] = (*selection.get(key, ()), *(value.strip() for value in values.split(",")))
    return selection


def select(trials: tuple[PlannedTrial, ...], selection: Selection) -> tuple[PlannedTrial, ...]:
    """The trials that have, for each key, one of its values. Raises UsageError where none has."""
    if not selection:
        return trials
    chosen = tuple(trial for trial in trials if _is_selected(trial, selection))
    if not chosen:
        asked = " ".join(f"{key}={','.join(values)}" for key, values in selection.items())
        raise UsageError(f"--only {printable(asked)}: none of the {len(trials)} trials matches")
    return chosen


def _is_selected(trial: PlannedTrial, selection: Selection) -> bool:
    return all(any(_has(trial, key, value) for value in values) for key, values in selection.items())


def _has(trial: PlannedTrial, key: str, value: str) -> bool:
    if key in _OF_TRIAL:
        return str(getattr(trial, key)) == value
    fields = {**vars(trial.config), WRITTEN_MODEL: trial.config.model_name}
    if key in ("warmup", "measure"):
        key = f"{key}.steps"
    return agrees(fields, key, value) or agrees(fields, key, core_schema(value))
