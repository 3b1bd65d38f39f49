"""`--only key=value`: which of a sweep's trials to run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from raybench.errors import UsageError
from raybench.spec.criteria import WRITTEN_MODEL, agrees, value_of
from raybench.spec.document import core_schema
from raybench.spec.mistakes import printable
from raybench.spec.settings import AUTO, SETTINGS, key_hint, known_key
from raybench.spec.trial import PlannedTrial

Only = str | Sequence[str] | Mapping[str, Any]
"""One `--only` text, several, or a mapping from key to the value or the list of values."""
Selection = Mapping[str, tuple[str, ...]]
"""For each key the values of which a trial must have one."""
_OF_TRIAL = ("trial_id", "config_key", "repeat")
_KEYS = (*SETTINGS, *_OF_TRIAL)
_STARTS_PAIR = re.compile(r"\s*[\w.]+\s*=")
_MAX_LISTED = 12


def only_texts(only: Only) -> tuple[str, ...]:
    """What was asked, as `--only` texts."""
    if isinstance(only, str):
        return (only,)
    if not isinstance(only, Mapping):
        return tuple(only)
    return tuple(f"{key}={','.join(map(_written, _listed(value)))}" for key, value in only.items())


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple, set, frozenset)) else (value,)


def _written(value: Any) -> str:
    return "null" if value is None else str(value)


def read_selection(only: Only) -> Selection:
    """`key=value`, `key=value,value` or `key=value,key=value`; a key again adds values. Raises UsageError."""
    selection: dict[str, tuple[str, ...]] = {}
    for text in only_texts(only):
        for key, value in _pairs(text):
            if not key or not value:
                raise UsageError(f"--only {printable(text)}: must be key=value")
            if key not in _OF_TRIAL and not known_key(key):
                raise UsageError(f"--only {printable(text)}: unknown key{key_hint(key, _KEYS, list_all=True)}")
            selection[key] = (*selection.get(key, ()), value)
    return selection


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Each key with each of its values; the key is empty where none was given."""
    key = ""
    for part in text.split(","):
        if _STARTS_PAIR.match(part):
            key, _, part = part.partition("=")
        yield key.strip(), part.strip()


def select(trials: tuple[PlannedTrial, ...], selection: Selection) -> tuple[PlannedTrial, ...]:
    """The trials that have, for each key, one of its values. Raises UsageError for a value that no trial has."""
    chosen = trials
    for key, values in selection.items():
        having = {value: {trial.order for trial in trials if _has(trial, key, value)} for value in values}
        for value in (value for value, found in having.items() if not found):
            told = f"--only {printable(f'{key}={value}')}: none of the {len(trials)} trials matches"
            raise UsageError(f"{told}{_what_there_is(trials, key)}")
        orders = set().union(*having.values())
        chosen = tuple(trial for trial in chosen if trial.order in orders)
    if selection and not chosen:
        asked = " ".join(f"{key}={','.join(values)}" for key, values in selection.items())
        raise UsageError(f"--only {printable(asked)}: none of the {len(trials)} trials matches all of it")
    return chosen


def _what_there_is(trials: tuple[PlannedTrial, ...], key: str) -> str:
    """`; there are ...`: the values that the trials have, in the order of the sweep."""
    if key in ("trial_id", "config_key"):
        return "; the plan lists the ids"
    found = [str(getattr(trial, key)) if key in _OF_TRIAL else _shown_value(trial, key) for trial in trials]
    known = [value for value in dict.fromkeys(found) if value is not None]
    if not known:
        return f"; none has a {key}"
    more = f", ... ({len(known)} in all)" if len(known) > _MAX_LISTED else ""
    return f"; there {'is' if len(known) == 1 else 'are'} {printable(', '.join(known[:_MAX_LISTED]))}{more}"


def _shown_value(trial: PlannedTrial, key: str) -> str | None:
    value = value_of(_fields(trial), key)
    return None if value is None else str(value)


def _has(trial: PlannedTrial, key: str, value: str) -> bool:
    if key == "trial_id":
        return trial.trial_id.startswith(value)
    if key in _OF_TRIAL:
        return str(getattr(trial, key)) == value
    fields = _fields(trial)
    return agrees(fields, key, value) or agrees(fields, key, core_schema(value))


def _fields(trial: PlannedTrial) -> dict[str, Any]:
    fields = {**vars(trial.config), WRITTEN_MODEL: trial.config.model_name}
    return fields | {"micro_batch": AUTO} if trial.ladder else fields
