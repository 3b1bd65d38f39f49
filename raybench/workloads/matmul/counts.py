"""What a matmul step amounts to, from its shape alone. No torch, so that `plan` is instant."""

from __future__ import annotations

from raybench.measure.counts import Counts
from raybench.measure.phase import OPERAND_BYTES
from raybench.spec.config import TrialConfig
from raybench.spec.models.matmul import MatmulShape
from raybench.workloads.share import few_tiles


def counts(config: TrialConfig) -> Counts:
    """One step is one whole product, (m, k) by (k, n), which is one sample; each rank has m / world size of the rows.

    2mkn FLOPs: each of the m n results is k multiplications and k additions.
    """
    assert isinstance(config.model, MatmulShape)
    m, k, n = config.model.m, config.model.k, config.model.n
    rows = m // config.world_size
    return Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=2.0 * m * k * n,
        model_flops_causal_per_step=None,
        memory_bytes=memory_bytes(config),
        small_share=few_tiles(rows, n),
        rows_per_rank=rows,
    )


def memory_bytes(config: TrialConfig) -> int:
    """One rank's rows of the left operand and of the result, and the whole right operand."""
    assert isinstance(config.model, MatmulShape)
    rows = config.model.m // config.world_size
    numbers = rows * config.model.k + config.model.k * config.model.n + rows * config.model.n
    return OPERAND_BYTES[config.precision] * numbers
