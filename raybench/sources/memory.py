"""The `memory` source: the data set lies in host memory before the first step, pinned where there is a GPU."""

from __future__ import annotations

import numpy as np
import torch

from raybench.sources.index import Share
from raybench.sources.records import record_shape, records, samples_at_a_time, smallest_dtype
from raybench.spec.samples import Sample


class MemoryReader:
    """Slices of the data set, in the smallest type that holds it; from pinned memory a copy needs nobody's help.

    The first `micro_batch - 1` samples stand once more behind the last, so that a batch that wraps around is one
    slice, too.
    """

    def __init__(self, share: Share, seed: int, sample: Sample, *, pinned: bool) -> None:
        self._share = share
        length, chunk = share.num_samples + share.micro_batch - 1, samples_at_a_time(sample)
        dtype = torch.from_numpy(np.empty(0, dtype=smallest_dtype(sample))).dtype
        self._data: torch.Tensor | None = torch.empty(length, *record_shape(sample), dtype=dtype, pin_memory=pinned)
        for first in range(0, length, chunk):
            indices = np.arange(first, min(first + chunk, length), dtype=np.int64) % share.num_samples
            self._data[first : first + chunk] = torch.from_numpy(records(seed, indices, sample)).to(dtype)

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, *record shape)."""
        assert self._data is not None, "closed"
        start = self._share.start(micro_step)
        return self._data[start : start + self._share.micro_batch]

    def close(self) -> None:
        """Let go of the memory."""
        self._data = None
