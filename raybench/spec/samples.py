"""What one sample of a workload's data is, which every source needs to know and no source decides."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class TokenSample:
    """Tokens of that `shape`, each from 0 to `vocab_size` - 1.

    Samples lie in one long stream, each `stride` after the one before: the last `overlap` tokens of a sample are the
    first of the next, as where each token but the last is input and each but the first is target.
    """

    shape: tuple[int, ...]
    vocab_size: int
    overlap: int = 0

    @property
    def length(self) -> int:
        """Tokens in a sample."""
        return prod(self.shape)

    @property
    def stride(self) -> int:
        """Tokens from the beginning of a sample to that of the next."""
        return self.length - self.overlap


@dataclass(frozen=True)
class ImageSample:
    """An image of one byte a pixel and channel, and its label from 0 to `num_classes` - 1."""

    channels: int
    height: int
    width: int
    num_classes: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return self.channels, self.height, self.width


Sample: TypeAlias = TokenSample | ImageSample


class Images(NamedTuple):
    """A batch of images on the device, as a network is given it: uint8 (B, C, H, W) and int64 (B,).

    Pixels are bytes, 0 to 255, in every source: turning them into numbers about 0 is part of the step.
    """

    images: torch.Tensor
    labels: torch.Tensor


Batch: TypeAlias = "torch.Tensor | Images"
"""What a source gives for a micro step: tokens, int64 (B, *sample.shape), or images with their labels."""
