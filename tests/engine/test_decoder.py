"""A decoder through a whole trial: what is counted is what was planned."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.engine.session import Session
from raybench.spec.config import Source, TrialConfig
from raybench.spec.models.decoder import DecoderShape
from raybench.workloads.registry import workload
from tests.engine.small import encdec, place

SHAPE = DecoderShape(d_model=16, num_layers=2, num_heads=2, d_ff=24)


def decoder(**changes: Any) -> TrialConfig:
    """A tiny decoder: batches of 4 sequences of 8 tokens, 2 + 3 steps."""
    return encdec(**{"workload": "decoder", "model": SHAPE, "source": Source(num_samples=10), **changes})


@pytest.mark.parametrize("source", ["device", "generate"])
def test_a_trial(source: str) -> None:
    """Its tokens, samples and parameters are those of `counts`, and the loss is near that of 32 equal guesses."""
    config = decoder(source=Source(name=source, num_samples=10))  # type: ignore[arg-type]
    planned = workload("decoder").counts(config)
    found = Session(place()).run(config)
    assert found.parameters == planned.parameters
    assert found.measured_samples == 3 * planned.samples_per_step
    assert found.measured_tokens == 3 * 32 == 3 * (planned.tokens_per_step or 0)
    assert found.environment.effective_attention == "flash"
    assert found.steps.loss[0] == pytest.approx(3.47, abs=0.05)      # ln 32
