"""What a step computes, as the loop sees it: for a network, for a source alone, and for work that is split."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

from raybench.engine.timeline import Marks
from raybench.engine.update import Update
from raybench.sources.base import Batches, loader_cpu_s
from raybench.sources.records import samples_in
from raybench.spec.config import Phase
from raybench.spec.samples import Batch


class Work(Protocol):
    """One rank's share of each step. The counts only ever grow; the loop takes differences.

    `samples`, `tokens`: counted from the batches that were really computed; `tokens` is None where there are none.
    `wait_ns`: host time spent waiting for batches. `has_loss`: whether `step` adds to the number it is given.
    `parts` names the parts of a step in order: it marks where each but the last ends.
    """

    has_loss: bool
    samples: int
    tokens: int | None
    wait_ns: int
    parts: tuple[str, ...]

    def watch(self, marks: Marks | None) -> None:
        """Note each following step's first gradient collective in `marks`, where that can be known."""
        ...

    def step(self, loss: torch.Tensor | None, marks: Marks) -> None:
        """Compute one step; add its loss to `loss`, a scalar on the device, without waiting for it."""
        ...

    def updates(self) -> tuple[int, int] | None:
        """Optimizer steps made and skipped so far; None without an optimizer. Waits for the device."""
        ...

    def loader_cpu_s(self) -> float | None:
        """CPU time so far of what makes batches; None where it is not known."""
        ...

    def close(self) -> None:
        """Give back what was opened. May be called twice."""
        ...


class SplitWork:
    """A step that is one call on each rank. All of them together are one sample, which rank 0 counts."""

    has_loss = False
    tokens: int | None = None
    wait_ns = 0
    parts: tuple[str, ...] = ("call",)

    def __init__(self, call: Callable[[], torch.Tensor | None], rank: int) -> None:
        self._call: Callable[[], torch.Tensor | None] | None = call
        self._result: torch.Tensor | None = None
        self._counts = 1 if rank == 0 else 0
        self.samples = 0

    def watch(self, marks: Marks | None) -> None:
        """There are no gradients."""

    def step(self, loss: torch.Tensor | None, marks: Marks) -> None:
        assert self._call is not None, "closed"
        self._result = None          # let go before the next is made, or two would be held at once
        self._result = self._call()
        self.samples += self._counts

    def retrieve_s(self) -> float | None:
        """Copy the last step's result into the host's memory, the device being idle: how long that took.

        None where a step gives no result to fetch.
        """
        if self._result is None:
            return None
        host = torch.empty_like(self._result, device="cpu")
        began = time.perf_counter()
        host.copy_(self._result)
        return time.perf_counter() - began

    def updates(self) -> None:
        return None

    def loader_cpu_s(self) -> None:
        return None

    def close(self) -> None:
        self._call = self._result = None


class LoadWork:
    """`grad_accum` batches a step and nothing done with them: what the source can deliver by itself."""

    has_loss = False

    def __init__(self, first: Batch, batches: Batches, grad_accum: int, tokens_per_sample: int | None) -> None:
        self._source = batches
        self._batches = _chained([first], batches)
        self._grad_accum, self._tokens_per_sample = grad_accum, tokens_per_sample
        self.samples = 0
        self.tokens = None if tokens_per_sample is None else 0
        self.wait_ns = 0
        self.parts = ("wait",) * grad_accum

    def watch(self, marks: Marks | None) -> None:
        """There are no gradients."""

    def step(self, loss: torch.Tensor | None, marks: Marks) -> None:
        for micro in range(1, self._grad_accum + 1):
            asked = time.perf_counter_ns()
            batch = next(self._batches)
            self.wait_ns += time.perf_counter_ns() - asked
            self.samples += samples_in(batch)
            if self.tokens is not None and self._tokens_per_sample is not None:
                self.tokens += samples_in(batch) * self._tokens_per_sample
            if micro < self._grad_accum:
                marks.part()

    def updates(self) -> None:
        return None

    def loader_cpu_s(self) -> float | None:
        return loader_cpu_s(self._source)

    def close(self) -> None:
        self._batches = iter(())
        self._source.close()


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a network's step is made of. `call` is the module as it runs: wrapped, compiled."""

    call: Callable[[Batch], torch.Tensor]
    phase: Phase
    grad_accum: int
    autocast: Callable[[], AbstractContextManager[None]]
    no_sync: Callable[[], AbstractContextManager[None]]
    watch: Callable[[Callable[[], None] | None], None]        # what to call before gradients are first exchanged
    update: Update
    tokens_in: Callable[[Batch], int] | None


class NetworkWork:
    """`grad_accum` micro steps over a source's batches, then the optimizer, as the phase asks."""

    has_loss = True

    def __init__(self, recipe: Recipe, first: Batch, batches: Batches) -> None:
        self._recipe: Recipe | None = recipe
        self._source = batches
        self._batches = _chained([first], batches)
        self.samples = 0
        self.tokens = None if recipe.tokens_in is None else 0
        self.wait_ns = 0
        self.parts = _parts(recipe.phase, recipe.grad_accum)

    def watch(self, marks: Marks | None) -> None:
        assert self._recipe is not None, "closed"
        self._recipe.watch(None if marks is None else marks.reduced)

    def step(self, loss: torch.Tensor | None, marks: Marks) -> None:
        recipe = self._recipe
        assert recipe is not None, "closed"
        assert loss is not None
        if recipe.phase == "forward":
            self._forward_only(recipe, loss, marks)
            return
        recipe.update.clear()
        for micro in range(1, recipe.grad_accum + 1):
            last = micro == recipe.grad_accum
            with nullcontext() if last else recipe.no_sync():
                share = self._forward(recipe, loss, marks)
                marks.part()
                recipe.update.backward(share)
            if not last or recipe.phase == "train":
                marks.part()
        recipe.update.step()

    def _forward_only(self, recipe: Recipe, loss: torch.Tensor, marks: Marks) -> None:
        with torch.no_grad():
            for micro in range(1, recipe.grad_accum + 1):
                self._forward(recipe, loss, marks)
                if micro < recipe.grad_accum:
                    marks.part()

    def updates(self) -> tuple[int, int] | None:
        assert self._recipe is not None, "closed"
        return self._recipe.update.counts() if self._recipe.phase == "train" else None

    def loader_cpu_s(self) -> float | None:
        return loader_cpu_s(self._source)

    def close(self) -> None:
        if self._recipe is not None:
            self.watch(None)
        self._recipe = None
        self._batches = iter(())
        self._source.close()

    def _forward(self, recipe: Recipe, loss: torch.Tensor, marks: Marks) -> torch.Tensor:
        """One micro step's share of the step's loss: micro-batches are equal, so their mean is the step's."""
        batch = self._next_batch()
        marks.part()
        self.samples += samples_in(batch)
        if recipe.tokens_in is not None and self.tokens is not None:
            self.tokens += recipe.tokens_in(batch)
        with recipe.autocast():
            share = recipe.call(batch)
            if recipe.grad_accum > 1:
                share = share / recipe.grad_accum
        loss += share.detach()
        return share

    def _next_batch(self) -> Batch:
        asked = time.perf_counter_ns()
        batch = next(self._batches)
        self.wait_ns += time.perf_counter_ns() - asked
        return batch


def _parts(phase: Phase, grad_accum: int) -> tuple[str, ...]:
    """Of each micro step waiting for its batch, the forward and the backward pass; then the optimizer."""
    micro = ("wait", "forward") if phase == "forward" else ("wait", "forward", "backward")
    return micro * grad_accum + (("optimizer",) if phase == "train" else ())


def _chained(fetched: list[Batch], batches: Batches) -> Iterator[Batch]:
    """The batch that was fetched while building, then the rest. Popped, or its memory would be held to the end."""
    yield fetched.pop()
    while True:
        yield next(batches)
