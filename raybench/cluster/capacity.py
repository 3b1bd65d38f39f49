"""How many workers a node holds, and how many CPUs each of them may. Arithmetic only.

Computed, never assumed: two workers of one CPU each, beside Tune's trial of 0.01, never start on two CPUs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

TUNE_CPUS = 0.01
RESERVE_CPUS = 0.1
LEAST_CPUS = 0.01
"""What Ray can still tell from none."""


@dataclass(frozen=True)
class NodeRoom:
    """What a node has. `cpus` and `gpus` are Ray's logical ones that are free for us; of these `data_cpus` are kept for
    the tasks that read data, which would never start beside workers that hold all.
    """

    node_id: str
    address: str
    cores: int
    cpus: float
    gpus: int
    gpu_model: str | None
    data_cpus: int = 0

    @property
    def max_cpu_workers(self) -> int:
        """CPU workers the node may hold: more than its cores only measures the scheduler."""
        return max(2, self.cores)

    @property
    def for_workers(self) -> float:
        """CPUs that workers may share."""
        return round(self.cpus - RESERVE_CPUS - self.data_cpus, 6)


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


def places(room: NodeRoom, device_kind: str) -> int:
    """Most workers that the node holds."""
    by_cpus = max(0, math.floor(round(room.for_workers / LEAST_CPUS, 6)))
    return min(room.gpus if device_kind == "cuda" else room.max_cpu_workers, by_cpus)


def seat(room: NodeRoom, *, workers: int, device_kind: str, cpus_asked: float) -> Seat | NoRoom:
    """What each of `workers` workers may hold on the node, or why they do not fit."""
    if device_kind == "cuda" and workers > room.gpus:
        return NoRoom(f"{workers} workers need {workers} GPUs; the node {room.address} has {room.gpus}")
    if device_kind == "cpu" and workers > room.max_cpu_workers:
        return NoRoom(
            f"{workers} workers need as many CPU places; the node {room.address} has {room.cores} cores and holds "
            f"at most {room.max_cpu_workers} CPU workers"
        )
    share = math.floor(room.for_workers / workers * 100) / 100
    if share < LEAST_CPUS:
        reading = f" and {room.data_cpus} for Ray Data's tasks" if room.data_cpus else ""
        return NoRoom(
            f"{workers} workers need at least {LEAST_CPUS * workers:.2f} CPUs beside {RESERVE_CPUS} for the driver's "
            f"own{reading}; Ray on {room.address} has {room.cpus:g} free"
        )
    return Seat(min(cpus_asked, share), int(device_kind == "cuda"), max(1, room.cores // workers))
