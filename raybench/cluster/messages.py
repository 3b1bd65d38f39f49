"""What driver and workers say to each other, as frozen values: everything that crosses a process is here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from raybench.record.node import Node
from raybench.record.rank import RankFailure, RankResult
from raybench.spec.config import TrialConfig


@dataclass(frozen=True, kw_only=True)
class Order:
    """One trial for the workers of a group. The deadline counts from the moment a worker takes the order.

    `streams` is a reference to what each rank streams its batches from, where the source has it from the driver.
    """

    trial_uid: str
    config: TrialConfig
    deadline_s: float
    stack_dir: str               # where a rank that passes its deadline leaves its stack, on its own node
    streams: Any = None


@dataclass(frozen=True, kw_only=True)
class Hello:
    """A worker is ready for orders. `handle` is its actor, for ending it when it no longer listens."""

    rank: int
    pid: int
    node_id: str
    node: Node
    process_age_s: float         # since the operating system started the process
    raybench_version: str
    source_hash: str
    cpu_threads: int
    device_kind: str
    gpu_model: str | None
    backend: str | None
    network_interface: str | None
    torch_version: str
    cuda_version: str | None
    handle: Any
    memory_room_bytes: int       # what this rank may fill


@dataclass(frozen=True, kw_only=True)
class Done:
    """One rank's good end. `clean`: everything it took was given back, so the group may serve another trial."""

    result: RankResult
    clean: bool


@dataclass(frozen=True)
class Answers:
    """What a group's workers said of one trial, and why the group is dead if it is."""

    done: dict[int, Done]
    failures: tuple[RankFailure, ...]      # in the order they arrived
    dead: str | None
