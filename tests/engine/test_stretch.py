"""The step loop's arithmetic, on a clock that only the work moves."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

import pytest
import torch

from raybench.engine.ranks import Ranks
from raybench.engine.stretch import Stretch, run_stretch

CPU = torch.device("cpu")
MS = 1_000_000


class FakeWork:
    """Each step takes 10 ms of the made-up clock, 2 of them waiting, and counts 3 samples of 5 tokens."""

    has_loss = True

    def __init__(self, pass_time: Callable[[int], None]) -> None:
        self.samples, self.tokens, self.wait_ns, self.steps = 7, 70, 123, 0
        self._pass_time = pass_time
        self.collected_inside = False

    def step(self, loss: torch.Tensor | None) -> None:
        assert loss is not None
        self.collected_inside |= gc.isenabled()
        self._pass_time(10 * MS)
        loss += self.steps
        self.steps += 1
        self.samples += 3
        self.tokens += 15
        self.wait_ns += 2 * MS

    def updates(self) -> tuple[int, int]:
        return self.steps, 2 * self.steps

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
        loss=tuple(float(step) for step in range(50)),
        samples=150,
        tokens=750,
        optimizer_steps=50,
        skipped_optimizer_steps=100,
        energy_j=60.0,
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
    work.step = lambda loss: 1 / 0  # type: ignore[assignment, method-assign, return-value]
    with pytest.raises(ZeroDivisionError):
        run_stretch(work, 3, CPU, Ranks(CPU), lambda: None)
    assert gc.isenabled()
