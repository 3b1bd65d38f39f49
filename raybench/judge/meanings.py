"""What the names in `invalid_reasons` and `warnings` say to a reader."""

from __future__ import annotations

from raybench.measure.validity import MEANINGS


def meaning(name: str) -> str | None:
    """One sentence; None for a name of another version of raybench."""
    return MEANINGS.get(name)
