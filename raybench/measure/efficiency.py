"""How much faster more GPUs are: speed-up, efficiency, and which average of them means what."""

from __future__ import annotations

from collections.abc import Sequence


def speedup(rate: float, baseline_rate: float) -> float:
    """How many times the baseline's rate. For durations, swap them: `speedup(baseline_s, seconds)`."""
    return rate / baseline_rate


def efficiency(speedup: float, gpus: float) -> float:
    """Share of linear scaling: the speed-up over how many times the baseline's GPUs there are; 1 is perfect."""
    return speedup / gpus


def total_work_speedup(baseline_s: Sequence[float], seconds: Sequence[float]) -> float:
    """Speed-up of doing all of several jobs: total time over total time, so that long jobs weigh more.

    Not an average of their speed-ups; for one that treats every job alike take the geometric mean.
    """
    return sum(baseline_s) / sum(seconds)
