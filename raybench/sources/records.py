"""Records: samples as they are made, stored and sent, one row each; and the batch that a network is given of them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import torch

from raybench.sources.images import image_records, record_bytes, unpack_images
from raybench.sources.tokens import tokens
from raybench.spec.samples import Batch, Images, ImageSample, Sample

_CHUNK_BYTES: Final = 32 * 2**20


def record_shape(sample: Sample) -> tuple[int, ...]:
    """The shape of one record: that of the tokens, or the number of bytes of a label and its image."""
    return (record_bytes(sample),) if isinstance(sample, ImageSample) else sample.shape


def record_dtype(sample: Sample) -> str:
    """The type of a record's values as they are made, as numpy writes it: int64 little-endian, or bytes."""
    return "|u1" if isinstance(sample, ImageSample) else "<i8"


def records(seed: int, indices: npt.NDArray[np.int64], sample: Sample) -> npt.NDArray[Any]:
    """The records at `indices`, (B, *record_shape), as a pure function of seed and index."""
    if isinstance(sample, ImageSample):
        return image_records(seed, indices, sample)
    return tokens(seed, indices, sample)


def smallest_dtype(sample: Sample) -> str:
    """The type of a record's values on disk where nobody asks for another: the smallest that holds them all."""
    if isinstance(sample, ImageSample):
        return record_dtype(sample)
    return "<u2" if sample.vocab_size <= 2**16 else "<i4"


def unpack(batch: torch.Tensor, sample: Sample) -> Batch:
    """The batch of those records, on the device where they are."""
    return unpack_images(batch, sample) if isinstance(sample, ImageSample) else batch.to(torch.int64)


def samples_at_a_time(sample: Sample) -> int:
    """How many samples to make at once, so that they and what making them takes stay small."""
    values = int(np.prod(record_shape(sample)))
    return max(1, _CHUNK_BYTES // (values * np.dtype(record_dtype(sample)).itemsize))


def parts(batch: Batch) -> tuple[torch.Tensor, ...]:
    """The tensors of a batch, each with the samples as its first dimension."""
    return tuple(batch) if isinstance(batch, Images) else (batch,)


def samples_in(batch: Batch) -> int:
    """How many samples a batch holds."""
    return parts(batch)[0].shape[0]


def bytes_of_sample(batch: Batch) -> int:
    """Bytes of one sample of a batch, as the network is given it."""
    return sum(part.numel() * part.element_size() for part in parts(batch)) // samples_in(batch)


def part_of(batch: Batch, first: int, stop: int) -> Batch:
    """Samples `first` to `stop` of a batch; nothing is copied."""
    if isinstance(batch, Images):
        return Images(batch.images[first:stop], batch.labels[first:stop])
    return batch[first:stop]


def copy_of_first(batch: Batch) -> Batch:
    """A copy of the first two samples, or of the only one: batch norm averages over at least two numbers."""
    few = part_of(batch, 0, 2)
    return Images(few.images.clone(), few.labels.clone()) if isinstance(few, Images) else few.clone()
