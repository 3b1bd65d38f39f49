"""The matrix product as built."""

from __future__ import annotations

import pytest
import torch

from raybench.spec.config import Extent, TrialConfig
from raybench.spec.models.matmul import MatmulShape
from raybench.workloads.matmul.model import build

CPU = torch.device("cpu")


def config(seed: int = 0) -> TrialConfig:
    """(8, 4) @ (4, 6) over two workers."""
    return TrialConfig(
        workload="matmul", model_name="custom", model=MatmulShape(m=8, k=4, n=6), strategy="split", num_workers=2,
        warmup=Extent(steps=1), measure=Extent(steps=10), seed=seed,
    )  # fmt: skip


def test_each_rank_has_its_rows() -> None:
    """8 rows over 2 ranks are 4 each, from different left operands and the same right one."""
    ranks = [build(config(), rank, 2, CPU, torch.float32)() for rank in (0, 1)]
    assert [product.shape for product in ranks] == [(4, 6), (4, 6)]
    assert not torch.equal(*ranks)


def test_the_product_is_written_to_the_same_memory() -> None:
    """No allocation in a step."""
    multiply = build(config(), 0, 1, CPU, torch.float32)
    assert multiply().data_ptr() == multiply().data_ptr()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_operands_have_the_dtype(dtype: torch.dtype) -> None:
    """The product is of the type that was asked for, and no number in it is special."""
    product = build(config(), 0, 2, CPU, dtype)()
    assert product.dtype == dtype
    assert torch.isfinite(product).all()


def test_the_seed_decides() -> None:
    """The same seed gives the same product, another another."""
    first, again, other = (build(config(seed), 0, 2, CPU, torch.float32)().clone() for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_rows_that_do_not_divide_are_a_programmer_s_error() -> None:
    """The sweep reader refuses them with a sentence; the builder does not round."""
    with pytest.raises(AssertionError, match="8 rows over 3 ranks"):
        build(config(), 0, 3, CPU, torch.float32)
