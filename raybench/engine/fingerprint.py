"""The maths fingerprint: the loss that a config reaches in a few steps, whatever its speed and its number of ranks.

A "speed-up" that computes something else shows here. The run is apart from what is measured: fresh weights of the same
seed, the same first samples in every source and on any number of ranks, dropout 0, batch norm with fixed statistics;
strategy, precision, compile mode and attention as asked.
"""

from __future__ import annotations

import math
from typing import Final

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from raybench.engine.build import build
from raybench.engine.place import Place
from raybench.engine.ranks import Ranks
from raybench.engine.timeline import HostTimeline
from raybench.spec.config import Source, TrialConfig

STEPS: Final = 3


class Fingerprints:
    """Those of one process. A config that differs in its source or its dropout only is not computed again."""

    def __init__(self, place: Place, ranks: Ranks) -> None:
        self._place, self._ranks = place, ranks
        self._known: dict[str, float | None] = {}

    def of(self, config: TrialConfig) -> float | None:
        """This rank's loss of the last step; None where the work has no loss, or the loss is no finite number."""
        alike = _alike(config)
        if alike is None:
            return None
        key = alike.work_key()
        if key not in self._known:
            self._known[key] = _loss(alike, self._place, self._ranks)
        return self._known[key]


def _alike(config: TrialConfig) -> TrialConfig | None:
    """The config that is run: one for all sources and all rates of dropout. None for work without batches."""
    if config.global_batch is None or config.source is None or config.phase == "load":
        return None
    source = Source(name="device", num_samples=STEPS * config.global_batch)
    without = {"dropout": 0.0} if hasattr(config.model, "dropout") else {}
    return config.model_copy(update={"source": source, "model": config.model.model_copy(update=without)})


def _loss(config: TrialConfig, place: Place, ranks: Ranks) -> float | None:
    built = build(config, place, ranks, prepare=freeze)
    losses = torch.zeros(STEPS, device=place.torch_device)
    marks = HostTimeline(STEPS, len(built.work.parts))
    try:
        marks.boundary()
        for slot in losses.unbind():
            built.work.step(slot, marks)
            marks.boundary()
        loss = float(losses[-1].item())
    finally:
        built.work.close()
    return loss if math.isfinite(loss) else None


def freeze(network: nn.Module) -> None:
    """No dropout, and batch norm by its running statistics, while gradients flow as ever."""
    for module in network.modules():
        if isinstance(module, _DropoutNd | _BatchNorm):
            module.eval()
        elif isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0
