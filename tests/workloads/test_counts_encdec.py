"""Parameters and FLOPs of the encoder-decoder, against numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from raybench.spec.families.encdec import ENCDEC, EncDecShape
from raybench.workloads.encdec.counts import counts, forward_flops, masked_flops, parameters

TINY = EncDecShape(d_model=4, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8)


def config(**changes: Any) -> TrialConfig:
    """A resolved config of the tiny shape; the names in `changes` replace its own."""
    values: dict[str, Any] = {
        "workload": "encdec",
        "model_name": "custom",
        "model": TINY,
        "seq_len": 3,
        "vocab_size": 10,
        "micro_batch": 2,
        "grad_accum": 1,
        "global_batch": 2,
        "phase": "train",
        "strategy": "ddp",
        "optimizer": Optimizer(),
        "source": Source(),
        "warmup": Extent(steps=5),
        "measure": Extent(steps=20),
    }
    return TrialConfig(**{**values, **changes})


@pytest.mark.parametrize(
    ("preset", "seq_len", "expected"),
    [
        ("3.5m", 256, 3_527_168),
        ("3.5m", 64, 3_502_592),  # 192 positions x 128 fewer
        ("53m", 256, 52_668_416),
        ("211m", 256, 211_266_560),
        ("2.9b", 512, 2_854_764_544),
    ],
)
def test_parameters_of_the_presets(preset: str, seq_len: int, expected: int) -> None:
    """The four sizes have exactly the parameters of the reference program (ED-15)."""
    shape = ENCDEC.presets[preset]
    assert isinstance(shape, EncDecShape)
    assert parameters(shape, seq_len, vocab_size=8192) == expected


def test_parameters_by_hand() -> None:
    """Each module of a tiny shape counted by hand.

    Attention 4 x (16 + 4) = 80; feed-forward 32 + 8 + 32 + 4 = 76; a norm 8. Encoder 80 + 76 + 2 x 8 = 172, its final
    norm 8; decoder 2 x 80 + 76 + 3 x 8 = 260, its final norm 8. Embedding 40, positions 12, output 40 + 10.
    """
    assert parameters(TINY, seq_len=3, vocab_size=10) == 172 + 8 + 260 + 8 + 40 + 12 + 50


def test_forward_flops_by_hand() -> None:
    """Each product of a tiny shape counted by hand: S = 3, T = 2, d = 4, f = 8, V = 10.

    Encoder: projections 3 tokens x 4 x 2 x 16 = 384; feed-forward 3 x 2 x 2 x 32 = 384; attention 2 x 2 x 9 x 4 = 144.
    Decoder: self projections 2 x 128 = 256; self attention 4 x 4 x 4 = 64; cross Q and output 2 x 64 = 128, K and V
    3 x 64 = 192; cross attention 4 x 6 x 4 = 96; feed-forward 2 x 128 = 256. Output: 2 x 2 x 4 x 10 = 160.
    """
    encoder, decoder, output = 384 + 384 + 144, 256 + 64 + 128 + 192 + 96 + 256, 160
    assert forward_flops(TINY, seq_len=3, vocab_size=10) == encoder + decoder + output == 2064
    assert masked_flops(TINY, seq_len=3) == 32  # half of the decoder's 64


def test_counts_of_a_training_step() -> None:
    """A step is the global batch: micro batch 2, accumulation 3, 4 ranks; target tokens are 24 x (3 - 1)."""
    found = counts(config(grad_accum=3, num_workers=4, global_batch=24))
    assert found.parameters == 550
    assert (found.samples_per_step, found.tokens_per_step) == (24, 48)
    assert found.model_flops_per_step == 24 * 3 * 2064
    assert found.model_flops_causal_per_step == 24 * 3 * (2064 - 32)


@pytest.mark.parametrize(("phase", "multiple"), [("forward", 1), ("forward_backward", 3), ("train", 3)])
def test_a_phase_multiplies_the_forward_pass(phase: str, multiple: int) -> None:
    """Backward is twice the forward pass, and the optimizer adds nothing."""
    assert counts(config(phase=phase)).model_flops_per_step == 2 * multiple * 2064


def test_flops_per_token_approach_six_n() -> None:
    """Kaplan's rule of thumb: for a wide model and short sequences, training costs 6 FLOPs a parameter and token pair.

    An encoder parameter meets source tokens, a decoder one target tokens, and look-ups (8192 x 2048 + 64 x 2048) are
    left out; attention's own share at 64 tokens is about 1 %.
    """
    shape = ENCDEC.presets["2.9b"]
    assert isinstance(shape, EncDecShape)
    multiplied = parameters(shape, 64, 8192) - (8192 + 64) * 2048
    assert 3 * forward_flops(shape, 64, 8192) / 64 == pytest.approx(6 * multiplied, rel=0.02)


def test_memory_by_hand() -> None:
    """Training under DDP in fp32: five copies of 550 parameters, activations and three copies of the logits.

    State 5 x 4 x 550 = 11000; activations 4 bytes x 2 samples x 3 tokens x (11 x 4 + 16 + 17 x 4 + 16 = 144) = 3456;
    logits 3 x 4 x 2 x 2 x 10 = 480.
    """
    assert counts(config()).memory_bytes == 11000 + 3456 + 480


@pytest.mark.parametrize(
    ("changes", "copies"),
    [
        ({"strategy": "none"}, 4),
        ({"strategy": "none", "phase": "forward_backward"}, 2),
        ({"strategy": "none", "optimizer": Optimizer(name="sgd")}, 2),
        ({"strategy": "none", "optimizer": Optimizer(name="sgd", momentum=0.9)}, 3),
    ],
)
def test_memory_follows_the_optimizer(changes: dict[str, Any], copies: int) -> None:
    """Parameter and gradient, plus what the optimizer keeps; no DDP buckets."""
    assert counts(config(**changes)).memory_bytes == copies * 4 * 550 + 3456 + 480


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"strategy": "ddp", "num_workers": 2}, 4 * 5 * 550),
        ({"strategy": "zero1", "num_workers": 2}, 4 * (3 * 550 + 2 * 275)),
        ({"strategy": "fsdp", "num_workers": 2}, 4 * 4 * 275),
        ({"strategy": "fsdp", "num_workers": 4}, 4 * 4 * 138),
        ({"strategy": "deepspeed", "zero_stage": 0, "num_workers": 2}, 4 * 4 * 550),
        ({"strategy": "deepspeed", "zero_stage": 2, "num_workers": 2}, 4 * (550 + 3 * 275)),
        ({"strategy": "deepspeed", "zero_stage": 3, "num_workers": 2}, 4 * 4 * 275),
    ],
)
def test_memory_follows_the_strategy(changes: dict[str, Any], state: int) -> None:
    """Parameter, gradient, bucket (ddp, zero1) and two moments of 550 parameters; what is sharded counts by its share,
    550 / 2 = 275 or 550 / 4 = 137.5, so 138."""
    assert counts(config(**changes)).memory_bytes == state + 3456 + 480


def test_memory_of_bf16_parameters() -> None:
    """All five copies in 2 bytes, and activations in half: 5 x 2 x 550 + 3456 / 2; the loss stays in fp32."""
    assert counts(config(precision="bf16_params")).memory_bytes == 5500 + 1728 + 480


def test_memory_of_a_forward_pass() -> None:
    """Parameters, the widest layer 4 x 6 x (68 + 16) = 2016, and two copies of the logits 320."""
    assert counts(config(phase="forward")).memory_bytes == 4 * 550 + 2016 + 320


def test_what_is_computed_again() -> None:
    """All layers, the output projection (160) left out; one of 84 numbers a token is kept, and two inputs of 4."""
    again = counts(config(activation_checkpointing="full"))
    assert again.recomputed_flops_per_step == 2 * (2064 - 160)
    assert again.memory_bytes == 11000 + 4 * 6 * (84 + 8) + 480
