"""Bytes over time, by hand."""

from __future__ import annotations

import dataclasses

import pytest

from raybench.measure.bandwidth import Bandwidth, bandwidth
from tests.measure.ranks import COUNTS

NONE = Bandwidth(
    rows_per_rank=None, bytes_per_step=None, memory_bandwidth_bytes_per_s=None,
    algorithm_bandwidth_bytes_per_s=None, bus_bandwidth_bytes_per_s=None,
)  # fmt: skip


def test_work_that_is_not_counted_in_bytes_has_no_bandwidth() -> None:
    """Null, not 0."""
    assert bandwidth(COUNTS, 10.0, 2) == NONE


def test_memory_traffic_is_shared_by_the_ranks() -> None:
    """12 GB a step, 100 steps/s, 4 ranks: 300 GB/s of each rank's memory; no rate, no bandwidth."""
    counts = dataclasses.replace(COUNTS, bytes_per_step=12 * 10**9, rows_per_rank=7)
    found = bandwidth(counts, 100.0, 4)
    assert found == dataclasses.replace(
        NONE, rows_per_rank=7, bytes_per_step=12 * 10**9, memory_bandwidth_bytes_per_s=3e11
    )
    assert bandwidth(counts, None, 4).memory_bandwidth_bytes_per_s is None


def test_bus_bandwidth_as_nccl_tests_has_it() -> None:
    """16 GiB all-reduced over 8 ranks in 62.35 ms: 275.5 GB/s algorithm, x 14 / 8 = 482.2 GB/s bus (8 x H200)."""
    counts = dataclasses.replace(COUNTS, message_bytes=16 * 2**30, bus_factor=2 * 7 / 8)
    found = bandwidth(counts, 1 / 0.06235, 8)
    assert found.algorithm_bandwidth_bytes_per_s == pytest.approx(275.5e9, rel=1e-3)
    assert found.bus_bandwidth_bytes_per_s == pytest.approx(482.2e9, rel=1e-3)


def test_one_rank_uses_no_bus() -> None:
    """It has an algorithm bandwidth, and no bus bandwidth rather than one of 0."""
    found = bandwidth(dataclasses.replace(COUNTS, message_bytes=100), 10.0, 1)
    assert (found.algorithm_bandwidth_bytes_per_s, found.bus_bandwidth_bytes_per_s) == (1000.0, None)
