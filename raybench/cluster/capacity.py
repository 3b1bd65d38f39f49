"""Whether a worker group fits on the node, and how many CPUs each worker may hold. Arithmetic only.

Computed, never assumed: two workers of one CPU each, beside Tune's trial of 0.01, never start on two CPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TUNE_CPUS = 0.01
RESERVE_CPUS = 0.1


@dataclass(frozen=True)
class NodeRoom:
    """What the node that holds the groups has. `cpus` and `gpus` are Ray's logical ones that are free for us."""

    address: str
    cores: int
    cpus: float
    gpus: int
    gpu_model: str | None

    @property
    def max_cpu_workers(self) -> int:
        """CPU workers the node may hold: more than its cores only measures the scheduler."""
        return max(2, self.cores)


@dataclass(frozen=True)
class Seat:
    """What one worker holds. `threads` is its share of the node's cores."""

    cpus: float
    gpus: int
    threads: int


@dataclass(frozen=True)
class NoRoom:
    """Why a group can never start here, with the sum."""

    reason: str


def seat(room: NodeRoom, *, workers: int, device_kind: str, cpus_asked: float) -> Seat | NoRoom:
    """What each of `workers` workers may hold on the node, or why they do not fit."""
    if device_kind == "cuda" and workers > room.gpus:
        return NoRoom(f"{workers} workers need {workers} GPUs; the node {room.address} has {room.gpus}")
    if device_kind == "cpu" and workers > room.max_cpu_workers:
        return NoRoom(
            f"{workers} workers need as many CPU places; the node {room.address} has {room.cores} cores and holds "
            f"at most {room.max_cpu_workers} CPU workers"
        )
    share = math.floor((room.cpus - RESERVE_CPUS) / workers * 100) / 100
    if share < 0.01:
        return NoRoom(
            f"{workers} workers need at least {0.01 * workers:.2f} CPUs beside {RESERVE_CPUS} for the driver's own; "
            f"Ray on {room.address} has {room.cpus:g} free"
        )
    return Seat(min(cpus_asked, share), int(device_kind == "cuda"), max(1, room.cores // workers))
