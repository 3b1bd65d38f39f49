"""Arithmetic number by number: its shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.shapes import Count, Frozen


class ElementwiseShape(Frozen):
    """Matrices of (rows, columns); the rows are split over the workers."""

    rows: Count
    columns: Count


PRESETS: Mapping[str, ElementwiseShape] = MappingProxyType({
    "32768x8192": ElementwiseShape(rows=32768, columns=8192),
    "4096x4096": ElementwiseShape(rows=4096, columns=4096),
})
