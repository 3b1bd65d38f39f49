"""Multi-layer perceptrons: their shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.shapes import Count, Frozen, Widths


class MLPShape(Frozen):
    """`batch` rows through linear layers, each followed by ReLU; `layers` are the widths, input to output."""

    batch: Count
    layers: Widths


PRESETS: Mapping[str, MLPShape] = MappingProxyType({
    "b4096": MLPShape(batch=4096, layers=(4096, 4096, 4096)),
    "b8192": MLPShape(batch=8192, layers=(4096, 8192, 4096)),
    "b16384": MLPShape(batch=16384, layers=(2048, 4096, 2048)),
})
