"""Readings of a GPU while steps run, taken by a process of their own. Imports no torch.

A thread would share the interpreter's lock with the loop that launches kernels, and so change what is measured. The
process keeps its readings and hands over those between two moments when it is asked; it ends when its input does, so
it cannot outlive the rank.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections import deque
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from raybench.engine.nvml import Nvml
from raybench.record.rank import RankTelemetry

INTERVAL_S: Final = 0.1
_KEPT: Final = 36_000          # readings, an hour at this interval


class Reading(NamedTuple):
    """One reading of one GPU. `t_ns` is CLOCK_MONOTONIC, which all processes of a node share."""

    t_ns: int
    utilization: float | None
    power_w: float | None


class Telemetry:
    """The readings of one rank's GPU; on CPU, where `uuid` is None, there is no process and no answer."""

    def __init__(self, uuid: str | None, nvml: Nvml) -> None:
        self._uuid, self._nvml = uuid, nvml
        self._sampler: subprocess.Popen[str] | None = None

    def start(self) -> None:
        """Begin to sample, unless it has begun."""
        if self._uuid is not None and self._sampler is None:
            command = [sys.executable, "-m", "raybench.engine.telemetry", self._uuid]
            self._sampler = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_importing_what_we_import(),
                start_new_session=True,      # Ctrl-C is for the rank; the sampler ends with its input
            )

    def energy_j(self) -> float | None:
        """The GPU's energy counter, now."""
        return self._nvml.energy_j(self._uuid)

    def between(self, opened_ns: int, closed_ns: int, energy_j: float | None) -> RankTelemetry:
        """Means over a window, with the energy that was read at its edges."""
        readings = self._readings(opened_ns, closed_ns)
        return RankTelemetry(
            utilization_mean=time_mean([(reading.t_ns, reading.utilization) for reading in readings]),
            power_mean_w=time_mean([(reading.t_ns, reading.power_w) for reading in readings]),
            energy_j=energy_j,
        )

    def close(self) -> None:
        """End the process."""
        if self._sampler is not None:
            self._sampler.communicate()
            self._sampler = None

    def _readings(self, opened_ns: int, closed_ns: int) -> list[Reading]:
        """None at all when the sampler died: telemetry that is lost does not fail a trial."""
        if self._sampler is None or self._sampler.poll() is not None:
            return []
        assert self._sampler.stdin is not None
        assert self._sampler.stdout is not None
        self._sampler.stdin.write(f"{opened_ns} {closed_ns}\n")
        self._sampler.stdin.flush()
        answer = self._sampler.stdout.readline()
        return [Reading(*values) for values in json.loads(answer)] if answer else []


def _importing_what_we_import() -> dict[str, str]:
    """The environment in which a new interpreter finds this very raybench: Ray may have it on `sys.path` only."""
    root = str(Path(__file__).parents[2])
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (root, os.environ.get("PYTHONPATH"))))}


def time_mean(readings: Sequence[tuple[int, float | None]]) -> float | None:
    """Mean over time of `(t_ns, value)`: each value holds until the next reading; None values are left out.

    The mean of the values themselves would count a moment twice in which the sampler ran late. None without values.
    """
    known = [(t_ns, value) for t_ns, value in readings if value is not None]
    if not known:
        return None
    held = [(value, later - t_ns) for (t_ns, value), (later, _) in pairwise(known)]
    total_ns = sum(duration for _, duration in held)
    return known[0][1] if total_ns == 0 else sum(value * duration for value, duration in held) / total_ns


def sample(uuid: str, nvml: Nvml, requests: Any, answers: Any) -> None:
    """Read the GPU every `INTERVAL_S`; answer each line `opened closed` with the readings between; end at its end."""
    kept: deque[Reading] = deque(maxlen=_KEPT)
    due_s = time.monotonic()
    while True:
        ready, _, _ = select.select([requests], [], [], max(0.0, due_s - time.monotonic()))
        if ready:
            line = requests.readline()
            if not line:
                return
            opened_ns, closed_ns = map(int, line.split())
            answers.write(json.dumps([reading for reading in kept if opened_ns <= reading.t_ns <= closed_ns]) + "\n")
            answers.flush()
        else:
            kept.append(Reading(time.monotonic_ns(), nvml.utilization(uuid), nvml.power_w(uuid)))
            due_s = max(due_s + INTERVAL_S, time.monotonic())


if __name__ == "__main__":
    sample(sys.argv[1], Nvml.load(), sys.stdin, sys.stdout)
