"""The `device` source: the data set lies on the device before the first step, so a batch costs the host nothing."""

from __future__ import annotations

import numpy as np
import torch

from raybench.sources.index import Share
from raybench.sources.tokens import tokens
from raybench.spec.samples import TokenSample

_CHUNK = 8192     # samples made on the host at a time


class DeviceBatches:
    """Slices of a data set on the device.

    The first `micro_batch - 1` samples stand once more behind the last, so that a batch that wraps around is one
    slice, too.
    """

    def __init__(self, share: Share, seed: int, sample: TokenSample, device: torch.device) -> None:
        self._share = share
        self._next = 0
        length = share.num_samples + share.micro_batch - 1
        self._data: torch.Tensor | None = torch.empty(length, *sample.shape, dtype=torch.int64, device=device)
        for first in range(0, length, _CHUNK):
            indices = np.arange(first, min(first + _CHUNK, length), dtype=np.int64) % share.num_samples
            self._data[first : first + _CHUNK] = torch.from_numpy(tokens(seed, indices, sample))

    def __next__(self) -> torch.Tensor:
        assert self._data is not None, "closed"
        start = self._share.start(self._next)
        self._next += 1
        return self._data[start : start + self._share.micro_batch]

    def close(self) -> None:
        self._data = None
