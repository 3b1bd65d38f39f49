"""A workload that fails on purpose: each preset is one way to end. Installed for tests by being on the path."""

from types import MappingProxyType
from typing import Annotated

from pydantic import Field

from raybench.measure.counts import Counts
from raybench.spec.config import TrialConfig
from raybench.spec.family import Family
from raybench.spec.shapes import Frozen
from raybench.workloads.base import Workload

KINDS = ("fine", "miscounts", "oom_host", "oom_cuda", "absent", "stopped", "killed", "raises", "exits", "greedy")


class FaultShape(Frozen):
    """Which fault, how long a step takes before it, and how many tokens of a micro batch fit into memory."""

    fault: Annotated[str, Field(pattern="|".join(KINDS))] = "fine"
    step_s: Annotated[float, Field(ge=0.0)] = 0.001
    fits: Annotated[int, Field(ge=1)] = 2**31


def counts(config: TrialConfig) -> Counts:
    """One operation a step; one FLOP, so that rates are easy to check by eye. Fails, too, when asked to."""
    if config.model.fault == "miscounts":
        raise KeyError("a plug-in's own mistake")
    return Counts(
        parameters=None,
        samples_per_step=1,
        tokens_per_step=None,
        model_flops_per_step=1.0,
        model_flops_causal_per_step=None,
        memory_bytes=0,
    )


WORKLOAD = Workload(
    family=Family(
        name="faulty",
        shape=FaultShape,
        presets=MappingProxyType({kind: FaultShape(fault=kind) for kind in KINDS}),
        default_model="fine",
        settings=frozenset({"micro_batch", "grad_accum", "global_batch", "seq_len"}),
        defaults=MappingProxyType({"micro_batch": 1, "seq_len": 1}),
        strategies=("split",),
    ),
    counts=counts,
    code="raybench_faults.model:build",
)
