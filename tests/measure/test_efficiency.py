"""Scaling arithmetic against published tables."""

from __future__ import annotations

import pytest

from raybench.measure.efficiency import BANDS, band, efficiency, speedup, total_work_speedup
from raybench.measure.statistics import geometric_mean


@pytest.mark.parametrize(
    ("gpus", "tokens_per_s", "expected_speedup", "expected_efficiency"),
    [(1, 29600.05, 1.00, 1.00), (2, 57289.31, 1.94, 0.97), (4, 100791.44, 3.41, 0.85)],
)
def test_published_scaling_by_throughput(
    gpus: int, tokens_per_s: float, expected_speedup: float, expected_efficiency: float
) -> None:
    """The table of a GPT-2 fixed-work run, from its own tokens per second (GS-02)."""
    times = speedup(tokens_per_s, 29600.05)
    assert (round(times, 2), round(efficiency(times, gpus), 2)) == (expected_speedup, expected_efficiency)


@pytest.mark.parametrize(
    ("gpus", "wall_s", "expected_speedup", "expected_efficiency"), [(2, 522.01, 1.95, 0.97), (4, 296.10, 3.44, 0.86)]
)
def test_published_scaling_by_wall_time(
    gpus: int, wall_s: float, expected_speedup: float, expected_efficiency: float
) -> None:
    """The same runs by wall time: 1017.61 / 522.01 = 1.949, 1017.61 / 296.10 = 3.437 (GS-X6)."""
    times = speedup(1017.61, wall_s)
    assert (round(times, 2), round(efficiency(times, gpus), 2)) == (expected_speedup, expected_efficiency)


# Seconds of six matmuls on 1 and on 8 GPUs, as the seed program's documentation prints them (GT-14).
ONE_GPU_S = [0.234, 1.567, 11.23, 0.789, 1.534, 1.123]
EIGHT_GPUS_S = [0.089, 0.234, 1.498, 0.156, 0.198, 0.145]


def test_three_averages_of_six_speedups() -> None:
    """Ratios 2.63, 6.70, 7.50, 5.06, 7.75, 7.74: arithmetic mean 6.23, geometric 5.85, all the work 16.477 / 2.320."""
    ratios = [speedup(one, eight) for one, eight in zip(ONE_GPU_S, EIGHT_GPUS_S, strict=True)]
    assert [round(ratio, 2) for ratio in ratios] == [2.63, 6.70, 7.50, 5.06, 7.75, 7.74]
    assert round(sum(ratios) / 6, 2) == 6.23
    assert round(geometric_mean(ratios), 2) == 5.85
    assert round(total_work_speedup(ONE_GPU_S, EIGHT_GPUS_S), 2) == 7.10


@pytest.mark.parametrize(("share", "name"), [
    (1.2, "near-perfect"), (7 / 8, "near-perfect"), (0.874, "good"), (5 / 8, "good"), (0.624, "poor"),
    (4.5 / 8, "poor"), (2 / 8, "poor"), (0.249, "none"), (0.0, "none"),
])  # fmt: skip
def test_every_efficiency_has_a_class(share: float, name: str) -> None:
    """GT-15 without its gap: 7 to 8 and 5 to 7 of 8 GPUs keep their names, 4 to 5, which had none, is poor."""
    assert band(share).name == name
    assert [found.least for found in BANDS] == sorted((found.least for found in BANDS), reverse=True)
    assert all(found.advice for found in BANDS)
