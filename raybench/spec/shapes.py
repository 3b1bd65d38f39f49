"""What the shape of every model is made of. The shapes themselves stand with their families."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Frozen(BaseModel):
    """A value that never changes, knows every key it accepts, and takes no `true` for an int."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
