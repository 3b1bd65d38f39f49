"""What one sample of a workload's data is, which every source needs to know and no source decides."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TokenSample:
    """Tokens of that `shape`, each from 0 to `vocab_size` - 1."""

    shape: tuple[int, ...]
    vocab_size: int

    @property
    def length(self) -> int:
        """Tokens in a sample."""
        length = 1
        for side in self.shape:
            length *= side
        return length
