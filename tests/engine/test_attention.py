"""The attention kernel that runs, where the choice is forced."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from raybench.engine.attention import attention_kernels
from raybench.workloads.encdec.model import build
from tests.engine.small import OneWeight, encdec


@pytest.mark.parametrize("with_gradients", [False, True])
@pytest.mark.parametrize(
    ("allowed", "expected"), [(SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.MATH, "math")]
)
def test_the_kernel_that_is_allowed_is_seen(allowed: SDPBackend, expected: str, with_gradients: bool) -> None:
    """CPU has a flash kernel and the written-out one; without dropout it can run both."""
    model = build(encdec(model=encdec().model.model_copy(update={"dropout": 0.0})))
    batch = torch.zeros(1, 2, 8, dtype=torch.int64)
    with sdpa_kernel(allowed):
        assert attention_kernels(model, batch, nullcontext(), with_gradients=with_gradients) == expected


def test_a_network_without_attention() -> None:
    """Not `math`, but none."""
    assert attention_kernels(OneWeight(), torch.ones(1, 2, 8), nullcontext(), with_gradients=True) is None
