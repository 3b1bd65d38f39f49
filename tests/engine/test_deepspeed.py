"""DeepSpeed's engine on two ranks, where the extra is installed: DDP's maths at every stage, and the steps counted."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.engine.session import Session
from raybench.spec.config import TrialConfig
from tests.engine.test_strategies_on_two_ranks import TOLERANCE, mean_losses, trial
from tests.engine.two_ranks import Ranks, on_ranks

pytest.importorskip("deepspeed", reason="the extra deepspeed is not installed")
pytestmark = [pytest.mark.soak, pytest.mark.timeout(1800)]

STAGES = (0, 1, 2, 3)
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "clipped": {"grad_clip": 0.1},
    "accumulated": {"micro_batch": 1, "grad_accum": 2},
    "both": {"micro_batch": 1, "grad_accum": 2, "grad_clip": 0.1},
    "bf16": {"precision": "bf16"},
}


def asked() -> dict[str, TrialConfig]:
    """Every stage in every kind, and DDP in each."""
    found = {f"ddp {kind}": trial("ddp", **changes) for kind, changes in KINDS.items()}
    for stage in STAGES:
        found |= {f"{stage} {kind}": trial("deepspeed", zero_stage=stage, **changes) for kind, changes in KINDS.items()}
    return found


def rank_main(session: Session, rank: int) -> dict[str, Any]:
    """All of them, one after the other."""
    return {name: session.run(config) for name, config in asked().items()}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Ranks:
    """What each rank saw."""
    return on_ranks(tmp_path_factory.mktemp("ranks"), rank_main)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stage", STAGES)
def test_the_maths_is_that_of_ddp(ranks: Ranks, stage: int, kind: str) -> None:
    """Step by step the same losses, and as many optimizer steps as measured."""
    allowed = TOLERANCE[asked()[f"{stage} {kind}"].precision]
    assert mean_losses(ranks, f"{stage} {kind}") == pytest.approx(mean_losses(ranks, f"ddp {kind}"), rel=allowed)
    for found in ranks:
        result = found[f"{stage} {kind}"]
        assert result.environment.effective_strategy == f"deepspeed stage {stage}"
        assert (result.optimizer_steps, result.skipped_optimizer_steps) == (result.measured_steps, 0)
