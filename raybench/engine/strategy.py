"""How ranks share a network: alone, DDP, FSDP2 or ZeRO-1. DeepSpeed, which brings its own step, has its own file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from raybench.engine.place import Place
from raybench.spec.config import TrialConfig

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


@dataclass(frozen=True)
class Wrapped:
    """A module as the step calls it. Inside `no_sync` a backward pass leaves gradients where they are."""

    module: nn.Module
    no_sync: Callable[[], AbstractContextManager[None]]
    effective: str


def wrap(module: nn.Module, config: TrialConfig, place: Place, *, grouped: bool) -> Wrapped:
    """`module` under its strategy.

    `ddp`, `fsdp` and `zero1` wrap at world size 1 too, so that a scaling curve's first point does the same work. They
    need a process group, so outside of one (a plain process of its own) `none` is what runs, and what is recorded.
    """
    strategy = config.strategy
    assert strategy != "none" or place.world_size == 1, "none is one worker only"
    if strategy == "none" or not grouped:
        assert place.world_size == 1, "ranks without a process group"
        return Wrapped(module, nullcontext, "none")
    if strategy == "fsdp":
        return _sharded(module, place)
    assert strategy in ("ddp", "zero1"), strategy
    device = place.torch_device
    parallel = DistributedDataParallel(
        module, device_ids=[device] if device.type == "cuda" else None, bucket_cap_mb=config.bucket_mb
    )
    return Wrapped(parallel, parallel.no_sync, strategy)


def blocks(module: nn.Module) -> list[nn.Module]:
    """The parts of a network that are computed one after the other: those in its attribute `blocks`, else none.

    FSDP gathers one at a time; a network that names none is gathered whole.
    """
    return list(getattr(module, "blocks", ()))


def _sharded(module: nn.Module, place: Place) -> Wrapped:
    """FSDP2: each block and the rest in shards of their own.

    Autocast stays what it is elsewhere, so that a precision means the same maths under every strategy; what is
    gathered and reduced has the type of the parameters.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    mesh = init_device_mesh(place.torch_device.type, (place.world_size,))
    for part in (*blocks(module), module):
        fully_shard(part, mesh=mesh)
    assert isinstance(module, FSDPModule)
    return Wrapped(module, functools.partial(_unsynchronised, module), "fsdp")


@contextmanager
def _unsynchronised(module: FSDPModule) -> Iterator[None]:
    module.set_requires_gradient_sync(False)
    try:
        yield
    finally:
        module.set_requires_gradient_sync(True)
