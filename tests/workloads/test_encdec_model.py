"""The encoder-decoder as built, held to what is said of it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from raybench.spec.families.encdec import ENCDEC, EncDecShape
from raybench.workloads.encdec.counts import forward_flops
from raybench.workloads.encdec.counts import parameters as counted
from raybench.workloads.encdec.model import EncoderDecoder, build
from tests.factories import make_config

TINY = EncDecShape(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=2, dim_feedforward=16)


@pytest.mark.parametrize(
    ("preset", "seq_len", "expected"),
    [("3.5m", 256, 3_527_168), ("53m", 256, 52_668_416), ("211m", 256, 211_266_560), ("2.9b", 512, 2_854_764_544)],
)
def test_parameters_of_the_four_sizes(preset: str, seq_len: int, expected: int) -> None:
    """ED-15, vocabulary 8192; counted on the built module, which on the meta device takes no memory."""
    shape = ENCDEC.presets[preset]
    assert isinstance(shape, EncDecShape)
    with torch.device("meta"):
        model = build(make_config(model=shape, seq_len=seq_len))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected
    assert counted(shape, seq_len, 8192) == expected


def test_architecture() -> None:
    """ED-16: dropout 0.1, post-norm, ReLU, batch first, untied output projection with bias."""
    model = build(make_config(model=TINY, vocab_size=32, seq_len=6))
    layer = model.transformer.decoder.layers[0]
    assert isinstance(layer, nn.TransformerDecoderLayer)
    assert (layer.dropout.p, layer.norm_first, layer.self_attn.batch_first) == (0.1, False, True)
    assert layer.activation is torch.nn.functional.relu
    assert model.output.bias is not None
    assert model.output.weight is not model.tokens.weight
    assert not list(model.buffers()), "DDP would broadcast them in every step"


def test_the_loss_is_next_token_cross_entropy() -> None:
    """Teacher forcing by hand: target tokens 0..4 in, 1..5 out (ED-17)."""
    torch.manual_seed(0)
    model = EncoderDecoder(TINY, seq_len=6, vocab_size=32).eval()
    batch = torch.randint(0, 32, (3, 2, 6))
    source = model.tokens(batch[:, 0]) + model.positions
    target = model.tokens(batch[:, 1, :5]) + model.positions[:5]
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    logits = model.output(model.transformer(source, target, tgt_mask=mask))
    log_p = logits.log_softmax(-1).gather(-1, batch[:, 1, 1:, None])
    assert torch.allclose(model(batch), -log_p.mean(), atol=1e-6)


def test_the_decoder_sees_no_later_token() -> None:
    """Changing the last input token changes no earlier position's logits."""
    torch.manual_seed(0)
    model = EncoderDecoder(TINY, seq_len=6, vocab_size=32).eval()
    seen: list[torch.Tensor] = []
    model.output.register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    batch = torch.randint(0, 32, (1, 2, 6))
    model(batch)
    batch[0, 1, 4] = (batch[0, 1, 4] + 1) % 32
    model(batch)
    assert torch.allclose(seen[0][:, :4], seen[1][:, :4], atol=1e-6)
    assert not torch.allclose(seen[0][:, 4], seen[1][:, 4], atol=1e-3)


def test_tokens_are_target_tokens() -> None:
    """3 samples of 6 target tokens train on 5 each."""
    model = EncoderDecoder(TINY, seq_len=6, vocab_size=32)
    assert model.tokens_in(torch.zeros(3, 2, 6, dtype=torch.int64)) == 15


def test_flops_of_the_built_module() -> None:
    """torch's own counter over a forward pass gives the formula's number; it counts no fused attention."""
    model = EncoderDecoder(TINY, seq_len=6, vocab_size=32)
    with (
        torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH),
        FlopCounterMode(display=False) as counter,
    ):
        model(torch.zeros(1, 2, 6, dtype=torch.int64))
    assert counter.get_total_flops() == forward_flops(TINY, 6, 32)
