"""The optimizer of a training step, in the form that is asked for or fastest on the device."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterable
from typing import Any

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from raybench.spec.config import Optimizer as Asked

_KINDS: dict[str, type[Optimizer]] = {"adamw": AdamW, "adam": Adam, "sgd": SGD}


def optimizer(
    asked: Asked, parameters: Iterable[nn.Parameter], device: torch.device, *, sharded: bool = False
) -> Optimizer:
    """The optimizer asked for; `sharded` keeps only this rank's share of its state (ZeRO stage 1).

    `auto` is torch's fused kernels on CUDA and its plain loop on CPU, as torch itself has it there. Fused is also what
    keeps fp16 free of waiting: a GradScaler hands it the overflow flag on the device, while any other optimizer (and
    any in shards) has the host read that flag in every step.
    """
    options = {"lr": asked.lr, "weight_decay": asked.weight_decay, **_implementation(asked, device)}
    if asked.name == "sgd":
        options["momentum"] = asked.momentum
    if sharded:
        made: Optimizer = _zero_redundancy()(parameters, optimizer_class=_KINDS[asked.name], **options)
        return made
    return _KINDS[asked.name](parameters, **options)


def effective(asked: Asked, made: Optimizer) -> str:
    """What runs, read back from the optimizer that was made: `adamw fused`, `sgd for_loop`."""
    inner = getattr(made, "optim", made)        # what ZeRO shards
    found = [name for name in ("fused", "foreach") if inner.defaults[name]]
    return f"{asked.name} {found[0] if found else 'for_loop'}"


def _zero_redundancy() -> Any:
    """torch's ZeRO-1, with one broadcast a rank and not one a parameter. Its package compiles old code on import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from torch.distributed.optim import ZeroRedundancyOptimizer
    return functools.partial(ZeroRedundancyOptimizer, parameters_as_bucket_view=True)


def _implementation(asked: Asked, device: torch.device) -> dict[str, Any]:
    """Said outright, because torch's own choice cannot be read back."""
    chosen = asked.implementation
    if chosen == "auto":
        chosen = "fused" if device.type == "cuda" else "for_loop"
    return {"fused": chosen == "fused", "foreach": chosen == "foreach"}
