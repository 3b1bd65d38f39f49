"""How many steps, with made-up step times."""

from __future__ import annotations

from raybench.engine.extent import fewest_warm_up_steps, warm_up, window_steps
from raybench.engine.stretch import Stretch
from raybench.spec.config import Extent


def stretch(steps: int, step_ms: float) -> Stretch:
    """Even steps."""
    return Stretch(
        opened_ns=0, closed_ns=int(steps * step_ms * 1e6), step_ms=(step_ms,) * steps, host_step_ms=(), samples=0,
        data_wait_ms=(), forward_ms=(), backward_ms=(), optimizer_ms=(), compute_ms=(), loss=(), tokens=None,
        energy_j=None, device_gap_ms=(),
    )  # fmt: skip


def alone(value: float) -> float:
    """One rank agrees with itself."""
    return value


def sizes(extent: Extent, *, step_ms: float = 100.0, at_least: int = 0, slowest: float = 1.0) -> list[int]:
    """How long the stretches of a warm-up are, when the slowest rank takes `slowest` times as long as this one."""
    done = warm_up(lambda steps: stretch(steps, step_ms), extent, lambda value: slowest * value, at_least=at_least)
    return [len(one.step_ms) for one in done]


def test_warm_up_by_steps_is_one_stretch() -> None:
    """5 steps are one stretch of 5; 0 are none, unless one is needed."""
    assert sizes(Extent(steps=5)) == [5]
    assert sizes(Extent(steps=0)) == []
    assert sizes(Extent(steps=0), at_least=3) == [3]


def test_warm_up_by_seconds_grows_and_does_not_overshoot() -> None:
    """1 s of 100 ms steps: 1, 2, 4, and the 3 that are left."""
    assert sizes(Extent(seconds=1.0)) == [1, 2, 4, 3]


def test_warm_up_goes_by_the_slowest_rank() -> None:
    """On a rank twice as fast as the slowest: 200 ms steps fill 1 s with 1, 2 and 2."""
    assert sizes(Extent(seconds=1.0), slowest=2.0) == [1, 2, 2]


def test_one_long_step_is_enough() -> None:
    """A step longer than the warm-up; two more where the window is to go by them."""
    assert sizes(Extent(seconds=0.05)) == [1]
    assert sizes(Extent(seconds=0.05), at_least=3) == [1, 1, 1]


def test_only_a_window_in_seconds_needs_warm_up() -> None:
    """Three steps, so that their median leaves the first one out."""
    assert fewest_warm_up_steps(Extent(steps=20)) == 0
    assert fewest_warm_up_steps(Extent(seconds=2.0)) == 3


def test_window_by_steps() -> None:
    """As asked, whatever warm-up took."""
    assert window_steps(Extent(steps=20), [], alone) == 20


def test_window_by_seconds_goes_by_the_last_warm_up_steps() -> None:
    """The median of the last five (60, 40, 50, 50, 50) is 50 ms: 2 s are 40 steps; the first steps do not count."""
    assert window_steps(Extent(seconds=2.0), [9000.0, 900.0, 60.0, 40.0, 50.0, 50.0, 50.0], alone) == 40


def test_window_by_seconds_has_ten_steps_at_least() -> None:
    """1 s of 500 ms steps would be 2."""
    assert window_steps(Extent(seconds=1.0), [500.0], alone) == 10


def test_window_by_seconds_goes_by_the_slowest_rank() -> None:
    """50 ms here, 100 ms on the slowest: 20 steps in 2 s, on all ranks."""
    assert window_steps(Extent(seconds=2.0), [50.0], lambda value: 2 * value) == 20
