"""Decoder-only transformers as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from raybench.spec.family import NETWORK_STRATEGIES, Family
from raybench.spec.models.decoder import PRESETS, DecoderShape
from raybench.spec.samples import TokenSample
from raybench.spec.shapes import Frozen

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig

_GPT2_VOCABULARY = 50257


def _rule(config: TrialConfig) -> Iterable[str]:
    assert isinstance(config.model, DecoderShape)
    assert config.seq_len is not None
    table = config.model.max_positions
    if table is not None and config.seq_len > table:
        yield f"seq_len: {config.seq_len} is beyond the {table} learned positions (model.max_positions)"


def _defaults_of(shape: Frozen) -> Mapping[str, Any]:
    """GPT-2's family is run over its whole table and GPT-2's vocabulary."""
    assert isinstance(shape, DecoderShape)
    if shape.max_positions is None:
        return {}
    return {"seq_len": shape.max_positions, "vocab_size": _GPT2_VOCABULARY}


def _sequences(config: TrialConfig) -> TokenSample:
    """Input and target in one: each token but the last is input, each but the first is target."""
    assert config.seq_len is not None
    assert config.vocab_size is not None
    return TokenSample((config.seq_len + 1,), config.vocab_size, overlap=1)


def _input_tokens(seq_len: int) -> int:
    return seq_len


DECODER = Family(
    name="decoder",
    shape=DecoderShape,
    presets=PRESETS,
    default_model="small",
    settings=frozenset({
        "seq_len", "vocab_size", "micro_batch", "global_batch", "grad_accum", "phase", "optimizer", "source",
        "attention", "activation_checkpointing", "data_cache",
    }),
    strategies=NETWORK_STRATEGIES,
    defaults=MappingProxyType({
        "seq_len": 512,
        "vocab_size": 10_000,
        "micro_batch": 4,
        "phase": "train",
        "optimizer": {"name": "adamw", "lr": 1e-4},
        "source": {"name": "device"},
        "data_cache": "as_is",
        "attention": "auto",
        "activation_checkpointing": "off",
    }),
    defaults_of=_defaults_of,
    rule=_rule,
    tokens_per_sample=_input_tokens,
    sample=_sequences,
)  # fmt: skip
