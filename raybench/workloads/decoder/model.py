"""The decoder-only transformer: what one step of `decoder` computes.

Written as nanoGPT's fastest form is, so that torch.compile makes one graph of it: few large products, fused causal
attention, no shape or branch that depends on data, and nothing but the loss leaves it.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from raybench.spec.config import TrialConfig
from raybench.spec.models.decoder import DecoderShape

_EPSILON = 1e-5              # of both norms, as in GPT-2 and Llama
_ROTARY_BASE = 10_000.0      # Su et al. 2021 (arXiv:2104.09864)
_INITIAL_STD = 0.02          # GPT-2

Rotation = tuple[torch.Tensor, torch.Tensor]
"""Cosines and sines, each (T, 1, head_dim / 2), of the angles that each position turns each pair by."""


class Decoder(nn.Module):
    """Embedding, pre-norm blocks, norm and head.

    Parameters are made on torch's current default device, so that no copy of a large model is ever made on the host.
    """

    def __init__(self, shape: DecoderShape, seq_len: int, vocab_size: int, *, recomputes: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.positions = _positions(shape)
        self.dropout = nn.Dropout(shape.dropout)
        rotation = _rotation(seq_len, shape.head_dim) if shape.positions == "rotary" else None
        self.blocks = nn.ModuleList(Block(shape, rotation, recomputes=recomputes) for _ in range(shape.num_layers))
        self.norm = _norm(shape)
        self.head = nn.Linear(shape.d_model, vocab_size, bias=False)
        _initialise(self, shape.num_layers)
        if shape.tied:
            self.head.weight = self.tokens.weight

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of the next token, in fp32. `batch`: int64 (B, T + 1), input and target in one."""
        inputs, targets = batch[:, :-1], batch[:, 1:]                                      # (B, T) each
        x = self.tokens(inputs)                                                            # (B, T, d)
        if self.positions is not None:
            x = x + self.positions[: inputs.shape[1]]
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x)).flatten(0, 1)                                     # (B T, V)
        return F.cross_entropy(logits.float(), targets.flatten())

    def tokens_in(self, batch: torch.Tensor) -> int:
        """Tokens that a batch trains on: the last of each sequence is only a target."""
        return batch.shape[0] * (batch.shape[1] - 1)


class Block(nn.Module):
    """Attention and feed-forward, each on the normalised residual stream and added to it.

    `recomputes`: only its input is kept for the backward pass, which computes the rest again.
    """

    def __init__(self, shape: DecoderShape, rotation: Rotation | None, *, recomputes: bool) -> None:
        super().__init__()
        self.attention_norm = _norm(shape)
        self.attention = Attention(shape, rotation)
        self.feedforward_norm = _norm(shape)
        self.feedforward = SwiGLU(shape) if shape.activation == "swiglu" else GELU(shape)
        self.dropout = nn.Dropout(shape.dropout)
        self.recomputes = recomputes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, d) to the same."""
        if not self.recomputes:
            return self._computed(x)
        random = self.dropout.p > 0          # saving the generator's state would cost time where nobody draws
        return checkpoint(self._computed, x, use_reentrant=False, preserve_rng_state=random)  # type: ignore[no-any-return]

    def _computed(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.feedforward(self.feedforward_norm(x)))  # type: ignore[no-any-return]


class Attention(nn.Module):
    """Causal attention of several heads, by whatever kernel torch's `scaled_dot_product_attention` has for it."""

    def __init__(self, shape: DecoderShape, rotation: Rotation | None) -> None:
        super().__init__()
        self.heads = (shape.num_heads, shape.head_dim)
        self.rotation = rotation             # no buffer: DDP broadcasts buffers before every forward pass
        self.dropout = shape.dropout
        widths = (3 * shape.d_model,) if shape.fused_qkv else (shape.d_model,) * 3
        self.qkv = nn.ModuleList(nn.Linear(shape.d_model, width, bias=shape.bias) for width in widths)
        self.output = nn.Linear(shape.d_model, shape.d_model, bias=shape.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, d) to the same."""
        q, k, v = self._projected(x)                                                       # (B, T, heads, head_dim)
        if self.rotation is not None:
            q, k = rotated(q, self.rotation), rotated(k, self.rotation)
        attended = F.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
            dropout_p=self.dropout if self.training else 0.0, is_causal=True,
        )  # fmt: skip
        return self.output(attended.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]

    def _projected(self, x: torch.Tensor) -> list[torch.Tensor]:
        parts = [part for project in self.qkv for part in project(x).split(x.shape[-1], dim=-1)]
        return [part.unflatten(-1, self.heads) for part in parts]


class SwiGLU(nn.Module):
    """silu(x G) * (x U), then D: gate and up projection in one product (Shazeer 2020, arXiv:2002.05202)."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.gate_up = nn.Linear(shape.d_model, 2 * shape.d_ff, bias=shape.bias)
        self.output = nn.Linear(shape.d_ff, shape.d_model, bias=shape.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, d) to the same."""
        gate, up = self.gate_up(x).chunk(2, dim=-1)                                        # (B, T, f) each
        return self.output(F.silu(gate) * up)  # type: ignore[no-any-return]


class GELU(nn.Module):
    """Up, GELU, down. GPT-2's own GELU is the approximation by tanh."""

    def __init__(self, shape: DecoderShape) -> None:
        super().__init__()
        self.up = nn.Linear(shape.d_model, shape.d_ff, bias=shape.bias)
        self.approximate = "tanh" if shape.activation == "gelu_tanh" else "none"
        self.output = nn.Linear(shape.d_ff, shape.d_model, bias=shape.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, T, d) to the same."""
        return self.output(F.gelu(self.up(x), approximate=self.approximate))  # type: ignore[no-any-return]


def build(config: TrialConfig) -> Decoder:
    """The model of a config, on torch's current default device, from torch's current random state."""
    assert isinstance(config.model, DecoderShape)
    assert config.seq_len is not None
    assert config.vocab_size is not None
    recomputes = config.activation_checkpointing == "full"
    return Decoder(config.model, config.seq_len, config.vocab_size, recomputes=recomputes)


def rotated(x: torch.Tensor, rotation: Rotation) -> torch.Tensor:
    """Rotary positions: `x` (B, T, heads, head_dim) with each pair turned by its position's angle.

    A pair is a number of the first half and its neighbour in the second, so that both are read in a row.
    """
    cos, sin = rotation
    first, second = x.chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)


def _rotation(seq_len: int, head_dim: int) -> Rotation:
    """Position t turns pair i by t / 10000^(2 i / head_dim) radians."""
    speeds = _ROTARY_BASE ** -(torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
    angles = torch.outer(torch.arange(seq_len, dtype=torch.float32), speeds)[:, None, :]
    return angles.cos(), angles.sin()


def _positions(shape: DecoderShape) -> nn.Parameter | None:
    if shape.max_positions is None:
        return None
    return nn.Parameter(torch.empty(shape.max_positions, shape.d_model).normal_(std=_INITIAL_STD))


def _norm(shape: DecoderShape) -> nn.Module:
    if shape.norm == "rmsnorm":
        return nn.RMSNorm(shape.d_model, eps=_EPSILON)
    return nn.LayerNorm(shape.d_model, eps=_EPSILON, bias=shape.bias)


def _initialise(model: nn.Module, num_layers: int) -> None:
    """GPT-2's: normal weights, no biases, and what is added to the residual stream smaller the deeper the model."""
    for name, module in model.named_modules():
        if isinstance(module, nn.Linear | nn.Embedding):
            added = name.endswith(".output")
            nn.init.normal_(module.weight, std=_INITIAL_STD / math.sqrt(2 * num_layers) if added else _INITIAL_STD)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
