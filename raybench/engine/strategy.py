"""How ranks share a module workload: DDP or alone."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from raybench.engine.place import Place
from raybench.spec.config import Strategy


@dataclass(frozen=True)
class Wrapped:
    """A module as the step calls it. Inside `no_sync` a backward pass leaves gradients where they are."""

    module: nn.Module
    no_sync: Callable[[], AbstractContextManager[None]]
    effective: str


def wrap(module: nn.Module, strategy: Strategy, place: Place, *, grouped: bool) -> Wrapped:
    """`module` under its strategy.

    `ddp` wraps at world size 1 too, so that a scaling curve's first point does the same work; DDP needs a process
    group, so outside of one (a plain process of its own) `none` is what runs, and what is recorded.
    """
    assert strategy in ("ddp", "none"), strategy
    assert strategy == "ddp" or place.world_size == 1, "none is one worker only"
    if strategy == "none" or not grouped:
        assert place.world_size == 1, "ranks without a process group"
        return Wrapped(module, nullcontext, "none")
    device: torch.device = place.torch_device
    parallel = DistributedDataParallel(module, device_ids=[device] if device.type == "cuda" else None)
    return Wrapped(parallel, parallel.no_sync, "ddp")
