"""What a run must know of earlier ones before it starts: which trials are done, and which try the next one is."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from raybench.errors import UsageError
from raybench.record.trial import OUTCOMES, RUN_AGAIN, Trial
from raybench.results.latest import latest
from raybench.results.layout import LAYOUT, check_name, table_files
from raybench.results.place import Place
from raybench.results.read import Unreadable, UnreadableFileWarning, read_each


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
    samples_per_s: float | None = None
    tokens_per_s: float | None = None
    samples_per_s_per_gpu: float | None = None
    tokens_per_s_per_gpu: float | None = None
    steps_per_s: float | None = None
    tflops_per_gpu: float | None = None
    peak_memory_reserved_bytes: int | None = None
    peak_host_memory_bytes: int | None = None
    memory_room_bytes: int | None = None


_COLUMNS = ("sweep", *EarlierAttempt.__dataclass_fields__)


def as_earlier(trial: Trial) -> EarlierAttempt:
    """An attempt of this run as it will be read back by the next."""
    return EarlierAttempt(**{name: getattr(trial, name) for name in EarlierAttempt.__dataclass_fields__})


def earlier_attempts(out: Place, sweep: str) -> tuple[EarlierAttempt, ...]:
    """Every committed attempt of a sweep under `out`, on any cluster; none where nothing was run yet.

    A file that cannot be read is named in an `UnreadableFileWarning`; what it held will run again.
    """
    found: list[EarlierAttempt] = []
    paths = table_files(out / LAYOUT, "trials", check_name("sweep", sweep))
    for one in read_each(paths, "trials", _COLUMNS):
        try:
            rows = one().to_pylist()
        except Unreadable as error:
            warnings.warn(f"{error}; its trials count as not run", UnreadableFileWarning, stacklevel=2)
            continue
        found += [EarlierAttempt(**row) for row in rows if row.pop("sweep") == sweep]
    return tuple(found)


class Committed:
    """What is committed of a sweep on one cluster, as far as it counts.

    A trial is done whose latest attempt, among those started after `newer_than`, ended in no outcome of `retry`.
    """

    def __init__(
        self,
        attempts: Iterable[EarlierAttempt],
        *,
        cluster: str,
        retry: frozenset[str] = RUN_AGAIN,
        newer_than: datetime | None = None,
    ) -> None:
        self._mine = [one for one in attempts if one.cluster == cluster]
        self._counted = [one for one in self._mine if newer_than is None or one.started_at > newer_than]
        self._retry = retry
        self._latest: dict[str, dict[str, EarlierAttempt]] = {}
        self._highest: dict[str, int] = {}
        for one in self._mine:
            self._highest[one.trial_id] = max(one.attempt, self._highest.get(one.trial_id, 0))

    def done(self, trial_id: str, device_kind: str) -> EarlierAttempt | None:
        """How a trial ended on a kind of device, None where it is to run. An attempt that never came to a device
        counts for both kinds."""
        if device_kind not in self._latest:
            of_kind = [one for one in self._counted if one.device_kind in (None, device_kind)]
            self._latest[device_kind] = {one.trial_id: one for one in latest(of_kind).values()}
        found = self._latest[device_kind].get(trial_id)
        return found if found is not None and found.outcome not in self._retry else None

    def next_attempt(self, trial_id: str) -> int:
        """1 + the highest committed attempt at a trial, whatever device it ran on."""
        return 1 + self._highest.get(trial_id, 0)


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
