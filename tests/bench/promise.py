"""One promise about raybench's own cost, and whether it was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from raybench.measure.statistics import Interval, paired_ratio_interval


@dataclass(frozen=True)
class Promise:
    """What was measured, in words and figures, against its bound."""

    what: str
    measured: str
    bound: str
    kept: bool


def at_most(what: str, value: float, bound: float, unit: str) -> Promise:
    """A figure that may not exceed its bound."""
    return Promise(what, f"{value:.3g} {unit}", f"at most {bound:g} {unit}", value <= bound)


@dataclass(frozen=True)
class Speed:
    """How fast one arm is against the other, by seconds: of the fastest runs, and of all, in words too."""

    fastest: float
    all_runs: Interval
    words: str


def speed_of(blocks: Sequence[tuple[float, ...]], runs: str) -> Speed:
    """Blocks of seconds A B B A: the speed of A as a share of B's. `runs` names them: runs, passes."""
    speed = paired_ratio_interval([((b1 * b2) / (a1 * a2)) ** 0.5 for a1, b1, b2, a2 in blocks])
    noise = paired_ratio_interval([b1 / b2 for _, b1, b2, _ in blocks])
    assert speed is not None
    assert noise is not None
    fastest = min(min(b1, b2) for _, b1, b2, _ in blocks) / min(min(a1, a2) for a1, _, _, a2 in blocks)
    words = f"{fastest:.2f}; of all {runs} {speed.estimate:.2f} [{speed.low:.2f}, {speed.high:.2f}]"
    return Speed(fastest, speed, f"{words}  (A/A {noise.low:.2f} to {noise.high:.2f})")
