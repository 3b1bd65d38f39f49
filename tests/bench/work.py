"""The step that every arm runs, and how many of them make one measurement."""

from __future__ import annotations

from raybench.spec.config import Extent, Source, TrialConfig
from tests.factories import make_config

STEPS = 60


def bench_config() -> TrialConfig:
    """encdec 3.5m at seq_len 64, batch 4, fp32, training on one rank without a wrapper."""
    return make_config(
        num_workers=1, strategy="none", source=Source(name="device", num_samples=4),
        warmup=Extent(steps=5), measure=Extent(steps=STEPS),
    )  # fmt: skip
