"""The encoder-decoder transformer: what one step of `encdec` computes."""

from __future__ import annotations

from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from raybench.spec.config import TrialConfig
from raybench.spec.models.encdec import EncDecShape


class EncoderDecoder(nn.Module):
    """`nn.Transformer` between one token embedding for both sides and an untied output projection.

    Post-norm, ReLU, learned positions, a causal mask on the decoder only, no padding. Parameters are made on torch's
    current default device, so that no copy of a large model is ever made on the host.
    """

    def __init__(self, shape: EncDecShape, seq_len: int, vocab_size: int, *, recomputes: bool = False) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.positions = nn.Parameter(torch.empty(seq_len, shape.d_model).normal_())
        self.transformer = _transformer(shape, recomputes=recomputes)
        self.output = nn.Linear(shape.d_model, vocab_size)
        # No buffer: DDP broadcasts buffers before every forward pass. With `tgt_is_causal` its values are never read.
        self._causal = nn.Transformer.generate_square_subsequent_mask(seq_len - 1, device=self.positions.device)

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy of the next target token. `batch`: int64 (B, 2, S), source and target."""
        source, target = batch[:, 0], batch[:, 1]
        inputs, labels = target[:, :-1], target[:, 1:]                                     # (B, S-1) each
        decoded = self.transformer(
            self._embed(source), self._embed(inputs), tgt_mask=self._causal, tgt_is_causal=True
        )
        logits = self.output(decoded)                                                      # (B, S-1, V)
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten())

    def tokens_in(self, batch: torch.Tensor) -> int:
        """Target tokens that a batch trains on: teacher forcing leaves one less than the sequence holds."""
        return batch.shape[0] * (batch.shape[2] - 1)

    @property
    def blocks(self) -> list[nn.Module]:
        """The layers of both stacks: what FSDP gathers at a time."""
        return [*self.transformer.encoder.layers, *self.transformer.decoder.layers]

    def _embed(self, tokens: torch.Tensor) -> torch.Tensor:
        embedded = self.tokens(tokens) + self.positions[: tokens.shape[1]]                 # (B, T, d)
        return cast(torch.Tensor, embedded)


def build(config: TrialConfig) -> EncoderDecoder:
    """The model of a config, on torch's current default device, from torch's current random state."""
    assert isinstance(config.model, EncDecShape)
    assert config.seq_len is not None
    assert config.vocab_size is not None
    recomputes = config.activation_checkpointing == "full"
    return EncoderDecoder(config.model, config.seq_len, config.vocab_size, recomputes=recomputes)


class _EncoderLayer(nn.TransformerEncoderLayer):
    """A layer of which the backward pass keeps the inputs only, and computes the rest again."""

    def forward(self, *inputs: Any, **options: Any) -> torch.Tensor:
        return checkpoint(super().forward, *inputs, use_reentrant=False, **options)  # type: ignore[no-any-return]


class _DecoderLayer(nn.TransformerDecoderLayer):
    """The same of a decoder."""

    def forward(self, *inputs: Any, **options: Any) -> torch.Tensor:
        return checkpoint(super().forward, *inputs, use_reentrant=False, **options)  # type: ignore[no-any-return]


def _transformer(shape: EncDecShape, *, recomputes: bool) -> nn.Transformer:
    """`nn.Transformer` with stacks of our own: only they can be told to leave nested tensors alone and to recompute."""
    of_encoder = _EncoderLayer if recomputes else nn.TransformerEncoderLayer
    of_decoder = _DecoderLayer if recomputes else nn.TransformerDecoderLayer
    d, f, heads, dropout = shape.d_model, shape.dim_feedforward, shape.nhead, shape.dropout
    return nn.Transformer(
        d,
        heads,
        batch_first=True,
        custom_encoder=nn.TransformerEncoder(
            of_encoder(d, heads, f, dropout, batch_first=True),
            shape.num_encoder_layers,
            norm=nn.LayerNorm(d),
            enable_nested_tensor=False,
        ),
        custom_decoder=nn.TransformerDecoder(
            of_decoder(d, heads, f, dropout, batch_first=True), shape.num_decoder_layers, norm=nn.LayerNorm(d)
        ),
    )
