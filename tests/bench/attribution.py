"""What is attributed to a source where the truth is known: a null source beside the null source, and one that sleeps.

All trials run in one process, as in one warm worker group. A repeat is the null source, its twin and the one that
sleeps, forwards and backwards by turns, so that what drifts hits all alike. The figures are those of `compare`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from raybench.engine.session import Session
from raybench.judge.compare import compare
from raybench.measure.summary import figures
from raybench.record.trial import Trial
from raybench.spec.built_in import plug_ins
from raybench.spec.config import Extent, Source, TrialConfig
from raybench.workloads.registry import counts_of
from tests.bench.promise import Promise
from tests.engine.small import place
from tests.factories import make_config, make_trial
from tests.frames import frame_of

REPEATS, WARMUP, STEPS = 12, 3, 30
NULL_LOW, NULL_HIGH = 0.97, 1.03
WITHIN = 0.05
SLEEP_MS = 40.0
_PLUGINS = Path(__file__).parents[1] / "plugins"


def measure() -> list[Promise]:
    """Two promises: the twin's interval holds 1 and stays near it; the stall is what was slept."""
    sys.path.append(str(_PLUGINS))
    plug_ins.cache_clear()
    torch.set_num_threads(1)
    session, rows, slept_s = Session(place()), list[Trial](), 0.0
    for repeat in range(1, REPEATS + 1):
        for config in list(_configs())[:: 1 if repeat % 2 else -1]:
            row, asleep_s = _trial(session, config, repeat)
            rows.append(row)
            slept_s += asleep_s
    session.close()
    return [_null(rows), _asleep(rows, slept_s)]


def _configs() -> Iterator[TrialConfig]:
    for source in (Source(num_samples=2000), _throttled(0.0), _throttled(SLEEP_MS)):
        yield make_config(
            num_workers=1, strategy="none", source=source, warmup=Extent(steps=WARMUP), measure=Extent(steps=STEPS)
        )


def _throttled(sleep_ms: float) -> Source:
    return Source(name="throttled", num_samples=2000, options={"sleep_ms": sleep_ms})


def _trial(session: Session, config: TrialConfig, repeat: int) -> tuple[Trial, float]:
    """Its row, and what its source slept in the window by the source's own clock."""
    from raybench_throttled.source import SLEPT_S

    SLEPT_S.clear()
    result = session.run(config)
    found = figures(config, counts_of(config), [result])
    row = make_trial(config, repeat=repeat, group_uid="one", **asdict(found))
    # The first batch is fetched while building, so the first step that counts waits for the sleep after the warm-up's.
    return row, sum(SLEPT_S[WARMUP : WARMUP + STEPS]) if _sleeps(row, SLEEP_MS) else 0.0


def _null(rows: list[Trial]) -> Promise:
    told = _compared(rows, 0.0)
    low, high = told["au_low"], told["au_high"]
    words = f"{told['au']:.3f} [{low:.3f}, {high:.3f}] over {REPEATS} pairs"
    kept = bool(NULL_LOW <= low <= 1 <= high <= NULL_HIGH)
    return Promise("AU of a second null source", words, f"holds 1, within {NULL_LOW} to {NULL_HIGH}", kept)


def _asleep(rows: list[Trial], slept_s: float) -> Promise:
    told = _compared(rows, SLEEP_MS)
    truth = slept_s / sum(row.measured_s or 0.0 for row in rows if _sleeps(row, SLEEP_MS))
    found = told["data_stall_fraction"]
    words = f"stall {found:.3f}, slept {truth:.3f}; AU {told['au']:.3f}, limit: {told['limit']}"
    return Promise("a source that sleeps", words, f"within {WITHIN:.0%} of the truth", abs(found / truth - 1) <= WITHIN)


def _compared(rows: list[Trial], sleep_ms: float) -> dict[Any, Any]:
    """The comparison's row of the plug-in's source that sleeps so long."""
    of_both = [row for row in rows if row.source == "device" or _sleeps(row, sleep_ms)]
    table = compare(frame_of(*of_both), by="source")
    (found,) = table[table["source"].eq("throttled")].to_dict("records")
    return found


def _sleeps(row: Trial, sleep_ms: float) -> bool:
    return f'"sleep_ms":{sleep_ms}}}' in row.config
