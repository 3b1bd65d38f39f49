"""What a run must know of earlier ones before it starts: which trials are done, and which try the next one is."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from raybench.errors import UsageError
from raybench.record.trial import OUTCOMES, RUN_AGAIN
from raybench.results.latest import latest
from raybench.results.layout import LAYOUT, check_name, table_files
from raybench.results.read import Unreadable, UnreadableFileWarning, read_file
from raybench.spec.trial import PlannedTrial


@dataclass(frozen=True)
class EarlierAttempt:
    """A committed attempt, as far as resume goes by it."""

    cluster: str
    trial_id: str
    attempt: int
    outcome: str
    started_at: datetime
    device_kind: str | None
    trial_uid: str
    valid: bool = False


_COLUMNS = ("sweep", *EarlierAttempt.__dataclass_fields__)


def earlier_attempts(out: Path, sweep: str) -> tuple[EarlierAttempt, ...]:
    """Every committed attempt of a sweep under `out`, on any cluster; none where nothing was run yet.

    A file that cannot be read is named in an `UnreadableFileWarning`; what it held will run again.
    """
    found: list[EarlierAttempt] = []
    for path in table_files(out / LAYOUT, "trials", check_name("sweep", sweep)):
        try:
            rows = read_file(path, "trials", _COLUMNS).to_pylist()
        except Unreadable as error:
            warnings.warn(f"{error}; its trials count as not run", UnreadableFileWarning, stacklevel=2)
            continue
        found += [EarlierAttempt(**row) for row in rows if row.pop("sweep") == sweep]
    return tuple(found)


def next_attempt(earlier: Iterable[EarlierAttempt], cluster: str, trial_id: str) -> int:
    """1 + the highest committed attempt at a trial on a cluster, whatever device it ran on."""
    return 1 + max((one.attempt for one in earlier if (one.cluster, one.trial_id) == (cluster, trial_id)), default=0)


def to_run(
    planned: Sequence[PlannedTrial],
    earlier: Iterable[EarlierAttempt],
    *,
    cluster: str,
    device_kind: str,
    retry: frozenset[str] = RUN_AGAIN,
    newer_than: datetime | None = None,
) -> tuple[PlannedTrial, ...]:
    """The planned trials that are not done on this cluster and kind of device, in their order.

    Done is a trial whose latest attempt, among those started after `newer_than`, ended in no outcome of `retry`. An
    attempt that never came to a device counts for both kinds.
    """
    counted = [
        one
        for one in earlier
        if one.cluster == cluster
        and one.device_kind in (None, device_kind)
        and (newer_than is None or one.started_at > newer_than)
    ]
    done = {one.trial_id for one in latest(counted).values() if one.outcome not in retry}
    return tuple(trial for trial in planned if trial.trial_id not in done)


def other_clusters(earlier: Iterable[EarlierAttempt], cluster: str) -> tuple[str, ...]:
    """The clusters that the sweep ran on, if `cluster` is not among them: then the name may have changed."""
    names = {one.cluster for one in earlier}
    return () if cluster in names else tuple(sorted(names))


def retry_set(text: str) -> frozenset[str]:
    """The outcomes that run again under `--retry TEXT`: the usual ones and those named, separated by commas.

    `none` among them leaves the usual ones out.
    """
    parts = _parts(text)
    named = outcome_set(",".join(part for part in parts if part != "none"), option="--retry")
    return named if "none" in parts else named | RUN_AGAIN


def outcome_set(text: str, option: str) -> frozenset[str]:
    """Outcomes separated by commas; `UsageError` names `option` for one that does not exist."""
    for name in _parts(text):
        if name not in OUTCOMES:
            close = difflib.get_close_matches(name, OUTCOMES, n=1)
            hint = f"did you mean {close[0]}?" if close else f"outcomes are {', '.join(OUTCOMES)}"
            raise UsageError(f"{option}: no outcome {name!r}; {hint}")
    return frozenset(_parts(text))


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
