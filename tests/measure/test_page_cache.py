"""Where a window's data came from, from two counters a rank."""

from __future__ import annotations

import pytest

from raybench.measure.page_cache import Fetched, cache_state, fetched
from tests.measure.ranks import make_rank


@pytest.mark.parametrize(("in_files", "from_storage", "state"), [
    (1000, 1020, "cold"), (1000, 900, "cold"), (1000, 899, "mixed"), (1000, 101, "mixed"), (1000, 100, "warm"),
    (1000, 0, "warm"), (1000, None, None), (None, 5, None), (0, 0, None),
])  # fmt: skip
def test_states(in_files: int | None, from_storage: int | None, state: str | None) -> None:
    """Nine tenths from one place make it that place; the kernel fetches a little ahead of what is asked for."""
    assert cache_state(in_files, from_storage) == state


def test_ranks_are_summed() -> None:
    """Rank 0 fetched all that both read of one file: 600 of 2 x 300 bytes."""
    ranks = [make_rank(0, file_bytes=300, storage_read_bytes=600), make_rank(1, file_bytes=300, storage_read_bytes=0)]
    assert fetched(ranks) == Fetched(file_bytes=600, storage_read_bytes=600, cache_state="cold")


def test_a_source_without_files_has_nothing_to_tell() -> None:
    """What the process fetched meanwhile was no data."""
    assert fetched([make_rank(storage_read_bytes=4096)]) == Fetched(
        file_bytes=None, storage_read_bytes=None, cache_state=None
    )
