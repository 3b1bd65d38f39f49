"""What only a GPU can show."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from raybench.engine.session import Session
from raybench.sources.prepare import prepare
from raybench.sources.registry import open_source
from raybench.spec.config import Extent, Source, TrialConfig
from raybench.spec.families.elementwise import ELEMENTWISE
from raybench.spec.families.matmul import MATMUL
from raybench.spec.families.mlp import MLP
from raybench.workloads.registry import workload
from tests.engine.small import OneWeight, encdec, fake, matmul, place, resnet
from tests.workloads.split import split

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")]


@pytest.fixture(scope="module")
def session() -> Session:
    """One session, as in a warm group."""
    return Session(place(device="cuda:0"))


def test_events_agree_with_the_wall_clock(session: Session) -> None:
    """Step times on the stream sum to the host's window within 2 %."""
    config = matmul(
        model=matmul().model.model_copy(update={"m": 4096, "k": 4096, "n": 4096}), warmup=Extent(steps=20),
        measure=Extent(steps=200), precision="bf16",
    )  # fmt: skip
    result = session.run(config)
    assert sum(result.steps.step_ms[20:]) == pytest.approx(result.measured_s * 1e3, rel=0.02)


@pytest.mark.parametrize("precision", ["fp32", "tf32", "bf16", "fp16"])
@pytest.mark.parametrize("phase", ["forward", "forward_backward", "train"])
def test_memory_is_back_at_the_baseline_exactly(session: Session, precision: str, phase: str) -> None:
    """After every kind of trial, to the byte."""
    before = torch.cuda.memory_allocated()
    result = session.run(encdec(precision=precision, phase=phase))
    assert torch.cuda.memory_allocated() == before
    assert session.clean
    assert result.environment.effective_precision == precision
    assert result.memory.allocated_bytes
    assert result.memory.reserved_bytes is not None
    assert result.memory.reserved_bytes >= result.memory.allocated_bytes


@pytest.mark.parametrize("config", [
    split("matmul", MATMUL.presets["sq4096"], precision="bf16"),
    split("mlp", MLP.presets["b4096"], precision="bf16"),
    split("elementwise", ELEMENTWISE.presets["4096x4096"]),
], ids=lambda config: config.workload)  # fmt: skip
def test_split_work(session: Session, config: TrialConfig) -> None:
    """Creation and retrieval are timed apart, and the estimate of `plan` is what is held, but for cuBLAS' workspace."""
    result = session.run(config)
    assert session.clean
    assert result.create_s is not None
    assert result.retrieve_s is not None
    assert 0 < result.create_s <= result.build_s
    assert 0 < result.retrieve_s <= result.teardown_s
    assert result.memory.allocated_bytes is not None
    beyond = result.memory.allocated_bytes - workload(config.workload).counts(config).memory_bytes
    assert 0 <= beyond < 128 * 2**20


@pytest.mark.parametrize("workers", [0, 1])
def test_sources_give_the_same_losses(session: Session, workers: int) -> None:
    """Through pinned memory, in this process or from a loader's, the tokens are those that lie on the device."""
    generated = Source(name="generate", num_samples=10, loader_workers=workers)
    expected = session.run(encdec(measure=Extent(steps=20))).steps.loss
    found = session.run(encdec(measure=Extent(steps=20), source=generated)).steps.loss
    assert found == pytest.approx(expected, rel=1e-3)
    assert session.clean


class Greedy(OneWeight):
    """Asks for 256 TiB of the GPU."""

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return super().forward(batch) + torch.empty(2**46, device=batch.device).sum()


def build_greedy(config: object) -> Greedy:
    """Build it."""
    return Greedy()


def test_out_of_memory_reaches_the_caller_and_is_survived(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """torch's own error, unchanged; nothing of the failed trial is held."""
    before = torch.cuda.memory_allocated()
    with monkeypatch.context() as patch:
        patch.setattr("raybench.engine.build.workload", lambda name: fake("tests.engine.test_gpu:build_greedy"))
        with pytest.raises(torch.OutOfMemoryError):
            session.run(encdec())
    assert not session.clean
    assert torch.cuda.memory_allocated() == before
    session.run(encdec())
    assert session.clean


@pytest.mark.filterwarnings("ignore")
def test_cuda_graphs_compute_the_same(session: Session) -> None:
    """`reduce-overhead` overwrites its outputs in the next step: losses must have been added up before."""
    shape = encdec().model.model_copy(update={"dropout": 0.0})
    plain = session.run(encdec(model=shape, warmup=Extent(steps=5)))
    graphs = session.run(encdec(model=shape, warmup=Extent(steps=5), compile="reduce-overhead"))
    assert graphs.steps.loss == pytest.approx(plain.steps.loss, rel=1e-3)
    assert session.clean


def test_telemetry_of_this_gpu(session: Session) -> None:
    """A window of two seconds has readings; what this GPU does not tell is None."""
    telemetry = session.run(matmul(measure=Extent(seconds=2.0), warmup=Extent(seconds=0.5))).telemetry
    assert telemetry.utilization_mean is None or 0 < telemetry.utilization_mean <= 1
    assert telemetry.power_mean_w is None or 10 < telemetry.power_mean_w < 2000
    assert telemetry.energy_j is None or 10 < telemetry.energy_j < 4000


@pytest.mark.parametrize("name", ["memory", "generate", "shards", "tokens"])
@pytest.mark.parametrize("prefetch", [0, 2])
def test_every_source_gives_the_same_batches_on_the_device(tmp_path: Path, name: str, prefetch: int) -> None:
    """40 micro-batches through pinned memory, narrow tokens widened on the device, are those that lie there."""
    cuda = torch.device("cuda:0")
    source = Source(name=name, num_samples=11, num_shards=3, data_dir=str(tmp_path), prefetch=prefetch)
    config = encdec(source=source)
    prepare(config)
    ours, device = open_source(config, 0, 1, cuda), open_source(encdec(source=Source(num_samples=11)), 0, 1, cuda)
    for _ in range(40):
        got, wanted = next(ours), next(device)
        assert isinstance(got, torch.Tensor)
        assert isinstance(wanted, torch.Tensor)
        assert got.device == wanted.device
        assert torch.equal(got, wanted)
    ours.close()
    device.close()


@pytest.mark.parametrize("name", ["device", "memory", "generate", "shards"])
def test_images_on_the_device(session: Session, tmp_path: Path, name: str) -> None:
    """A residual network trains on bytes from every source; memory comes back."""
    source = Source(name=name, num_samples=10, num_shards=3, data_dir=str(tmp_path))
    config = resnet(source=source, precision="bf16")
    prepare(config)
    ran = session.run(config).environment
    assert (ran.effective_channels_last, ran.effective_cudnn_benchmark) == (True, True)
    assert session.clean
