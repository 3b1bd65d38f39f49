"""Statistics over steps, blocks of steps, and repeats. They say None where the data cannot tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit  # t quantiles; scipy.stats is slow to import and adds nothing here

MIN_STEPS_FOR_INTERVAL = 20
STABLE_CV, MODERATE_CV = 0.05, 0.10
_BLOCKS = (5, 10)             # fewest, most
_STEPS_A_BLOCK = 10           # wanted, so that neighbouring blocks hardly know of each other


@dataclass(frozen=True, kw_only=True)
class StepStatistics:
    """Step times of one rank, in milliseconds but for `n` and the ratio `cv`. None where undefined."""

    n: int
    mean: float | None = None
    std: float | None = None      # sample standard deviation (ddof 1); None below 2 steps
    cv: float | None = None       # std / mean
    min: float | None = None
    p50: float | None = None      # percentiles by linear interpolation, as numpy's and pandas' default
    p95: float | None = None
    p99: float | None = None
    max: float | None = None


@dataclass(frozen=True, kw_only=True)
class Interval:
    """An estimate and its confidence interval, in the unit of the values it was made from."""

    estimate: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Half of the interval's width over the estimate; infinite for an estimate of 0."""
        return (self.high - self.low) / 2 / self.estimate if self.estimate else math.inf


def step_statistics(step_ms: Sequence[float]) -> StepStatistics:
    """Statistics of step times in milliseconds; all but `n` are None for no steps."""
    if not step_ms:
        return StepStatistics(n=0)
    times = np.asarray(step_ms, dtype=float)
    mean = float(times.mean())
    std = float(times.std(ddof=1)) if len(times) > 1 else None
    p50, p95, p99 = (float(value) for value in np.percentile(times, (50, 95, 99)))
    return StepStatistics(
        n=len(times),
        mean=mean,
        std=std,
        cv=std / mean if std is not None and mean > 0 else None,
        min=float(times.min()),
        p50=p50,
        p95=p95,
        p99=p99,
        max=float(times.max()),
    )


def stability(cv: float) -> str:
    """A word for a coefficient of variation (0..1): `stable` below 5 %, `moderate` below 10 %, else `high`."""
    return "stable" if cv < STABLE_CV else "moderate" if cv < MODERATE_CV else "high"


def block_interval(step_ms: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """t interval of the mean step time over the means of 5 to 10 contiguous blocks; None below 20 steps.

    Steps are correlated, so an interval over single steps is too narrow. Means of contiguous blocks are nearly
    independent (the method of batch means: Law, Simulation Modeling and Analysis, chapter 9). There are as many blocks
    as leave each ten steps, but at least 5.
    """
    if len(step_ms) < MIN_STEPS_FOR_INTERVAL:
        return None
    fewest, most = _BLOCKS
    blocks = min(max(len(step_ms) // _STEPS_A_BLOCK, fewest), most)
    times = np.asarray(step_ms, dtype=float)
    means = np.array([block.mean() for block in np.array_split(times, blocks)])
    half_width = _t(blocks - 1, confidence) * float(means.std(ddof=1)) / blocks**0.5
    mean = float(times.mean())
    return Interval(estimate=mean, low=mean - half_width, high=mean + half_width)


def ratio_interval(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Ratio of the geometric means of repeats, a / b, with Welch's t interval on logarithms.

    Values are positive, in the same unit. None with fewer than 2 repeats on either side: one run has no spread.
    Source: Welch 1947, Biometrika 34, with the degrees of freedom of Welch and Satterthwaite.
    """
    if min(len(a), len(b)) < 2:
        return None
    log_a, log_b = _logs(a), _logs(b)
    variance_a, variance_b = (float(logs.var(ddof=1)) / len(logs) for logs in (log_a, log_b))
    variance = variance_a + variance_b
    freedom = 1.0     # any will do where nothing varies
    if variance > 0:
        shares = (variance_a / variance) ** 2 / (len(a) - 1) + (variance_b / variance) ** 2 / (len(b) - 1)
        freedom = 1 / shares
    return _exponential(float(log_a.mean() - log_b.mean()), _t(freedom, confidence) * variance**0.5)


def paired_ratio_interval(ratios: Sequence[float], confidence: float = 0.95) -> Interval | None:
    """Geometric mean of ratios that were each measured in one block (A B B A), with a t interval on logarithms.

    What drifts from block to block hits both arms of a block alike and cancels. None below 2 blocks.
    """
    if len(ratios) < 2:
        return None
    logs = _logs(ratios)
    half_width = _t(len(logs) - 1, confidence) * float(logs.std(ddof=1)) / len(logs) ** 0.5
    return _exponential(float(logs.mean()), half_width)


def combined_ratio_interval(ratio: float, a: Interval, b: Interval) -> Interval:
    """The interval of a ratio of two values that were measured apart, from the interval of each, on logarithms.

    Half-widths add as variances do. What differs between any two trials is not in it: that takes repeats.
    """
    half_widths = [np.log(part.high / part.low) / 2 for part in (a, b)]
    return _exponential(float(np.log(ratio)), float(np.hypot(*half_widths)))


def geometric_mean(values: Sequence[float]) -> float:
    """The average of ratios: a speed-up of 2 and one of 1/2 make 1. Values are positive."""
    return float(np.exp(_logs(values).mean()))


def _t(freedom: float, confidence: float) -> float:
    """Two-sided quantile of Student's t."""
    return float(stdtrit(freedom, (1 + confidence) / 2))


def _logs(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    assert values
    assert min(values) > 0, "ratios are of positive values"
    return np.log(np.asarray(values, dtype=np.float64))


def _exponential(center: float, half_width: float) -> Interval:
    low, estimate, high = (float(np.exp(center + shift)) for shift in (-half_width, 0.0, half_width))
    return Interval(estimate=estimate, low=low, high=high)
