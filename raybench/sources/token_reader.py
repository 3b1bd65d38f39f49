"""The `tokens` source: sample `i` is the tokens of a flat file from `i x stride` on, `length` of them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import torch

from raybench.sources.files import OpenFile
from raybench.sources.index import Share, runs
from raybench.sources.layout import DTYPES
from raybench.sources.token_file import read_sidecar, token_path, token_sample
from raybench.spec.config import TrialConfig


class TokenFileReader:
    """Reads each micro-batch with one call per contiguous run, every token once though samples overlap."""

    def __init__(self, share: Share, config: TrialConfig) -> None:
        self._path, self._share, sample = token_path(config), share, token_sample(config)
        self._dtype = np.dtype(DTYPES[read_sidecar(self._path).dtype])
        # Looked up once: a batch is asked for many times a second.
        self._length_of_one, self._stride, self._overlap = sample.length, sample.stride, sample.overlap
        self._shape = sample.shape
        self._strides = (sample.stride, *(prod(sample.shape[axis + 1 :]) for axis in range(len(sample.shape))))
        self._file = OpenFile()

    def room(self) -> torch.Tensor:
        """Flat memory for the tokens of a micro step, were each sample a run of its own."""
        return torch.from_numpy(np.empty(self._share.micro_batch * self._length_of_one, dtype=self._dtype))

    def fill(self, micro_step: int, room: torch.Tensor) -> None:
        """Read that micro step's tokens, run by run."""
        view, size = room.numpy().data.cast("B"), self._dtype.itemsize
        for first, count, filled in self._runs(micro_step):
            stop = filled + self._length(count)
            self._file.read_into(self._path, view[filled * size : stop * size], first * self._stride * size)

    def records(self, micro_step: int, filled: torch.Tensor) -> torch.Tensor:
        """The samples of that micro step, (B, *sample shape): views that overlap, unless the data set wraps around."""
        parts = [
            filled.as_strided((count, *self._shape), self._strides, filled.storage_offset() + begin)
            for _, count, begin in self._runs(micro_step)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _runs(self, micro_step: int) -> Iterator[tuple[int, int, int]]:
        """`(first sample, how many, where they begin in the room)`."""
        begin = 0
        for first, count in runs(self._share.start(micro_step), self._share.micro_batch, self._share.num_samples):
            yield first, count, begin
            begin += self._length(count)

    def _length(self, count: int) -> int:
        return count * self._stride + self._overlap
