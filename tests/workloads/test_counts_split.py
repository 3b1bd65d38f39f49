"""Counts of work that is split by rows, against the seed's golden numbers and by hand."""

from __future__ import annotations

import pytest

from raybench.measure.counts import Counts
from raybench.spec.families.elementwise import ELEMENTWISE
from raybench.spec.families.matmul import MATMUL
from raybench.spec.families.mlp import MLP
from raybench.spec.models.elementwise import ElementwiseShape
from raybench.spec.models.matmul import MatmulShape
from raybench.spec.models.mlp import MLPShape
from raybench.workloads.registry import workload
from raybench.workloads.share import few_numbers, few_tiles
from tests.workloads.split import split


@pytest.mark.parametrize(("preset", "tflop"), [("b4096", 0.2749), ("b8192", 1.0996), ("b16384", 0.5499)])
def test_the_three_mlps_of_the_seed(preset: str, tflop: float) -> None:
    """GT-11: 2 b in out + b out for each of the two layers."""
    found = workload("mlp").counts(split("mlp", MLP.presets[preset])).model_flops_per_step
    assert found is not None
    assert round(found / 1e12, 4) == tflop


def test_whole_answer_of_an_mlp() -> None:
    """6 rows of 2 through 5 and 3, over 2 ranks in bf16: 2 x 6 x 2 x 5 + 6 x 5 + 2 x 6 x 5 x 3 + 6 x 3 = 348 FLOP.

    A rank holds 3 x 2 inputs, (2 x 5 + 5) + (5 x 3 + 3) weights and biases, and 3 x (5 + 3) activations: 63 numbers.
    """
    shape = MLPShape(batch=6, layers=(2, 5, 3))
    assert workload("mlp").counts(split("mlp", shape, num_workers=2, precision="bf16")) == Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=348.0,
        model_flops_causal_per_step=None,
        memory_bytes=2 * 63,
        small_share=True,
        rows_per_rank=3,
    )


def test_whole_answer_of_the_seed_s_elementwise() -> None:
    """32768 x 8192 = 2^28 numbers over 8 ranks in fp32: 2 FLOP and 3 x 4 bytes of traffic each."""
    shape = ELEMENTWISE.presets["32768x8192"]
    assert workload("elementwise").counts(split("elementwise", shape, num_workers=8)) == Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=2.0**29,
        model_flops_causal_per_step=None,
        memory_bytes=3 * 4 * 2**25,
        small_share=False,
        rows_per_rank=4096,
        bytes_per_step=3 * 4 * 2**28,
    )


def test_the_seed_s_shapes_are_presets() -> None:
    """GT-05, GT-06 and GT-08's two products."""
    squares = [MatmulShape(m=n, k=n, n=n) for n in (4096, 8192, 16384)]
    batches = [MatmulShape(m=m, k=k, n=k) for m, k in ((8192, 4096), (16384, 4096), (32768, 2048), (32768, 4096))]
    assert set(squares + batches) <= set(MATMUL.presets.values())


@pytest.mark.parametrize(("m", "workers", "small"), [
    (32768, 8, False),   # 4096 rows: 32 x 32 tiles
    (128, 1, True),      # 1 x 32 tiles for 132 multiprocessors
    (128, 8, True),
])  # fmt: skip
def test_a_share_must_fill_a_gpu(m: int, workers: int, small: bool) -> None:
    """GT-16: (32768, 4096) is good and (128, 4096) is bad."""
    for name, shape in (
        ("matmul", MatmulShape(m=m, k=4096, n=4096)),
        ("mlp", MLPShape(batch=m, layers=(4096, 4096))),
        ("elementwise", ElementwiseShape(rows=m, columns=4096)),
    ):
        assert workload(name).counts(split(name, shape, num_workers=workers)).small_share is small, name


def test_where_a_share_becomes_small() -> None:
    """132 tiles of 128 x 128 are enough, 131 are not, a part of a tile is one; 132 x 2048 x 4 numbers are enough."""
    assert not few_tiles(128 * 11, 128 * 12)
    assert not few_tiles(128 * 10 + 1, 128 * 11 + 1)
    assert few_tiles(128 * 131, 128)
    assert not few_numbers(1_081_344)
    assert few_numbers(1_081_343)


@pytest.mark.parametrize(("family", "shape"), [
    (MLP, MLPShape(batch=10, layers=(2, 2))),
    (ELEMENTWISE, ElementwiseShape(rows=10, columns=2)),
    (MATMUL, MatmulShape(m=10, k=2, n=2)),
])  # fmt: skip
def test_rows_that_do_not_divide_are_refused_with_the_nearest(family: object, shape: MatmulShape) -> None:
    """10 over 4: 8 and 12; over 16 there is nothing below."""
    name, rule = family.name, family.rule  # type: ignore[attr-defined]
    assert list(rule(split(name, shape, num_workers=4))) == ["model: 10 rows do not divide over 4 workers; 8 and 12 do"]
    assert list(rule(split(name, shape, num_workers=16))) == ["model: 10 rows do not divide over 16 workers; 16 do"]
    assert list(rule(split(name, shape, num_workers=5))) == []
