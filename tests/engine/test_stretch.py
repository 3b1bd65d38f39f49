"""The step loop's arithmetic, on a clock that only the work moves."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
import torch

from raybench.engine.ranks import Ranks
from raybench.engine.stretch import Stretch, run_stretch
from raybench.engine.timeline import Marks

CPU = torch.device("cpu")
MS = 1_000_000


class FakeWork:
    """Each step takes 10 ms of the made-up clock, 2 of them waiting, and counts 3 samples of 5 tokens.

    It has two micro steps of 1 + 1 + 2 ms, and 2 ms of optimizer; what is exchanged begins before the optimizer.
    """

    has_loss = True
    parts = ("wait", "forward", "backward", "wait", "forward", "backward", "optimizer")

    def __init__(self, pass_time: Callable[[int], None]) -> None:
        self.samples, self.tokens, self.wait_ns, self.steps = 7, 70, 123, 0
        self._pass_time = pass_time
        self.collected_inside = False

    def watch(self, marks: Marks | None) -> None:
        """Nothing beforehand."""

    def step(self, loss: torch.Tensor | None, marks: Marks) -> None:
        assert loss is not None
        self.collected_inside |= gc.isenabled()
        for ms in (1, 1, 2, 1, 1, 2):
            self._pass_time(ms * MS)
            marks.part()
        if self.steps != 1:
            marks.reduced()
        self._pass_time(2 * MS)
        loss += self.steps
        self.steps += 1
        self.samples += 3
        self.tokens += 15
        self.wait_ns += 2 * MS

    def updates(self) -> tuple[int, int]:
        return self.steps, 2 * self.steps

    def loader_cpu_s(self) -> float:
        return self.steps / 4

    def close(self) -> None:
        """Nothing was opened."""


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Stop the host's clock; the returned function moves it by nanoseconds."""
    now = [5_000 * MS]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])

    def forward(ns: int) -> None:
        now[0] += ns

    return forward


def test_fifty_steps_of_ten_milliseconds(pass_time: Callable[[int], None]) -> None:
    """The window is 0.5 s; counts are differences; losses are in order; energy is read at both edges, outside."""
    joules = iter([100.0, 160.0])

    def energy() -> float:
        pass_time(1_000 * MS)            # a slow reading must not fall into the window
        return next(joules)

    stretch = run_stretch(FakeWork(pass_time), 50, CPU, Ranks(CPU), energy)
    assert stretch == Stretch(
        opened_ns=6_000 * MS,
        closed_ns=6_500 * MS,
        step_ms=(10.0,) * 50,
        host_step_ms=(10.0,) * 50,
        data_wait_ms=(2.0,) * 50,
        forward_ms=(2.0,) * 50,         # 1 of each micro step
        backward_ms=(4.0,) * 50,
        optimizer_ms=(2.0,) * 50,
        compute_ms=(8.0, None, *(8.0,) * 48),       # the second step does not say
        loss=tuple(float(step) for step in range(50)),
        samples=150,
        tokens=750,
        optimizer_steps=50,
        skipped_optimizer_steps=100,
        energy_j=60.0,
        device_gap_ms=(None,) * 50,
        loader_cpu_s=12.5,
    )
    assert stretch.seconds == 0.5


def test_unknown_energy_stays_unknown(pass_time: Callable[[int], None]) -> None:
    """A device that does not answer has no energy, not 0."""
    assert run_stretch(FakeWork(pass_time), 1, CPU, Ranks(CPU), lambda: None).energy_j is None


def test_real_steps_sum_to_the_window() -> None:
    """50 steps that sleep 10 ms take at least 0.5 s on the real clock, and their times sum to it: 3 % is 15 ms."""
    stretch = run_stretch(FakeWork(lambda ns: time.sleep(ns / 1e9)), 50, CPU, Ranks(CPU), lambda: None)
    assert stretch.seconds >= 0.5
    assert min(stretch.step_ms) >= 10.0
    assert sum(stretch.step_ms) == pytest.approx(stretch.seconds * 1e3, rel=0.03)


def test_python_collects_no_garbage_inside(pass_time: Callable[[int], None]) -> None:
    """Collection is off while steps run, and as it was afterwards, whatever happens."""
    work = FakeWork(pass_time)
    run_stretch(work, 3, CPU, Ranks(CPU), lambda: None)
    assert not work.collected_inside
    assert gc.isenabled()
    work.step = lambda loss, marks: 1 / 0  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(ZeroDivisionError):
        run_stretch(work, 3, CPU, Ranks(CPU), lambda: None)
    assert gc.isenabled()


class Asynchronous:
    """A device on which work takes 10 ms, though handing it over takes none."""

    def __init__(self, pass_time: Callable[[int], None]) -> None:
        self._pass_time, self._queued = pass_time, 0

    def hand_over(self) -> None:
        self._queued += 10 * MS

    def synchronize(self, device: torch.device) -> None:
        self._pass_time(self._queued)
        self._queued = 0


@pytest.mark.parametrize(("timing", "seconds", "step_ms"), [
    ("events", 0.03, (0.0, 0.0, 0.0)),      # the host's clock has no events: it sees launching only
    ("sync", 0.03, (10.0, 10.0, 10.0)),
    ("none", 0.0, (0.0, 0.0, 0.0)),
])  # fmt: skip
def test_timing_says_when_the_device_is_waited_for(
    pass_time: Callable[[int], None], monkeypatch: pytest.MonkeyPatch, timing: str, seconds: float,
    step_ms: tuple[float, ...],
) -> None:  # fmt: skip
    """At the window's end, after each step, or not at all: then three steps of 10 ms take no time."""
    device = Asynchronous(pass_time)
    monkeypatch.setattr("raybench.engine.stretch.synchronize", device.synchronize)
    work = FakeWork(lambda ns: None)
    monkeypatch.setattr(work, "step", lambda loss, marks: (device.hand_over(), [marks.part() for _ in range(6)]))
    stretch = run_stretch(work, 3, CPU, Ranks(CPU), lambda: None, timing)  # type: ignore[arg-type]
    assert (stretch.seconds, stretch.step_ms) == (seconds, step_ms)
