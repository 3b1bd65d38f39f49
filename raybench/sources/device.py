"""The `device` source: the data set lies on the device before the first step, so a batch costs the host nothing."""

from __future__ import annotations

import numpy as np
import torch

from raybench.sources.index import Share
from raybench.sources.records import part_of, parts, records, samples_at_a_time, unpack
from raybench.spec.samples import Batch, Images, Sample


class DeviceBatches:
    """Slices of a data set on the device.

    The first `micro_batch - 1` samples stand once more behind the last, so that a batch that wraps around is one
    slice, too.
    """

    def __init__(self, share: Share, seed: int, sample: Sample, device: torch.device) -> None:
        self._share = share
        self._next = 0
        length, chunk = share.num_samples + share.micro_batch - 1, samples_at_a_time(sample)
        self._data: Batch | None = None
        for first in range(0, length, chunk):
            indices = np.arange(first, min(first + chunk, length), dtype=np.int64) % share.num_samples
            made = unpack(torch.from_numpy(records(seed, indices, sample)), sample)
            if self._data is None:
                self._data = _empty_like(made, length, device)
            for held, part in zip(parts(self._data), parts(made), strict=True):
                held[first : first + chunk] = part

    def __next__(self) -> Batch:
        assert self._data is not None, "closed"
        start = self._share.start(self._next)
        self._next += 1
        return part_of(self._data, start, start + self._share.micro_batch)

    def close(self) -> None:
        self._data = None


def _empty_like(batch: Batch, length: int, device: torch.device) -> Batch:
    """Room on the device for `length` samples like those of the batch."""
    empty = [torch.empty(length, *part.shape[1:], dtype=part.dtype, device=device) for part in parts(batch)]
    return Images(*empty) if isinstance(batch, Images) else empty[0]
