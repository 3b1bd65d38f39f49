"""Decoder-only transformers, whose options make both families that are benchmarked: their shape and its presets."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import Field, model_validator

from raybench.spec.shapes import Count, Frozen


class DecoderShape(Frozen):
    """Pre-norm decoder-only transformer. The defaults are the modern family's; `learned` positions need a table.

    `swiglu` has three d_ff matrices, `gelu` (exact) and `gelu_tanh` (GPT-2's approximation) two. `bias` is that of
    every projection and layer norm; the output head never has one. `tied`: head and token embedding are one matrix.
    `fused_qkv`: queries, keys and values come from one product.
    """

    d_model: Count = 768
    num_layers: Count = 12
    num_heads: Count = 12
    d_ff: Count = 3072
    norm: Literal["rmsnorm", "layernorm"] = "rmsnorm"
    positions: Literal["rotary", "learned"] = "rotary"
    activation: Literal["swiglu", "gelu", "gelu_tanh"] = "swiglu"
    tied: bool = False
    bias: bool = False
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    max_positions: Count | None = None       # rows of the table of learned positions
    fused_qkv: bool = True

    @property
    def head_dim(self) -> int:
        """Numbers of one head."""
        return self.d_model // self.num_heads

    @model_validator(mode="after")
    def _heads_divide(self) -> DecoderShape:
        if self.d_model % self.num_heads:
            raise ValueError(f"d_model {self.d_model} is not divisible by num_heads {self.num_heads}")
        if self.positions == "rotary" and self.head_dim % 2:
            raise ValueError(f"rotary positions turn pairs: d_model / num_heads is {self.head_dim}, which is odd")
        return self

    @model_validator(mode="after")
    def _only_learned_positions_have_a_table(self) -> DecoderShape:
        if self.positions == "learned" and self.max_positions is None:
            raise ValueError("learned positions need max_positions")
        if self.positions == "rotary" and self.max_positions is not None:
            raise ValueError("max_positions is for learned positions; rotary ones have no table")
        return self


def _modern(d_model: int, d_ff: int, num_layers: int, num_heads: int) -> DecoderShape:
    return DecoderShape(d_model=d_model, d_ff=d_ff, num_layers=num_layers, num_heads=num_heads)


def _gpt2(d_model: int, num_layers: int, num_heads: int) -> DecoderShape:
    return DecoderShape(
        d_model=d_model, d_ff=4 * d_model, num_layers=num_layers, num_heads=num_heads, norm="layernorm",
        positions="learned", activation="gelu_tanh", tied=True, bias=True, max_positions=1024,
    )  # fmt: skip


PRESETS: Mapping[str, DecoderShape] = MappingProxyType({
    "small": _modern(768, 3072, 12, 12),
    "medium": _modern(1024, 4096, 24, 16),
    "large": _modern(1280, 5120, 36, 20),
    "xl": _modern(1600, 6400, 48, 25),
    "2.7b": _modern(2560, 10240, 32, 32),
    "gpt2": _gpt2(768, 12, 12),
    "gpt2-medium": _gpt2(1024, 24, 16),
    "gpt2-large": _gpt2(1280, 36, 20),
    "gpt2-xl": _gpt2(1600, 48, 25),
    "gpt2-seed": DecoderShape(
        norm="layernorm", positions="learned", activation="gelu", bias=True, dropout=0.1, max_positions=1024,
        fused_qkv=False,
    ),
})  # fmt: skip
