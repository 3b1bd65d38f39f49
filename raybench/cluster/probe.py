"""One all-reduce over all workers that the cluster holds: whether they can talk at all, and how fast."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from raybench.cluster.group import start_limit_s
from raybench.cluster.group_spec import GroupSpec
from raybench.cluster.trainer import trainer

PROBE_BYTES = 16 * 2**20
PROBE_ROUNDS = 5


@dataclass(frozen=True)
class Talked:
    """What the probe found. Bus bandwidth as nccl-tests defines it: 2 (n - 1) / n x bytes / time; None for one rank."""

    world_size: int
    bus_bytes_per_s: float | None
    interface: str | None


def talk(spec: GroupSpec, *, storage: str, name: str) -> Talked | str:
    """Start the group, reduce 16 MiB over it, end it. Why it could not, as one sentence, when it does not work."""
    limit_s = 30.0 + 2 * start_limit_s(spec.workers)
    found: list[Any] = []
    thread = threading.Thread(target=_fit, args=(spec, storage, name, found), name="raybench-probe", daemon=True)
    thread.start()
    thread.join(limit_s)
    if not found:
        return f"{spec.workers} workers did not finish an all-reduce in {limit_s:.0f} s"
    if isinstance(found[0], BaseException):
        return " ".join(str(found[0]).split())[-300:]
    return Talked(**found[0])


def _fit(spec: GroupSpec, storage: str, name: str, found: list[Any]) -> None:
    try:
        result = trainer(
            spec, _reduce, storage=storage, name=name, process_group_timeout_s=60, controller_retries=0
        ).fit()
        found.append(result.return_value)
    except Exception as error:  # noqa: BLE001  whatever it is, it is the finding
        found.append(error)


def _reduce() -> dict[str, Any]:
    """What every rank does; rank 0's answer is kept."""
    import time

    import ray.train.torch
    import torch
    import torch.distributed as dist

    from raybench.cluster.interface import chosen_interface

    device = ray.train.torch.get_device()
    buffer = torch.zeros(PROBE_BYTES // 4, device=device)
    size = dist.get_world_size()
    dist.all_reduce(buffer)      # connects
    _synchronise(torch, device)
    started_s = time.perf_counter()
    for _ in range(PROBE_ROUNDS):
        dist.all_reduce(buffer)
    _synchronise(torch, device)
    spent_s = (time.perf_counter() - started_s) / PROBE_ROUNDS
    bus = 2 * (size - 1) / size * PROBE_BYTES / spent_s if size > 1 else None
    return {"world_size": size, "bus_bytes_per_s": bus, "interface": chosen_interface(dist.get_backend())}


def _synchronise(torch: Any, device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
