"""How many blocks each of the four stages has, which counts and model both go by. No torch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

STAGES: Mapping[str, tuple[int, int, int, int]] = MappingProxyType({
    "resnet18": (2, 2, 2, 2),
    "resnet34": (3, 4, 6, 3),
    "resnet50": (3, 4, 6, 3),
    "resnet101": (3, 4, 23, 3),
    "resnet152": (3, 8, 36, 3),
})
"""He et al. 2015, arXiv:1512.03385, table 1."""
_PLAIN = frozenset({"resnet18", "resnet34"})


def expansion(architecture: str) -> int:
    """What a block gives over its inner width: 1 for two 3x3 convolutions, 4 for a bottleneck."""
    return 1 if architecture in _PLAIN else 4
