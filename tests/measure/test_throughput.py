"""The headline: what is summed, what is the maximum, and which traps it does not fall into."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.measure.statistics import Interval
from raybench.measure.throughput import common_peak, counted, mfu, rate, rate_interval, slowest
from tests.measure.ranks import COUNTS, gpu, make_rank, make_steps


def test_total_work_over_total_time_not_the_mean_of_rates() -> None:
    """1000 samples in 10, 20 and 40 s: 3000 / 70 = 42.86 a second; the mean of 100, 50 and 25 would say 58.33."""
    seconds = [10.0, 20.0, 40.0]
    found = rate(3 * 1000, sum(seconds))
    assert found == pytest.approx(42.857, abs=5e-4)
    assert sum(1000 / each for each in seconds) / 3 == pytest.approx(58.333, abs=5e-4)


def test_steps_of_one_volume_are_not_divided_by_one_step() -> None:
    """100 steps of 0.5 s with 2 samples each: 200 / 50 = 4 a second, not 200 / 0.5 = 400."""
    ranks = [make_rank(step_ms=(500.0,) * 100, measured_samples=200, world_size=1)]
    assert rate(counted(COUNTS, ranks).measured_samples, slowest(ranks).measured_s) == 4.0


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, math.inf])
def test_no_rate_without_time(seconds: float) -> None:
    """A window that is no positive number has no rate; neither has work that does not exist."""
    assert rate(5, seconds) is None
    assert rate(None, 2.0) is None


def test_the_slowest_rank_is_the_one_with_the_longest_window() -> None:
    """By its window, not by its steps' sum; the lowest rank when they tie."""
    ranks = [make_rank(0, measured_s=2.0), make_rank(1, measured_s=2.5), make_rank(2, measured_s=2.5)]
    assert slowest(ranks).rank == 1


def test_counted_work_is_summed_over_ranks() -> None:
    """80 + 60 samples; a rank without tokens leaves the sum unknown; steps are not summed (RS-21)."""
    ranks = [make_rank(0), make_rank(1, measured_samples=60, measured_tokens=None)]
    found = counted(COUNTS, ranks)
    assert (found.measured_samples, found.measured_tokens, found.measured_steps) == (140, None, 20)


def test_one_bad_loss_of_any_rank_and_step_is_told() -> None:
    """Also in warm-up, and on the rank that nobody waits for."""
    bad = make_steps((300.0, 100.0, *(90.0,) * 20), warmup=2, loss=math.nan)
    assert counted(COUNTS, [make_rank(0), make_rank(1)]).loss_finite is True
    assert counted(COUNTS, [make_rank(0), make_rank(1, steps=bad)]).loss_finite is False
    none = make_steps((300.0, 100.0, *(100.0,) * 20), warmup=2, loss=None)
    assert counted(COUNTS, [make_rank(0, steps=none)]).loss_finite is None


def test_mfu_by_hand() -> None:
    """494.75 TFLOP/s on an H200 in bf16 is half of 989.5; an unknown peak gives no MFU."""
    peak = common_peak([make_rank(0, environment=gpu("a")), make_rank(1, environment=gpu("b"))])
    assert mfu(494.75e12, peak) == pytest.approx(0.5)
    assert mfu(494.75e12, None) is None


def test_mfu_is_by_the_precision_that_ran() -> None:
    """TF32 at 494.5 TFLOP/s is all there is, though bf16 has twice that."""
    tf32 = {**gpu("a"), "effective_precision": "tf32"}
    assert mfu(494.5e12, common_peak([make_rank(environment=tf32)])) == pytest.approx(1.0)


def test_mixed_gpus_have_no_common_peak() -> None:
    """H200 and A100 together: neither's number."""
    ranks = [make_rank(0, environment=gpu("a")), make_rank(1, environment=gpu("b", "NVIDIA A100-SXM4-80GB"))]
    assert common_peak(ranks) is None


def test_rate_interval_by_hand() -> None:
    """A mean step of 100 ms within 80 to 125 ms: 40 samples a second within 40 x 100/125 = 32 and 40 x 100/80 = 50."""
    assert rate_interval(40.0, Interval(estimate=100.0, low=80.0, high=125.0)) == (32.0, 50.0)


def test_rate_interval_without_an_upper_end_is_none() -> None:
    """A mean step that might take no time at all bounds no rate."""
    assert rate_interval(40.0, Interval(estimate=100.0, low=-1.0, high=201.0)) == (None, None)
    assert rate_interval(40.0, None) == (None, None)


@given(st.lists(st.floats(min_value=0.01, max_value=1e3), min_size=1, max_size=8))
def test_the_mean_of_rates_is_never_below_the_headline(seconds: list[float]) -> None:
    """Jensen: averaging reciprocals flatters, whatever the windows; the headline does not."""
    total = rate(1000 * len(seconds), sum(seconds))
    assert total is not None
    assert sum(1000 / each for each in seconds) / len(seconds) >= total * (1 - 1e-9)
