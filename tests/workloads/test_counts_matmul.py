"""FLOPs of a matmul, against the seed's golden number."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.measure.counts import Counts
from raybench.spec.config import Extent, TrialConfig
from raybench.spec.families.matmul import MATMUL, MatmulShape
from raybench.workloads.matmul.counts import counts


def config(model: Any, **changes: Any) -> TrialConfig:
    """A resolved matmul config."""
    extent = {"warmup": Extent(steps=5), "measure": Extent(steps=20)}
    return TrialConfig(workload="matmul", model_name="custom", model=model, strategy="split", **extent, **changes)


def test_the_largest_square_is_8796_gflop() -> None:
    """2 x 16384^3 = 2^43 = 8.796e12 FLOP (GT-11)."""
    assert counts(config(MATMUL.presets["sq16384"])).model_flops_per_step == 2**43 == 8_796_093_022_208


@pytest.mark.parametrize(("precision", "number_bytes"), [("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2)])
def test_whole_answer(precision: str, number_bytes: int) -> None:
    """(6, 2) by (2, 5) over 3 ranks: 120 FLOP; a rank holds 2 x 2 + 2 x 5 + 2 x 5 numbers."""
    assert counts(config(MatmulShape(m=6, k=2, n=5), num_workers=3, precision=precision)) == Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=120.0,
        model_flops_causal_per_step=None,
        memory_bytes=24 * number_bytes,
        small_share=True,
        rows_per_rank=2,
    )


def test_splitting_leaves_the_work_alone() -> None:
    """FLOPs of a step are over all ranks."""
    shape = MATMUL.presets["sq1024"]
    assert counts(config(shape, num_workers=8)).model_flops_per_step == counts(config(shape)).model_flops_per_step
