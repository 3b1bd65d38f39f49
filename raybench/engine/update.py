"""What follows a forward pass: the backward pass, and once a step the optimizer, with the steps counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

import torch
from torch import nn
from torch.optim import Optimizer


class Update(Protocol):
    """How a network learns. `made` counts optimizer steps that changed weights, `skipped` those that overflowed."""

    def clear(self) -> None:
        """Before a step: no gradients."""
        ...

    def backward(self, loss: torch.Tensor) -> None:
        """Gradients of one micro step's share of the loss."""
        ...

    def step(self) -> None:
        """Once a step, after its last backward pass."""
        ...

    def counts(self) -> tuple[int, int]:
        """(made, skipped) so far. Waits for the device: not inside a window."""
        ...


class OwnUpdate:
    """torch's own optimizers, with gradient scaling in fp16. `optimizer` is None unless the phase is `train`.

    Overflows are added up on the device, so that counting them waits for nothing.
    """

    def __init__(
        self,
        module: nn.Module,
        optimizer: Optimizer | None,
        scaler: torch.amp.GradScaler,
        clip: Callable[[], object] | None,
        device: torch.device,
    ) -> None:
        self._parameters = list(module.parameters())      # walking the modules costs 75 µs a step in a ResNet
        self._optimizer, self._scaler, self._clip = optimizer, scaler, clip
        self._tried = 0
        self._overflowed = torch.zeros((), device=device)

    def clear(self) -> None:
        for parameter in self._parameters:
            parameter.grad = None

    def backward(self, loss: torch.Tensor) -> None:
        self._scaler.scale(loss).backward()  # type: ignore[no-untyped-call]

    def step(self) -> None:
        if self._optimizer is None:
            return
        if self._clip is not None:
            self._scaler.unscale_(self._optimizer)
            self._clip()
        self._scaler.step(self._optimizer)
        self._tried += 1
        if self._scaler.is_enabled():
            for overflowed in self._scaler._found_inf_per_device(self._optimizer).values():
                self._overflowed += overflowed
            self._scaler.update()

    def counts(self) -> tuple[int, int]:
        skipped = int(self._overflowed.item())
        return self._tried - skipped, skipped


def clipping(parameters: Iterable[nn.Parameter], norm: float | None) -> Callable[[], object] | None:
    """Scale all gradients down where their common norm is larger, without the host's ever reading it."""
    if norm is None:
        return None
    every = list(parameters)
    return lambda: nn.utils.clip_grad_norm_(every, norm)


class DeepSpeedUpdate:
    """DeepSpeed's engine, which scales, clips, accumulates and steps by itself, and counts on the host."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    def clear(self) -> None:
        """The engine clears gradients when it has stepped."""

    def backward(self, loss: torch.Tensor) -> None:
        self._engine.backward(loss, scale_wrt_gas=False)      # the loss is this micro step's share already
        if not self._engine.is_gradient_accumulation_boundary():
            self._engine.step()                               # which only counts the micro step

    def step(self) -> None:
        self._engine.step()

    def counts(self) -> tuple[int, int]:
        skipped = int(self._engine.skipped_steps)
        return int(self._engine.global_steps) - skipped, skipped
