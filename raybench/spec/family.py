"""What the sweep reader must know of a workload: its shape, its presets, which settings it has and their defaults."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from raybench.spec.presets import ENCDEC_PRESETS, MATMUL_PRESETS
from raybench.spec.shapes import EncDecShape, Frozen, MatmulShape

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig

SPECIFIC = (
    "seq_len", "vocab_size", "micro_batch", "global_batch", "grad_accum", "phase", "optimizer", "source",
)  # fmt: skip
"""Settings that only some workloads have. The others (precision, strategy, seed, ...) belong to all."""
ENTRY_POINT_GROUP = "raybench.workloads"


def _no_rule(config: TrialConfig) -> Iterable[str]:
    return ()


@dataclass(frozen=True)
class Family:
    """One workload as the sweep reader sees it.

    `settings` names which of `SPECIFIC` it has; `defaults` gives their values (and may override `precision`);
    `strategies` lists what it can run under, the first being the default; `rule` yields one sentence for each
    thing that is wrong with a config although each of its values is right, as `setting: what`;
    `tokens_per_sample` counts a sample's tokens from its seq_len, None where there are no tokens.
    """

    name: str
    shape: type[Frozen]
    presets: Mapping[str, Frozen]
    default_model: str
    settings: frozenset[str]
    strategies: tuple[str, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    rule: Callable[[TrialConfig], Iterable[str]] = _no_rule
    tokens_per_sample: Callable[[int], int] | None = None


def _rows_divide(config: TrialConfig) -> Iterable[str]:
    rows = config.model.m  # type: ignore[attr-defined]  # a matmul config's model is a MatmulShape
    if rows % config.num_workers:
        yield f"model: {rows} rows do not divide over {config.num_workers} workers"


def _has_a_target(config: TrialConfig) -> Iterable[str]:
    if config.seq_len is not None and config.seq_len < 2:
        yield "seq_len: must be at least 2, because the last token is only a target"


def _target_tokens(seq_len: int) -> int:
    return seq_len - 1


ENCDEC = Family(
    name="encdec",
    shape=EncDecShape,
    presets=ENCDEC_PRESETS,
    default_model="3.5m",
    settings=frozenset(SPECIFIC),
    strategies=("ddp", "none"),
    defaults=MappingProxyType({
        "seq_len": 256,
        "vocab_size": 8192,
        "micro_batch": 128,
        "phase": "train",
        "optimizer": {"name": "adamw", "lr": 1e-4},
        "source": {"name": "device"},
    }),
    rule=_has_a_target,
    tokens_per_sample=_target_tokens,
)
MATMUL = Family(
    name="matmul",
    shape=MatmulShape,
    presets=MATMUL_PRESETS,
    default_model="sq4096",
    settings=frozenset(),
    strategies=("split",),
    rule=_rows_divide,
)


def families() -> dict[str, Family]:
    """Every workload that a sweep may name: the built-in ones, then those of installed plug-ins.

    A plug-in is an entry point in the group `raybench.workloads` whose object has a `family`.
    """
    found = {family.name: family for family in (ENCDEC, MATMUL)}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        family = entry.load().family
        found.setdefault(family.name, family)
    return found
