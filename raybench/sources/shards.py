"""The `shards` source: batches read from prepared files, as a training job reads its data from disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.index import Share, runs
from raybench.sources.layout import Layout, shard_name
from raybench.sources.records import record_shape


class ShardReader:
    """Reads each micro-batch with one call per contiguous run into a fresh tensor.

    One file is open at a time: a rank reads onwards, so the next batch is nearly always in the same shard.
    """

    def __init__(self, share: Share, layout: Layout, directory: Path) -> None:
        if not manifest.exists(directory):
            raise DataError(f"{directory} is not prepared on this node; run raybench.sources.prepare first")
        self._share, self._layout, self._directory = share, layout, directory
        self._open: tuple[int, int] | None = None          # shard, file descriptor

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, *record shape)."""
        batch = np.empty((self._share.micro_batch, *record_shape(self._layout.sample)), dtype=self._layout.dtype)
        filled = 0
        for first, count in runs(self._share.start(micro_step), self._share.micro_batch, self._share.num_samples):
            for shard, offset, samples in self._pieces(first, count):
                self._fill(batch[filled : filled + samples], shard, offset)
                filled += samples
        return torch.from_numpy(batch)

    def close(self) -> None:
        """Close the open shard."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def _pieces(self, first: int, count: int) -> list[tuple[int, int, int]]:
        """A run of samples as `(shard, first sample inside it, how many)`."""
        pieces, per_shard = [], self._layout.samples_per_shard
        while count > 0:
            shard, offset = divmod(first, per_shard)
            size = min(count, per_shard - offset)
            pieces.append((shard, offset, size))
            first, count = first + size, count - size
        return pieces

    def _fill(self, part: npt.NDArray[Any], shard: int, offset: int) -> None:
        file, position = self._file(shard), offset * self._layout.sample_bytes
        view = memoryview(part.data).cast("B")
        while len(view) > 0:
            got = os.preadv(file, [view], position)
            if got == 0:
                path = self._directory / shard_name(shard)
                raise DataError(f"{path} was cut while it was read; delete the folder {path.parent} and run again")
            view, position = view[got:], position + got

    def _file(self, shard: int) -> int:
        if self._open is None or self._open[0] != shard:
            self.close()
            path = self._directory / shard_name(shard)
            try:
                self._open = (shard, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
            except OSError as error:
                cure = f"delete the folder {path.parent} and run again"
                raise DataError(f"{path} cannot be opened: {error.strerror}; {cure}") from error
        return self._open[1]
