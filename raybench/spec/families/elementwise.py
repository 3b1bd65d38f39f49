"""Arithmetic number by number as the sweep reader sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from raybench.spec.family import Family
from raybench.spec.models.elementwise import PRESETS, ElementwiseShape
from raybench.spec.rows import rows_divide

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


def _right(config: TrialConfig) -> Iterable[str]:
    if config.precision == "tf32":
        yield "precision: tf32 is a way to multiply matrices, of which elementwise has none"
    yield from rows_divide(config.model.rows, config.num_workers)  # type: ignore[attr-defined]  # an ElementwiseShape


ELEMENTWISE = Family(
    name="elementwise",
    shape=ElementwiseShape,
    presets=PRESETS,
    default_model="32768x8192",
    settings=frozenset(),
    strategies=("split",),
    rule=_right,
)
