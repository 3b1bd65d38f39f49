"""Which samples a rank sees, against the rule worked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.sources.index import Share, runs


def share(rank: int = 0, world_size: int = 1, *, num_samples: int = 10, micro: int = 2, accum: int = 1) -> Share:
    """A share whose other numbers are small enough to follow."""
    return Share(num_samples=num_samples, micro_batch=micro, grad_accum=accum, rank=rank, world_size=world_size)


def test_ranks_take_contiguous_parts_of_a_step_micro_steps_in_order() -> None:
    """2 ranks, 2 micro steps of 2: a step is 8 samples, rank 1 has 4..7; step 1 begins at 8 of a cycle over 10."""
    second = share(rank=1, world_size=2, accum=2)
    assert second.indices(0).tolist() == [4, 5]
    assert second.indices(1).tolist() == [6, 7]
    assert second.indices(2).tolist() == [2, 3]          # 8 + 4 = 12, modulo 10
    assert share(rank=0, world_size=2, accum=2).indices(2).tolist() == [8, 9]


@given(
    num_samples=st.integers(1, 50), per_step=st.sampled_from([12, 24]), step=st.integers(0, 20),
    split=st.sampled_from([(1, 1), (2, 1), (3, 1), (1, 2), (2, 3), (4, 1), (6, 2)]),
)  # fmt: skip
def test_the_union_over_ranks_does_not_depend_on_how_many_there_are(
    num_samples: int, per_step: int, step: int, split: tuple[int, int]
) -> None:
    """However a step is divided, its samples in order are number step * global_batch and on, modulo the data set."""
    ranks, accum = split
    parts = [
        share(rank, ranks, num_samples=num_samples, micro=per_step // ranks // accum, accum=accum).indices(
            step * accum + micro
        )
        for rank in range(ranks)
        for micro in range(accum)
    ]
    expected = (step * per_step + np.arange(per_step)) % num_samples
    assert np.concatenate(parts).tolist() == expected.tolist()


def test_epochs_count_passes_over_the_data_set() -> None:
    """10 samples, 4 a step: steps begin at 0, 4, 8, 12, 16, 20."""
    part = share(micro=4)
    assert [part.epoch(step) for step in range(6)] == [0, 0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [(0, 3, [(0, 3)]), (8, 4, [(8, 2), (0, 2)]), (9, 22, [(9, 1), (0, 10), (0, 10), (0, 1)])],
)
def test_runs_wrap_around(start: int, count: int, expected: list[tuple[int, int]]) -> None:
    """Indices that cycle over 10, as contiguous runs."""
    assert runs(start, count, 10) == expected
