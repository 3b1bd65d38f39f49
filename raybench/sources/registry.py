"""Which source a config asks for, opened for one rank."""

from __future__ import annotations

import torch

from raybench.sources.base import Batches, Reader
from raybench.sources.device import DeviceBatches
from raybench.sources.generate import Generator
from raybench.sources.host import HostBatches
from raybench.sources.index import Share
from raybench.sources.layout import folder, layout, sample_of
from raybench.sources.loader import LoaderBatches
from raybench.sources.shards import ShardReader
from raybench.spec.config import TrialConfig


def share(config: TrialConfig, rank: int, world_size: int) -> Share:
    """A rank's share of a config's samples."""
    assert config.source is not None
    assert config.micro_batch is not None
    assert config.grad_accum is not None
    return Share(
        num_samples=config.source.num_samples,
        micro_batch=config.micro_batch,
        grad_accum=config.grad_accum,
        rank=rank,
        world_size=world_size,
    )


def open_source(config: TrialConfig, rank: int, world_size: int, device: torch.device) -> Batches:
    """The micro-batches of one rank, from micro step 0.

    Raises:
        DataError: the source reads prepared data and there is none on this node.
    """
    assert config.source is not None
    part, sample = share(config, rank, world_size), sample_of(config)
    if config.source.name == "device":
        return DeviceBatches(part, config.seed, sample, device)
    if config.source.loader_workers > 0:
        return LoaderBatches(_reader(config, part), sample, config.source.loader_workers, device)
    return HostBatches(_reader(config, part), sample, device)


def _reader(config: TrialConfig, part: Share) -> Reader:
    assert config.source is not None
    if config.source.name == "generate":
        return Generator(part, config.seed, sample_of(config))
    return ShardReader(part, layout(config), folder(config))
