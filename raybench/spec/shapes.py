"""What the shape of every model is made of. The shapes themselves stand with their families."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


def _tuple(value: Any) -> Any:
    """A list, as YAML and JSON give it, as the tuple that a value which never changes must hold."""
    return tuple(value) if isinstance(value, list) else value


Widths = Annotated[tuple[Count, ...], BeforeValidator(_tuple), Field(min_length=2, max_length=256)]
"""The widths of a chain of layers, input first: one layer more than it has."""


class Frozen(BaseModel):
    """A value that never changes, knows every key it accepts, and takes no `true` for an int."""

    ALWAYS_TOLD: ClassVar[frozenset[str]] = frozenset()

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
