"""Exchanges between ranks as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING

from raybench.spec.family import Family
from raybench.spec.models.collective import PRESETS, CollectiveShape
from raybench.spec.rows import near

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig

NUMBER_BYTES: Mapping[str, int] = MappingProxyType({"fp32": 4, "bf16": 2, "fp16": 2})
"""What can be exchanged, by precision."""


def _right(config: TrialConfig) -> Iterable[str]:
    shape, number_bytes = config.model, NUMBER_BYTES.get(config.precision)
    assert isinstance(shape, CollectiveShape)
    if config.compile != "off":
        yield "compile: a collective has nothing to compile"
    if number_bytes is None:
        yield f"precision: a collective exchanges numbers of {', '.join(NUMBER_BYTES)}, not {config.precision}"
        return
    parts = 1 if shape.op == "all_reduce" else config.num_workers
    if shape.size_bytes % (number_bytes * parts):
        over = f" over {parts} workers" if parts > 1 else ""
        fit = near(shape.size_bytes, number_bytes * parts)
        yield f"model: {shape.size_bytes} bytes are no whole numbers of {config.precision}{over}; {fit} are"


COLLECTIVE = Family(
    name="collective",
    shape=CollectiveShape,
    presets=PRESETS,
    default_model="all_reduce-16m",
    settings=frozenset(),
    strategies=("split",),
    rule=_right,
)
