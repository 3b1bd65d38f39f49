"""What an elementwise step amounts to, from its shape alone. No torch, so that `plan` is instant."""

from __future__ import annotations

from raybench.measure.counts import Counts
from raybench.measure.phase import OPERAND_BYTES
from raybench.spec.config import TrialConfig
from raybench.spec.models.elementwise import ElementwiseShape
from raybench.workloads.share import few_numbers

_MATRICES = 3     # two that are read, one that is written


def counts(config: TrialConfig) -> Counts:
    """One step is one whole triad, a = b + 3 c, which is one sample; each rank has its part of the rows.

    Counted as STREAM counts it (McCalpin 1995, https://www.cs.virginia.edu/stream/ref.html): 2 FLOPs a number, and
    three numbers that move.
    """
    assert isinstance(config.model, ElementwiseShape)
    numbers, number_bytes = config.model.rows * config.model.columns, OPERAND_BYTES[config.precision]
    return Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=2.0 * numbers,
        model_flops_causal_per_step=None,
        memory_bytes=_MATRICES * number_bytes * numbers // config.world_size,
        small_share=few_numbers(numbers // config.world_size),
        rows_per_rank=config.model.rows // config.world_size,
        bytes_per_step=_MATRICES * number_bytes * numbers,
    )
