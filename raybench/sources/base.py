"""What every source gives the step loop: this rank's micro-batches, in order, on the device."""

from __future__ import annotations

from typing import Protocol

import torch

from raybench.spec.samples import Batch


class Batches(Protocol):
    """An endless iterator of micro-batches that are already on the device.

    It has no clock: the loop times how long `next` takes. `close` gives back memory, files and processes, and may be
    called twice.
    """

    def __next__(self) -> Batch: ...

    def close(self) -> None: ...


class Reader(Protocol):
    """Makes the micro-batches of a rank in host memory. It is pickled to loader processes before its first use."""

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, *record shape), in ordinary host memory."""
        ...

    def close(self) -> None:
        """Close what is open; `read` would open it again."""
        ...
