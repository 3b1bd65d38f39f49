"""What every source gives the step loop: this rank's micro-batches, in order, on the device."""

from __future__ import annotations

from typing import Protocol

import torch


class Batches(Protocol):
    """An endless iterator of micro-batches that are already on the device.

    It has no clock: the loop times how long `next` takes. `close` gives back memory, files and processes, and may be
    called twice.
    """

    def __next__(self) -> torch.Tensor: ...

    def close(self) -> None: ...


class Reader(Protocol):
    """Makes the micro-batches of a rank in host memory. It is pickled to loader processes before its first use."""

    def read(self, micro_step: int) -> torch.Tensor:
        """The batch of that micro step, int64 (B, *sample shape), in ordinary host memory."""
        ...

    def close(self) -> None:
        """Close what is open; `read` would open it again."""
        ...
