"""How convolutions run: the memory format of their weights, and whether cuDNN may try its algorithms out."""

from __future__ import annotations

import torch
from torch import nn

from raybench.spec.config import TrialConfig


def switch_cudnn_benchmark(config: TrialConfig) -> None:
    """As a workload with convolutions asks. Between trials it is put back."""
    if config.cudnn_benchmark is not None:
        torch.backends.cudnn.benchmark = config.cudnn_benchmark


def cudnn_benchmark(device: torch.device) -> bool | None:
    """What the switch says; None where there is no cuDNN."""
    return bool(torch.backends.cudnn.benchmark) if device.type == "cuda" else None


def channels_last(network: nn.Module) -> bool | None:
    """Whether every convolution's weights have the channel as their fastest dimension; None without convolutions.

    Weights of one channel or of one pixel look the same either way, so they say nothing.
    """
    weights = [module.weight for module in network.modules() if isinstance(module, nn.Conv2d)]
    telling = [weight for weight in weights if weight.shape[1] > 1 and weight.shape[2:] != (1, 1)]
    if not telling:
        return None
    return all(weight.is_contiguous(memory_format=torch.channels_last) for weight in telling)
