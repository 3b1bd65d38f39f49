"""Tokens as a pure function of seed and index."""

from __future__ import annotations

import numpy as np
import pytest

from raybench.sources.tokens import tokens
from raybench.spec.samples import TokenSample

MASK = 2**64 - 1


def splitmix64(counter: int) -> int:
    """The generator in Python's integers, from its paper."""
    z = ((counter + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_splitmix64_reference() -> None:
    """Seed 0's first outputs as published with the generator: the check above is the generator it says it is."""
    assert [splitmix64(i) for i in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_tokens_follow_the_formula() -> None:
    """Sample 5 of seed 3 at seq_len 4, vocab 1000: counter 5 x 8 + position, offset by the scrambled seed."""
    offset = splitmix64(3)
    drawn = [splitmix64((5 * 8 + position + offset) & MASK) >> 32 for position in range(8)]
    expected = [value * 1000 >> 32 for value in drawn]
    assert tokens(3, np.array([5]), TokenSample((2, 4), 1000)).reshape(-1).tolist() == expected


def test_a_sample_does_not_depend_on_its_neighbours() -> None:
    """Asked alone, in another order or twice, an index gives the same tokens."""
    together = tokens(0, np.array([7, 2, 7]), TokenSample((2, 8), 64))
    assert together.shape == (3, 2, 8)
    assert together.dtype == np.int64
    assert np.array_equal(together[0], together[2])
    assert np.array_equal(together[1], tokens(0, np.array([2]), TokenSample((2, 8), 64))[0])


def test_seeds_and_indices_give_different_tokens() -> None:
    """Neither the next seed nor the next index is the same stream, shifted."""
    one = tokens(0, np.arange(4), TokenSample((2, 16), 2**31 - 1)).reshape(-1)
    other = tokens(1, np.arange(4), TokenSample((2, 16), 2**31 - 1)).reshape(-1)
    assert len(set(one.tolist()) & set(other.tolist())) == 0
    assert len(set(one.tolist())) == one.size


@pytest.mark.parametrize("vocab_size", [1, 2, 7, 8192, 2**31 - 1])
def test_tokens_are_uniform(vocab_size: int) -> None:
    """Always in range; the mean of 160 000 draws lies within five standard errors of (V - 1) / 2."""
    drawn = tokens(0, np.arange(2500), TokenSample((2, 32), vocab_size))
    assert drawn.min() >= 0
    assert drawn.max() < vocab_size
    standard_error = np.sqrt((vocab_size**2 - 1) / 12 / drawn.size)
    assert abs(drawn.mean() - (vocab_size - 1) / 2) <= 5 * standard_error
