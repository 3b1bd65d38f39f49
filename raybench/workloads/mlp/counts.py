"""What the forward pass of a multi-layer perceptron amounts to, from its shape alone. No torch."""

from __future__ import annotations

from itertools import pairwise

from raybench.measure.counts import Counts
from raybench.measure.phase import OPERAND_BYTES
from raybench.spec.config import TrialConfig
from raybench.spec.models.mlp import MLPShape
from raybench.workloads.share import few_tiles


def counts(config: TrialConfig) -> Counts:
    """One step is the forward pass of the whole batch, which is one sample; each rank has its part of the rows."""
    assert isinstance(config.model, MLPShape)
    shape = config.model
    rows = shape.batch // config.world_size
    return Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=float(forward_flops(shape)),
        model_flops_causal_per_step=None,
        memory_bytes=OPERAND_BYTES[config.precision] * numbers_held(shape, rows),
        small_share=any(few_tiles(rows, width) for width in shape.layers[1:]),
        rows_per_rank=rows,
    )


def forward_flops(shape: MLPShape) -> int:
    """The sum over layers of 2 b in out for the product and b out for the ReLU, the bias left out (GT-11)."""
    b = shape.batch
    return sum(2 * b * width_in * width_out + b * width_out for width_in, width_out in pairwise(shape.layers))


def numbers_held(shape: MLPShape, rows: int) -> int:
    """Numbers that a rank holds at most: its rows of the input, all weights and biases, and the two neighbouring
    activations (the input apart) of which there is most."""
    weights = sum(width_in * width_out + width_out for width_in, width_out in pairwise(shape.layers))
    return rows * shape.layers[0] + weights + rows * max(map(sum, pairwise((0, *shape.layers[1:]))))
