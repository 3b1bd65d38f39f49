"""What one node says of its health: facts only, judged by the driver."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raybench.cluster.code_version import source_hash
from raybench.engine.environment import node_facts
from raybench.engine.nvml import Nvml
from raybench.record.node import Node
from raybench.sources.root import data_root


@dataclass(frozen=True, kw_only=True)
class Checkup:
    """One node's facts at one moment. `source_hash` is that of its own raybench.

    `token_mode`: permission bits of its token file, None without one. `free_bytes`: by what the place is for.
    `held_bytes`: memory that processes hold on its GPUs.
    """

    node: Node
    cores: int
    source_hash: str
    now_s: float
    token_mode: int | None
    free_bytes: Mapping[str, int]
    held_bytes: int


@dataclass(frozen=True, kw_only=True)
class Examined:
    """A checkup and what the driver knows of the node: GPUs that Ray gives out there, its clock less the driver's."""

    checkup: Checkup
    ray_gpus: int
    skew_s: float


def check_up(sweep_run_id: str) -> Checkup:
    """Look at the node that this runs on: cheap, and without torch."""
    import ray

    return Checkup(
        node=node_facts(sweep_run_id=sweep_run_id, address=ray.util.get_node_ip_address()),
        cores=usable_cores(),
        source_hash=source_hash(),
        now_s=time.time(),
        token_mode=_token_mode(),
        free_bytes={name: shutil.disk_usage(_existing(path)).free for name, path in _places().items()},
        held_bytes=_held_bytes(),
    )


def usable_cores() -> int:
    """Logical cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def examined(
    checkups: Mapping[str, Checkup], nodes: Mapping[str, Mapping[str, Any]], *, began_s: float, ended_s: float
) -> dict[str, Examined]:
    """The checkups by node id, of nodes as Ray lists them, that were asked for between two moments of our own clock.

    A node's clock was read some time between: only what lies outside is certain.
    """
    return {
        node_id: Examined(
            checkup=seen,
            ray_gpus=int(nodes[node_id]["Resources"].get("GPU", 0)),
            skew_s=max(0.0, seen.now_s - ended_s) + min(0.0, seen.now_s - began_s),
        )
        for node_id, seen in checkups.items()
    }


def _places() -> dict[str, Path]:
    """Where a run needs room: Ray's and our temporary files, prepared data, memory that processes share."""
    return {"temporary files": Path(tempfile.gettempdir()), "data": data_root(), "shared memory": Path("/dev/shm")}


def _existing(path: Path) -> Path:
    """The folder, or the nearest one above it that is there already."""
    return path if path.exists() else _existing(path.parent)


def _token_mode() -> int | None:
    path = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or "~/.ray/auth_token").expanduser()
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None


def _held_bytes() -> int:
    nvml = Nvml.load()
    return sum(held for gpu in nvml.gpus() for held in nvml.processes(gpu.uuid).values())
