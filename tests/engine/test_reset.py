"""Whatever a workload changes in its process is as before when the next trial starts."""

from __future__ import annotations

import os
import random
import sys

import numpy as np
import pytest
import torch

from raybench.engine.reset import SWITCHES, ProcessState
from raybench.engine.session import Session
from raybench.spec.config import TrialConfig
from tests.engine.small import OneWeight, encdec, fake, place

OTHER = {
    "fp32_precision": "tf32",
    "cudnn_tf32": False,
    "float32_matmul_precision": "medium",
    "default_dtype": torch.float64,
    "default_device": torch.device("meta"),
    "threads": torch.get_num_threads() + 1,
    "deterministic_algorithms": (True, True),
}
"""Another value of each switch that is no bool, or cannot be read half-way; the others are turned round."""


def change_everything() -> None:
    """Set every switch to another value, and more."""
    for name, switch in SWITCHES.items():
        switch.write(OTHER[name] if name in OTHER else not switch.read())
    os.environ["RAYBENCH_TEST_NEW"] = "1"
    os.environ["RAYBENCH_TEST_OLD"] = "changed"
    os.environ.pop("RAYBENCH_TEST_GONE")


def seen() -> dict[str, object]:
    """All that a trial could feel of the one before."""
    values = {name: switch.read() for name, switch in SWITCHES.items()}
    return {**values, "device": torch.empty(0).device, "environment": dict(os.environ)}


class Vandal(OneWeight):
    """Changes everything in its second step, and leaves it so."""

    calls = 0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        loss = super().forward(batch)
        self.calls += 1
        if self.calls == 2:
            change_everything()
        return loss


def build_vandal(config: TrialConfig) -> Vandal:
    """Build it."""
    return Vandal()


def test_a_trial_s_changes_are_gone_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Precision, cuDNN, dtype, device, threads, SDPA choice, autograd, environment."""
    monkeypatch.setenv("RAYBENCH_TEST_OLD", "old")
    monkeypatch.setenv("RAYBENCH_TEST_GONE", "here")
    monkeypatch.setattr("raybench.engine.build.workload", lambda name: fake("tests.engine.test_reset:build_vandal"))
    session = Session(place())
    before = seen()
    session.run(encdec(phase="forward"))
    assert seen() == before


def test_every_switch_is_really_changed_by_that_test() -> None:
    """A switch that cannot be turned would make the test above pass for nothing."""
    state = ProcessState.now()
    os.environ["RAYBENCH_TEST_GONE"] = "here"
    try:
        change_everything()
        kept = [name for name, switch in SWITCHES.items() if not switch.differs_from(state.switches[name])]
        assert kept == ["default_device"], "which is felt by where tensors are made"
        assert torch.empty(0).device.type == "meta"
    finally:
        state.restore()
    assert torch.empty(0).device.type == "cpu"
    assert "RAYBENCH_TEST_NEW" not in os.environ


CONTRADICTIONS = [
    (torch.backends.cuda.matmul, "fp32_precision", "tf32"),
    (torch.backends.cuda.matmul, "allow_tf32", True),
    (torch.backends.cudnn, "allow_tf32", False),
    (torch.backends, "fp32_precision", "tf32"),
]


@pytest.mark.parametrize(("owner", "name", "value"), CONTRADICTIONS)
def test_tf32_switches_that_contradict_each_other_are_put_back(owner: object, name: str, value: object) -> None:
    """torch has three generations of them and raises on reading an older one where a newer one says otherwise."""
    if not hasattr(owner, name):
        pytest.skip("this torch has no such switch")
    state = ProcessState.now()
    setattr(owner, name, value)
    state.restore()
    assert ProcessState.now() == state
    assert not torch.backends.cuda.matmul.allow_tf32


def test_random_states_start_anew_with_each_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a model draws while it is built is the same in every trial, from all three generators."""
    monkeypatch.setattr("raybench.engine.build.workload", lambda name: fake("tests.engine.test_reset:build_drawing"))
    session = Session(place())
    session.run(encdec())
    session.run(encdec())
    first, second = DRAWN[-2:]
    assert first == second


DRAWN: list[tuple[float, float, float]] = []


def build_drawing(config: TrialConfig) -> OneWeight:
    """Draw one number from each generator."""
    DRAWN.append((float(torch.rand(())), float(np.random.rand()), random.random()))
    return OneWeight()


def test_compiled_graphs_are_forgotten_once_there_may_be_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's compiler is reset between trials where it was ever loaded."""
    resets: list[int] = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: resets.append(1))
    monkeypatch.setitem(sys.modules, "torch._dynamo", torch)
    ProcessState.now().restore()
    assert resets == [1]
