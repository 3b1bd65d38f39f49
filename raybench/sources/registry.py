"""Which source a config asks for, opened for one rank."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import torch

from raybench.sources.base import Batches, Filler, FreshReader, Reader, Unpack
from raybench.sources.cifar100 import Cifar100Reader, unpack_cifar100
from raybench.sources.device import DeviceBatches
from raybench.sources.generate import Generator
from raybench.sources.host import HostBatches
from raybench.sources.image_files import ImageReader
from raybench.sources.index import Share
from raybench.sources.layout import folder, layout, sample_of
from raybench.sources.loader import LoaderBatches
from raybench.sources.memory import MemoryReader
from raybench.sources.parquet import column
from raybench.sources.plugged import plugged
from raybench.sources.records import record_shape, unpack
from raybench.sources.ring import RingBatches
from raybench.sources.shards import ShardReader
from raybench.sources.stream import Rows, Stream, StreamBatches
from raybench.sources.token_reader import TokenFileReader
from raybench.spec.config import TrialConfig
from raybench.spec.source_kind import imported


def share(config: TrialConfig, rank: int, world_size: int) -> Share:
    """A rank's share of a config's samples. A stream gives each rank equally many an epoch, and leaves out the rest."""
    assert config.source is not None
    assert config.micro_batch is not None
    assert config.grad_accum is not None
    num_samples = config.source.num_samples
    return Share(
        num_samples=num_samples - num_samples % world_size if config.source.name == "ray_data" else num_samples,
        micro_batch=config.micro_batch,
        grad_accum=config.grad_accum,
        rank=rank,
        world_size=world_size,
    )


def open_source(
    config: TrialConfig, rank: int, world_size: int, device: torch.device, streams: Sequence[Stream] = ()
) -> Batches:
    """The micro-batches of one rank, from micro step 0. `streams` are what `ray_data` reads, built by the driver.

    Raises:
        DataError: the source reads prepared data and there is none on this node.
    """
    assert config.source is not None
    part = share(config, rank, world_size)
    if (kind := plugged(config)) is not None:
        batches: Batches = imported(kind.open)(config, part, device)
        return batches
    if config.source.name == "device":
        return DeviceBatches(part, config.seed, sample_of(config), device)
    if config.source.name == "ray_data":
        return StreamBatches(streams, _rows(config, part), _unpack(config), device)
    take_apart, filler = _unpack(config), _filler(config, part)
    if filler is not None and config.source.prefetch and not config.source.loader_workers:
        return RingBatches(filler, take_apart, config.source.prefetch, device)
    reader = FreshReader(filler) if filler is not None else _reader(config, part, device)
    if config.source.loader_workers:
        return LoaderBatches(reader, take_apart, config.source.loader_workers, device)
    return HostBatches(reader, take_apart, device)


def _unpack(config: TrialConfig) -> Unpack:
    assert config.source is not None
    if config.source.name == "cifar100":
        return unpack_cifar100
    return functools.partial(unpack, sample=sample_of(config))


def _rows(config: TrialConfig, part: Share) -> Rows:
    assert config.source is not None
    return Rows(
        column=column(config),
        micro_batch=part.micro_batch,
        shape=record_shape(sample_of(config)),
        prefetch=config.source.prefetch,
        a_pass=part.num_samples // part.world_size,
    )


def _filler(config: TrialConfig, part: Share) -> Filler | None:
    assert config.source is not None
    if config.source.name == "cifar100":
        return Cifar100Reader(part, config)
    if config.source.name == "shards":
        return ShardReader(part, layout(config), folder(config))
    return TokenFileReader(part, config) if config.source.name == "tokens" else None


def _reader(config: TrialConfig, part: Share, device: torch.device) -> Reader:
    assert config.source is not None
    if config.source.name == "memory":
        return MemoryReader(part, config.seed, sample_of(config), pinned=device.type == "cuda")
    if config.source.name == "images":
        return ImageReader(part, config)
    return Generator(part, config.seed, sample_of(config))
