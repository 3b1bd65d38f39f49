"""`TrialConfig`: one resolved point of a sweep. It travels to the workers, and its hash is what resume goes by."""

from __future__ import annotations

import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, SerializeAsAny, model_validator

from raybench.spec.presets import CUSTOM, changed_from_preset
from raybench.spec.shapes import Count, Frozen

Precision = Literal["fp32", "tf32", "bf16", "fp16", "bf16_params"]
Phase = Literal["forward", "forward_backward", "train", "load"]
Strategy = Literal["none", "ddp", "split", "fsdp", "zero1", "deepspeed"]
Implementation = Literal["auto", "fused", "foreach", "for_loop"]
Timing = Literal["events", "sync", "none"]
CompileMode = Literal["off", "default", "reduce-overhead", "max-autotune"]
Attention = Literal["auto", "flash", "cudnn", "efficient", "math"]
Checkpointing = Literal["off", "full"]
Device = Literal["auto", "cuda", "cpu"]
Backend = Literal["auto", "nccl", "gloo"]
Isolation = Literal["repeat", "warm", "fresh"]
Packing = Literal["pack", "spread", "strict_spread"]
Quality = Literal["full", "quick", "probe", "profiled"]
DataCache = Literal["as_is", "cold", "warm"]
MIXED_GPUS = "mixed"
"""The `gpu_model` that lets a worker group sit on GPUs of several models."""
GpuModel = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,63}$")]
ResourceName = Annotated[GpuModel, AfterValidator(lambda name: _custom(name))]
TokenDtype = Literal["uint16", "int32", "int64"]
ImageFormat = Literal["jpeg", "png"]

NOT_IN_KEY = frozenset({"model_name", "batch_given", "timeout_s", "cpus_per_worker", "data_cpus", "gpu_model"})
"""Names, limits, placement and the machine: they change neither the work nor how it is measured."""
NOT_IN_WORK_KEY = frozenset({"warmup", "measure", "quality", "isolation"})
NEVER_IN_KEY = frozenset({"source.data_dir", "source.path"})
"""Paths: where data lies does not change it."""
ADDED_SINCE_RB1: dict[str, tuple[Any, ...]] = {
    "nodes": (None,),
    "packing": ("pack",),
    "channels_last": (None, True),
    "cudnn_benchmark": (None, True),
    "optimizer.implementation": ("auto",),
    "grad_clip": (None,),
    "bucket_mb": (None,),
    "zero_stage": (None,),
    "timing": ("events",),
    "source.dtype": (None,),
    "source.prefetch": (2,),
    "attention": (None, "auto"),
    "activation_checkpointing": (None, "off"),
    "source.column": (None,),
    "source.block_mb": (None,),
    "source.preserve_order": (True,),
    "data_cache": (None, "as_is"),
    "resources": ({},),
    "source.options": (None,),
    "source.image_format": (None,),
}
"""Fields added after `rb1` with the values under which they are left out of the key, so that old keys stay.

None for workloads without the setting, and the default. Dotted where the field is inside another (`source.prefetch`).
"""


def _custom(name: str) -> str:
    if name in ("CPU", "GPU", "memory", "object_store_memory"):
        raise ValueError(f"{name} is no custom resource: a worker has one GPU, and cpus_per_worker CPUs")
    return name


class Optimizer(Frozen):
    """The optimizer of a training step. `momentum` is only for sgd; the others keep their usual betas."""

    name: Literal["adamw", "adam", "sgd"] = "adamw"
    lr: Annotated[float, Field(gt=0.0)] = 1e-4
    weight_decay: Annotated[float, Field(ge=0.0)] = 0.01
    momentum: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    implementation: Implementation = "auto"      # auto: fused on CUDA, for_loop on CPU

    @model_validator(mode="after")
    def _momentum_is_sgd(self) -> Optimizer:
        if self.momentum and self.name != "sgd":
            raise ValueError(f"momentum is for sgd, not {self.name}")
        return self


class Source(Frozen):
    """Where batches come from. Data is a cycle of `num_samples` samples, whatever the source."""

    name: str = "device"                                         # a built-in source, or a plug-in's
    num_samples: Count = 8192
    num_shards: Count | None = None                              # None: shards of about 128 MB
    data_dir: str | None = None                                  # None: raybench's own cache folder
    loader_workers: Annotated[int, Field(ge=0, le=256)] = 0      # 0: batches are made in the rank's own process
    dtype: TokenDtype | None = None                              # of tokens on disk; None: the smallest that holds them
    path: str | None = None                                      # tokens of one's own; None: some are prepared
    prefetch: Annotated[int, Field(ge=0, le=64)] = 2             # micro steps that a thread reads ahead; 0: no thread
    column: str | None = None                                    # in Parquet of one's own; None: `tokens`
    block_mb: Annotated[float, Field(gt=0.0)] | None = None      # Ray Data's largest block; None: its own choice
    preserve_order: bool = True                                  # Ray Data hands on blocks as they lie in the files
    image_format: ImageFormat | None = None                      # of images in Parquet; None: jpeg
    options: dict[str, Any] | None = None                        # of a plug-in's source, all of them


class Extent(Frozen):
    """How long a phase of a trial lasts: a number of steps, or at least so many seconds. Exactly one is set."""

    steps: Annotated[int, Field(ge=0)] | None = None
    seconds: Annotated[float, Field(gt=0.0)] | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Extent:
        if (self.steps is None) == (self.seconds is None):
            raise ValueError("give either steps or seconds")
        return self


class TrialConfig(Frozen):
    """One resolved point: explicit shape instead of the preset's name, all three batch numbers, `device` as asked.

    Settings that the workload does not have are None.
    """

    workload: str
    model_name: str                          # the preset's name, or `custom`; not part of the key
    model: SerializeAsAny[Frozen]            # the shape, of the type that the workload's family names
    seq_len: Count | None = None
    vocab_size: Count | None = None
    micro_batch: Count | None = None         # samples a rank sees in a micro step
    grad_accum: Count | None = None          # micro steps a step
    global_batch: Count | None = None        # micro_batch x grad_accum x num_workers
    batch_given: str | None = None           # e.g. `micro_batch+global_batch`; not part of the key
    precision: Precision = "fp32"
    phase: Phase | None = None
    strategy: Strategy
    compile: CompileMode = "off"
    optimizer: Optimizer | None = None
    source: Source | None = None
    num_workers: Count = 1
    device: Device = "auto"
    backend: Backend = "auto"
    warmup: Extent
    measure: Extent
    seed: Annotated[int, Field(ge=0, le=2**32 - 1)] = 0
    timeout_s: Annotated[float, Field(gt=0.0)] | None = None     # None: `deadline_s` estimates one
    cpus_per_worker: Annotated[float, Field(gt=0.0)] = 1.0       # at most this many; fewer where a node has fewer
    quality: Quality = "full"
    isolation: Isolation = "repeat"
    nodes: Count | None = None                                   # None: as many as `packing` makes of it
    packing: Packing = "pack"
    channels_last: bool | None = None        # images and convolutions with the channel as the fastest dimension
    cudnn_benchmark: bool | None = None      # cuDNN times its convolution algorithms and keeps the fastest
    grad_clip: Annotated[float, Field(gt=0.0)] | None = None     # largest norm of all gradients; None: as they are
    bucket_mb: Annotated[float, Field(gt=0.0)] | None = None     # None: torch's own, 25 MB and 1 MB for the first
    zero_stage: Annotated[int, Field(ge=0, le=3)] | None = None  # None: the strategy has no stages
    timing: Timing = "events"
    attention: Attention | None = None       # the kernel; auto: torch's own choice
    activation_checkpointing: Checkpointing | None = None      # full: each block's forward runs again in the backward
    data_cpus: Annotated[int, Field(ge=1)] | None = None       # of each node, kept for Ray Data; None: 1 if it reads
    data_cache: DataCache | None = None      # cold: the page cache has none of the data when a trial starts; warm: all
    gpu_model: GpuModel | None = None        # words of the model's name, or `mixed`; None: any one; not part of the key
    resources: dict[ResourceName, Annotated[float, Field(gt=0.0)]] = Field({})      # Ray's custom ones, of each worker

    @property
    def world_size(self) -> int:
        """Ranks in the process group: one a worker."""
        return self.num_workers

    @property
    def data_cpus_held(self) -> int:
        """CPUs of each node that no worker gets, because Ray Data's tasks would starve without them."""
        streamed = self.source is not None and self.source.name == "ray_data"
        return self.data_cpus if self.data_cpus is not None else int(streamed)

    @property
    def deadline_s(self) -> float:
        """Seconds a worker may take from the trial's arrival to its result.

        `timeout` where the sweep gives one, else 120 s + 3 times what was planned, a step counted as 10 s: wide
        enough for the slowest honest trial, and still an end for one that hangs.
        """
        if self.timeout_s is not None:
            return self.timeout_s
        planned = sum(extent.seconds or 10.0 * (extent.steps or 0) for extent in (self.warmup, self.measure))
        return 120.0 + 3.0 * planned

    def canonical(self) -> str:
        """Canonical JSON of the whole resolved config: the column `config`."""
        return canonical_json(self.model_dump(mode="json"))

    def config_key(self) -> str:
        """16 hex that resume goes by: what is computed and how it is measured, on whatever machine."""
        return _key(self._keyed(leave_out=NOT_IN_KEY))

    def work_key(self) -> str:
        """16 hex that comparison pairs on: what is computed, however long it is measured."""
        return _key(self._keyed(leave_out=NOT_IN_KEY | NOT_IN_WORK_KEY))

    def label(self) -> str:
        """What a person recognises the config by, e.g. `encdec 3.5m s64 b4 fp32 device ×2`: what usually varies."""
        parts = [
            self.workload,
            self.model_name,
            *(changed_from_preset(self.model) if self.model_name == CUSTOM else ()),
            self.seq_len and f"s{self.seq_len}",
            self.micro_batch and f"b{self.micro_batch}",
            self.grad_accum and self.grad_accum > 1 and f"a{self.grad_accum}",
            self.precision,
            self.phase if self.phase != "train" else None,
            self.compile != "off" and f"compile={self.compile}",
            self.channels_last is False and "channels_last=false",
            self.cudnn_benchmark is False and "cudnn_benchmark=false",
            self.strategy if self.strategy not in ("ddp", "split") else None,
            self.zero_stage is not None and f"stage{self.zero_stage}",
            self.attention not in (None, "auto") and f"attention={self.attention}",
            self.activation_checkpointing == "full" and "checkpointing",
            self.source and self.source.name,
            self.data_cache if self.data_cache != "as_is" else None,
            f"×{self.num_workers}",
            self._placement_label(),
        ]
        return " ".join(part for part in parts if part)

    def _placement_label(self) -> str | None:
        parts = [
            f"on {self.nodes} node{'s' if self.nodes > 1 else ''}" if self.nodes is not None
            else self.packing if self.packing != "pack" else "",
            f"gpu_model={self.gpu_model}" if self.gpu_model else "",
            *(f"{name}={amount:g}" for name, amount in sorted(self.resources.items())),
        ]  # fmt: skip
        return " ".join(part for part in parts if part)

    def _keyed(self, leave_out: frozenset[str]) -> dict[str, Any]:
        return _without(self.model_dump(mode="json"), leave_out)


def canonical_json(value: Any) -> str:
    """Sorted keys, no spaces, floats by `repr`: equal values give equal text on every platform."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def pairing_key(config: dict[str, Any], without: frozenset[str]) -> str:
    """16 hex of a stored `config` without what `work_key` leaves out and without the (dotted) axes in `without`."""
    return _key(_without(config, NOT_IN_KEY | NOT_IN_WORK_KEY, dotted=without))


def stored_keys(config: dict[str, Any]) -> tuple[str, str]:
    """`config_key` and `work_key` of a stored `config`."""
    return _key(_without(config, NOT_IN_KEY)), pairing_key(config, frozenset())


def _without(config: dict[str, Any], leave_out: frozenset[str], dotted: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The part of a dumped config that a key is made of. What is dropped inside a mapping is dropped from a copy."""
    values = {name: value for name, value in config.items() if name not in leave_out}
    for path in NEVER_IN_KEY | dotted:
        _drop(values, path)
    for path, defaults in ADDED_SINCE_RB1.items():
        _drop(values, path, only=defaults)
    return values


def _drop(values: dict[str, Any], path: str, only: tuple[Any, ...] | None = None) -> None:
    """Drop the value at a dotted path, if it is there (and one of `only`)."""
    name, _, part = path.partition(".")
    if part and isinstance(values.get(name), dict):
        values[name] = dict(values[name])
        _drop(values[name], part, only)
    elif not part and name in values and (only is None or values[name] in only):
        del values[name]


def _key(values: dict[str, Any]) -> str:
    return hashlib.sha256(f"rb1:{canonical_json(values)}".encode()).hexdigest()[:16]
