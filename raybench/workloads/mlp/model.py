"""The multi-layer perceptron: what one step of `mlp` computes on one rank."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch
import torch.nn.functional as F

from raybench.spec.config import TrialConfig
from raybench.spec.models.mlp import MLPShape


def build(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, dtype: torch.dtype
) -> Callable[[], torch.Tensor]:
    """This rank's rows through every layer: x W^T + b, then ReLU in place.

    Weights are drawn from the config's seed, the same on every rank; the input, this rank's rows, from seed and rank.
    """
    assert isinstance(config.model, MLPShape)
    rows, remainder = divmod(config.model.batch, world_size)
    assert remainder == 0, f"{config.model.batch} rows over {world_size} ranks"
    weights = torch.Generator(device=device).manual_seed(config.seed)
    layers = [_layer(*widths, weights, device, dtype) for widths in pairwise(config.model.layers)]
    inputs = torch.Generator(device=device).manual_seed(config.seed + 1 + rank)
    x = torch.randn(rows, config.model.layers[0], generator=inputs, device=device, dtype=dtype)

    def forward() -> torch.Tensor:
        out = x
        for weight, bias in layers:
            out = F.relu_(F.linear(out, weight, bias))
        return out

    return forward


def _layer(
    width_in: int, width_out: int, generator: torch.Generator, device: torch.device, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weight (out, in) and bias (out), scaled so that activations keep their size from layer to layer (He et al. 2015,
    arXiv:1502.01852): numbers that overflow or vanish are no work that a chip is asked to do."""
    weight = torch.randn(width_out, width_in, generator=generator, device=device, dtype=dtype)
    bias = torch.randn(width_out, generator=generator, device=device, dtype=dtype)
    return weight.mul_((2 / width_in) ** 0.5), bias.mul_(0.1)
