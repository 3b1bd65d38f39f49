"""Residual networks for images as the sweep reader sees them."""

from __future__ import annotations

from collections.abc import Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING

from raybench.spec.family import NETWORK_STRATEGIES, Family
from raybench.spec.models.resnet import PRESETS, ResNetShape, torchvision_model
from raybench.spec.samples import ImageSample

if TYPE_CHECKING:
    from raybench.spec.config import TrialConfig

_SMALLEST_OF_TWO_PIXELS = 33
"""Below it the last stage, at 1/32 of the image's size, is a single pixel."""
_ONE_BATCH_ON_THE_DEVICE = 1024
"""154 MB at 3 x 224 x 224: an image is 300 times a sequence of 256 tokens of 16 bits."""
_LIKE_CIFAR = 50_000
"""7.5 GB at 3 x 224 x 224: enough that no loader lives from its own cache, and prepared in under a minute."""


def _batch_norm_has_something_to_average(config: TrialConfig) -> Iterable[str]:
    shape = config.model
    assert isinstance(shape, ResNetShape)
    small = shape.torchvision_name is None and shape.image_size < _SMALLEST_OF_TWO_PIXELS
    if small and config.micro_batch == 1 and config.phase not in ("forward", "load"):
        yield "micro_batch: must be at least 2 for images this small: batch norm would average a single number"


def _images(config: TrialConfig) -> ImageSample:
    """Three colours; labels from 0 to `num_classes` - 1."""
    assert isinstance(config.model, ResNetShape)
    size = config.model.image_size
    return ImageSample(channels=3, height=size, width=size, num_classes=config.model.num_classes)


RESNET = Family(
    name="resnet",
    shape=ResNetShape,
    presets=PRESETS,
    default_model="resnet50",
    settings=frozenset({
        "micro_batch", "global_batch", "grad_accum", "phase", "optimizer", "source", "channels_last",
        "cudnn_benchmark", "data_cache",
    }),
    strategies=NETWORK_STRATEGIES,
    defaults=MappingProxyType({
        "micro_batch": 256,
        "phase": "train",
        "optimizer": {"name": "sgd", "lr": 0.1, "momentum": 0.9},
        "source": {"name": "device"},
        "data_cache": "as_is",
        "channels_last": True,
        "cudnn_benchmark": True,
    }),
    rule=_batch_norm_has_something_to_average,
    sample=_images,
    other_model=torchvision_model,
    source_samples=MappingProxyType({
        "device": _ONE_BATCH_ON_THE_DEVICE,
        "memory": _ONE_BATCH_ON_THE_DEVICE,
        "generate": _LIKE_CIFAR,
        "shards": _LIKE_CIFAR,
        "images": _LIKE_CIFAR,
        "ray_data": _LIKE_CIFAR,
    }),
)  # fmt: skip
