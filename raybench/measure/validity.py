"""When a number may not be published, and what a careful reader should know: each rule a name, a meaning, a test.

A rule in `INVALID` finds a wrong number. Noise is never that: it is in `WARNINGS`, beside the interval that says how
much of it there is, and verdicts deal with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from raybench.measure.counts import Counts
from raybench.measure.peaks import chip
from raybench.measure.statistics import Interval
from raybench.measure.throughput import Counted, Speed, measured_step_ms
from raybench.record.rank import RankResult

MIN_STEPS = 10
FEW_STEPS, SHORT_S = 30, 10.0
NOISY_CV = 0.05
WIDE_HALF_WIDTH = 0.10
STRAGGLER_RATIO = 1.10
CLOCKS_DIFFER = 0.02
SUM_DIFFERS, SUM_DIFFERS_S = 0.05, 0.010     # both must be passed: a busy machine may take one time slice
IDLE, BUSY, IDLE_SHOWS_S = 0.05, 0.25, 2.0    # NVML looks back up to a second: a shorter window tells nobody apart
POWER_MARGIN = 1.2                            # over the board's power: meters err, and energy counters step


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that the rules look at."""

    counts: Counts
    ranks: Sequence[RankResult]
    counted: Counted
    speed: Speed
    interval: Interval | None       # of the slowest rank's mean step time
    energy_j: float | None          # of all GPUs
    timing: str
    data_cache: str | None = None       # as asked
    cache_state: str | None = None      # as it was
    may_mix_gpus: bool = False      # the sweep asked for it


@dataclass(frozen=True)
class Rule:
    """`broken` says whether the evidence breaks it; `meaning` is one sentence that fits on a line behind the name."""

    name: str
    meaning: str
    broken: Callable[[Evidence], bool]


def invalid_reasons(evidence: Evidence) -> tuple[str, ...]:
    """Names of the rules that find the number wrong, in the order of `INVALID`."""
    return tuple(rule.name for rule in INVALID if rule.broken(evidence))


def warnings(evidence: Evidence) -> tuple[str, ...]:
    """Names of the warnings that apply, in the order of `WARNINGS`."""
    return tuple(rule.name for rule in WARNINGS if rule.broken(evidence))


def _no_throughput(evidence: Evidence) -> bool:
    found = evidence.speed.samples_per_s
    return found is None or not math.isfinite(found) or found <= 0


def _above_peak(evidence: Evidence) -> bool:
    shares = (evidence.speed.mfu, evidence.speed.mfu_causal, evidence.speed.hfu)
    return any(share is not None and share > 1 for share in shares)


def _work_mismatch(evidence: Evidence) -> bool:
    counts, found = evidence.counts, evidence.counted
    planned = counts.samples_per_step * found.measured_steps
    planned_tokens = None if counts.tokens_per_step is None else counts.tokens_per_step * found.measured_steps
    updates = found.measured_steps if found.optimizer_steps is None else _updates(found)
    counted = (found.measured_samples, found.measured_tokens, updates)
    return (planned, planned_tokens, found.measured_steps) != counted


def _updates(found: Counted) -> int:
    return (found.optimizer_steps or 0) + (found.skipped_optimizer_steps or 0)


def _skipped_steps(evidence: Evidence) -> bool:
    return bool(evidence.counted.skipped_optimizer_steps)


def _parameter_mismatch(evidence: Evidence) -> bool:
    planned, built = evidence.counts.parameters, evidence.counted.parameters
    return planned is not None and built is not None and planned != built


def _ranks_disagree(evidence: Evidence) -> bool:
    return len({(rank.warmup_steps, rank.measured_steps, rank.parameters) for rank in evidence.ranks}) > 1


def _mixed_gpus(evidence: Evidence) -> bool:
    kinds = {(rank.environment.device_kind, rank.environment.gpu_model) for rank in evidence.ranks}
    return len(kinds) > 1 and not evidence.may_mix_gpus


def _idle_ranks(evidence: Evidence) -> bool:
    """Silent where a GPU does not answer, and where none is busy: then the work is small, not missing."""
    shares = [rank.telemetry.utilization_mean for rank in evidence.ranks]
    known = [share for share in shares if share is not None]
    if len(known) < len(shares) or evidence.speed.measured_s < IDLE_SHOWS_S:
        return False
    return min(known) < IDLE and max(known) >= BUSY


def _energy_implausible(evidence: Evidence) -> bool:
    if evidence.energy_j is None:
        return False
    if not math.isfinite(evidence.energy_j) or evidence.energy_j < 0:
        return True
    chips = {rank.environment.gpu_uuid or rank.rank: chip(rank.environment.gpu_model) for rank in evidence.ranks}
    most_w = sum(found.board_power_w if found is not None else math.inf for found in chips.values())
    return evidence.energy_j > POWER_MARGIN * most_w * evidence.speed.measured_s


def _steps_do_not_sum(evidence: Evidence) -> bool:
    # Written so that a NaN breaks the rule.
    return not all(_gap_s(rank) <= max(SUM_DIFFERS_S, SUM_DIFFERS * rank.measured_s) for rank in evidence.ranks)


def _clocks_differ(evidence: Evidence) -> bool:
    return any(
        rank.environment.device_kind == "cuda" and _gap_s(rank) > CLOCKS_DIFFER * rank.measured_s
        for rank in evidence.ranks
    )


def _gap_s(rank: RankResult) -> float:
    """Seconds between the window by the host clock and the sum of its step times."""
    return abs(sum(measured_step_ms(rank)) / 1e3 - rank.measured_s)


def _short_window(evidence: Evidence) -> bool:
    return evidence.counted.measured_steps < FEW_STEPS and evidence.speed.measured_s < SHORT_S


def _wide_interval(evidence: Evidence) -> bool:
    return evidence.interval is not None and evidence.interval.relative_half_width > WIDE_HALF_WIDTH


def _straggler(evidence: Evidence) -> bool:
    """Under DDP every rank waits for the slowest and all step times agree; the time before the first collective tells.
    """
    medians = [float(np.median(times)) for times in map(_own_ms, evidence.ranks) if times]
    return len(medians) > 1 and max(medians) > STRAGGLER_RATIO * float(np.median(medians))


def _own_ms(rank: RankResult) -> Sequence[float]:
    """What a rank needed of each measured step before it waited for others; the whole step where that is not known."""
    found = [ms for ms, warmup in zip(rank.steps.compute_ms, rank.steps.is_warmup, strict=True) if not warmup]
    known = [ms for ms in found if ms is not None]
    return known if len(known) == len(found) else measured_step_ms(rank)


def _small_share(evidence: Evidence) -> bool:
    """On a CPU any share fills the few cores there are."""
    return evidence.counts.small_share and any(rank.environment.device_kind == "cuda" for rank in evidence.ranks)


def _not_cold(evidence: Evidence) -> bool:
    """Where the kernel does not say nobody can promise it."""
    return evidence.data_cache == "cold" and evidence.cache_state != "cold"


def _not_warm(evidence: Evidence) -> bool:
    return evidence.data_cache == "warm" and evidence.cache_state in ("cold", "mixed")


def _from_memory(evidence: Evidence) -> bool:
    return evidence.data_cache == "as_is" and evidence.cache_state == "warm"


INVALID: tuple[Rule, ...] = (
    Rule(
        "too_few_steps",
        f"Fewer than {MIN_STEPS} measured steps.",
        lambda evidence: evidence.counted.measured_steps < MIN_STEPS,
    ),
    Rule("no_throughput", "The throughput is zero or no number.", _no_throughput),
    Rule("above_peak", "More FLOP/s than the chip can do.", _above_peak),
    Rule(
        "loss_not_finite",
        "A loss was NaN or infinite.",
        lambda evidence: evidence.counted.loss_finite is False,
    ),
    Rule("work_mismatch", "Samples, tokens or updates counted are not what steps hold.", _work_mismatch),
    Rule(
        "parameter_mismatch",
        "The model built has other parameters than planned.",
        _parameter_mismatch,
    ),
    Rule("ranks_disagree", "The ranks ran other steps or models.", _ranks_disagree),
    Rule("mixed_gpus", "The ranks ran on different GPU models, which nobody asked for.", _mixed_gpus),
    Rule("idle_ranks", "A rank's GPU was idle while another's worked.", _idle_ranks),
    Rule("energy_implausible", "The energy is more than the boards can draw, or negative.", _energy_implausible),
    Rule(
        "steps_do_not_sum",
        f"Step times and window differ by more than {100 * SUM_DIFFERS:.0f} %.",
        _steps_do_not_sum,
    ),
    Rule("timing_none", "It was timed without waiting for the device.", lambda evidence: evidence.timing == "none"),
    Rule("not_cold", "Cold was asked for, and over 10 % of the data came from memory.", _not_cold),
)
WARNINGS: tuple[Rule, ...] = (
    Rule(
        "noisy_steps",
        f"Step times vary by more than {100 * NOISY_CV:.0f} % (CV).",
        lambda evidence: evidence.speed.step_ms_cv is not None and evidence.speed.step_ms_cv > NOISY_CV,
    ),
    Rule("wide_interval", f"The 95 % interval is wider than ±{100 * WIDE_HALF_WIDTH:.0f} %.", _wide_interval),
    Rule("short_window", f"Fewer than {FEW_STEPS} measured steps, under {SHORT_S:.0f} s.", _short_window),
    Rule("straggler", "The slowest rank takes over 10 % more than the middle one.", _straggler),
    Rule("clocks_differ", f"Device and host clocks differ by more than {100 * CLOCKS_DIFFER:.0f} %.", _clocks_differ),
    Rule("skipped_steps", "Gradients overflowed in fp16: updates were skipped.", _skipped_steps),
    Rule("small_share", "A rank's share of the work is too small to fill its GPU.", _small_share),
    Rule("not_warm", "Warm was asked for, and over 10 % of the data came from storage.", _not_warm),
    Rule("from_memory", "The data files were read from memory, not from storage.", _from_memory),
)
OF_THE_RUN: Mapping[str, str] = MappingProxyType({
    "cluster_changed": "Nodes left or joined the cluster since the sweep began.",
})
"""Warnings that the driver gives, not a rule over the ranks."""
MEANINGS: Mapping[str, str] = MappingProxyType(
    {rule.name: rule.meaning for rule in INVALID + WARNINGS} | dict(OF_THE_RUN)
)
