"""Products of two matrices as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from raybench.spec.family import Family
from raybench.spec.models.matmul import PRESETS, MatmulShape
from raybench.spec.rows import rows_divide

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


def _rows_divide(config: TrialConfig) -> Iterable[str]:
    return rows_divide(config.model.m, config.num_workers)  # type: ignore[attr-defined]  # a MatmulShape


MATMUL = Family(
    name="matmul",
    shape=MatmulShape,
    presets=PRESETS,
    default_model="sq4096",
    settings=frozenset(),
    strategies=("split",),
    rule=_rows_divide,
)
