"""Differences as a person reads them: `strategy (none / ddp)`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def told_differences(differing: Mapping[str, tuple[Any, Any]]) -> Iterator[str]:
    """`name (a / b)` for each; what is not there is a dash."""
    for name, (a, b) in differing.items():
        yield f"{name} ({_shown(a)} / {_shown(b)})"


def _shown(value: Any) -> str:
    return "–" if value is None else str(value)
