"""What a collective amounts to, from its shape alone. No torch, so that `plan` is instant."""

from __future__ import annotations

from raybench.measure.counts import Counts
from raybench.spec.config import TrialConfig
from raybench.spec.models.collective import CollectiveShape, Op


def counts(config: TrialConfig) -> Counts:
    """One step is one exchange, which is one sample. It computes nothing that is counted."""
    assert isinstance(config.model, CollectiveShape)
    size, ranks = config.model.size_bytes, config.world_size
    return Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=None,
        model_flops_causal_per_step=None,
        memory_bytes=buffer_bytes(config.model, ranks),
        message_bytes=size,
        bus_factor=bus_factor(config.model.op, ranks),
    )


def bus_factor(op: Op, ranks: int) -> float | None:
    """Bus over algorithm bandwidth: what the algorithm must move over the slowest link, over its size.

    2 (n - 1) / n for all_reduce, (n - 1) / n for all_gather and all_to_all (nccl-tests, doc/PERFORMANCE.md), so that
    the figure can be put against a link's rate whatever n is. None for one rank, which uses no link.
    """
    if ranks == 1:
        return None
    return (2 if op == "all_reduce" else 1) * (ranks - 1) / ranks


def buffer_bytes(shape: CollectiveShape, ranks: int) -> int:
    """What a rank holds: all_reduce works in place, the others send from one buffer and receive in another."""
    sent = {"all_reduce": 0, "all_gather": shape.size_bytes // ranks, "all_to_all": shape.size_bytes}
    return shape.size_bytes + sent[shape.op]
