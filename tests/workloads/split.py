"""Configs of work that is split over the workers, for tests of workloads."""

from __future__ import annotations

from typing import Any

from raybench.spec.config import Extent, TrialConfig
from raybench.spec.shapes import Frozen


def split(workload: str, model: Frozen, **changes: Any) -> TrialConfig:
    """A resolved config of 1 + 10 steps."""
    return TrialConfig(
        workload=workload, model_name="custom", model=model, strategy="split", warmup=Extent(steps=1),
        measure=Extent(steps=10), **changes,
    )  # fmt: skip
