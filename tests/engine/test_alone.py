"""Whether others hold a GPU, with a made-up NVML and a made-up clock."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from raybench.engine.alone import WAIT_S, wait_until_alone
from raybench.engine.nvml import Nvml
from raybench.errors import GpuBusyError
from tests.engine.fake_nvml import FakeNvml

GIB = 2**30
MINE = 42


class Waiting:
    """A clock that only pausing moves; `leaves_at_s` is when the other process ends."""

    def __init__(self, fake: FakeNvml, leaves_at_s: float | None = None) -> None:
        self.now_s = 0.0
        self._fake, self._leaves_at_s = fake, leaves_at_s

    def clock(self) -> float:
        return self.now_s

    def pause(self, seconds: float) -> None:
        self.now_s += seconds
        if self._leaves_at_s is not None and self.now_s >= self._leaves_at_s:
            self._fake.processes = [process(MINE, GIB)]


def process(pid: int, held: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=held)


def wait(fake: FakeNvml, leaves_at_s: float | None = None) -> float:
    """How long the wait took, on the made-up clock."""
    waiting = Waiting(fake, leaves_at_s)
    wait_until_alone(Nvml(fake), "GPU-a", MINE, waiting.clock, waiting.pause)
    return waiting.now_s


@pytest.mark.parametrize(
    "others",
    [
        [process(MINE, 80 * GIB)],  # only ourselves, however much
        [process(MINE, GIB), process(1, 400 * 2**20)],  # a display's context
        [process(7, 2 * GIB)],  # our own id is not listed: a container renumbers
        [process(MINE, GIB), process(1, None)],  # the other's memory is not told
        [],
    ],
)
def test_nobody_to_wait_for(others):
    """No wait at all."""
    fake = FakeNvml("GPU-a")
    fake.processes = others
    assert wait(fake) == 0.0


def test_somebody_leaves_in_time():
    """The group before this one is still ending: its memory goes after 3 s."""
    fake = FakeNvml("GPU-a")
    fake.processes = [process(MINE, GIB), process(1, 2 * GIB)]
    assert wait(fake, leaves_at_s=3.0) == pytest.approx(3.0)


def test_somebody_stays():
    """Refused after 30 s, with who and how much."""
    fake = FakeNvml("GPU-a")
    fake.processes = [process(MINE, GIB), process(1, 2 * GIB), process(9, GIB)]
    with pytest.raises(GpuBusyError, match=r"pid 1, 9\) hold 3.0 GiB on GPU-a after 30 s"):
        wait(fake)
    assert WAIT_S == 30.0
