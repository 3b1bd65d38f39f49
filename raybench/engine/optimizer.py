"""The optimizer of a training step, in the form that is fastest on the device."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from raybench.spec.config import Optimizer as Asked


def optimizer(asked: Asked, parameters: Iterable[nn.Parameter], device: torch.device) -> Optimizer:
    """The optimizer asked for: torch's fused kernels on CUDA, its own choice on CPU.

    Fused is also what keeps fp16 free of waiting: a GradScaler hands it the overflow flag on the device, while any
    other optimizer has the host read that flag in every step.
    """
    fused = True if device.type == "cuda" else None
    if asked.name == "sgd":
        return SGD(parameters, lr=asked.lr, momentum=asked.momentum, weight_decay=asked.weight_decay, fused=fused)
    kind = AdamW if asked.name == "adamw" else Adam
    return kind(parameters, lr=asked.lr, weight_decay=asked.weight_decay, fused=fused)
