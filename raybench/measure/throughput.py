"""The headline: counted work over wall time, and what follows from it. Fields are named as the columns of `trials`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from raybench.measure.counts import Counts
from raybench.measure.peaks import peak_flops
from raybench.measure.statistics import Interval, StepStatistics
from raybench.record.rank import RankResult


@dataclass(frozen=True, kw_only=True)
class Counted:
    """What was done in the window, over all ranks."""

    parameters: int | None
    warmup_steps: int
    measured_steps: int
    measured_samples: int
    measured_tokens: int | None
    model_flops_per_step: float | None
    model_flops_causal_per_step: float | None
    hardware_flops_per_step: float | None
    loss_finite: bool | None
    optimizer_steps: int | None
    skipped_optimizer_steps: int | None


@dataclass(frozen=True, kw_only=True)
class Speed:
    """How fast, by the slowest rank's window. Rates are None where the window has no length."""

    measured_s: float
    samples_per_s: float | None
    tokens_per_s: float | None
    steps_per_s: float | None
    samples_per_s_per_gpu: float | None
    tokens_per_s_per_gpu: float | None
    samples_per_s_ci_low: float | None
    samples_per_s_ci_high: float | None
    tflops_per_gpu: float | None
    mfu: float | None
    mfu_causal: float | None
    hfu: float | None
    step_ms_mean: float | None
    step_ms_std: float | None
    step_ms_cv: float | None
    step_ms_min: float | None
    step_ms_p50: float | None
    step_ms_p95: float | None
    step_ms_p99: float | None
    step_ms_max: float | None


def slowest(ranks: Sequence[RankResult]) -> RankResult:
    """The rank with the longest window, the lowest of those that tie: the one everybody waited for."""
    return max(ranks, key=lambda rank: (rank.measured_s, -rank.rank))


def measured_step_ms(rank: RankResult) -> tuple[float, ...]:
    """Step times of the window, warm-up left out."""
    return tuple(
        step_ms for step_ms, warmup in zip(rank.steps.step_ms, rank.steps.is_warmup, strict=True) if not warmup
    )


def counted(counts: Counts, ranks: Sequence[RankResult]) -> Counted:
    """Samples and tokens summed over ranks; steps are the same on every rank, so those of the slowest."""
    losses = [loss for rank in ranks for loss in rank.steps.loss if loss is not None]
    tokens = [rank.measured_tokens for rank in ranks if rank.measured_tokens is not None]
    last = slowest(ranks)
    return Counted(
        parameters=last.parameters,
        warmup_steps=last.warmup_steps,
        measured_steps=last.measured_steps,
        measured_samples=sum(rank.measured_samples for rank in ranks),
        measured_tokens=sum(tokens) if len(tokens) == len(ranks) else None,
        model_flops_per_step=counts.model_flops_per_step,
        model_flops_causal_per_step=counts.model_flops_causal_per_step,
        hardware_flops_per_step=counts.hardware_flops_per_step,
        loss_finite=all(math.isfinite(loss) for loss in losses) if losses else None,
        optimizer_steps=last.optimizer_steps,
        skipped_optimizer_steps=last.skipped_optimizer_steps,
    )


def speed(
    work: Counted, ranks: Sequence[RankResult], statistics: StepStatistics, interval: Interval | None
) -> Speed:
    """Rates from the counted work and the slowest window; `statistics` and `interval` are of that rank's steps."""
    world_size, measured_s = len(ranks), slowest(ranks).measured_s
    samples_per_s = rate(work.measured_samples, measured_s)
    tokens_per_s = rate(work.measured_tokens, measured_s)
    steps_per_s = rate(work.measured_steps, measured_s)
    flops_per_gpu = _product(work.model_flops_per_step, steps_per_s, 1 / world_size)
    causal_per_gpu = _product(work.model_flops_causal_per_step, steps_per_s, 1 / world_size)
    hardware_per_gpu = _product(work.hardware_flops_per_step, steps_per_s, 1 / world_size)
    peak = common_peak(ranks)
    ci_low, ci_high = rate_interval(samples_per_s, interval)
    return Speed(
        measured_s=measured_s,
        samples_per_s=samples_per_s,
        tokens_per_s=tokens_per_s,
        steps_per_s=steps_per_s,
        samples_per_s_per_gpu=_product(samples_per_s, 1 / world_size),
        tokens_per_s_per_gpu=_product(tokens_per_s, 1 / world_size),
        samples_per_s_ci_low=ci_low,
        samples_per_s_ci_high=ci_high,
        tflops_per_gpu=_product(flops_per_gpu, 1e-12),
        mfu=mfu(flops_per_gpu, peak),
        mfu_causal=mfu(causal_per_gpu, peak),
        hfu=mfu(hardware_per_gpu, peak),
        step_ms_mean=statistics.mean,
        step_ms_std=statistics.std,
        step_ms_cv=statistics.cv,
        step_ms_min=statistics.min,
        step_ms_p50=statistics.p50,
        step_ms_p95=statistics.p95,
        step_ms_p99=statistics.p99,
        step_ms_max=statistics.max,
    )


def rate(work: int | None, seconds: float) -> float | None:
    """Work per second; None where there is no such work or the time is not a positive number."""
    if work is None or not math.isfinite(seconds) or seconds <= 0:
        return None
    return work / seconds


def mfu(flops_per_s: float | None, peak: float | None) -> float | None:
    """Model FLOP/s of one GPU over its dense peak at the precision that ran (PaLM, arXiv:2204.02311, appendix B)."""
    return None if flops_per_s is None or peak is None else flops_per_s / peak


def common_peak(ranks: Sequence[RankResult]) -> float | None:
    """Dense peak in FLOP/s that all ranks share; None on CPU, for an unlisted GPU, and for a mixed group."""
    peaks = {peak_flops(rank.environment.gpu_model, rank.environment.effective_precision) for rank in ranks}
    return peaks.pop() if len(peaks) == 1 else None


def rate_interval(per_second: float | None, step_ms: Interval | None) -> tuple[float | None, float | None]:
    """The interval of a rate, from that of the mean step time: a longer step is a lower rate.

    Both ends None where there is no interval, or where the blocks differ so much that it reaches down to no time.
    """
    if per_second is None or step_ms is None or step_ms.low <= 0:
        return None, None
    return per_second * step_ms.estimate / step_ms.high, per_second * step_ms.estimate / step_ms.low


def _product(value: float | None, *factors: float | None) -> float | None:
    """None as soon as one factor is."""
    for factor in factors:
        value = None if value is None or factor is None else value * factor
    return value
