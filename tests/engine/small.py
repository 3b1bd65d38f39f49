"""Trials that take milliseconds, for tests of the engine."""

from __future__ import annotations

from typing import Any

import torch

from raybench.engine.session import Place
from raybench.measure.counts import Counts
from raybench.spec.config import Extent, Source, TrialConfig
from raybench.spec.families.encdec import ENCDEC, EncDecShape
from raybench.spec.models.matmul import MatmulShape
from raybench.spec.models.resnet import ResNetShape
from raybench.workloads.base import Workload
from tests.factories import make_config

SHAPE = EncDecShape(d_model=16, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=32)


def place(rank: int = 0, world_size: int = 1, device: str = "cpu") -> Place:
    """A rank on this machine."""
    return Place(rank, world_size, rank, device, host="here", node_key="0123456789abcdef")


def encdec(**changes: Any) -> TrialConfig:
    """A tiny encoder-decoder: batches of 4 pairs of 8 tokens, 2 + 3 steps over 10 samples."""
    values = {
        "model": SHAPE, "seq_len": 8, "vocab_size": 32, "num_workers": 1, "source": Source(num_samples=10),
        "warmup": Extent(steps=2), "measure": Extent(steps=3),
    }  # fmt: skip
    return make_config(**{**values, **changes})


def resnet(**changes: Any) -> TrialConfig:
    """A tiny residual network: batches of 4 images of 40 x 40 pixels, 2 + 3 steps over 10 images."""
    shape = ResNetShape(architecture="resnet18", width=2, num_classes=5, image_size=40)
    values = {
        "workload": "resnet", "model_name": "custom", "model": shape, "seq_len": None, "vocab_size": None,
        "channels_last": True, "cudnn_benchmark": True,
    }  # fmt: skip
    return encdec(**{**values, **changes})


def matmul(**changes: Any) -> TrialConfig:
    """A tiny product of matrices, 2 + 3 steps."""
    values: dict[str, Any] = {
        "workload": "matmul", "model_name": "custom", "model": MatmulShape(m=8, k=4, n=6), "strategy": "split",
        "warmup": Extent(steps=2), "measure": Extent(steps=3),
    }  # fmt: skip
    return TrialConfig(**{**values, **changes})


def fake(code: str) -> Workload:
    """A workload whose model is built by `package.module:function`."""
    return Workload(family=ENCDEC, counts=_uncounted, code=code)


def _uncounted(config: TrialConfig) -> Counts:
    raise NotImplementedError("the engine does not ask")


class OneWeight(torch.nn.Module):
    """The smallest network: one weight times the mean token."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(()))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return self.weight * batch.float().mean()


def one_weight(config: TrialConfig) -> OneWeight:
    """Build it."""
    return OneWeight()
