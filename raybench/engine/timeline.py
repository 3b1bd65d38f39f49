"""When each step began and ended: on the host's clock, and on the device's where it has one."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Protocol

import torch


class Timeline(Protocol):
    """Marks of `steps + 1` boundaries. `mark` is all that happens between two steps; the rest is for afterwards."""

    def mark(self, boundary: int) -> None:
        """This boundary is now."""
        ...

    def host_ns(self) -> list[int]:
        """Each boundary on the host's monotonic clock."""
        ...

    def step_ms(self) -> list[float]:
        """Boundary to boundary, by the most faithful clock there is. Waits for nothing: synchronise first."""
        ...


class HostTimeline:
    """One reading of the host's clock per boundary, which on CPU is all there is to know."""

    def __init__(self, steps: int) -> None:
        self._marks = [0] * (steps + 1)

    def mark(self, boundary: int) -> None:
        self._marks[boundary] = time.perf_counter_ns()

    def host_ns(self) -> list[int]:
        return self._marks

    def step_ms(self) -> list[float]:
        return intervals_ms(self._marks)


class CudaTimeline:
    """An event on the stream beside each host reading: the host runs ahead, the device says when steps really ended."""

    def __init__(self, steps: int) -> None:
        self._host = HostTimeline(steps)
        self._events = [torch.cuda.Event(enable_timing=True) for _ in range(steps + 1)]  # type: ignore[no-untyped-call]
        for event in self._events:      # the driver makes an event when it is first recorded: not inside a window
            event.record()

    def mark(self, boundary: int) -> None:
        self._events[boundary].record()
        self._host.mark(boundary)

    def host_ns(self) -> list[int]:
        return self._host.host_ns()

    def step_ms(self) -> list[float]:
        return [float(begin.elapsed_time(end)) for begin, end in pairwise(self._events)]


def timeline(device: torch.device, steps: int) -> Timeline:
    """The timeline of a device, everything it will need made beforehand."""
    return CudaTimeline(steps) if device.type == "cuda" else HostTimeline(steps)


def intervals_ms(marks_ns: list[int]) -> list[float]:
    """Differences of neighbouring marks, in milliseconds."""
    return [(end - begin) / 1e6 for begin, end in pairwise(marks_ns)]
