"""Random images as a pure function of seed and index, in the form in which images are stored and sent: records."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import torch

from raybench.sources.tokens import bounded, scrambled, splitmix64
from raybench.spec.samples import Images, ImageSample

LABEL_BYTES: Final = 8           # int64, little-endian, before the pixels
_WORD_BYTES: Final = 8


def record_bytes(sample: ImageSample) -> int:
    """Bytes of one record: the label, then the pixels, channel by channel and row by row."""
    channels, height, width = sample.shape
    return LABEL_BYTES + channels * height * width


def image_records(seed: int, indices: npt.NDArray[np.int64], sample: ImageSample) -> npt.NDArray[np.uint8]:
    """The records at `indices`, (B, record_bytes): labels uniform in 0 .. num_classes - 1, pixels uniform bytes.

    Counter-based as tokens are: a sample has one word of SplitMix64 for its label and one for each eight bytes of
    pixels.
    """
    pixels = record_bytes(sample) - LABEL_BYTES
    words = 1 + -(-pixels // _WORD_BYTES)
    first = indices.astype(np.uint64)[:, None] * np.uint64(words)
    drawn = splitmix64(first + np.arange(words, dtype=np.uint64)[None, :] + np.uint64(scrambled(seed)))
    drawn[:, 0] = bounded(drawn[:, 0], sample.num_classes)
    as_bytes = drawn.astype("<u8", copy=False).view(np.uint8)
    return np.ascontiguousarray(as_bytes[:, : LABEL_BYTES + pixels])


def unpack_images(records: torch.Tensor, sample: ImageSample) -> Images:
    """Records (B, record_bytes), wherever they are, as images and labels. Pixels are not copied."""
    labels = records[:, :LABEL_BYTES].clone().reshape(-1).view(torch.int64)      # one row is "contiguous" as it lies
    return Images(records[:, LABEL_BYTES:].view(-1, *sample.shape), labels)
