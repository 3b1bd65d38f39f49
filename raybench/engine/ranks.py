"""What the ranks of a trial say to each other outside the window: wait for all, agree on a number."""

from __future__ import annotations

import torch
import torch.distributed as dist


class Ranks:
    """The process group that the caller made, or this process alone.

    The one tensor it sends is made once, so that agreeing takes no memory from a trial. A barrier is an all-reduce:
    torch's own warns on NCCL and picks a device by guessing.
    """

    def __init__(self, device: torch.device) -> None:
        self._grouped = dist.is_available() and dist.is_initialized()
        self._device = device
        self._number = torch.zeros(1, dtype=torch.float64, device=device)

    @property
    def grouped(self) -> bool:
        """Whether there is a process group, were it of one rank."""
        return self._grouped

    @property
    def backend(self) -> str | None:
        """gloo or nccl; None outside a process group."""
        return str(dist.get_backend()) if self._grouped else None

    def barrier(self) -> None:
        """Return when every rank is here and its device is idle."""
        self.maximum(0.0)
        synchronize(self._device)

    def maximum(self, value: float) -> float:
        """The largest of all ranks' values."""
        if not self._grouped:
            return value
        self._number.fill_(value)
        dist.all_reduce(self._number, op=dist.ReduceOp.MAX)
        return float(self._number.item())


def synchronize(device: torch.device) -> None:
    """Wait until the device has done what it was given; the CPU always has."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
