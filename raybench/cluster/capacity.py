"""How many workers a node holds, and how many CPUs each of them may. Arithmetic only.

Computed, never assumed: two workers of one CPU each, beside Tune's trial of 0.01, never start on two CPUs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

TUNE_CPUS = 0.01
RESERVE_CPUS = 0.1
LEAST_CPUS = 0.01
"""What Ray can still tell from none."""
NOTHING: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class NodeRoom:
    """What a node has. `cpus`, `gpus` and the custom `resources` are Ray's logical ones that are free for us; of the
    CPUs `data_cpus` are kept for the tasks that read data, which would never start beside workers that hold all.
    """

    node_id: str
    address: str
    cores: int
    cpus: float
    gpus: int
    gpu_model: str | None
    data_cpus: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)

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


def places(room: NodeRoom, device_kind: str, resources: Mapping[str, float] = NOTHING) -> int:
    """Most workers that the node holds, of which each takes `resources` of the custom ones."""
    by_cpus = max(0, math.floor(round(room.for_workers / LEAST_CPUS, 6)))
    by_custom = [math.floor(round(room.resources.get(name, 0.0) / each, 6)) for name, each in resources.items()]
    return min(room.gpus if device_kind == "cuda" else room.max_cpu_workers, by_cpus, *by_custom)


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
