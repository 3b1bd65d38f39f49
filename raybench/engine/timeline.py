"""When each step and each part of it began and ended: on the host's clock, and on the device's where it has one."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Protocol

import torch

from raybench.spec.config import Timing


class Marks(Protocol):
    """What a step may note of itself while it runs."""

    def part(self) -> None:
        """A part of the step ends now, and the next one begins."""
        ...

    def reduced(self) -> None:
        """The step's first gradient collective begins now."""
        ...


class Timeline(Marks, Protocol):
    """Marks of `steps` steps of as many parts each. Marking is all that happens inside; the rest is for afterwards.

    `of_device`: whether the device itself says when its marks were passed.
    """

    of_device: bool

    def boundary(self) -> None:
        """A step ends now, and the next one begins; the first call is where the first step begins."""
        ...

    def host_ns(self) -> list[int]:
        """Each boundary on the host's monotonic clock."""
        ...

    def step_ms(self) -> list[float]:
        """Boundary to boundary, by the most faithful clock there is. Waits for nothing: synchronise first."""
        ...

    def part_ms(self, part: int) -> list[float]:
        """How long that part (from 0) took of each step, by the same clock."""
        ...

    def compute_ms(self) -> list[float | None]:
        """From each step's beginning to its first gradient collective; None where none was noted."""
        ...


class HostTimeline:
    """One reading of the host's clock per mark, which on CPU is all there is to know."""

    of_device = False

    def __init__(self, steps: int, parts: int) -> None:
        self._parts, self._at, self._step = parts, 0, 0
        self._marks = [0] * (steps * parts + 1)
        self._reduced: list[int | None] = [None] * steps

    def part(self) -> None:
        self._marks[self._at] = time.perf_counter_ns()
        self._at += 1

    def boundary(self) -> None:
        self.part()
        self._step = self._at // self._parts

    def reduced(self) -> None:
        self._reduced[self._step] = time.perf_counter_ns()

    def host_ns(self) -> list[int]:
        return self._marks[:: self._parts]

    def step_ms(self) -> list[float]:
        return intervals_ms(self.host_ns())

    def part_ms(self, part: int) -> list[float]:
        return intervals_ms(self._marks)[part :: self._parts]

    def compute_ms(self) -> list[float | None]:
        noted = zip(self.host_ns(), self._reduced, strict=False)
        return [None if reduced is None else (reduced - begin) / 1e6 for begin, reduced in noted]


class CudaTimeline:
    """An event on the stream beside each host reading: the host runs ahead, the device says when steps really ended."""

    of_device = True

    def __init__(self, steps: int, parts: int) -> None:
        self._host = HostTimeline(steps, parts)
        self._parts, self._at = parts, 0
        self._events = _events(steps * parts + 1)
        self._reduced = _events(steps)
        self._noted = [False] * steps

    def part(self) -> None:
        self._events[self._at].record()
        self._at += 1
        self._host.part()

    def boundary(self) -> None:
        self._events[self._at].record()
        self._at += 1
        self._host.boundary()

    def reduced(self) -> None:
        step = (self._at - 1) // self._parts
        self._reduced[step].record()
        self._noted[step] = True

    def host_ns(self) -> list[int]:
        return self._host.host_ns()

    def step_ms(self) -> list[float]:
        return [float(begin.elapsed_time(end)) for begin, end in pairwise(self._events[:: self._parts])]

    def part_ms(self, part: int) -> list[float]:
        between = zip(self._events[part :: self._parts], self._events[part + 1 :: self._parts], strict=False)
        return [float(begin.elapsed_time(end)) for begin, end in between]

    def compute_ms(self) -> list[float | None]:
        noted = zip(self._events[:: self._parts], self._reduced, self._noted, strict=False)
        return [float(begin.elapsed_time(reduced)) if known else None for begin, reduced, known in noted]


def timeline(device: torch.device, steps: int, parts: int = 1, timing: Timing = "events") -> Timeline:
    """The timeline of a device, everything it will need made beforehand; `timing: none` looks at the host alone."""
    cuda = device.type == "cuda" and timing != "none"
    return CudaTimeline(steps, parts) if cuda else HostTimeline(steps, parts)


def intervals_ms(marks_ns: list[int]) -> list[float]:
    """Differences of neighbouring marks, in milliseconds."""
    return [(end - begin) / 1e6 for begin, end in pairwise(marks_ns)]


def _events(count: int) -> list[torch.cuda.Event]:
    """The driver makes an event when it is first recorded: not inside a window."""
    made = [torch.cuda.Event(enable_timing=True) for _ in range(count)]  # type: ignore[no-untyped-call]
    for event in made:
        event.record()
    return made
