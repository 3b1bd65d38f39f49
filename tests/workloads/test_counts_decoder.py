"""Parameters, FLOPs and memory of the decoder, against numbers worked by hand."""

from __future__ import annotations

from typing import Any

import pytest

from raybench.spec.config import Extent, Optimizer, Source, TrialConfig
from raybench.spec.families.decoder import DECODER
from raybench.spec.models.decoder import DecoderShape
from raybench.workloads.decoder.counts import counts, forward_flops, masked_flops, parameters

MODERN = DecoderShape(d_model=4, num_layers=2, num_heads=2, d_ff=6)
GPT2 = DecoderShape(
    d_model=4, num_layers=1, num_heads=2, d_ff=8, norm="layernorm", positions="learned", activation="gelu_tanh",
    tied=True, bias=True, max_positions=5,
)  # fmt: skip


def preset(name: str, **changes: Any) -> DecoderShape:
    """A preset's shape, some of its options changed."""
    shape = DECODER.presets[name]
    assert isinstance(shape, DecoderShape)
    return shape.model_copy(update=changes)


def config(**changes: Any) -> TrialConfig:
    """A resolved config of the tiny modern shape: 2 sequences of 3 tokens; the names in `changes` replace its own."""
    values: dict[str, Any] = {
        "workload": "decoder", "model_name": "custom", "model": MODERN, "seq_len": 3, "vocab_size": 10,
        "micro_batch": 2, "grad_accum": 1, "global_batch": 2, "phase": "train", "strategy": "none",
        "optimizer": Optimizer(), "source": Source(), "warmup": Extent(steps=5), "measure": Extent(steps=20),
    }  # fmt: skip
    return TrialConfig(**{**values, **changes})


@pytest.mark.parametrize(("name", "expected"), [
    ("small", 128_625_408), ("medium", 423_183_360), ("large", 969_411_840), ("xl", 1_998_235_200),
    ("2.7b", 3_406_809_600),
])  # fmt: skip
def test_the_five_sizes(name: str, expected: int) -> None:
    """Exactly those of the reference program at its vocabulary of 10 000 (FB-03)."""
    assert parameters(preset(name), vocab_size=10_000) == expected


@pytest.mark.parametrize(("name", "expected"), [
    ("gpt2", 124_439_808), ("gpt2-medium", 354_823_168), ("gpt2-large", 774_030_080), ("gpt2-xl", 1_557_611_200),
    ("gpt2-seed", 163_037_184),
])  # fmt: skip
def test_the_family_of_gpt2(name: str, expected: int) -> None:
    """As published; `gpt2-seed` has a head of its own, 50 257 x 768 more (GS-07)."""
    assert parameters(preset(name), vocab_size=50_257) == expected


def test_what_nanogpt_times() -> None:
    """Padded to 50 304 and without biases it prints 123.59M, its 1024 x 768 positions left out."""
    assert parameters(preset("gpt2", bias=False), vocab_size=50_304) == 123_587_328 + 1024 * 768


def test_parameters_by_hand() -> None:
    """Modern: a layer has 4 x 16 + 3 x 24 + 2 x 4 = 144; two of them, the last norm 4, embedding and head 40 each.

    GPT-2: attention 4 x (16 + 4) = 80, feed-forward 32 + 8 + 32 + 4 = 76, two norms 16; the last norm 8, embedding 40,
    positions 20.
    """
    assert parameters(MODERN, vocab_size=10) == 2 * 144 + 4 + 80
    assert parameters(GPT2, vocab_size=10) == 80 + 76 + 16 + 8 + 40 + 20


def test_forward_flops_by_hand() -> None:
    """T = 3, d = 4, V = 10. Modern (f = 6): a layer 3 x 2 x (64 + 72) = 816 and attention 4 x 9 x 4 = 144.

    The head is 3 x 2 x 40 = 240. GPT-2 (f = 8): 3 x 2 x (64 + 64) = 768, 144 and 240, although its head is tied.
    """
    assert forward_flops(MODERN, 3, 10) == 2 * (816 + 144) + 240
    assert forward_flops(GPT2, 3, 10) == 768 + 144 + 240
    assert (masked_flops(MODERN, 3), masked_flops(GPT2, 3)) == (144, 72)


@pytest.mark.parametrize(("name", "seq_len", "vocab_size", "weights", "attention"), [
    ("small", 512, 10_000, 120_926_208, 12 * 12 * 768 * 512),
    ("gpt2", 1024, 50_257, 123_532_032, 12 * 12 * 768 * 1024),
])  # fmt: skip
def test_training_flops_a_token(name: str, seq_len: int, vocab_size: int, weights: int, attention: int) -> None:
    """PaLM's 6 N + 12 L d T, N the weights that multiply.

    small: 12 (4 x 768^2 + 3 x 768 x 3072) + 10 000 x 768; gpt2: 12 x 12 x 768^2 + 50 257 x 768. One H200 at 10 % MFU
    trains 126k and 116k of such tokens a second.
    """
    a_token = 3 * forward_flops(preset(name), seq_len, vocab_size) / seq_len
    assert a_token == 6 * weights + attention
    assert 0.1 * 989e12 / a_token == pytest.approx({"small": 126_442, "gpt2": 115_748}[name], abs=1)


def test_counts_of_a_training_step() -> None:
    """A step is the global batch: micro batch 2, accumulation 3, 4 ranks, 24 sequences of 3 tokens."""
    found = counts(config(grad_accum=3, num_workers=4, global_batch=24, strategy="ddp"))
    assert found.parameters == 372
    assert (found.samples_per_step, found.tokens_per_step) == (24, 72)
    assert found.model_flops_per_step == 24 * 3 * 2160
    assert found.model_flops_causal_per_step == 24 * 3 * (2160 - 144)


def test_memory_by_hand() -> None:
    """Training in fp32, 6 tokens: four copies of 372 parameters, two layers, three copies of the logits.

    A layer keeps 4 x (8 x 4 + 3 x 6) = 200 bytes a token; logits 3 x 4 x 10 = 120.
    """
    assert counts(config()).memory_bytes == 4 * 4 * 372 + 6 * (2 * 200 + 120)


def test_memory_of_other_ways_to_run() -> None:
    """bf16 halves what multiplies (32 + 2 x (24 + 18) = 116), compiling spares one of three (32 + 2 x 36 = 104) and
    leaves logits as bf16; a forward pass holds one layer and two copies of the logits.
    """
    assert counts(config(precision="bf16")).memory_bytes == 16 * 372 + 6 * (2 * 116 + 120)
    assert counts(config(precision="bf16", compile="default")).memory_bytes == 16 * 372 + 6 * (2 * 104 + 40)
    assert counts(config(phase="forward")).memory_bytes == 4 * 372 + 6 * (200 + 80)


def test_what_is_computed_again_by_hand() -> None:
    """Two layers less their last product (24 of 136 weights): 2 x (3 x 2 x 112 + 144) = 1632 a sequence.

    Eager dropout comes after that product, which then runs, too: 2 x (816 + 144) = 1920. Off, nothing is.
    """
    again = config(activation_checkpointing="full")
    dropout = MODERN.model_copy(update={"dropout": 0.1})
    assert counts(again).recomputed_flops_per_step == 2 * 1632
    assert counts(again.model_copy(update={"model": dropout})).recomputed_flops_per_step == 2 * 1920
    compiled = again.model_copy(update={"model": dropout, "compile": "default"})
    assert counts(compiled).recomputed_flops_per_step == 2 * 1632
    assert counts(config(activation_checkpointing="off")).recomputed_flops_per_step == 0
    assert counts(again).model_flops_per_step == counts(config()).model_flops_per_step


def test_memory_of_what_is_computed_again() -> None:
    """One layer's 200 bytes a token, and two inputs of 4 numbers in fp32."""
    assert counts(config(activation_checkpointing="full")).memory_bytes == 16 * 372 + 6 * (200 + 32 + 120)


def test_memory_of_what_was_measured() -> None:
    """GPT-2 small at batch 64 and T 1024, compiled, bf16: 28.9 GB on an H200; the estimate may be off by a fifth."""
    measured = config(
        model=preset("gpt2"), seq_len=1024, vocab_size=50_304, micro_batch=64, global_batch=64, precision="bf16",
        compile="default",
    )  # fmt: skip
    assert counts(measured).memory_bytes == pytest.approx(28.9e9, rel=0.2)
