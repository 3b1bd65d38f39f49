"""The `generate` source: batches made on the fly on the CPU, by index."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from raybench.sources.index import Share
from raybench.sources.tokens import tokens
from raybench.spec.samples import TokenSample


@dataclass(frozen=True)
class Generator:
    """Makes each micro-batch from its indices; holds nothing."""

    share: Share
    seed: int
    sample: TokenSample

    def read(self, micro_step: int) -> torch.Tensor:
        """The batch of that micro step, int64 (B, *sample.shape)."""
        return torch.from_numpy(tokens(self.seed, self.share.indices(micro_step), self.sample))

    def close(self) -> None:
        """There is nothing to close."""
