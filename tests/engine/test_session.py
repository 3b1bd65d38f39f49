"""A session from end to end on the CPU: what it runs, counts and leaves behind."""

from __future__ import annotations

import gc
import math
import weakref
from pathlib import Path
from typing import Any

import pytest
import torch

from raybench.engine.session import Session
from raybench.errors import DataError, UnsupportedError
from raybench.sources.prepare import prepare
from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from tests.engine.small import OneWeight, encdec, fake, matmul, place, resnet

WORKLOAD = "raybench.engine.build.workload"


@pytest.fixture(scope="module")
def session() -> Session:
    """One session for all: each test's trial must not feel the others'."""
    return Session(place())


@pytest.mark.parametrize("phase", ["forward", "forward_backward", "train"])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_every_phase_in_every_precision(session: Session, phase: str, precision: str) -> None:
    """2 + 3 steps of 4 samples with 7 target tokens each; a fresh model's loss is near ln 32 = 3.47."""
    result = session.run(encdec(phase=phase, precision=precision))
    assert (result.warmup_steps, result.measured_steps) == (2, 3)
    assert (result.measured_samples, result.measured_tokens) == (12, 84)
    assert all(abs(loss - math.log(32)) < 1.0 for loss in result.steps.loss if loss is not None)
    assert result.environment.effective_precision == precision
    assert session.clean


@pytest.mark.parametrize("source", ["device", "memory", "generate", "shards", "tokens"])
@pytest.mark.parametrize("workers", [0, 1])
def test_every_source_gives_the_same_losses(session: Session, tmp_path: Path, source: str, workers: int) -> None:
    """The same tokens in the same order, the same weights and dropout: bit for bit what `device` gives."""
    options = {"num_samples": 10, "num_shards": 3, "data_dir": str(tmp_path), "loader_workers": workers}
    config = encdec(source=Source(name=source, **options))
    prepare(config)
    result = session.run(config)
    assert result.steps.loss == session.run(encdec()).steps.loss
    assert result.first_batch_s is not None
    assert result.first_batch_s > 0


@pytest.mark.parametrize("source", ["device", "shards"])
def test_a_source_by_itself(session: Session, tmp_path: Path, source: str) -> None:
    """Phase `load`: 3 steps of 2 x 4 samples with 7 target tokens, each pair 2 x 8 tokens of 8 bytes, and no model.
    Only a thread that reads ahead has CPU time of its own."""
    config = encdec(
        phase="load", grad_accum=2, source=Source(name=source, num_samples=10, data_dir=str(tmp_path)),
        attention="flash", compile="default", precision="bf16",
    )  # fmt: skip
    prepare(config)
    result = session.run(config)
    assert (result.measured_samples, result.measured_tokens, result.sample_bytes) == (24, 168, 128)
    assert (result.parameters, result.optimizer_steps, result.fingerprint_loss) == (None, None, None)
    assert result.fingerprint_steps is None
    assert set(result.steps.loss) == set(result.steps.forward_ms) == {None}
    assert (result.environment.effective_precision, result.environment.effective_strategy) == ("none", "none")
    assert (result.loader_cpu_s is not None) == (source == "shards")
    assert session.clean


def test_creation_and_retrieval_are_timed_apart(session: Session) -> None:
    """GT-10: making operands is part of the build and fetching the result of the teardown; none of it is in the window.
    A network has neither."""
    result = session.run(matmul())
    assert result.create_s is not None
    assert result.retrieve_s is not None
    assert 0 < result.create_s <= result.build_s
    assert 0 < result.retrieve_s <= result.teardown_s
    network = session.run(encdec())
    assert (network.create_s, network.retrieve_s) == (None, None)
@pytest.mark.parametrize("phase", ["forward", "forward_backward", "train"])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_resnet(session: Session, phase: str, precision: str) -> None:
    """2 + 3 steps of 4 images, no tokens; a fresh network's loss is near ln 5 = 1.6. The switch of cuDNN goes back."""
    result = session.run(resnet(phase=phase, precision=precision, grad_accum=2, micro_batch=2))
    assert (result.measured_samples, result.measured_tokens) == (12, None)
    assert all(0 < loss < 10 for loss in result.steps.loss if loss is not None)
    assert (result.environment.effective_channels_last, result.environment.effective_cudnn_benchmark) == (True, None)
    assert result.environment.effective_attention is None
    assert session.clean
    assert not torch.backends.cudnn.benchmark


def test_images_from_every_source_give_the_same_losses(session: Session, tmp_path: Path) -> None:
    """The same images, the same weights: bit for bit what `device` gives."""
    losses = session.run(resnet()).steps.loss
    for name in ("memory", "generate", "shards", "images"):
        options = {"image_format": "png"} if name == "images" else {}
        config = resnet(source=Source(name=name, num_samples=10, num_shards=3, data_dir=str(tmp_path), **options))
        prepare(config)
        assert session.run(config).steps.loss == losses


def test_memory_format_that_ran(session: Session) -> None:
    """Without channels_last the row says so; an encoder-decoder has no convolutions to speak of."""
    assert session.run(resnet(channels_last=False)).environment.effective_channels_last is False
    assert session.run(encdec()).environment.effective_channels_last is None


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_matmul(session: Session, precision: str) -> None:
    """One sample a step, no tokens, no loss, no parameters, no source."""
    result = session.run(matmul(precision=precision))
    assert (result.measured_samples, result.measured_tokens, result.parameters) == (3, None, None)
    assert result.steps.loss == result.steps.epoch == (None,) * 5
    assert result.first_batch_s is None
    assert result.environment.effective_strategy == "split"


def test_columns_of_steps(session: Session) -> None:
    """One value a step in each; steps follow each other; 4 samples a step over 10: epochs change at steps 3 and 5."""
    steps = session.run(encdec(measure=Extent(steps=4))).steps
    assert steps.is_warmup == (True, True, False, False, False, False)
    assert steps.epoch == (0, 0, 0, 1, 1, 2)
    assert steps.start_s[0] == 0.0
    assert list(steps.start_s) == sorted(steps.start_s)
    assert steps.start_s[1] == pytest.approx(steps.step_ms[0] / 1e3)
    assert all(0 <= wait <= step for wait, step in zip(steps.data_wait_ms, steps.step_ms, strict=True))
    assert steps.host_step_ms == steps.step_ms, "on CPU there is one clock"


def test_step_times_sum_to_the_window(session: Session) -> None:
    """Boundary to boundary: what is left is one reading of the clock, wide here for a busy machine. The exact sum is
    tested on a made-up clock."""
    result = session.run(encdec(measure=Extent(steps=50)))
    measured_ms = sum(result.steps.step_ms[2:])
    assert 0.75 * result.measured_s * 1e3 <= measured_ms <= result.measured_s * 1e3 + 1e-6


def test_a_trial_is_the_same_after_others_as_in_a_new_session(session: Session) -> None:
    """Weights, dropout and data come from the seed alone: losses agree bit for bit."""
    first = session.run(encdec())
    session.run(encdec(seed=7, phase="forward"))
    torch.rand(100)
    again = session.run(encdec())
    assert again.steps.loss == first.steps.loss == Session(place()).run(encdec()).steps.loss
    assert session.run(encdec(seed=7)).steps.loss != first.steps.loss


def test_accumulated_micro_steps_are_one_step(session: Session) -> None:
    """2 micro steps of 2 are the same samples as one of 4; without dropout the loss is the same but for rounding."""
    shape = encdec().model.model_copy(update={"dropout": 0.0})
    whole = session.run(encdec(model=shape))
    parts = session.run(encdec(model=shape, micro_batch=2, grad_accum=2))
    assert parts.measured_samples == whole.measured_samples == 12
    assert parts.steps.loss == pytest.approx(whole.steps.loss, rel=1e-5)


@pytest.mark.parametrize("name", ["adamw", "adam", "sgd"])
def test_every_optimizer_learns(session: Session, name: str) -> None:
    """The same four samples over and over: the loss falls."""
    config = encdec(
        optimizer=Optimizer(name=name, lr=0.05), source=Source(num_samples=4), measure=Extent(steps=20)
    )
    losses = [loss for loss in session.run(config).steps.loss if loss is not None]
    assert losses[-1] < losses[0]


def test_seconds_become_steps(session: Session) -> None:
    """Warm-up runs until its time is up; the window has a number of steps fixed before it opens."""
    result = session.run(encdec(warmup=Extent(seconds=0.05), measure=Extent(seconds=0.1)))
    assert result.warmup_s >= 0.05
    assert result.warmup_steps >= 1
    assert result.measured_steps >= 10
    assert len(result.steps.step_ms) == result.warmup_steps + result.measured_steps


def test_a_window_in_seconds_has_a_warm_up_to_go_by(session: Session) -> None:
    """Without any asked for, three steps are run, recorded and told."""
    result = session.run(encdec(warmup=Extent(steps=0), measure=Extent(seconds=0.02)))
    assert result.warmup_steps == 3


def test_no_warm_up_at_all(session: Session) -> None:
    """Zero steps of warm-up are zero steps."""
    assert session.run(encdec(warmup=Extent(steps=0))).steps.is_warmup == (False,) * 3


def test_what_ran(session: Session) -> None:
    """A plain process has no process group, so no DDP; the CPU has no GPU figures, whatever torch was built for."""
    result = session.run(encdec())
    ran = result.environment
    assert (ran.effective_strategy, ran.backend, ran.device_kind) == ("none", None, "cpu")
    assert (ran.gpu_model, ran.gpu_uuid, ran.driver_version) == (None, None, None)
    assert ran.cuda_version == torch.version.cuda
    assert ran.effective_attention in ("flash", "math", "flash;math")
    assert ran.cpu_threads == torch.get_num_threads()
    assert (result.telemetry.utilization_mean, result.telemetry.power_mean_w, result.telemetry.energy_j) == (None,) * 3
    assert (result.memory.allocated_bytes, result.memory.reserved_bytes) == (None, None)
    assert result.memory.host_bytes > 50e6, "torch alone is more than that"


def test_parameters_are_those_of_the_built_model(session: Session) -> None:
    """Equal to the formula's."""
    from raybench.workloads.encdec.counts import counts

    assert session.run(encdec()).parameters == counts(encdec()).parameters


@pytest.mark.parametrize(
    ("config", "reason"),
    [(encdec(precision="tf32"), "tf32 needs a CUDA device"), (encdec(backend="nccl"), "nccl needs a CUDA device")],
)
def test_what_a_cpu_cannot_do(session: Session, config: TrialConfig, reason: str) -> None:
    """Refused in one line, before anything is built."""
    with pytest.raises(UnsupportedError, match=reason):
        session.run(config)
    assert not session.clean


def test_data_that_is_not_prepared(session: Session, tmp_path: Path) -> None:
    """The session does not prepare: that is done outside any process group."""
    with pytest.raises(DataError, match="is not prepared on this node"):
        session.run(encdec(source=Source(name="shards", data_dir=str(tmp_path))))


class Breaks(OneWeight):
    """Fails in its third step."""

    calls = 0

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == 3:
            raise ValueError("broken on purpose")
        return super().forward(batch)


BUILT: list[weakref.ref[Any]] = []


def build_breaks(config: TrialConfig) -> Breaks:
    """Build it, and remember it weakly."""
    model = Breaks()
    BUILT.append(weakref.ref(model))
    return model


def test_a_failed_trial_lets_go_of_its_model(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error reaches the caller, with its traceback, and does not keep the model alive, while it is still held."""
    with monkeypatch.context() as patch:
        patch.setattr(WORKLOAD, lambda name: fake("tests.engine.test_session:build_breaks"))
        with pytest.raises(ValueError, match="broken on purpose") as caught:
            session.run(encdec())
    assert "forward" in [entry.name for entry in caught.traceback]
    assert BUILT.pop()() is None
    assert not session.clean
    assert gc.isenabled()
    session.run(encdec())
    assert session.clean


def test_a_model_without_tokens(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plug-in's module that has no `tokens_in` has samples and no tokens."""
    monkeypatch.setattr(WORKLOAD, lambda name: fake("tests.engine.small:one_weight"))
    result = session.run(encdec())
    assert (result.measured_samples, result.measured_tokens, result.parameters) == (12, None, 1)
