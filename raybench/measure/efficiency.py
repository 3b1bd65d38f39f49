"""How much faster more GPUs are: speed-up, efficiency, and which average of them means what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Band:
    """A class of scaling: efficiencies from `least` up to the next band's, and what to do about it."""

    name: str
    least: float
    advice: str


BANDS: Final = (
    Band("near-perfect", 0.875, "communication costs next to nothing: more GPUs will pay"),
    Band("good", 0.625, "some communication: larger batches or shapes, or fewer synchronisations, bring it closer"),
    Band("poor", 0.25, "much communication, or too little work a GPU: raise the batch, or use fewer GPUs"),
    Band("none", 0.0, "too small to be split, or the network is the limit: use the smallest number of GPUs"),
)
"""Seven of 8 GPUs, 5 of 8, 2 of 8, and below: bands by efficiency, so that they hold for any number of GPUs."""


def band(efficiency: float) -> Band:
    """The class of an efficiency (0..1, or above where scaling is more than linear)."""
    return next(found for found in BANDS if efficiency >= found.least)


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
