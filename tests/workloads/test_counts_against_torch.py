"""The formulas held to the module that runs: its parameters, and the FLOPs that torch counts."""

from __future__ import annotations

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from raybench.spec.config import TrialConfig
from raybench.spec.families.encdec import ENCDEC, EncDecShape
from raybench.workloads.registry import workload
from tests.factories import make_config

SHAPES = [
    EncDecShape(d_model=32, nhead=4, num_encoder_layers=2, num_decoder_layers=3, dim_feedforward=48),
    EncDecShape(d_model=16, nhead=2, num_encoder_layers=3, num_decoder_layers=1, dim_feedforward=64),
]


def torch_flops(config: TrialConfig) -> int:
    """FLOPs of one micro batch by torch's counter.

    In training mode, because evaluation's fast path hides half of them, and with attention as plain matmuls, because
    on CPU the fused kernel counts as nothing.
    """
    model = workload("encdec").builder()(config).train()
    shape = (config.micro_batch, 2, config.seq_len)
    batch = torch.randint(config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = model(batch)
        if config.phase != "forward":
            loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("phase", ["forward", "forward_backward"])
def test_flops_are_what_torch_counts(shape: EncDecShape, phase: str) -> None:
    """To the last FLOP, for two samples of 24 source and 23 target tokens on one rank."""
    config = make_config(model=shape, seq_len=24, vocab_size=64, micro_batch=2, num_workers=1, phase=phase)
    assert torch_flops(config) == workload("encdec").counts(config).model_flops_per_step


@pytest.mark.parametrize("preset", sorted(ENCDEC.presets))
def test_parameters_are_what_is_built(preset: str) -> None:
    """Every preset, built without memory for its numbers."""
    config = make_config(model=ENCDEC.presets[preset], seq_len=128)
    with torch.device("meta"):
        built = workload("encdec").builder()(config)
    assert sum(each.numel() for each in built.parameters()) == workload("encdec").counts(config).parameters
