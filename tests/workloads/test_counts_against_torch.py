"""The formulas against torch: a reference built here from torch's own parts, and its counter of FLOPs."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from raybench.spec.family import ENCDEC
from raybench.spec.shapes import EncDecShape
from raybench.workloads.encdec.counts import forward_flops, parameters

VOCAB = 64
SHAPES = [
    EncDecShape(d_model=32, nhead=4, num_encoder_layers=2, num_decoder_layers=3, dim_feedforward=48, dropout=0.0),
    EncDecShape(d_model=16, nhead=2, num_encoder_layers=3, num_decoder_layers=1, dim_feedforward=64, dropout=0.0),
]


class Reference(nn.Module):
    """The architecture as the reference program describes it (ED-16), in the fewest words."""

    def __init__(self, shape: EncDecShape, seq_len: int, vocab_size: int) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocab_size, shape.d_model)
        self.positions = nn.Embedding(seq_len, shape.d_model)
        self.transformer = nn.Transformer(**shape.model_dump(), batch_first=True)
        self.output = nn.Linear(shape.d_model, vocab_size)

    def forward(self, source: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        """Loss of predicting each target token from the source and the target tokens before it."""
        given, wanted = target[:, :-1], target[:, 1:]
        mask = nn.Transformer.generate_square_subsequent_mask(given.shape[1])
        hidden = self.transformer(self._embed(source), self._embed(given), tgt_mask=mask)
        return cross_entropy(self.output(hidden).flatten(0, 1), wanted.flatten())

    def _embed(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.tokens(tokens) + self.positions(torch.arange(tokens.shape[1]))


def torch_flops(shape: EncDecShape, seq_len: int, batch: int, *, backward: bool) -> int:
    """What torch counts in training mode (evaluation's fast path halves it) and with attention as plain matmuls."""
    model = Reference(shape, seq_len, VOCAB).train()
    source, target = torch.randint(VOCAB, (2, batch, seq_len), generator=torch.Generator().manual_seed(0))
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = model(source, target)
        if backward:
            loss.backward()
    return counter.get_total_flops()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("backward", "multiple"), [(False, 1), (True, 3)])
def test_flops_are_what_torch_counts(shape: EncDecShape, backward: bool, multiple: int) -> None:
    """To the last FLOP: forward, and three times that with backward, for two samples of 24 and 23 tokens."""
    expected = 2 * multiple * forward_flops(shape, seq_len=24, vocab_size=VOCAB)
    assert torch_flops(shape, seq_len=24, batch=2, backward=backward) == expected


@pytest.mark.parametrize("preset", sorted(ENCDEC.presets))
def test_parameters_are_what_torch_builds(preset: str) -> None:
    """Every preset, built without memory for its numbers."""
    shape = ENCDEC.presets[preset]
    assert isinstance(shape, EncDecShape)
    with torch.device("meta"):
        built = Reference(shape, 128, 8192)
    assert sum(each.numel() for each in built.parameters()) == parameters(shape, 128, 8192)
