"""The step loop: a number of steps run back to back. Warm-up and window are both made of it."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch

from raybench.engine.ranks import Ranks, synchronize
from raybench.engine.timeline import Timeline, intervals_ms, timeline
from raybench.engine.work import Work
from raybench.spec.config import Timing


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """What one rank saw of steps run back to back; the tuples have one value a step.

    `opened_ns` and `closed_ns` are the host's monotonic clock at both edges, the device idle. `energy_j` is None where
    the device does not say.
    """

    opened_ns: int
    closed_ns: int
    step_ms: tuple[float, ...]
    host_step_ms: tuple[float, ...]
    data_wait_ms: tuple[float, ...]
    loss: tuple[float | None, ...]
    forward_ms: tuple[float | None, ...]
    backward_ms: tuple[float | None, ...]
    optimizer_ms: tuple[float | None, ...]
    compute_ms: tuple[float | None, ...]
    samples: int
    tokens: int | None
    energy_j: float | None
    device_gap_ms: tuple[float | None, ...]
    loader_cpu_s: float | None = None
    optimizer_steps: int | None = None
    skipped_optimizer_steps: int | None = None

    @property
    def seconds(self) -> float:
        """Host time between the edges."""
        return (self.closed_ns - self.opened_ns) / 1e9


def run_stretch(
    work: Work,
    steps: int,
    device: torch.device,
    ranks: Ranks,
    energy: Callable[[], float | None],
    timing: Timing = "events",
) -> Stretch:
    """Run `steps` steps on all ranks at once. `energy` reads the device's joules so far.

    Between the clock readings there is nothing but work: everything is made before, and read after. `timing: sync`
    waits for the device after each step; `none` waits for it nowhere, and so times the host's launching alone.
    """
    marks = timeline(device, steps, len(work.parts), timing)
    work.watch(marks)
    losses = torch.zeros(steps, device=device)
    slots = losses.unbind() if work.has_loss else (None,) * steps
    waited_ns = [work.wait_ns] * (steps + 1)
    samples, tokens, updates = work.samples, work.tokens, work.updates()
    loader_cpu_s = work.loader_cpu_s()
    with _no_collection():
        ranks.barrier()                 # energy is read when the slowest rank is ready, then all set off together
        energy_before = energy()
        ranks.barrier()
        synchronize(device)
        marks.boundary()
        for step in range(steps):
            work.step(slots[step], marks)
            waited_ns[step + 1] = work.wait_ns
            if timing == "sync":
                synchronize(device)
            marks.boundary()
        if timing != "none":
            synchronize(device)
        closed_ns = time.perf_counter_ns()
        synchronize(device)
        energy_after = energy()
        loaders_took_s = _difference(loader_cpu_s, work.loader_cpu_s())
        ranks.barrier()
    return Stretch(
        opened_ns=marks.host_ns()[0],
        closed_ns=closed_ns,
        step_ms=tuple(marks.step_ms()),
        host_step_ms=tuple(intervals_ms(marks.host_ns())),
        data_wait_ms=tuple(intervals_ms(waited_ns)),
        loss=tuple(losses.tolist()) if work.has_loss else (None,) * steps,
        samples=work.samples - samples,
        tokens=None if work.tokens is None or tokens is None else work.tokens - tokens,
        forward_ms=_summed(work, marks, "forward", steps),
        backward_ms=_summed(work, marks, "backward", steps),
        optimizer_ms=_summed(work, marks, "optimizer", steps),
        compute_ms=tuple(marks.compute_ms()),
        **_updates(updates, work.updates()),
        energy_j=_difference(energy_before, energy_after),
        device_gap_ms=_summed(work, marks, "wait", steps) if marks.of_device else (None,) * steps,
        loader_cpu_s=loaders_took_s,
    )


def _summed(work: Work, marks: Timeline, name: str, steps: int) -> tuple[float | None, ...]:
    """What all parts of that name took of each step together: there is one for each micro step."""
    columns = [marks.part_ms(part) for part, found in enumerate(work.parts) if found == name]
    return tuple(map(sum, zip(*columns, strict=True))) if columns else (None,) * steps


def _difference(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _updates(before: tuple[int, int] | None, after: tuple[int, int] | None) -> dict[str, int | None]:
    made, skipped = (None, None) if before is None or after is None else (after[0] - before[0], after[1] - before[1])
    return {"optimizer_steps": made, "skipped_optimizer_steps": skipped}


@contextmanager
def _no_collection() -> Iterator[None]:
    """Python's garbage collector runs now, and not while steps are timed."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
