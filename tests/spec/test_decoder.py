"""Decoders in a sweep: defaults that follow the shape, and shapes that make no sense."""

from __future__ import annotations

import pytest

from raybench.errors import SweepError
from raybench.spec.config import TrialConfig
from raybench.spec.expand import expand
from raybench.spec.families.decoder import DECODER
from raybench.spec.plan import plan
from raybench.spec.reader import sweep_from_bytes
from raybench.spec.samples import TokenSample


def configs(base: str, rest: str = "") -> list[TrialConfig]:
    """The configs of a sweep with that in `base`."""
    text = f"name: s\nbase: {{workload: decoder, {base}}}\n{rest}"
    return [trial.config for trial in expand(sweep_from_bytes(text.encode(), "s.yaml")).trials]


def lengths(base: str, rest: str = "") -> list[tuple[str, int | None, int | None]]:
    """Model, seq_len and vocab_size of each config."""
    return [(config.model_name, config.seq_len, config.vocab_size) for config in configs(base, rest)]


def test_defaults_follow_the_shape() -> None:
    """The reference program's 512 of 10 000 tokens, and GPT-2's 1024 of 50 257, side by side on one axis."""
    rest = "axes: {model: [small, gpt2, gpt2-seed]}\n"
    assert lengths("micro_batch: 2", rest) == [
        ("small", 512, 10_000), ("gpt2", 1024, 50_257), ("gpt2-seed", 1024, 50_257),
    ]  # fmt: skip
    assert [config.micro_batch for config in configs("model: gpt2")] == [4]


def test_defaults_do_not_depend_on_how_the_shape_is_written() -> None:
    """A preset with a part changed, and a shape spelt out; a shorter table is run over its length."""
    assert lengths("model: gpt2, model.dropout: 0.1") == [("custom", 1024, 50_257)]
    assert lengths("model: {positions: learned, max_positions: 256}") == [("custom", 256, 50_257)]
    assert lengths("model: {num_layers: 2}") == [("custom", 512, 10_000)]


def test_what_is_given_wins() -> None:
    """Also where only an axis gives it."""
    assert lengths("model: gpt2, seq_len: 512, vocab_size: 50304") == [("gpt2", 512, 50_304)]
    rest = "axes: {model: [small, gpt2], seq_len: [128]}\n"
    assert lengths("vocab_size: 100", rest) == [("small", 128, 100), ("gpt2", 128, 100)]


def test_tokens_of_the_shape_s_own_length() -> None:
    """4096 tokens are 1 step of 4 x 1024 of gpt2 and 2 of 4 x 512 of small."""
    found = configs("measure: {tokens: 4096}", "axes: {model: [gpt2, small]}\n")
    assert [config.measure.steps for config in found] == [1, 2]


def test_a_sample_is_one_token_longer() -> None:
    """Input and target in one sequence."""
    (config,) = configs("model: gpt2, seq_len: 8, vocab_size: 50")
    assert DECODER.sample(config) == TokenSample((9,), 50, overlap=1)


@pytest.mark.parametrize(("base", "mistake"), [
    ("model: {d_model: 100, num_heads: 12}", "base.model: d_model 100 is not divisible by num_heads 12"),
    ("model: {d_model: 36, num_heads: 4}",
     "base.model: rotary positions turn pairs: d_model / num_heads is 9, which is odd"),
    ("model: {positions: learned}", "base.model: learned positions need max_positions"),
    ("model: {max_positions: 64}", "base.model: max_positions is for learned positions; rotary ones have no table"),
    ("model: gpt2, seq_len: 2048",
     "base.seq_len: 2048 is beyond the 1024 learned positions (model.max_positions)"),
    ("model: {n_layer: 2}", 'base.model.n_layer: unknown key; did you mean "num_layers"?'),
    ("activation_checkpointing: full, phase: forward",
     "base.activation_checkpointing: phase forward has no backward pass to compute anything again for"),
    ("attention: flash2", 'base.attention: must be one of auto, flash, cudnn, efficient, math, not "flash2"; '
     'did you mean "flash"?'),
    ("gradient_checkpointing: full",
     'base.gradient_checkpointing: unknown key; did you mean "activation_checkpointing"?'),
    ("model: gpt3", 'base.model: decoder has no preset "gpt3"; did you mean "gpt2"?'),
    ("model: {activation: relu}",
     'base.model.activation: must be one of swiglu, gelu, gelu_tanh, not "relu"'),
])  # fmt: skip
def test_what_makes_no_sense(base: str, mistake: str) -> None:
    """Said where it stands, in one line."""
    with pytest.raises(SweepError) as caught:
        configs(base)
    assert str(caught.value).partition(" ")[2] == mistake


def test_the_seed_of_fixed_work() -> None:
    """GS-01: 3561 steps of 16 x 512 = 29 171 712 tokens on 1, 2 and 4 GPUs, accumulation 4, 2 and 1; one epoch."""
    trials = plan("seed_gpt2_fixed_work").trials
    found = {(each.config.num_workers, each.config.grad_accum, each.config.measure.steps) for each in trials}
    assert found == {(1, 4, 3561), (2, 2, 3561), (4, 1, 3561)}
    config = trials[0].config
    assert (config.model_name, config.vocab_size, config.global_batch) == ("gpt2-seed", 50_257, 16)
    assert config.source is not None
    assert config.source.num_samples == 3561 * 16


def test_the_seed_of_forward_and_backward() -> None:
    """FB's documented commands: five sizes, small forward only, without warm-up, and over its four context lengths."""
    configs = [trial.config for trial in plan("seed_forward_backward").trials]
    assert [config.model_name for config in configs[:5]] == ["small", "medium", "large", "xl", "2.7b"]
    assert {(config.vocab_size, config.micro_batch, config.measure.steps) for config in configs} == {(10_000, 4, 10)}
    small = [(config.phase, config.seq_len, config.warmup.steps) for config in configs if config.model_name == "small"]
    assert small == [
        ("forward_backward", 512, 5), ("forward", 512, 5), ("forward_backward", 512, 0),
        ("forward_backward", 128, 5), ("forward_backward", 256, 5), ("forward_backward", 1024, 5),
    ]  # fmt: skip
