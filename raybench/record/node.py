"""The `nodes` table: one row per node, and per change of its facts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from raybench.record.column import column

_UNKNOWN = "when it cannot be read"


@dataclass(frozen=True, kw_only=True)
class Node:
    """The facts of one machine. `node_key` is a hash of all of them but `seen_at`."""

    node_key: str = column("16 hex of SHA-256 over the facts")
    sweep_run_id: str = column("the command that saw them")
    seen_at: datetime = column("when they were read")
    host: str = column("host name")
    address: str = column("the node's Ray address")
    os: str = column("operating system and kernel")
    python_version: str = column("version of Python")
    cpu_model: str | None = column("the CPU's name", null=_UNKNOWN)
    cpu_cores: int = column("logical cores usable by the process")
    memory_bytes: int = column("main memory", unit="B")
    gpu_count: int = column("GPUs that NVML sees")
    gpu_models: str = column("their names, in order, joined by ;")
    gpu_uuids: str = column("their UUIDs, in the same order, joined by ;")
    gpu_memory_bytes: int | None = column("memory of the first GPU", unit="B", null="without a GPU")
    driver_version: str | None = column("version of the GPU driver", null="without a GPU")
    torch_version: str | None = column("version of torch", null=_UNKNOWN)
    cuda_version: str | None = column("CUDA version torch was built for", null="on a CPU build")
    nccl_version: str | None = column("version of NCCL", null="on a CPU build")
    ray_version: str | None = column("version of Ray", null="outside Ray")
    raybench_version: str = column("version of raybench")
    network_interface: str | None = column(
        "network interface that carries the node's Ray address", null="when none does, and in older rows"
    )
