"""Which samples a rank sees: the rule that makes the union over ranks independent of how many there are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, kw_only=True)
class Share:
    """One rank's share of an endless cycle over `num_samples` samples.

    Global sample `i` of step `s` is number `s * global_batch + i` of the cycle. Rank `r` of `n` takes the `r`-th
    contiguous `global_batch / n` of a step, its `grad_accum` micro steps in order.
    """

    num_samples: int
    micro_batch: int
    grad_accum: int
    rank: int
    world_size: int

    @property
    def global_batch(self) -> int:
        """Samples of one step over all ranks."""
        return self.micro_batch * self.grad_accum * self.world_size

    def start(self, micro_step: int) -> int:
        """Index in the data set of the first sample of this rank's `micro_step`, counted from 0 through all steps."""
        step, micro = divmod(micro_step, self.grad_accum)
        in_cycle = step * self.global_batch + (self.rank * self.grad_accum + micro) * self.micro_batch
        return in_cycle % self.num_samples

    def indices(self, micro_step: int) -> npt.NDArray[np.int64]:
        """Indices of all samples of that micro step, (micro_batch,), wrapping around at the end of the data set."""
        return (self.start(micro_step) + np.arange(self.micro_batch, dtype=np.int64)) % self.num_samples

    def epoch(self, step: int) -> int:
        """Pass over the data set, from 0, in which a step begins."""
        return step * self.global_batch // self.num_samples


def runs(start: int, count: int, length: int) -> list[tuple[int, int]]:
    """`count` indices from `start`, cycling over `length`, as contiguous runs `(first, how many)`."""
    found = []
    while count > 0:
        size = min(count, length - start)
        found.append((start, size))
        start, count = 0, count - size
    return found
