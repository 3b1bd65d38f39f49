"""How a shape that is no preset is told."""

from __future__ import annotations

from typing import Any

from raybench.spec.models import collective, decoder, elementwise, encdec, matmul, mlp, resnet
from raybench.spec.shapes import Frozen

_PRESETS = (
    encdec.PRESETS, decoder.PRESETS, resnet.PRESETS, matmul.PRESETS, mlp.PRESETS, elementwise.PRESETS,
    collective.PRESETS,
)  # fmt: skip
CUSTOM = "custom"
"""The model's name where no preset has its shape."""
_MOST_TOLD = 3
"""A shape that differs in more is of its own kind, and told by its columns."""


def changed_from_preset(shape: Frozen) -> tuple[str, ...]:
    """`key=value` for what a custom shape changes of the built-in preset most like it; nothing where that is much.

    Its `ALWAYS_TOLD` are told though they are the preset's, because the rest says little without them.
    """
    values = shape.model_dump()
    changes = [
        tuple(
            f"{key}={told(value)}"
            for key, value in values.items()
            if value != getattr(preset, key) or key in shape.ALWAYS_TOLD
        )
        for presets in _PRESETS
        for preset in presets.values()
        if type(preset) is type(shape)
    ]
    fewest = min(changes, key=len, default=())
    return fewest if len(fewest) <= _MOST_TOLD else ()


def told(value: Any) -> str:
    """A part of a shape as text: the widths of layers as `4096-8192-4096`."""
    return "-".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
