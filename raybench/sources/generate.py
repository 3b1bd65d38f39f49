"""The `generate` source: batches made on the fly on the CPU, by index."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from raybench.sources.index import Share
from raybench.sources.records import records
from raybench.spec.samples import Sample


@dataclass(frozen=True)
class Generator:
    """Makes each micro-batch from its indices; holds nothing."""

    share: Share
    seed: int
    sample: Sample

    def read(self, micro_step: int) -> torch.Tensor:
        """The records of that micro step, (B, *record shape)."""
        return torch.from_numpy(records(self.seed, self.share.indices(micro_step), self.sample))

    def close(self) -> None:
        """There is nothing to close."""
