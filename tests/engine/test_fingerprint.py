"""The maths fingerprint of one rank: what it depends on, what it does not, and that it changes nothing."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from raybench.engine.fingerprint import freeze
from raybench.engine.session import Session
from raybench.spec.config import Optimizer, Source, TrialConfig
from tests.engine.small import OneWeight, encdec, fake, matmul, place


def fingerprint(**changes: object) -> float:
    """That of a tiny config, in a session of its own: none is remembered."""
    loss = Session(place()).run(encdec(**changes)).fingerprint_loss
    assert loss is not None
    return loss


def test_it_is_the_maths_alone() -> None:
    """Not the source, or dropout; but seed, phase, precision and optimizer."""
    plain = fingerprint()
    half = encdec().model.model_copy(update={"dropout": 0.5})
    assert fingerprint(model=half, source=Source(name="generate", num_samples=10)) == plain
    assert fingerprint(micro_batch=2, grad_accum=2) == pytest.approx(plain, rel=1e-5)
    others = [
        fingerprint(seed=1), fingerprint(phase="forward"), fingerprint(optimizer=Optimizer(lr=0.1)),
        fingerprint(precision="bf16"),
    ]  # fmt: skip
    assert plain not in others


def test_a_speed_up_that_changes_the_maths_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that leaves its attention out is faster, and its fingerprint is another."""
    plain = fingerprint()
    monkeypatch.setattr(nn.MultiheadAttention, "forward", lambda self, query, *rest, **options: (query, None))
    assert fingerprint() != pytest.approx(plain, rel=1e-4)


class Normed(OneWeight):
    """One weight, batch norm and dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.BatchNorm1d(2), nn.Dropout(0.9)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.weight * self.drop(self.norm(batch.float())).mean()


def test_batch_norm_and_dropout_stand_still() -> None:
    """Running statistics are 0 and 1 and stay so: the loss is the weight times the mean of 0 to 15."""
    network = Normed()
    freeze(network)
    batch = torch.arange(16).view(1, 2, 8)
    assert network(batch).item() == pytest.approx(7.5, rel=1e-4)
    assert network.norm.running_mean is not None
    assert network.norm.running_mean.tolist() == [0.0, 0.0]
    assert network.training


class Endless(OneWeight):
    """Its loss is infinite."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return super().forward(batch) / 0.0


def build_endless(config: TrialConfig) -> Endless:
    """Build it."""
    return Endless()


def test_no_loss_and_no_number_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Split work computes no loss; a loss that is no finite number is told as none."""
    session = Session(place())
    split = session.run(matmul())
    assert (split.fingerprint_loss, split.fingerprint_steps) == (None, None)
    endless_one = fake("tests.engine.test_fingerprint:build_endless")
    monkeypatch.setattr("raybench.engine.build.workload", lambda name: endless_one)
    endless = session.run(encdec())
    assert (endless.fingerprint_loss, endless.fingerprint_steps) == (None, 3)


def test_it_is_computed_once_for_what_is_alike() -> None:
    """A second source costs nothing."""
    session = Session(place())
    first = session.run(encdec())
    again = session.run(encdec(source=Source(name="generate", num_samples=10)))
    assert again.fingerprint_loss == first.fingerprint_loss
    assert again.fingerprint_s < first.fingerprint_s
