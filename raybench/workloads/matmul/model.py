"""The matrix product: what one step of `matmul` computes on one rank."""

from __future__ import annotations

from collections.abc import Callable

import torch

from raybench.spec.config import TrialConfig
from raybench.spec.models.matmul import MatmulShape


def build(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, dtype: torch.dtype
) -> Callable[[], torch.Tensor]:
    """This rank's (m / world_size, k) @ (k, n), into the same memory each time.

    Operands are drawn once: the right one from the config's seed, the same on every rank; the left one, this rank's
    rows, from seed and rank.
    """
    assert isinstance(config.model, MatmulShape)
    rows, remainder = divmod(config.model.m, world_size)
    assert remainder == 0, f"{config.model.m} rows over {world_size} ranks"
    right = _normal(config.model.k, config.model.n, config.seed, device, dtype)
    left = _normal(rows, config.model.k, config.seed + 1 + rank, device, dtype)
    out = torch.empty(rows, config.model.n, device=device, dtype=dtype)

    def multiply() -> torch.Tensor:
        return torch.matmul(left, right, out=out)

    return multiply


def _normal(rows: int, columns: int, seed: int, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Standard normal numbers: zeros or a repeated value would let the chip run cooler and faster than real data."""
    generator = torch.Generator(device=device).manual_seed(seed)
    return torch.randn(rows, columns, generator=generator, device=device, dtype=dtype)
