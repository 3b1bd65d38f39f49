"""Every setting a sweep can give, what each may be, and the reading of one mapping of them."""

from __future__ import annotations

import types
import typing
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from raybench.spec.built_in import BUILT_IN
from raybench.spec.config import Optimizer, Source, TrialConfig
from raybench.spec.document import BAD, Node
from raybench.spec.mistakes import Mistakes, instead, meant
from raybench.spec.plain_words import problems
from raybench.spec.shapes import Count, Frozen
from raybench.spec.synonyms import ours, quoted

AUTO = "auto"
TAKES_AUTO = frozenset({"num_workers", "micro_batch"})
"""Settings that a sweep may leave open: the first until the cluster is known, the second until sizes were tried."""
FOR_AUTO = ("memory_share", "max_micro_batch")
"""Settings that only `micro_batch: auto` goes by: they choose among configs and are no part of one."""


class Measure(Frozen):
    """How long to measure. Exactly one; samples, tokens and epochs are turned into steps and must divide."""

    steps: Annotated[int, Field(ge=1)] | None = Field(None, description="optimizer steps")
    seconds: Annotated[float, Field(gt=0.0)] | None = Field(None, description="at least so many seconds")
    samples: Count | None = Field(None, description="samples over all ranks")
    tokens: Annotated[int, Field(ge=1)] | None = Field(None, description="tokens over all ranks")
    epochs: Count | None = Field(None, description="passes over the source's num_samples")


class Warmup(Frozen):
    """How long to warm up. Exactly one."""

    steps: Annotated[int, Field(ge=0)] | None = Field(None, description="optimizer steps")
    seconds: Annotated[float, Field(gt=0.0)] | None = Field(None, description="at least so many seconds")


def field_type(model: type[BaseModel], name: str) -> Any:
    """The type of a model's field with its limits and without its None: what a sweep may give for it."""
    field = model.model_fields[name]
    hint = field.annotation
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        (hint,) = [part for part in typing.get_args(hint) if part is not types.NoneType]
    parts = (hint, *field.metadata)
    return Annotated[parts] if field.metadata else hint


@dataclass(frozen=True)
class Setting:
    """One key of `base`. A plain value is of type `scalar`; a mapping, where allowed, has the fields of `parts`.

    `bare` is the part that a plain value stands for; `shape` marks `model`, whose parts depend on the workload;
    `nullable` lets an axis hold null, for the default that no number stands for.
    """

    name: str
    help: str
    scalar: Any
    parts: type[BaseModel] | None = None
    bare: str | None = None
    one_part: bool = False
    shape: bool = False
    nullable: bool = False

    @cached_property
    def adapter(self) -> TypeAdapter[Any]:
        """Checks a plain value."""
        return strict(self.scalar)

    @property
    def takes_mapping(self) -> bool:
        """Whether the value may be a mapping."""
        return self.parts is not None or self.shape


def strict(hint: Any) -> TypeAdapter[Any]:
    """A checker that takes no `true` for an int, but an int for a float."""
    return TypeAdapter(hint, config=ConfigDict(strict=True, allow_inf_nan=False))


def _same(name: str, help_: str, *, nullable: bool = False) -> Setting:
    """A setting that goes into the field of the same name as it stands."""
    return Setting(name, help_, field_type(TrialConfig, name), nullable=nullable)


SETTINGS: Mapping[str, Setting] = types.MappingProxyType({setting.name: setting for setting in (
    Setting("workload", "what is computed", str),
    Setting("model", "a preset's name, or the shape itself", str, shape=True),
    _same("seq_len", "tokens in a sequence"),
    _same("vocab_size", "number of token values"),
    _same("micro_batch", "samples a rank sees in a micro step; auto: the largest power of two that fits"),
    _same("grad_accum", "micro steps in a step"),
    _same("global_batch", "samples in a step over all ranks: micro_batch x grad_accum x num_workers"),
    Setting("memory_share", "share of the memory that micro_batch: auto may fill", Annotated[float, Field(gt=0, le=1)]),
    Setting("max_micro_batch", "the largest micro batch that auto tries", Count),
    _same("precision", "number format of the computation"),
    _same("phase", "how much of a training step is run"),
    _same("strategy", "how ranks share the work"),
    _same("compile", "torch.compile mode"),
    _same("attention", "attention kernel; auto: torch's own choice"),
    _same("activation_checkpointing", "full: keep each block's input only, and compute the rest again when needed"),
    _same("channels_last", "store images and convolutions with the channel as the fastest dimension"),
    _same("cudnn_benchmark", "let cuDNN time its convolution algorithms and keep the fastest"),
    Setting("optimizer", "the optimizer's name, or a mapping", field_type(Optimizer, "name"), Optimizer, "name"),
    _same("grad_clip", "norm to which larger gradients are scaled down; null: none", nullable=True),
    _same("bucket_mb", "MB of gradients that ddp and zero1 reduce at a time; null: torch's own", nullable=True),
    _same("zero_stage", "what deepspeed shards: 1 optimizer state, 2 gradients too, 3 parameters too, 0 nothing"),
    Setting("source", "where batches come from: a name, or a mapping", field_type(Source, "name"), Source, "name"),
    _same("data_cache", "what the page cache holds of the data first: cold nothing, warm all, as_is what it holds"),
    Setting("num_workers", "Ray Train workers, one a GPU; auto: 1, 2, 4, ... and all of the cluster", Count),
    _same("device", "what to run on; auto: cuda where the cluster has a GPU"),
    _same("backend", "collective backend; auto: nccl on cuda, gloo on cpu"),
    Setting("warmup", "steps recorded but left out", field_type(Warmup, "steps"), Warmup, "steps", one_part=True),
    Setting("measure", "steps that count", field_type(Measure, "steps"), Measure, "steps", one_part=True),
    _same("seed", "seed of weights, data and dropout"),
    _same("timing", "events; sync: wait for the device after each step; none: never wait, which claims too much"),
    Setting("timeout", "seconds a trial may take", field_type(TrialConfig, "timeout_s")),
    _same("cpus_per_worker", "CPU cores reserved for a worker"),
    _same("data_cpus", "CPU cores of each node kept for the tasks of ray_data; null: 1 for it, else 0", nullable=True),
    _same("nodes", "nodes that the workers are placed on, each with at least one"),
    _same("packing", "pack: as few nodes as hold them; spread: evenly over all; strict_spread: one a node"),
    _same("gpu_model", "words of the GPU's name, as in H100; mixed: a group may sit on several models"),
    _same("resources", "custom Ray resources that each worker takes, by name"),
)})  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """A setting as someone gave it: its checked value (`BAD` where it is wrong) and where that stands.

    The value of a mapping is a dict of `Given`; `swept` tells an axis value from one that stands for all.
    """

    value: Any
    node: Node
    swept: bool = False


_INSIDE = {
    part: f"{setting.name}.{part}"
    for setting in SETTINGS.values()
    if setting.parts is not None and not setting.one_part
    for part in setting.parts.model_fields
    if part != "name"
} | {part: f"model.{part}" for family in BUILT_IN for part in family.shape.model_fields}
"""Parts by themselves, as someone who forgot the source, the optimizer or the model around them writes them."""

Layer = Mapping[str, Given]
"""Settings given together: `base`, an include block, one value of an axis. Keys may be dotted (`model.dropout`)."""


@cache
def _part_adapter(parts: type[BaseModel], name: str) -> TypeAdapter[Any]:
    return strict(field_type(parts, name))


def known_key(key: str) -> bool:
    """Whether `key` is a setting or reaches inside one."""
    name, _, part = key.partition(".")
    setting = SETTINGS.get(name)
    if setting is None or not part:
        return setting is not None and key == name
    return setting.shape or (setting.parts is not None and part in setting.parts.model_fields)


def read_layer(entries: Mapping[str, Node], mistakes: Mistakes, *, swept: bool = False) -> dict[str, Given]:
    """The settings in a mapping. Unknown keys are mistakes, and what they probably meant counts as given badly."""
    layer: dict[str, Given] = {}
    for key, node in entries.items():
        if known_key(key):
            layer[key] = read_setting(key, node, mistakes, swept=swept)
            continue
        report_unknown_key(key, node, SETTINGS, mistakes)
        for name in meant(key, SETTINGS):
            layer.setdefault(name, Given(BAD, node, swept))
    return layer


def report_unknown_key(key: str, node: Node, known: Collection[str], mistakes: Mistakes) -> None:
    """Say that nothing here is called `key`."""
    mistakes.add(node.key or node.place, node.path, f"unknown key{key_hint(key, known)}")


def key_hint(key: str, known: Collection[str], *, list_all: bool = False) -> str:
    """What an unknown key probably means, else what there is: where that is a short list, or with `list_all`."""
    name, _, part = key.partition(".")
    setting = SETTINGS.get(name)
    if part and setting is not None and setting.parts is not None:
        return instead(part, setting.parts.model_fields)
    if words := ours(key, known) or ours(key, SETTINGS):
        return f"; did you mean {quoted(words)}?"
    if key in _INSIDE:
        return f'; did you mean "{_INSIDE[key]}"?'
    return instead(key, known) or (f"; known: {', '.join(known)}" if list_all else "")


def read_setting(key: str, node: Node, mistakes: Mistakes, *, swept: bool = False) -> Given:
    """One setting (or, for a dotted key, one part of one), checked as far as it can be without the others."""
    name, _, part = key.partition(".")
    setting = SETTINGS[name]
    if node.value is BAD:
        return Given(BAD, node, swept)
    if part:
        return _read_part(setting, part, node, mistakes, swept)
    if node.is_mapping and setting.takes_mapping:
        return Given(_read_parts(setting, node, mistakes, swept), node, swept)
    if setting.nullable and node.value is None:
        return Given(None, node, swept)
    if setting.name in TAKES_AUTO and node.value == AUTO:
        return Given(AUTO, node, swept)
    if node.is_list and not swept and not node.path.startswith("exclude"):
        mistakes.add(node.place, node.path, "a list of values belongs under axes")
        return Given(BAD, node, swept)
    or_else = " or a mapping such as {seconds: 10}" if setting.one_part and isinstance(node.value, str) else ""
    return Given(_checked(setting.adapter, node, mistakes, or_else), node, swept)


def _read_parts(setting: Setting, node: Node, mistakes: Mistakes, swept: bool) -> Any:
    if setting.parts is not None:
        for part, inner in node.items.items():
            if part not in setting.parts.model_fields:
                report_unknown_key(part, inner, setting.parts.model_fields, mistakes)
    known = {part: inner for part, inner in node.items.items() if known_key(f"{setting.name}.{part}")}
    if setting.one_part and len(node.items) != 1:
        assert setting.parts is not None
        mistakes.add(node.place, node.path, f"give exactly one of {', '.join(setting.parts.model_fields)}")
        return BAD
    if len(known) < len(node.items):
        return BAD
    return {part: _read_part(setting, part, inner, mistakes, swept) for part, inner in known.items()}


def _read_part(setting: Setting, part: str, node: Node, mistakes: Mistakes, swept: bool) -> Given:
    if setting.shape or node.value is BAD:
        return Given(node.plain if node.value is not BAD else BAD, node, swept)
    assert setting.parts is not None
    return Given(_checked(_part_adapter(setting.parts, part), node, mistakes), node, swept)


def _checked(adapter: TypeAdapter[Any], node: Node, mistakes: Mistakes, or_else: str = "") -> Any:
    try:
        return adapter.validate_python(node.plain)
    except ValidationError as error:
        for _, what in problems(error):
            mistakes.add(node.place, node.path, what.replace(", not ", f"{or_else}, not ", 1))
    return BAD
