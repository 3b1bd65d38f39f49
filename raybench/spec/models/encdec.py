"""Encoder-decoder transformers: their shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

from pydantic import Field, model_validator

from raybench.spec.shapes import Count, Frozen


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


PRESETS: Mapping[str, EncDecShape] = MappingProxyType({
    "3.5m": EncDecShape(),
    "53m": EncDecShape(d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048),
    "211m": EncDecShape(d_model=768, nhead=12, num_encoder_layers=12, num_decoder_layers=12, dim_feedforward=3072),
    "2.9b": EncDecShape(
        d_model=2048, nhead=32, num_encoder_layers=24, num_decoder_layers=24, dim_feedforward=8192
    ),
})
