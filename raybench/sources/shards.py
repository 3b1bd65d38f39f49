"""The `shards` source: batches read from prepared files, as a training job reads its data from disk."""

from __future__ import annotations

from math import prod
from pathlib import Path

import numpy as np
import torch

from raybench.errors import DataError
from raybench.sources import manifest
from raybench.sources.files import OpenFile
from raybench.sources.index import Share, runs
from raybench.sources.layout import Layout, shard_name
from raybench.sources.records import record_shape


class ShardReader:
    """Reads each micro-batch with one call per contiguous run."""

    def __init__(self, share: Share, layout: Layout, directory: Path) -> None:
        if not manifest.exists(directory):
            raise DataError(f"{directory} is not prepared on this node; run raybench.sources.prepare first")
        self._share, self._layout = share, layout
        self._shape = (share.micro_batch, *record_shape(layout.sample))
        # Looked up once: worked out anew they would take a tenth of the time of reading a micro-batch of 512 KiB.
        self._paths = [directory / shard_name(shard) for shard in range(len(layout.shard_sizes))]
        self._sample_bytes, self._per_shard = layout.sample_bytes, layout.samples_per_shard
        self._file = OpenFile()

    def room(self) -> torch.Tensor:
        """Flat memory for the records of a micro step."""
        return torch.from_numpy(np.empty(prod(self._shape), dtype=self._layout.dtype))

    def fill(self, micro_step: int, room: torch.Tensor) -> None:
        """Read that micro step's records, one after the other."""
        view, filled = room.numpy().data.cast("B"), 0
        for first, count in runs(self._share.start(micro_step), self._share.micro_batch, self._share.num_samples):
            for shard, offset, samples in self._pieces(first, count):
                size = samples * self._sample_bytes
                self._file.read_into(self._paths[shard], view[filled : filled + size], offset * self._sample_bytes)
                filled += size

    def records(self, micro_step: int, filled: torch.Tensor) -> torch.Tensor:
        """The records of that micro step, (B, *record shape)."""
        return filled.view(self._shape)

    def close(self) -> None:
        """Close the open shard."""
        self._file.close()

    def _pieces(self, first: int, count: int) -> list[tuple[int, int, int]]:
        """A run of samples as `(shard, first sample inside it, how many)`."""
        pieces, per_shard = [], self._per_shard
        while count > 0:
            shard, offset = divmod(first, per_shard)
            size = min(count, per_shard - offset)
            pieces.append((shard, offset, size))
            first, count = first + size, count - size
        return pieces
