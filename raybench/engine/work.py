"""What a step computes, as the loop sees it: for a network, and for work that is split without gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Protocol

import torch

from raybench.engine.update import Update
from raybench.sources.base import Batches
from raybench.sources.records import samples_in
from raybench.spec.config import Phase
from raybench.spec.samples import Batch


class Work(Protocol):
    """One rank's share of each step. The counts only ever grow; the loop takes differences.

    `samples`, `tokens`: counted from the batches that were really computed; `tokens` is None where there are none.
    `wait_ns`: host time spent waiting for batches. `has_loss`: whether `step` adds to the number it is given.
    """

    has_loss: bool
    samples: int
    tokens: int | None
    wait_ns: int

    def step(self, loss: torch.Tensor | None) -> None:
        """Compute one step; add its loss to `loss`, a scalar on the device, without waiting for it."""
        ...

    def updates(self) -> tuple[int, int] | None:
        """Optimizer steps made and skipped so far; None without an optimizer. Waits for the device."""
        ...

    def close(self) -> None:
        """Give back what was opened. May be called twice."""
        ...


class SplitWork:
    """A step that is one call on each rank. All of them together are one sample, which rank 0 counts."""

    has_loss = False
    tokens: int | None = None
    wait_ns = 0

    def __init__(self, call: Callable[[], torch.Tensor | None], rank: int) -> None:
        self._call: Callable[[], torch.Tensor | None] | None = call
        self._result: torch.Tensor | None = None
        self._counts = 1 if rank == 0 else 0
        self.samples = 0

    def step(self, loss: torch.Tensor | None) -> None:
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

    def close(self) -> None:
        self._call = self._result = None


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What a network's step is made of. `call` is the module as it runs: wrapped, compiled."""

    call: Callable[[Batch], torch.Tensor]
    phase: Phase
    grad_accum: int
    autocast: Callable[[], AbstractContextManager[None]]
    no_sync: Callable[[], AbstractContextManager[None]]
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

    def step(self, loss: torch.Tensor | None) -> None:
        recipe = self._recipe
        assert recipe is not None, "closed"
        assert loss is not None
        if recipe.phase == "forward":
            with torch.no_grad():
                for _ in range(recipe.grad_accum):
                    self._forward(recipe, loss)
            return
        recipe.update.clear()
        for micro in range(1, recipe.grad_accum + 1):
            with nullcontext() if micro == recipe.grad_accum else recipe.no_sync():
                recipe.update.backward(self._forward(recipe, loss))
        recipe.update.step()

    def updates(self) -> tuple[int, int] | None:
        assert self._recipe is not None, "closed"
        return self._recipe.update.counts() if self._recipe.phase == "train" else None

    def close(self) -> None:
        self._recipe = None
        self._batches = iter(())
        self._source.close()

    def _forward(self, recipe: Recipe, loss: torch.Tensor) -> torch.Tensor:
        """One micro step's share of the step's loss: micro-batches are equal, so their mean is the step's."""
        batch = self._next_batch()
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


def _chained(fetched: list[Batch], batches: Batches) -> Iterator[Batch]:
    """The batch that was fetched while building, then the rest. Popped, or its memory would be held to the end."""
    yield fetched.pop()
    while True:
        yield next(batches)
