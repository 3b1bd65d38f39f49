"""The `generate` source: batches made on the fly on the CPU, by index."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from raybench.sources.index import Share
from raybench.sources.tokens import tokens


@dataclass(frozen=True)
class Generator:
    """Makes each micro-batch from its indices; holds nothing."""

    share: Share
    seed: int
    seq_len: int
    vocab_size: int

    def read(self, micro_step: int) -> torch.Tensor:
        """The batch of that micro step, int64 (B, 2, seq_len)."""
        made = tokens(self.seed, self.share.indices(micro_step), self.seq_len, self.vocab_size)
        return torch.from_numpy(made)

    def close(self) -> None:
        """There is nothing to close."""
