"""Encoder-decoder transformers as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING

from raybench.spec.family import NETWORK_STRATEGIES, Family, token_pairs
from raybench.spec.models.encdec import PRESETS, EncDecShape

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig


def _rule(config: TrialConfig) -> Iterable[str]:
    if config.seq_len is not None and config.seq_len < 2:
        yield "seq_len: must be at least 2, because the last token is only a target"


def _target_tokens(seq_len: int) -> int:
    return seq_len - 1


ENCDEC = Family(
    name="encdec",
    shape=EncDecShape,
    presets=PRESETS,
    default_model="3.5m",
    settings=frozenset({
        "seq_len", "vocab_size", "micro_batch", "global_batch", "grad_accum", "phase", "optimizer", "source",
        "attention", "activation_checkpointing", "data_cache",
    }),
    strategies=NETWORK_STRATEGIES,
    defaults=MappingProxyType({
        "seq_len": 256,
        "vocab_size": 8192,
        "micro_batch": 128,
        "phase": "train",
        "optimizer": {"name": "adamw", "lr": 1e-4},
        "source": {"name": "device"},
        "data_cache": "as_is",
        "attention": "auto",
        "activation_checkpointing": "off",
    }),
    rule=_rule,
    tokens_per_sample=_target_tokens,
    sample=token_pairs,
)  # fmt: skip
