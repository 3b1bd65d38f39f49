"""How ranks share a network: alone, DDP, FSDP2 or ZeRO-1. DeepSpeed, which brings its own step, has its own file."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.hooks import RemovableHandle

from raybench.engine.place import Place
from raybench.spec.config import TrialConfig

if TYPE_CHECKING:
    from torch.distributed.fsdp import FSDPModule


def watch_nothing(reached: Callable[[], None] | None) -> None:
    """There is no collective, or none whose beginning can be seen without disturbing it."""


@dataclass(frozen=True)
class Wrapped:
    """A module as the step calls it. Inside `no_sync` a backward pass leaves gradients where they are.

    `watch` names what to call just before each step's first gradient collective, None for nothing any more.
    """

    module: nn.Module
    no_sync: Callable[[], AbstractContextManager[None]]
    effective: str
    watch: Callable[[Callable[[], None] | None], None] = watch_nothing


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
    return Wrapped(parallel, parallel.no_sync, strategy, FirstBucket(parallel).watch)


class FirstBucket:
    """When DDP begins to reduce its first bucket: when the last gradient of that bucket has arrived.

    Seen by a hook on that one parameter, a call a step. A communication hook would see it too, but takes the place of
    DDP's own, and costs a call and a division a bucket. Which parameter it is, DDP knows after two backward passes, in
    which it sorts gradients into buckets as they arrive; before, nothing is seen.
    """

    def __init__(self, parallel: DistributedDataParallel) -> None:
        self._parallel = parallel
        self._hook: RemovableHandle | None = None

    def watch(self, reached: Callable[[], None] | None) -> None:
        if self._hook is not None:
            self._hook.remove()
            self._hook = None
        last = self._last_parameter()
        if reached is not None and last is not None:
            hook = functools.partial(self._arrived, reached)
            self._hook = last.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]

    def _arrived(self, reached: Callable[[], None], parameter: torch.Tensor) -> None:
        if self._parallel.require_backward_grad_sync:       # not in a micro step that is not the last
            reached()

    def _last_parameter(self) -> nn.Parameter | None:
        known: dict[str, object] = self._parallel._get_ddp_logging_data()  # type: ignore[no-untyped-call]
        first = str(known.get("rebuilt_per_bucket_param_indices", "")).partition(",")[0].split()
        trained = [parameter for parameter in self._parallel.parameters() if parameter.requires_grad]
        return trained[int(first[-1])] if first else None


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
