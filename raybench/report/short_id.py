"""The id that tables show and commands take: a beginning of `trial_id` that no other trial shown has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

SHORT_ID: Final = 8


def short_ids(trial_ids: Iterable[str]) -> Mapping[str, str]:
    """For each `trial_id` its first 8 characters; where it has repeats, which begin alike, all of it."""
    known = list(dict.fromkeys(trial_ids))
    alike = Counter(trial_id[:SHORT_ID] for trial_id in known)
    return {trial_id: trial_id[:SHORT_ID] if alike[trial_id[:SHORT_ID]] == 1 else trial_id for trial_id in known}
