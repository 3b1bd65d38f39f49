"""The formulas held to the module that runs: its parameters, and the FLOPs that torch counts."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from raybench.spec.config import TrialConfig
from raybench.spec.families.encdec import ENCDEC, EncDecShape
from raybench.spec.models.decoder import DecoderShape
from raybench.spec.shapes import Frozen
from raybench.workloads.registry import workload
from tests.factories import make_config

SHAPES = {
    "encdec": [
        EncDecShape(d_model=32, nhead=4, num_encoder_layers=2, num_decoder_layers=3, dim_feedforward=48),
        EncDecShape(d_model=16, nhead=2, num_encoder_layers=3, num_decoder_layers=1, dim_feedforward=64),
    ],
    "decoder": [
        DecoderShape(d_model=32, num_layers=3, num_heads=4, d_ff=48),
        DecoderShape(
            d_model=16, num_layers=2, num_heads=2, d_ff=64, norm="layernorm", positions="learned", activation="gelu",
            tied=True, bias=True, max_positions=32,
        ),
        DecoderShape(d_model=16, num_layers=2, num_heads=2, d_ff=24, dropout=0.1, fused_qkv=False),
    ],
}  # fmt: skip
CASES = [(name, shape) for name, shapes in SHAPES.items() for shape in shapes]


def tiny(name: str, shape: Frozen, **changes: Any) -> TrialConfig:
    """Two samples of 24 tokens out of 64 on one rank."""
    values = {"seq_len": 24, "vocab_size": 64, "micro_batch": 2, "num_workers": 1}
    return make_config(workload=name, model=shape, **values, **changes)


def torch_flops(config: TrialConfig) -> int:
    """FLOPs of one micro batch by torch's counter.

    In training mode, because evaluation's fast path hides half of them, and with attention as plain matmuls, because
    on CPU the fused kernel counts as nothing.
    """
    found = workload(config.workload)
    model = found.builder()(config).train()
    shape = (config.micro_batch, *found.family.sample(config).shape)
    batch = torch.randint(config.vocab_size, shape, generator=torch.Generator().manual_seed(0))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = model(batch)
        if config.phase != "forward":
            loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize(("name", "shape"), CASES)
@pytest.mark.parametrize("phase", ["forward", "forward_backward"])
def test_flops_are_what_torch_counts(name: str, shape: Frozen, phase: str) -> None:
    """To the last FLOP."""
    config = tiny(name, shape, phase=phase)
    assert torch_flops(config) == workload(name).counts(config).model_flops_per_step


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_what_is_computed_again_is_what_torch_counts(name: str, shape: Frozen) -> None:
    """To the last FLOP: model and recomputed together are what the hardware did."""
    config = tiny(name, shape, phase="forward_backward", activation_checkpointing="full")
    planned = workload(name).counts(config)
    assert planned.recomputed_flops_per_step > planned.model_flops_per_step / 6
    assert torch_flops(config) == planned.model_flops_per_step + planned.recomputed_flops_per_step


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_computing_again_changes_nothing(name: str, shape: Frozen) -> None:
    """The same loss and gradients to the last bit, dropout included, and still one graph."""
    found = workload(name)
    configs = [tiny(name, shape, activation_checkpointing=policy) for policy in ("off", "full")]
    batch = torch.randint(64, (2, *found.family.sample(configs[0]).shape), generator=torch.Generator().manual_seed(0))
    results = []
    for config in configs:
        torch.manual_seed(0)
        model = found.builder()(config).train()
        loss = model(batch)
        loss.backward()
        results.append([loss.detach(), *(parameter.grad for parameter in model.parameters())])
    assert all(torch.equal(one, other) for one, other in zip(*results, strict=True))
    explained = torch._dynamo.explain(model)(batch)
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)


@pytest.mark.parametrize("preset", sorted(ENCDEC.presets))
def test_parameters_are_what_is_built(preset: str) -> None:
    """Every preset, built without memory for its numbers."""
    config = make_config(model=ENCDEC.presets[preset], seq_len=128)
    with torch.device("meta"):
        built = workload("encdec").builder()(config)
    assert sum(each.numel() for each in built.parameters()) == workload("encdec").counts(config).parameters
