"""The shape of each built-in model, in the field's own names. All numbers that parameters and FLOPs follow from."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


class Frozen(BaseModel):
    """A value that never changes, knows every key it accepts, and takes no `true` for an int."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class EncDecShape(Frozen):
    """Encoder-decoder transformer: one shared embedding, learned positions, untied output projection with bias."""

    d_model: Count = 128
    nhead: Count = 4
    num_encoder_layers: Count = 3
    num_decoder_layers: Count = 3
    dim_feedforward: Count = 512
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.1

    @model_validator(mode="after")
    def _heads_divide(self) -> EncDecShape:
        if self.d_model % self.nhead:
            raise ValueError(f"d_model {self.d_model} is not divisible by nhead {self.nhead}")
        return self


class MatmulShape(Frozen):
    """(m, k) @ (k, n); the rows m are split over the workers."""

    m: Count
    k: Count
    n: Count
