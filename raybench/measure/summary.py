"""From what the ranks handed in to the figures of a row: the one place where ranks become a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TypeVar

from raybench.measure.bandwidth import Bandwidth, bandwidth
from raybench.measure.counts import Counts
from raybench.measure.page_cache import Fetched, fetched
from raybench.measure.statistics import block_interval, step_statistics
from raybench.measure.throughput import Counted, Speed, counted, measured_step_ms, rate, slowest, speed
from raybench.measure.validity import Evidence, invalid_reasons, warnings
from raybench.record.rank import RankResult, RankTelemetry
from raybench.spec.config import MIXED_GPUS, TrialConfig

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, kw_only=True)
class DataWait:
    """How long compute waited for data: the worst rank."""

    data_wait_s: float
    data_stall_fraction: float | None
    first_batch_s: float | None
    delivered_bytes_per_s: float | None
    loader_cpu_s: float | None
    samples_dropped: int | None


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What it took: memory of the worst rank; power and utilisation per GPU; energy of all GPUs."""

    peak_memory_allocated_bytes: int | None
    peak_memory_reserved_bytes: int | None
    peak_host_memory_bytes: int
    gpu_utilization_mean: float | None
    gpu_utilization_min: float | None
    power_mean_w: float | None
    energy_j: float | None


@dataclass(frozen=True, kw_only=True)
class Compiling:
    """What compiling cost; None where nothing was compiled."""

    compile_s: float | None
    compile_cache: str | None


@dataclass(frozen=True, kw_only=True)
class Ends:
    """What split work takes before and after its window: the slowest rank. None where nothing is split."""

    create_s: float | None
    retrieve_s: float | None


@dataclass(frozen=True, kw_only=True)
class Maths:
    """What was computed: the mean of the ranks' losses of the fingerprint's last step; None as soon as one has none."""

    fingerprint_loss: float | None
    fingerprint_steps: int | None


@dataclass(frozen=True, kw_only=True)
class Parts:
    """Means of the parts of the slowest rank's steps; None for a part that the phase does not have."""

    forward_ms_mean: float | None
    backward_ms_mean: float | None
    optimizer_ms_mean: float | None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether the figures may be published; names joined by `;`, their meanings in `validity.MEANINGS`."""

    valid: bool
    invalid_reasons: str
    warnings: str


@dataclass(frozen=True, kw_only=True)
class Figures(Counted, Speed, Bandwidth, Ends, DataWait, Fetched, Resources, Compiling, Parts, Maths, Verdict):
    """All that is worked out from the ranks of a trial that ended well; each field is the column of that name."""


def figures(config: TrialConfig, counts: Counts, ranks: Sequence[RankResult]) -> Figures:
    """Reduce all ranks of one attempt. Headline and statistics are those of the slowest rank's window."""
    assert len(ranks) == ranks[0].world_size, "every rank of the group hands in its part"
    step_ms = measured_step_ms(slowest(ranks))
    assert len(step_ms) == slowest(ranks).measured_steps
    statistics, interval = step_statistics(step_ms), block_interval(step_ms)
    work = counted(counts, ranks)
    rates = speed(work, ranks, statistics, interval)
    used, read = resources(ranks), fetched(ranks)
    evidence = Evidence(
        counts=counts, ranks=ranks, counted=work, speed=rates, interval=interval, energy_j=used.energy_j,
        timing=config.timing, data_cache=config.data_cache, cache_state=read.cache_state,
        may_mix_gpus=config.gpu_model == MIXED_GPUS,
    )  # fmt: skip
    moved = bandwidth(counts, rates.steps_per_s, len(ranks))
    inside = step_parts(slowest(ranks))
    parts = (
        work, rates, moved, ends(ranks), data_wait(config, ranks), read, used, compiling(config, ranks), inside,
        maths(ranks),
        verdict(evidence),
    )  # fmt: skip
    return Figures(**{name: value for part in parts for name, value in asdict(part).items()})


def data_wait(config: TrialConfig, ranks: Sequence[RankResult]) -> DataWait:
    """Waiting for batches in the window, and what was delivered. Where nothing is computed, nothing is stalled.

    On CUDA compute stalls while the device itself waits: the host's wait overstates that, because the device may
    still be busy with what was queued. On CPU the two are one.
    """
    stalls_s = [(_stalled_s(rank), rank.measured_s) for rank in ranks]
    shares = [stalled_s / measured_s for stalled_s, measured_s in stalls_s if measured_s > 0]
    delivered = _over_all(sum, (_delivered_bytes(rank) for rank in ranks))
    return DataWait(
        data_wait_s=max(_measured_s(rank, rank.steps.data_wait_ms) or 0.0 for rank in ranks),
        data_stall_fraction=None if config.phase == "load" else max(shares, default=None),
        first_batch_s=_over_all(max, (rank.first_batch_s for rank in ranks)),
        samples_dropped=samples_dropped(config, ranks),
        delivered_bytes_per_s=rate(delivered, slowest(ranks).measured_s),
        loader_cpu_s=_over_all(sum, (rank.loader_cpu_s for rank in ranks)),
    )


def samples_dropped(config: TrialConfig, ranks: Sequence[RankResult]) -> int | None:
    """Samples that no rank was given, over all epochs that ended on every rank; None where none did, or none can."""
    passes = [rank.passes for rank in ranks if rank.passes is not None]
    epochs: list[int] = [sum(given) for given in zip(*passes, strict=False)]
    if config.source is None or len(passes) < len(ranks) or not epochs:
        return None
    return len(epochs) * config.source.num_samples - sum(epochs)


def ends(ranks: Sequence[RankResult]) -> Ends:
    """Creation and retrieval apart from the headline, which is compute only (GT-10)."""
    return Ends(
        create_s=_over_all(max, (rank.create_s for rank in ranks)),
        retrieve_s=_over_all(max, (rank.retrieve_s for rank in ranks)),
    )


def resources(ranks: Sequence[RankResult]) -> Resources:
    """Memory maxima over ranks; telemetry once per GPU, None as soon as one GPU did not answer."""
    gpus = _by_gpu(ranks)
    utilizations = [gpu.utilization_mean for gpu in gpus]
    return Resources(
        peak_memory_allocated_bytes=_over_all(max, (rank.memory.allocated_bytes for rank in ranks)),
        peak_memory_reserved_bytes=_over_all(max, (rank.memory.reserved_bytes for rank in ranks)),
        peak_host_memory_bytes=max(rank.memory.host_bytes for rank in ranks),
        gpu_utilization_mean=_over_all(_mean, utilizations),
        gpu_utilization_min=_over_all(min, utilizations),
        power_mean_w=_over_all(_mean, (gpu.power_mean_w for gpu in gpus)),
        energy_j=_over_all(sum, (gpu.energy_j for gpu in gpus)),
    )


def compiling(config: TrialConfig, ranks: Sequence[RankResult]) -> Compiling:
    """First warm-up step minus median measured step, of the rank where that is most; cold if any rank was."""
    if config.compile == "off" or config.phase == "load":
        return Compiling(compile_s=None, compile_cache=None)
    caches = {rank.compile_cache for rank in ranks}
    return Compiling(
        compile_s=_over_all(max, map(_compile_s, ranks)),
        compile_cache="cold" if "cold" in caches else "warm" if caches == {"warm"} else None,
    )


def step_parts(rank: RankResult) -> Parts:
    """Means over the window's steps."""
    measured = [step for step, is_warmup in enumerate(rank.steps.is_warmup) if not is_warmup]

    def mean(values: Sequence[float | None]) -> float | None:
        return _over_all(_mean, [values[step] for step in measured])

    return Parts(
        forward_ms_mean=mean(rank.steps.forward_ms),
        backward_ms_mean=mean(rank.steps.backward_ms),
        optimizer_ms_mean=mean(rank.steps.optimizer_ms),
    )


def maths(ranks: Sequence[RankResult]) -> Maths:
    """Ranks have equal shares of the samples, so the mean of their losses is the loss of all samples."""
    return Maths(
        fingerprint_loss=_over_all(_mean, (rank.fingerprint_loss for rank in ranks)),
        fingerprint_steps=ranks[0].fingerprint_steps,
    )


def verdict(evidence: Evidence) -> Verdict:
    """Apply all rules over one trial."""
    reasons = invalid_reasons(evidence)
    return Verdict(valid=not reasons, invalid_reasons=";".join(reasons), warnings=";".join(warnings(evidence)))


def _compile_s(rank: RankResult) -> float | None:
    median = step_statistics(measured_step_ms(rank)).p50
    warmup = [step_ms for step_ms, is_warmup in zip(rank.steps.step_ms, rank.steps.is_warmup, strict=True) if is_warmup]
    return None if median is None or not warmup else (warmup[0] - median) / 1e3


def _stalled_s(rank: RankResult) -> float:
    gaps_s = _measured_s(rank, rank.steps.device_gap_ms)
    return _measured_s(rank, rank.steps.data_wait_ms) or 0.0 if gaps_s is None else gaps_s


def _measured_s(rank: RankResult, values_ms: Sequence[float | None]) -> float | None:
    """Sum over the window's steps in seconds; None as soon as one is not known."""
    measured = [ms for ms, is_warmup in zip(values_ms, rank.steps.is_warmup, strict=True) if not is_warmup]
    total_ms = _over_all(sum, measured)
    return None if total_ms is None else total_ms / 1e3


def _delivered_bytes(rank: RankResult) -> int | None:
    return None if rank.sample_bytes is None else rank.sample_bytes * rank.measured_samples


def _by_gpu(ranks: Sequence[RankResult]) -> list[RankTelemetry]:
    """One reading a GPU: ranks that share one read the same meter."""
    return list({rank.environment.gpu_uuid or rank.rank: rank.telemetry for rank in reversed(ranks)}.values())


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _over_all(reduce: Callable[[list[_Number]], _Number], values: Iterable[_Number | None]) -> _Number | None:
    """None as soon as one value is: half of the ranks do not speak for all."""
    found = list(values)
    known = [value for value in found if value is not None]
    return reduce(known) if known and len(known) == len(found) else None
