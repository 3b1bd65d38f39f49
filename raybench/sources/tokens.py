"""Random tokens as a pure function of seed and index: every source, rank and shard count gives the same sample."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from raybench.spec.samples import TokenSample

GENERATOR_VERSION: Final = 1
"""Part of prepared data's identity: to be raised when `tokens` gives other numbers."""

_GOLDEN_GAMMA: Final = 0x9E3779B97F4A7C15


def tokens(seed: int, indices: npt.NDArray[np.int64], sample: TokenSample) -> npt.NDArray[np.int64]:
    """The samples at `indices`, (B, *sample.shape), uniform in 0 .. vocab_size - 1.

    Counter-based: the generator is SplitMix64 (Steele, Lea, Flood 2014) entered at counter
    `index * sample.stride + position`. The upper 32 bits are brought into range by multiply and shift (Lemire 2019,
    arXiv:1805.10941), whose bias is below vocab_size / 2**32.
    """
    first = indices.astype(np.uint64)[:, None] * np.uint64(sample.stride)
    counter = first + np.arange(sample.length, dtype=np.uint64)[None, :]                   # (B, length)
    counter += np.uint64(scrambled(seed))
    drawn = bounded(splitmix64(counter), sample.vocab_size)
    return drawn.view(np.int64).reshape(len(indices), *sample.shape)


def bounded(drawn: npt.NDArray[np.uint64], limit: int) -> npt.NDArray[np.uint64]:
    """64 random bits each, in place brought into 0 .. limit - 1."""
    drawn >>= np.uint64(32)
    drawn *= np.uint64(limit)
    drawn >>= np.uint64(32)
    return drawn


def scrambled(seed: int) -> int:
    """Where a seed's counter begins: neighbouring seeds must not give the same stream, shifted."""
    return int(splitmix64(np.array([seed], dtype=np.uint64))[0])


def splitmix64(counter: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The `counter`-th output of SplitMix64, in place; arithmetic is modulo 2**64."""
    counter += np.uint64(1)
    counter *= np.uint64(_GOLDEN_GAMMA)
    counter ^= counter >> np.uint64(30)
    counter *= np.uint64(0xBF58476D1CE4E5B9)
    counter ^= counter >> np.uint64(27)
    counter *= np.uint64(0x94D049BB133111EB)
    counter ^= counter >> np.uint64(31)
    return counter
