"""Products of two matrices: their shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.shapes import Count, Frozen


class MatmulShape(Frozen):
    """(m, k) @ (k, n); the rows m are split over the workers."""

    m: Count
    k: Count
    n: Count


PRESETS: Mapping[str, MatmulShape] = MappingProxyType({
    "sq1024": MatmulShape(m=1024, k=1024, n=1024),
    "sq4096": MatmulShape(m=4096, k=4096, n=4096),
    "sq8192": MatmulShape(m=8192, k=8192, n=8192),
    "sq16384": MatmulShape(m=16384, k=16384, n=16384),
    "b8192": MatmulShape(m=8192, k=4096, n=4096),
    "b16384": MatmulShape(m=16384, k=4096, n=4096),
    "b32768": MatmulShape(m=32768, k=2048, n=2048),
    "b32768k4096": MatmulShape(m=32768, k=4096, n=4096),
})
