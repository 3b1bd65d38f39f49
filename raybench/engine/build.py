"""From a config to work that is ready for its first step."""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.optim import Optimizer

from raybench.engine.attention import attention_kernels, require
from raybench.engine.compiling import compiled
from raybench.engine.convolutions import channels_last
from raybench.engine.optimizer import effective, optimizer
from raybench.engine.place import Place
from raybench.engine.precision import autocast, dtype
from raybench.engine.ranks import Ranks, synchronize
from raybench.engine.strategy import Wrapped, wrap
from raybench.engine.update import DeepSpeedUpdate, OwnUpdate, Update, clipping
from raybench.engine.work import LoadWork, NetworkWork, Recipe, SplitWork, Work
from raybench.sources.base import Batches
from raybench.sources.records import bytes_of_sample, copy_of_first
from raybench.sources.registry import open_source
from raybench.sources.stream import Stream, finished_passes
from raybench.spec.built_in import family
from raybench.spec.config import TrialConfig
from raybench.spec.samples import Batch
from raybench.workloads.registry import workload


@dataclass(frozen=True)
class Built:
    """Work and what was learnt while building it. `first_batch_s` is None without a source.

    `attention` looks which attention kernels run, once the window is closed. Split work says how long its operands
    took to make, `create_s`, and `retrieve_s` fetches its result; for a network both are None. `passes` says how many
    samples each finished pass over streamed data gave this rank, None for other data. `sample_bytes` is the size of a
    sample as the network is given it.
    """

    work: Work
    parameters: int | None
    first_batch_s: float | None
    effective_strategy: str
    effective_optimizer: str | None
    attention: Callable[[], str | None]
    create_s: float | None = None
    retrieve_s: Callable[[], float | None] = lambda: None
    channels_last: bool | None = None
    passes: Callable[[], tuple[int, ...] | None] = lambda: None
    sample_bytes: int | None = None


def build(
    config: TrialConfig, place: Place, ranks: Ranks, *, prepare: Callable[[nn.Module], None] | None = None,
    streams: Sequence[Stream] = (),
) -> Built:  # fmt: skip
    """Build a config's work on this rank's device. Weights are the same on every rank; dropout is not.

    `prepare` is done to a network before it is wrapped and compiled; `streams` are for a source that takes them.
    """
    seed_all(config.seed)
    if config.strategy == "split":
        return _build_split(config, place)
    if config.phase == "load":
        return _build_load(config, place, streams)
    return _build_network(config, place, ranks, prepare, streams)


def seed_all(seed: int) -> None:
    """Seed torch (every device), numpy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def _build_split(config: TrialConfig, place: Place) -> Built:
    builder = workload(config.workload).builder()
    synchronize(place.torch_device)
    began = time.perf_counter()
    call = builder(config, place.rank, place.world_size, place.torch_device, dtype(config.precision))
    synchronize(place.torch_device)
    create_s = time.perf_counter() - began
    work = SplitWork(compiled(call, config.compile), place.rank)
    return Built(
        work,
        parameters=None,
        first_batch_s=None,
        effective_strategy="split",
        effective_optimizer=None,
        attention=lambda: None,
        create_s=create_s,
        retrieve_s=work.retrieve_s,
    )


def _build_load(config: TrialConfig, place: Place, streams: Sequence[Stream]) -> Built:
    """The source by itself: no network, no strategy."""
    assert config.grad_accum is not None
    batches, first, first_batch_s = _open(config, place, streams)
    count = family(config.workload).tokens_per_sample
    tokens = None if count is None or config.seq_len is None else count(config.seq_len)
    sample_bytes = bytes_of_sample(first)
    return Built(
        LoadWork(first, batches, config.grad_accum, tokens),
        parameters=None,
        first_batch_s=first_batch_s,
        effective_strategy="none",
        effective_optimizer=None,
        attention=lambda: None,
        passes=functools.partial(finished_passes, batches),
        sample_bytes=sample_bytes,
    )


def _build_network(
    config: TrialConfig, place: Place, ranks: Ranks, prepare: Callable[[nn.Module], None] | None,
    streams: Sequence[Stream],
) -> Built:  # fmt: skip
    assert config.phase is not None
    module = _module(config, place.torch_device)
    if prepare is not None:
        prepare(module)
    parameters = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
    batches, first, first_batch_s = _open(config, place, streams)
    sample_bytes = bytes_of_sample(first)
    attention = functools.partial(_attention, module, copy_of_first(first), config, place.torch_device)
    try:
        require(config.attention, attention)      # of the network by itself: wrapped, it would have to go backward, too
        recipe, ran = _recipe(config, module, place, ranks)
    except BaseException:
        batches.close()
        raise
    seed_all(config.seed + place.rank)      # after opening: a DataLoader draws a number of its own
    return Built(
        NetworkWork(recipe, first, batches),
        parameters=parameters,
        first_batch_s=first_batch_s,
        effective_strategy=ran.strategy,
        effective_optimizer=ran.optimizer,
        channels_last=channels_last(module),
        attention=attention,
        passes=functools.partial(finished_passes, batches),
        sample_bytes=sample_bytes,
    )


def _module(config: TrialConfig, device: torch.device) -> nn.Module:
    """The network, made on the device itself, in the mode of its phase."""
    with device:
        module = workload(config.workload).builder()(config)
    assert isinstance(module, nn.Module), f"{config.workload} did not build a module"
    if config.precision == "bf16_params":
        module = module.to(dtype(config.precision))
    return module.train(config.phase != "forward")


@dataclass(frozen=True)
class _Ran:
    strategy: str
    optimizer: str | None


def _recipe(config: TrialConfig, module: nn.Module, place: Place, ranks: Ranks) -> tuple[Recipe, _Ran]:
    """The step's parts, and what of them runs. An optimizer is made of parameters that are where they will stay."""
    if config.strategy == "deepspeed" and ranks.grouped:
        return _deepspeed_recipe(config, module, place)
    device = place.torch_device
    wrapped = wrap(module, config, place, grouped=ranks.grouped)
    made = _optimizer(config, module, device, sharded=wrapped.effective == "zero1")
    scaler = torch.amp.GradScaler(device.type, enabled=config.precision == "fp16")
    clip = clipping(module.parameters(), config.grad_clip)
    update = OwnUpdate(module, made, scaler, clip, device)
    recipe = _with(config, module, device, compiled(wrapped.module, config.compile), wrapped, update)
    return recipe, _Ran(wrapped.effective, _named(config, made))


def _deepspeed_recipe(config: TrialConfig, module: nn.Module, place: Place) -> tuple[Recipe, _Ran]:
    from raybench.engine.deepspeed import engine

    made = _optimizer(config, module, place.torch_device)
    assert made is not None, "deepspeed is for phase train"
    whole = engine(module, made, config, place)
    update = DeepSpeedUpdate(whole)
    return _with(config, module, place.torch_device, whole, Wrapped(module, nullcontext, ""), update), _Ran(
        f"deepspeed stage {whole.zero_optimization_stage()}", _named(config, made)
    )


def _optimizer(
    config: TrialConfig, module: nn.Module, device: torch.device, *, sharded: bool = False
) -> Optimizer | None:
    if config.phase != "train":
        return None
    assert config.optimizer is not None
    return optimizer(config.optimizer, module.parameters(), device, sharded=sharded)


def _named(config: TrialConfig, made: Optimizer | None) -> str | None:
    return effective(config.optimizer, made) if config.optimizer and made else None


def _with(
    config: TrialConfig,
    module: nn.Module,
    device: torch.device,
    call: Callable[[Batch], torch.Tensor],
    wrapped: Wrapped,
    update: Update,
) -> Recipe:
    assert config.phase is not None
    assert config.grad_accum is not None
    return Recipe(
        call=call,
        phase=config.phase,
        grad_accum=config.grad_accum,
        autocast=functools.partial(autocast, config.precision, device.type),
        no_sync=wrapped.no_sync,
        watch=wrapped.watch,
        update=update,
        tokens_in=getattr(module, "tokens_in", None),
    )


def _attention(module: nn.Module, sample: Batch, config: TrialConfig, device: torch.device) -> str | None:
    context = autocast(config.precision, device.type)
    return attention_kernels(module, sample, context, with_gradients=config.phase != "forward")


def _open(config: TrialConfig, place: Place, streams: Sequence[Stream]) -> tuple[Batches, Batch, float]:
    """The source, its first batch, and how long that took to be on the device."""
    opened = time.perf_counter()
    batches = open_source(config, place.rank, place.world_size, place.torch_device, streams)
    try:
        first = next(batches)
        synchronize(place.torch_device)
    except BaseException:
        batches.close()
        raise
    return batches, first, time.perf_counter() - opened
