"""Counts of residual networks: published figures, and one network worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.models.resnet import PRESETS, ResNetShape
from raybench.spec.reader import sweep_from_bytes
from raybench.workloads.registry import workload
from raybench.workloads.resnet.counts import convolutions, flops, forward_flops, parameters

PUBLISHED = {
    "resnet18": (11_689_512, 1.81),
    "resnet34": (21_797_672, 3.66),
    "resnet50": (25_557_032, 4.09),
    "resnet101": (44_549_160, 7.80),
    "resnet152": (60_192_808, 11.51),
}
"""Parameters and 10^9 multiply-adds of an image of 224 x 224, as torchvision's table of models gives them."""


def config(**base: Any) -> TrialConfig:
    """The config of a sweep of one trial."""
    given = "".join(f"{key}: {value}, " for key, value in base.items())
    (trial,) = expand(sweep_from_bytes(f"{{name: a, base: {{workload: resnet, {given}}}}}".encode(), "a")).trials
    return trial.config


@pytest.mark.parametrize("name", PRESETS)
def test_published_counts(name: str) -> None:
    """To the last parameter, and to the last digit that is published; two FLOPs are one multiply-add."""
    published, giga_multiply_adds = PUBLISHED[name]
    assert parameters(PRESETS[name]) == published
    assert round(forward_flops(PRESETS[name]) / 2 / 1e9, 2) == giga_multiply_adds


def test_a_hundred_classes() -> None:
    """900 classes less are 900 x 2048 weights and 900 biases less: 25 557 032 - 1 844 100."""
    assert parameters(ResNetShape(num_classes=100)) == 23_712_932


def test_a_narrow_network_by_hand() -> None:
    """resnet18, width 1, 2 classes, 32 x 32 pixels: 16 after the stem, 8 after the pool, then 8, 4, 2, 1.

    Weights: stem 3 x 49 = 147. Stage 1: 4 convolutions of 9. Stage 2 (2 channels): 18, 36, 2 (shortcut), 36, 36.
    Stage 3 (4): 72, 144, 8, 144, 144. Stage 4 (8): 288, 576, 32, 576, 576. Classifier 8 x 2.
    A weight is used once for each pixel that comes out: 256, 64, 16, 4, 1.
    """
    shape = ResNetShape(architecture="resnet18", width=1, num_classes=2, image_size=32)
    assert [each.size for each in convolutions(shape)] == [16, *[8] * 4, *[4] * 5, *[2] * 5, *[1] * 5]
    weights = 147 + 36 + 128 + 512 + 2048
    batch_norms = 2 * (1 + 4 * 1 + 5 * 2 + 5 * 4 + 5 * 8)
    assert parameters(shape) == weights + batch_norms + 8 * 2 + 2
    assert forward_flops(shape) == 2 * (147 * 256 + 36 * 64 + 128 * 16 + 512 * 4 + 2048 * 1 + 8 * 2)


def test_odd_sizes_round_up() -> None:
    """225 pixels: 113, 57, 57, 29, 15, 8."""
    sizes = [each.size for each in convolutions(ResNetShape(architecture="resnet18", image_size=225))]
    assert sizes == [113, *[57] * 4, *[29] * 5, *[15] * 5, *[8] * 5]


def test_phases_and_batches() -> None:
    """The backward pass is twice the forward pass less the stem, whose input is an image: 2 x 147 x 64 x 112 x 112."""
    stem = 2 * 147 * 64 * 112 * 112
    forward = forward_flops(PRESETS["resnet50"])
    assert flops(config(phase="forward")) == forward
    assert flops(config(phase="forward_backward")) == flops(config()) == 3 * forward - stem
    counts = workload("resnet").counts(config(micro_batch=8, grad_accum=2, num_workers=2))
    assert counts.samples_per_step == 32
    assert counts.model_flops_per_step == 32 * (3 * forward - stem)
    assert (counts.tokens_per_step, counts.model_flops_causal_per_step) == (None, None)


def test_memory_grows_with_the_batch_and_shrinks_with_precision() -> None:
    """ResNet-50 in fp32 at batch 256 is known to need about 22 GB: 2 x 11.1 million numbers an image, and the state."""
    full = workload("resnet").counts(config()).memory_bytes
    assert full is not None
    assert 21e9 < full < 25e9
    half = workload("resnet").counts(config(precision="bf16")).memory_bytes
    assert half is not None
    assert 0.5 < half / full < 0.6


def test_nothing_is_known_of_another_model_of_torchvision() -> None:
    """Its parameters are counted when it is built; FLOPs and memory stay null."""
    counts = workload("resnet").counts(config(model='"torchvision:vit_b_16"'))
    assert (counts.parameters, counts.model_flops_per_step, counts.memory_bytes) == (None, None, None)
    assert counts.samples_per_step == 256
