"""Multi-layer perceptrons as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from raybench.spec.family import Family
from raybench.spec.models.mlp import PRESETS, MLPShape
from raybench.spec.rows import rows_divide

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


def _batch_divides(config: TrialConfig) -> Iterable[str]:
    return rows_divide(config.model.batch, config.num_workers)  # type: ignore[attr-defined]  # a MLPShape


MLP = Family(
    name="mlp",
    shape=MLPShape,
    presets=PRESETS,
    default_model="b4096",
    settings=frozenset(),
    strategies=("split",),
    rule=_batch_divides,
)
