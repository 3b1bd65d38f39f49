"""Readings of a GPU from a process of their own, with a made-up NVML."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from raybench.engine import telemetry
from raybench.engine.nvml import Nvml
from raybench.engine.telemetry import Reading, Telemetry, sample, time_mean
from raybench.record.rank import RankTelemetry
from tests.engine.fake_nvml import FakeNvml


@pytest.mark.parametrize(
    ("readings", "expected"),
    [
        ([], None),
        ([(0, None), (1, None)], None),
        ([(5, 0.5)], 0.5),
        ([(0, 1.0), (10, 0.0), (20, 0.0)], 0.5),
        # 1.0 holds for 30 of 40: a sampler that was late once counts the long moment as long.
        ([(0, 1.0), (30, 0.0), (40, 0.0)], 0.75),
        ([(0, 1.0), (10, None), (30, 0.0), (40, 0.0)], 0.75),
        ([(7, 0.25), (7, 0.75)], 0.25),
    ],
)
def test_time_mean(readings: list[tuple[int, float | None]], expected: float | None) -> None:
    """Each value holds until the next reading."""
    assert time_mean(readings) == expected


def test_only_readings_inside_the_window_count() -> None:
    """The sampler is asked for everything up to now and from now on: each reading is in exactly one of the answers."""
    read, write = os.pipe()
    answers = io.StringIO()
    with os.fdopen(read) as requests:
        thread = threading.Thread(target=sample, args=("GPU-a", Nvml(FakeNvml("GPU-a")), requests, answers))
        thread.start()
        _ask(write, answers, "0 9999999999999999999", until_more_than=2)
        now = time.monotonic_ns()
        os.write(write, f"0 {now}\n{now + 1} 9999999999999999999\n".encode())
        os.close(write)
        thread.join(10)
    assert not thread.is_alive()
    before = [json.loads(line) for line in answers.getvalue().splitlines()][-2]
    assert all(0 <= t_ns <= now for t_ns, *_ in before)
    assert Reading(*before[0])[1:] == (0.5, 700.0)


def _ask(write: int, answers: io.StringIO, window: str, until_more_than: int) -> None:
    """Ask until there are enough readings."""
    while not answers.getvalue() or len(json.loads(answers.getvalue().splitlines()[-1])) <= until_more_than:
        os.write(write, f"{window}\n".encode())
        time.sleep(0.01)


def test_the_clock_is_the_one_that_steps_are_timed_by() -> None:
    """The window's edges are `perf_counter_ns`, the readings `monotonic_ns`: on Linux both are CLOCK_MONOTONIC."""
    names = {time.get_clock_info(name).implementation for name in ("perf_counter", "monotonic")}
    assert names == {"clock_gettime(CLOCK_MONOTONIC)"}


def test_on_cpu_nothing_is_started() -> None:
    """No process, no figures."""
    nothing = Telemetry(None, Nvml(None))
    nothing.start()
    assert nothing.energy_j() is None
    assert nothing.between(0, time.monotonic_ns(), None) == RankTelemetry(
        utilization_mean=None, power_mean_w=None, energy_j=None
    )
    nothing.close()


def test_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It answers over its pipes, and ends when told. It finds a made-up NVML where `pynvml` is looked for."""
    root = Path(__file__).parents[2]
    (tmp_path / "pynvml.py").write_text(
        "import sys\nfrom tests.engine.fake_nvml import FakeNvml\n"
        "fake = FakeNvml('GPU-a')\nfake.nvmlInit = lambda: None\nsys.modules[__name__] = fake\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{root}")
    meter = Telemetry("GPU-a", Nvml(FakeNvml("GPU-a")))
    meter.start()
    opened = time.monotonic_ns()
    while (found := meter.between(opened, time.monotonic_ns(), 12.0)).power_mean_w is None:
        time.sleep(0.01)
    assert found == RankTelemetry(utilization_mean=0.5, power_mean_w=700.0, energy_j=12.0)
    meter.close()


def test_a_sampler_that_died_leaves_the_trial_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its figures are unknown; nothing is raised."""
    monkeypatch.setattr(telemetry.sys, "executable", "/bin/false")
    meter = Telemetry("GPU-a", Nvml(FakeNvml("GPU-a")))
    meter.start()
    assert meter._sampler is not None
    meter._sampler.wait(10)
    assert meter.between(0, time.monotonic_ns(), 3.0) == RankTelemetry(
        utilization_mean=None, power_mean_w=None, energy_j=3.0
    )
    meter.close()


def test_the_sampler_imports_no_torch() -> None:
    """It starts with every session on a GPU: 1.6 s of a core beside the first warm-up would be felt."""
    code = "import sys, raybench.engine.telemetry; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
