"""`micro_batch: auto`: the sizes to try, from small to large, until the largest that fits is found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from raybench.spec.config import Extent, TrialConfig
from raybench.spec.document import Node
from raybench.spec.settings import Given, Layer

_PROBE: dict[str, Any] = {"warmup": Extent(steps=3), "measure": Extent(steps=3), "quality": "probe"}
"""Enough for memory to reach its peak; too few steps to be a valid number."""
_BATCH = ("micro_batch", "grad_accum", "global_batch")
_LARGEST = 30
"""2**30 is the largest micro batch that a config may have."""


@dataclass(frozen=True)
class Ladder:
    """The same config at rising micro batches; `layers` are the settings that make each. At most `memory_share` of the
    memory (0 to 1) may be taken."""

    rungs: tuple[TrialConfig, ...]
    layers: tuple[Layer, ...] = field(compare=False, repr=False)
    memory_share: float

    def open_config(self) -> TrialConfig:
        """The config as far as it is known: batch numbers that depend on what fits are None."""
        first = self.rungs[0]
        unknown = [name for name in _BATCH if len({getattr(rung, name) for rung in self.rungs}) > 1]
        return first.model_copy(update=dict.fromkeys(unknown))


def probe_of(rung: TrialConfig) -> TrialConfig:
    """A few steps of a rung, to see what memory it takes."""
    return rung.model_copy(update=_PROBE)


def rung_layers(node: Node) -> Sequence[Layer]:
    """Every power of two as a setting, smallest first; `node` is what said `auto`."""
    return [{"micro_batch": Given(2**exponent, node, swept=True)} for exponent in range(_LARGEST + 1)]
