"""Statistics against hand-worked numbers, numpy's own definition, and their own promises by simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybench.measure.statistics import (
    Interval,
    StepStatistics,
    block_interval,
    geometric_mean,
    paired_ratio_interval,
    ratio_interval,
    stability,
    step_statistics,
)

Array = npt.NDArray[np.float64]
times = st.lists(st.floats(min_value=1e-3, max_value=1e6), min_size=1, max_size=60)


def test_step_statistics_by_hand() -> None:
    """Five steps: mean 30, squares 400+100+0+100+400 over 4 = 250; p95 lies 0.8 of the way from 40 to 50, p99 0.96."""
    assert step_statistics([50.0, 10.0, 30.0, 20.0, 40.0]) == StepStatistics(
        n=5,
        mean=30.0,
        std=pytest.approx(250**0.5),
        cv=pytest.approx(250**0.5 / 30),
        min=10.0,
        p50=30.0,
        p95=pytest.approx(48.0),
        p99=pytest.approx(49.6),
        max=50.0,
    )


def test_cv_of_the_published_example() -> None:
    """Mean 172.94 ms and standard deviation 2.41 ms make 1.39 % (FB-18): two steps 2.41 / sqrt(2) to each side."""
    half = 2.41 / 2**0.5
    found = step_statistics([172.94 - half, 172.94 + half])
    assert found.std == pytest.approx(2.41)
    assert found.cv == pytest.approx(0.0139, abs=5e-5)


@pytest.mark.parametrize(("cv", "word"), [
    (2.41 / 172.94, "stable"), (0.0499, "stable"), (0.05, "moderate"), (0.0999, "moderate"), (0.10, "high"),
])  # fmt: skip
def test_the_word_for_a_spread(cv: float, word: str) -> None:
    """Below 5 % stable, below 10 % moderate, else high (FB-20)."""
    assert stability(cv) == word


def test_undefined_is_none() -> None:
    """No steps have no mean; one step has no spread."""
    assert step_statistics([]) == StepStatistics(n=0)
    assert step_statistics([7.0]) == StepStatistics(n=1, mean=7.0, min=7.0, p50=7.0, p95=7.0, p99=7.0, max=7.0)


@given(times)
def test_percentiles_are_numpys(values: list[float]) -> None:
    """Linear interpolation between order statistics, at rank q (n - 1) (RS-20)."""
    found = step_statistics(values)
    ordered = sorted(values)
    for share, percentile in ((0.5, found.p50), (0.95, found.p95), (0.99, found.p99)):
        below = int(share * (len(values) - 1))
        above = min(below + 1, len(values) - 1)
        part = share * (len(values) - 1) - below
        assert percentile == pytest.approx(ordered[below] + part * (ordered[above] - ordered[below]), rel=1e-9)


@given(times)
def test_statistics_keep_their_order(values: list[float]) -> None:
    """Minimum, median, percentiles, maximum never cross; order of the steps does not matter."""
    found = step_statistics(values)
    assert found.min is not None
    assert found.p50 is not None
    assert found.p95 is not None
    assert found.p99 is not None
    assert found.max is not None
    assert found.min <= found.p50 <= found.p95 <= found.p99 <= found.max
    assert step_statistics(values[::-1]).p95 == found.p95


def test_block_interval_by_hand() -> None:
    """Twenty steps are five blocks of four, with means 8, 9, 10, 11, 12.

    Their standard deviation is sqrt(2.5), of the mean sqrt(2.5 / 5) = sqrt(0.5); t(4, 97.5 %) = 2.776445.
    """
    steps = [float(block) for block in (8, 9, 10, 11, 12) for _ in range(4)]
    half_width = 2.776445 * 0.5**0.5
    found = block_interval(steps)
    assert found == Interval(
        estimate=10.0, low=pytest.approx(10 - half_width, abs=1e-6), high=pytest.approx(10 + half_width, abs=1e-6)
    )
    assert found.relative_half_width == pytest.approx(half_width / 10, abs=1e-7)


def test_blocks_are_five_to_ten() -> None:
    """Where all blocks but the first are alike, the half-width tells how many there are.

    One block of mean 1 + x among k ones: standard deviation x / sqrt(k), half-width t x / k.
    """
    five, ten = block_interval([2.0] * 4 + [1.0] * 16), block_interval([2.0] * 30 + [1.0] * 270)
    assert five is not None
    assert ten is not None
    assert (five.estimate, ten.estimate) == pytest.approx((1.2, 1.1))
    assert five.high - 1.2 == pytest.approx(2.776445 / 5, abs=1e-6)  # t(4, 97.5 %)
    assert ten.high - 1.1 == pytest.approx(2.262157 / 10, abs=1e-6)  # t(9, 97.5 %)


def test_no_interval_below_twenty_steps() -> None:
    """19 steps cannot tell, 20 can."""
    assert block_interval([1.0] * 19) is None
    assert block_interval([1.0] * 20) == Interval(estimate=1.0, low=1.0, high=1.0)


@pytest.mark.parametrize(
    ("correlation", "steps", "at_least", "at_most"),
    [(0.0, 20, 0.93, 0.97), (0.6, 20, 0.86, 0.92), (0.0, 100, 0.93, 0.97), (0.6, 100, 0.91, 0.95)],
)
def test_block_interval_covers_the_truth(correlation: float, steps: int, at_least: float, at_most: float) -> None:
    """Of 2000 series with a known mean, how many intervals hold it: nearly all they promise, even for AR(1) noise."""
    series = 100 + 5 * _autoregressive(np.random.default_rng(20), 2000, steps, correlation)
    found = [block_interval(list(values)) for values in series]
    covered = np.mean([interval is not None and interval.low <= 100 <= interval.high for interval in found])
    assert at_least <= covered <= at_most


def test_ratio_interval_by_hand() -> None:
    """Logs 0, 2 against 0, 0: means 1 and 0, variance of the first mean 2 / 2 = 1, one degree of freedom.

    t(1, 97.5 %) = 12.706205; the ratio of the geometric means is e.
    """
    found = ratio_interval([1.0, np.exp(2.0)], [1.0, 1.0])
    assert found == Interval(
        estimate=pytest.approx(np.e),
        low=pytest.approx(np.exp(1 - 12.706205), rel=1e-5),
        high=pytest.approx(np.exp(1 + 12.706205), rel=1e-5),
    )


def test_ratio_interval_is_welchs() -> None:
    """The same interval as scipy's Welch test gives for the logs."""
    from scipy import stats

    a, b = [10.1, 10.4, 9.9, 10.2], [8.0, 8.5, 7.7]
    expected = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.9)
    found = ratio_interval(a, b, confidence=0.9)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((np.exp(expected.low), np.exp(expected.high)))


def test_one_run_has_no_spread() -> None:
    """A single repeat on either side gives no interval, nor does a single block."""
    assert ratio_interval([1.0], [1.0, 2.0]) is None
    assert ratio_interval([1.0, 2.0], [1.0]) is None
    assert paired_ratio_interval([1.0]) is None


def test_repeats_that_agree_exactly_have_no_width() -> None:
    """No variance at all on both sides: the interval is the ratio."""
    assert ratio_interval([4.0, 4.0], [2.0, 2.0]) == Interval(estimate=2.0, low=2.0, high=2.0)


@given(st.lists(st.floats(0.1, 10), min_size=2, max_size=8), st.lists(st.floats(0.1, 10), min_size=2, max_size=8))
def test_ratio_interval_turns_round(a: list[float], b: list[float]) -> None:
    """b / a is the reciprocal of a / b, ends swapped: it does not matter which side is called the baseline."""
    forth, back = ratio_interval(a, b), ratio_interval(b, a)
    assert forth is not None
    assert back is not None
    assert np.log([forth.low, forth.estimate, forth.high]) == pytest.approx(
        -np.log([back.high, back.estimate, back.low]), abs=1e-6, rel=1e-6
    )


def test_paired_ratio_interval_by_hand() -> None:
    """Ratios 1 and e^2: mean log 1, standard deviation sqrt(2), of the mean 1; t(1, 97.5 %) = 12.706205."""
    assert paired_ratio_interval([1.0, np.exp(2.0)]) == Interval(
        estimate=pytest.approx(np.e),
        low=pytest.approx(np.exp(1 - 12.706205), rel=1e-5),
        high=pytest.approx(np.exp(1 + 12.706205), rel=1e-5),
    )


def _welch(rng: np.random.Generator) -> Interval | None:
    """Three repeats of 20 with 2 % noise against five of 10 with 5 %."""
    return ratio_interval(list(20 * np.exp(0.02 * rng.normal(size=3))), list(10 * np.exp(0.05 * rng.normal(size=5))))


def _paired(rng: np.random.Generator) -> Interval | None:
    """Ten blocks, whose ratios have 3 % noise around 2."""
    return paired_ratio_interval(list(2 * np.exp(0.03 * rng.normal(size=10))))


@pytest.mark.parametrize("draw", [_welch, _paired])
def test_ratio_intervals_cover_the_truth(draw: Callable[[np.random.Generator], Interval | None]) -> None:
    """Of 2000 draws with the true ratio 2, about 95 % of the intervals hold it."""
    rng = np.random.default_rng(7)
    found = [draw(rng) for _ in range(2000)]
    covered = np.mean([interval is not None and interval.low <= 2 <= interval.high for interval in found])
    assert 0.93 <= covered <= 0.97


def test_geometric_mean_of_opposites_is_one() -> None:
    """Twice as fast and half as fast make no difference."""
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)


def _autoregressive(rng: np.random.Generator, series: int, steps: int, correlation: float) -> Array:
    """AR(1) series of unit innovations, after a run-in of 200."""
    noise = rng.normal(size=(series, steps + 200))
    for step in range(1, noise.shape[1]):
        noise[:, step] += correlation * noise[:, step - 1]
    return noise[:, 200:]
