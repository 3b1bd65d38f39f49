"""A workload that writes down the samples it is given. Installed for tests by being on the path."""

from types import MappingProxyType

from raybench.measure.counts import Counts
from raybench.spec.config import TrialConfig
from raybench.spec.family import Family
from raybench.spec.shapes import Frozen
from raybench.workloads.base import Workload


class SpyShape(Frozen):
    """Into which folder."""

    folder: str = "/nowhere"


def counts(config: TrialConfig) -> Counts:
    """One parameter; nothing to speak of is computed."""
    assert config.global_batch is not None
    return Counts(
        parameters=1,
        samples_per_step=config.global_batch,
        tokens_per_step=None,
        model_flops_per_step=None,
        model_flops_causal_per_step=None,
        memory_bytes=0,
    )


WORKLOAD = Workload(
    family=Family(
        name="spy",
        shape=SpyShape,
        presets=MappingProxyType({"spy": SpyShape()}),
        default_model="spy",
        settings=frozenset({
            "seq_len", "vocab_size", "micro_batch", "grad_accum", "global_batch", "phase", "optimizer", "source",
        }),
        defaults=MappingProxyType({
            "seq_len": 4, "vocab_size": 8192, "micro_batch": 3, "phase": "forward_backward",
            "optimizer": {"name": "sgd", "lr": 0.1}, "source": {"name": "device"},
        }),
        strategies=("ddp", "none"),
    ),
    counts=counts,
    code="raybench_spy.model:build",
)
