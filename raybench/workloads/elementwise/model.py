"""The triad of STREAM: what one step of `elementwise` computes on one rank."""

from __future__ import annotations

from collections.abc import Callable

import torch

from raybench.spec.config import TrialConfig
from raybench.spec.models.elementwise import ElementwiseShape

SCALE = 3.0      # STREAM's


def build(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, dtype: torch.dtype
) -> Callable[[], torch.Tensor]:
    """a = b + 3 c over this rank's (rows / world_size, columns), into the same memory each time: one kernel."""
    assert isinstance(config.model, ElementwiseShape)
    rows, remainder = divmod(config.model.rows, world_size)
    assert remainder == 0, f"{config.model.rows} rows over {world_size} ranks"
    generator = torch.Generator(device=device).manual_seed(config.seed + 1 + rank)
    shape = (rows, config.model.columns)
    b, c = (torch.randn(shape, generator=generator, device=device, dtype=dtype) for _ in range(2))
    a = torch.empty(shape, device=device, dtype=dtype)

    def triad() -> torch.Tensor:
        return torch.add(b, c, alpha=SCALE, out=a)

    return triad
