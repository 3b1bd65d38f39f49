"""The built-in models by name, and how a shape that is none of them is told."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.shapes import EncDecShape, Frozen, MatmulShape

ENCDEC_PRESETS: Mapping[str, EncDecShape] = MappingProxyType({
    "3.5m": EncDecShape(),
    "53m": EncDecShape(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048),
    "211m": EncDecShape(d_model=768, nhead=12, num_encoder_layers=12, num_decoder_layers=12, dim_feedforward=3072),
    "2.9b": EncDecShape(
        d_model=2048, nhead=32, num_encoder_layers=24, num_decoder_layers=24, dim_feedforward=8192
    ),
})
MATMUL_PRESETS: Mapping[str, MatmulShape] = MappingProxyType({
    "sq1024": MatmulShape(m=1024, k=1024, n=1024),
    "sq4096": MatmulShape(m=4096, k=4096, n=4096),
    "sq8192": MatmulShape(m=8192, k=8192, n=8192),
    "sq16384": MatmulShape(m=16384, k=16384, n=16384),
    "b8192": MatmulShape(m=8192, k=4096, n=4096),
    "b16384": MatmulShape(m=16384, k=4096, n=4096),
    "b32768": MatmulShape(m=32768, k=2048, n=2048),
})
CUSTOM = "custom"
"""The model's name where no preset has its shape."""
_MOST_TOLD = 3
"""A shape that differs in more is of its own kind, and told by its columns."""


def changed_from_preset(shape: Frozen) -> tuple[str, ...]:
    """`key=value` for what a custom shape changes of the built-in preset most like it; nothing where that is much."""
    values = shape.model_dump()
    changes = [
        tuple(f"{key}={value}" for key, value in values.items() if value != getattr(preset, key))
        for preset in (*ENCDEC_PRESETS.values(), *MATMUL_PRESETS.values())
        if type(preset) is type(shape)
    ]
    fewest = min(changes, key=len, default=())
    return fewest if len(fewest) <= _MOST_TOLD else ()
