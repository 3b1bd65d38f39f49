"""Bytes over time: what memory moved, and what a collective moved, as nccl-tests defines it."""

from __future__ import annotations

from dataclasses import dataclass

from raybench.measure.counts import Counts


@dataclass(frozen=True, kw_only=True)
class Bandwidth:
    """Named as the columns of `trials`. None where the work is not counted in bytes, or has no rate."""

    rows_per_rank: int | None
    bytes_per_step: int | None
    memory_bandwidth_bytes_per_s: float | None       # of each rank's memory
    algorithm_bandwidth_bytes_per_s: float | None
    bus_bandwidth_bytes_per_s: float | None


def bandwidth(counts: Counts, steps_per_s: float | None, world_size: int) -> Bandwidth:
    """Bytes of a step times steps a second.

    Algorithm bandwidth is S / t and bus bandwidth that times `bus_factor` (nccl-tests, doc/PERFORMANCE.md); one rank
    alone uses no bus, so it has none.
    """
    algorithm = _times(counts.message_bytes, steps_per_s)
    return Bandwidth(
        rows_per_rank=counts.rows_per_rank,
        bytes_per_step=counts.bytes_per_step,
        memory_bandwidth_bytes_per_s=_times(_times(counts.bytes_per_step, steps_per_s), 1 / world_size),
        algorithm_bandwidth_bytes_per_s=algorithm,
        bus_bandwidth_bytes_per_s=_times(algorithm, counts.bus_factor),
    )


def _times(value: float | None, factor: float | None) -> float | None:
    return None if value is None or factor is None else value * factor
