"""What the sweep reader must know of a workload: its shape, its presets, which settings it has and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from raybench.spec.samples import Sample, TokenSample
from raybench.spec.shapes import Frozen

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig

SPECIFIC = (
    "seq_len", "vocab_size", "micro_batch", "global_batch", "grad_accum", "phase", "optimizer", "source",
    "channels_last", "cudnn_benchmark", "attention", "activation_checkpointing", "data_cache",
)  # fmt: skip
"""Settings that only some workloads have. The others (precision, strategy, seed, ...) belong to all."""
NETWORK = ("grad_clip", "bucket_mb", "zero_stage")
"""Settings of everything that has a `phase`: of networks with gradients."""
NETWORK_STRATEGIES = ("ddp", "none", "fsdp", "zero1", "deepspeed")
"""How the ranks of a network with gradients may share the work, the default first; `combinations` says with what."""


def _no_defaults(shape: Frozen) -> Mapping[str, Any]:
    return {}


def _no_rule(config: TrialConfig) -> Iterable[str]:
    return ()


def _no_other_model(name: str) -> Frozen | None:
    return None


def token_pairs(config: TrialConfig) -> TokenSample:
    """Source and target, `seq_len` tokens each: (2, seq_len)."""
    assert config.seq_len is not None
    assert config.vocab_size is not None
    return TokenSample((2, config.seq_len), config.vocab_size)


@dataclass(frozen=True)
class Family:
    """One workload as the sweep reader sees it.

    `settings` names which of `SPECIFIC` it has; `defaults` gives their values (and may override `precision`);
    `defaults_of` those that another shape has instead, where they depend on it (by the shape, whatever its name);
    `strategies` lists what it can run under, the first being the default; `rule` yields one sentence for each
    thing that is wrong with a config although each of its values is right, as `setting: what`;
    `tokens_per_sample` counts a sample's tokens from its seq_len, None where there are no tokens; `sample` is what
    its sources hold, of use only where it has the setting `source`, and `source_samples` how many of them a source of
    that name holds by default, where that differs from what it is for tokens; `other_model` gives the shape of a name
    that is no preset, None where it knows none.
    """

    name: str
    shape: type[Frozen]
    presets: Mapping[str, Frozen]
    default_model: str
    settings: frozenset[str]
    strategies: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    defaults_of: Callable[[Frozen], Mapping[str, Any]] = _no_defaults
    rule: Callable[[TrialConfig], Iterable[str]] = _no_rule
    tokens_per_sample: Callable[[int], int] | None = None
    sample: Callable[[TrialConfig], Sample] = token_pairs
    source_samples: Mapping[str, int] = field(default_factory=dict)
    other_model: Callable[[str], Frozen | None] = _no_other_model

    def named(self, model: str) -> Frozen | None:
        """The shape that a model's name stands for; None where there is none."""
        return self.presets.get(model) or self.other_model(model)

    def has(self, setting: str) -> bool:
        """Whether the workload has a setting that not all have."""
        return setting in self.settings or (setting in NETWORK and "phase" in self.settings)
