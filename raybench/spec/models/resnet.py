"""Residual networks for images: their shape and its presets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, ClassVar

from pydantic import AfterValidator, model_validator

from raybench.spec.mistakes import shown
from raybench.spec.shapes import Count, Frozen

TORCHVISION = "torchvision:"
"""What stands before the name of another model of torchvision."""
DEPTHS = (18, 34, 50, 101, 152)
_OURS = tuple(f"resnet{depth}" for depth in DEPTHS)
_NAME_THERE = re.compile(rf"{TORCHVISION}[a-z0-9_]+")


def _known(architecture: str) -> str:
    if architecture not in _OURS and not _NAME_THERE.fullmatch(architecture):
        raise ValueError(f"must be one of {', '.join(_OURS)}, {TORCHVISION}NAME, not {shown(architecture)}")
    return architecture


class ResNetShape(Frozen):
    """A residual network of torchvision's layout (He et al. 2015, arXiv:1512.03385, stride in the 3x3 convolution).

    `width` is the number of channels of the first stage; later stages double it. Another model of torchvision,
    `torchvision:NAME`, has its own widths.
    """

    ALWAYS_TOLD: ClassVar[frozenset[str]] = frozenset({"architecture"})

    architecture: Annotated[str, AfterValidator(_known)] = "resnet50"
    width: Count = 64
    num_classes: Count = 1000
    image_size: Count = 224

    @model_validator(mode="after")
    def _torchvision_has_its_own_width(self) -> ResNetShape:
        if self.torchvision_name is not None and self.width != 64:
            raise ValueError(f"width is not known to {self.architecture}")
        return self

    @property
    def torchvision_name(self) -> str | None:
        """The model's name in torchvision; None for the networks that are built here."""
        _, is_other, name = self.architecture.partition(TORCHVISION)
        return name if is_other else None


PRESETS: Mapping[str, ResNetShape] = MappingProxyType({
    name: ResNetShape(architecture=name) for name in _OURS
})


def torchvision_model(name: str) -> ResNetShape | None:
    """The shape that `torchvision:NAME` stands for; None for any other text. Whether there is one shows in a worker."""
    try:
        return ResNetShape(architecture=name) if name.startswith(TORCHVISION) else None
    except ValueError:
        return None
