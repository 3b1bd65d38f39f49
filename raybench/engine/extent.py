"""How many steps: warm-up by steps or by seconds, and a window of so many seconds turned into steps beforehand."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence

from raybench.engine.stretch import Stretch
from raybench.spec.config import Extent

_FEWEST_STEPS = 10        # below that no window is valid
_LAST_STEPS = 5           # of warm-up, that tell how fast the window will be

Agree = Callable[[float], float]      # the largest of all ranks' values


def fewest_warm_up_steps(window: Extent) -> int:
    """A window given in seconds needs steps to go by: three, for the first is no measure of the others."""
    return 0 if window.seconds is None else 3


def warm_up(run: Callable[[int], Stretch], extent: Extent, agree: Agree, *, at_least: int) -> list[Stretch]:
    """Run the warm-up: one stretch of so many steps, or growing stretches until all ranks agree that it was enough.

    `at_least` steps are run even when fewer are asked for.
    """
    if extent.seconds is None:
        steps = max(extent.steps or 0, at_least)
        return [run(steps)] if steps else []
    stretches, elapsed_s, steps, done = [], 0.0, 1, 0
    while elapsed_s < extent.seconds or done < at_least:
        stretches.append(run(steps))
        took_s = agree(stretches[-1].seconds)
        elapsed_s, done = elapsed_s + took_s, done + steps
        left = math.ceil((extent.seconds - elapsed_s) / (took_s / steps))
        steps = max(1, min(2 * steps, left))
    return stretches


def window_steps(extent: Extent, warmup_step_ms: Sequence[float], agree: Agree) -> int:
    """Steps of the window, the same on all ranks: as asked, or so many that the slowest rank fills the seconds."""
    if extent.seconds is None:
        assert extent.steps, "a window of no steps"
        return extent.steps
    slowest_ms = agree(statistics.median(warmup_step_ms[-_LAST_STEPS:]))
    return max(_FEWEST_STEPS, math.ceil(extent.seconds * 1e3 / slowest_ms))
