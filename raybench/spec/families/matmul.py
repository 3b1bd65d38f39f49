"""Products of two matrices as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from raybench.spec.family import Family
from raybench.spec.models.matmul import PRESETS, MatmulShape

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


def _rows_divide(config: TrialConfig) -> Iterable[str]:
    rows = config.model.m  # type: ignore[attr-defined]  # a matmul config's model is a MatmulShape
    if rows % config.num_workers:
        yield f"model: {rows} rows do not divide over {config.num_workers} workers"


MATMUL = Family(
    name="matmul",
    shape=MatmulShape,
    presets=PRESETS,
    default_model="sq4096",
    settings=frozenset(),
    strategies=("split",),
    rule=_rows_divide,
)
