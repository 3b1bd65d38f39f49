"""What the names in `invalid_reasons` and `warnings`, and a spread, say to a reader."""

from __future__ import annotations

from raybench.measure.statistics import stability
from raybench.measure.validity import MEANINGS

__all__ = ["meaning", "stability"]


def meaning(name: str) -> str | None:
    """One sentence; None for a name of another version of raybench."""
    return MEANINGS.get(name)
