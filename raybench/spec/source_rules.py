"""What is wrong with a source for a workload's samples, although each of its options is right."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType

from raybench.spec.config import Source, TrialConfig
from raybench.spec.family import Family
from raybench.spec.mistakes import either
from raybench.spec.options import FROM_FILES
from raybench.spec.samples import ImageSample, Sample, TokenSample

CIFAR100_CLASSES = 100
_LARGEST = MappingProxyType({"uint16": 2**16, "int32": 2**31, "int64": 2**63})
"""How large a vocabulary can be that is stored in a type."""


def source_mistakes(family: Family, config: TrialConfig) -> Iterable[str]:
    """One sentence for each, as `source: what`."""
    source = config.source
    if source is None:
        return
    if "@" in (source.path or "").partition("://")[2].partition("/")[0]:
        yield "source: a path with credentials would be stored with every result; give them by the environment"
    if source.name not in FROM_FILES and config.data_cache not in (None, "as_is"):
        yield f"data_cache: only {either(FROM_FILES)} read files, {source.name} does not"
    sample = family.sample(config)
    if source.name in ("cifar100", "images") and not isinstance(sample, ImageSample):
        yield f"source: {source.name} holds images, and {family.name} takes tokens"
    if isinstance(sample, ImageSample):
        if source.name == "cifar100" and sample.num_classes != CIFAR100_CLASSES:
            yield f"source: cifar100 has 100 classes, not {sample.num_classes}; give model.num_classes: 100"
        if source.name == "tokens":
            yield f"source: tokens are no images, which is what {family.name} takes"
        if source.dtype is not None:
            yield "source: images are stored as bytes; dtype is for tokens"
    if source.name == "ray_data":
        yield from _ray_data_mistakes(config, source, sample)
    if isinstance(sample, TokenSample) and source.dtype is not None and sample.vocab_size > _LARGEST[source.dtype]:
        yield f"source: {source.dtype} cannot hold a vocabulary of {sample.vocab_size}"


def _ray_data_mistakes(config: TrialConfig, source: Source, sample: Sample) -> Iterable[str]:
    """Each rank is given the same number of rows an epoch: at least one."""
    if source.num_samples < config.num_workers:
        yield f"source: {source.num_samples} samples leave none for some of {config.num_workers} workers"
    if source.path is not None and isinstance(sample, ImageSample):
        yield "source: a path is for tokens; images of ray_data are those that are made for it"
    if source.column is not None and source.path is None:
        yield "source: column is for Parquet of your own; give its source.path, too"
