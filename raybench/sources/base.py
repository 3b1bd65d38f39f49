"""What every source gives the step loop, and the two ways in which host memory comes to hold a micro-batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import torch

from raybench.spec.samples import Batch


class Batches(Protocol):
    """An endless iterator of micro-batches that are already on the device; each is good until the next is asked for.

    It has no clock: the loop times how long `next` takes. `close` gives back memory, files and processes, and may be
    called twice. Where batches are made while steps run, `cpu_s() -> float` says what CPU time that has taken so far.
    """

    def __next__(self) -> Batch: ...

    def close(self) -> None: ...


def loader_cpu_s(batches: Batches) -> float | None:
    """CPU time that making batches has taken so far; None where the source does not say."""
    cpu_s: Callable[[], float | None] | None = getattr(batches, "cpu_s", None)
    return None if cpu_s is None else cpu_s()


Unpack: TypeAlias = Callable[[torch.Tensor], Batch]
"""From records, on the device, to the batch that a network is given."""


class Reader(Protocol):
    """Makes the micro-batches of a rank in host memory. It is pickled to loader processes before its first use."""

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, *record shape), in host memory."""
        ...

    def close(self) -> None:
        """Close what is open; `read` would open it again."""
        ...


class Filler(Protocol):
    """Reads the micro-batches of a rank from files into memory that is made once. Pickled as a reader is."""

    def room(self) -> torch.Tensor:
        """Flat memory for one micro-batch."""
        ...

    def fill(self, micro_step: int, room: torch.Tensor) -> None:
        """Read that micro step's values into `room`."""
        ...

    def records(self, micro_step: int, filled: torch.Tensor) -> torch.Tensor:
        """The records (B, *record shape) of what `fill` left, wherever it has been copied since."""
        ...

    def close(self) -> None:
        """Close what is open; `fill` would open it again."""
        ...


@dataclass(frozen=True)
class FreshReader:
    """A filler as a reader: every micro-batch in memory of its own."""

    filler: Filler

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step."""
        room = self.filler.room()
        self.filler.fill(micro_step, room)
        return self.filler.records(micro_step, room)

    def close(self) -> None:
        """Close what is open."""
        self.filler.close()
