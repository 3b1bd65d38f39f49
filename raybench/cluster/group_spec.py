"""`GroupSpec`: what tells one worker group from another. Leasing goes by it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from raybench.cluster.capacity import Seat
from raybench.cluster.placement import Placement
from raybench.spec.trial import PlannedTrial

_PASSED_ON = re.compile(r"(NCCL|GLOO|TORCH|PYTORCH|CUDA|OMP|KMP|MKL)_[A-Z0-9_]+")


@dataclass(frozen=True)
class GroupSpec:
    """Everything that a worker process is given at its start. `env` and `resources` are sorted pairs.

    `node_ids`: the node of each worker, and with it the model of its GPU. `data_cpus`: CPUs that stay free on each for
    the tasks that read data. `resources`: Ray's custom ones, of each worker.
    """

    node_ids: tuple[str, ...]
    device_kind: str
    seat: Seat
    backend: str
    env: tuple[tuple[str, str], ...]
    data_cpus: int = 0
    resources: tuple[tuple[str, float], ...] = ()

    @property
    def workers(self) -> int:
        """How many there are."""
        return len(self.node_ids)


def group_spec(planned: PlannedTrial, *, device_kind: str, placement: Placement) -> GroupSpec:
    """The group that a trial needs. A process reads its thread count and NCCL's settings once, at its start."""
    backend = backend_for(planned.config.backend, device_kind)
    config = planned.config
    return GroupSpec(
        placement.node_ids, device_kind, placement.seat, backend, passed_environment(placement.seat),
        config.data_cpus_held, tuple(sorted(config.resources.items())),
    )  # fmt: skip


def backend_for(asked: str, device_kind: str) -> str:
    """The collective backend: as asked, or what `auto` means on the device."""
    return asked if asked != "auto" else ("nccl" if device_kind == "cuda" else "gloo")


def passed_environment(seat: Seat) -> tuple[tuple[str, str], ...]:
    """What workers get of this process's environment, sorted, and how many threads each may have."""
    passed_on = {name: value for name, value in os.environ.items() if _PASSED_ON.fullmatch(name)}
    # Ray would set OMP_NUM_THREADS to 1, a plain process to all cores: each worker gets its share of the node.
    env = {**passed_on, "OMP_NUM_THREADS": str(seat.threads)}
    env.pop("CUDA_VISIBLE_DEVICES", None)      # Ray's to set
    return tuple(sorted(env.items()))


def lease_key(planned: PlannedTrial, spec: GroupSpec) -> tuple[object, ...]:
    """Trials with equal keys share worker processes: the group, and what `isolation` keeps apart."""
    apart = {"warm": (), "repeat": (planned.repeat,), "fresh": (planned.repeat, planned.order)}
    return (spec, *apart[planned.config.isolation])
