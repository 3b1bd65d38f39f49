"""The decoder as built, held to what is said of it, and its maths to a second, slower way of writing it."""

from __future__ import annotations

import math

import pytest
import torch

from raybench.spec.families.decoder import DECODER
from raybench.spec.models.decoder import DecoderShape
from raybench.workloads.decoder.counts import parameters as counted
from raybench.workloads.decoder.model import Block, Decoder, _rotation, rotated
from tests.workloads.test_counts_decoder import preset

MODERN = DecoderShape(d_model=8, num_layers=2, num_heads=2, d_ff=12)
GPT2 = DecoderShape(
    d_model=8, num_layers=2, num_heads=2, d_ff=16, norm="layernorm", positions="learned", activation="gelu_tanh",
    tied=True, bias=True, max_positions=9,
)  # fmt: skip
SEED = GPT2.model_copy(update={"activation": "gelu", "tied": False, "dropout": 0.1, "fused_qkv": False})
TINY = {"modern": MODERN, "gpt2": GPT2, "gpt2-seed": SEED}


def tiny(name: str) -> Decoder:
    """A model of 6 tokens out of 32, its numbers drawn anew and larger, so that biases and every product show."""
    torch.manual_seed(0)
    model = Decoder(TINY[name], seq_len=6, vocab_size=32).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return model


def batch_of(sequences: int) -> torch.Tensor:
    """Sequences of 6 + 1 tokens."""
    return torch.randint(0, 32, (sequences, 7), generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("name", sorted(DECODER.presets))
def test_parameters_are_what_is_built(name: str) -> None:
    """Every preset, built without memory for its numbers."""
    vocab_size = 50_257 if name.startswith("gpt2") else 10_000
    with torch.device("meta"):
        built = Decoder(preset(name), seq_len=8, vocab_size=vocab_size)
    assert sum(each.numel() for each in built.parameters()) == counted(preset(name), vocab_size)
    assert not list(built.buffers()), "DDP would broadcast them in every step"


@pytest.mark.parametrize("changes", [
    {"bias": False}, {"tied": False}, {"activation": "swiglu"}, {"norm": "rmsnorm"}, {"fused_qkv": False},
    {"positions": "rotary", "max_positions": None},
])  # fmt: skip
def test_parameters_of_every_option(changes: dict[str, object]) -> None:
    """Each option of GPT-2's shape turned into the modern one's."""
    shape = DecoderShape.model_validate(GPT2.model_dump() | changes)
    built = Decoder(shape, seq_len=4, vocab_size=32)
    assert sum(each.numel() for each in built.parameters()) == counted(shape, 32)


def by_hand(model: Decoder, shape: DecoderShape, tokens: list[int]) -> torch.Tensor:
    """The mean loss of one sequence, position by position and head by head, in the words of the papers."""
    stream = [model.tokens.weight[token] for token in tokens[:-1]]
    if model.positions is not None:
        stream = [x + model.positions[t] for t, x in enumerate(stream)]
    for block in model.blocks:
        assert isinstance(block, Block)
        normed = [normed_by_hand(x, block.attention_norm, shape) for x in stream]
        attended = attended_by_hand(block, shape, normed)
        stream = [x + block.attention.output(y) for x, y in zip(stream, attended, strict=True)]
        normed = [normed_by_hand(x, block.feedforward_norm, shape) for x in stream]
        stream = [x + fed_by_hand(block, shape, y) for x, y in zip(stream, normed, strict=True)]
    losses = []
    for x, target in zip(stream, tokens[1:], strict=True):
        logits = model.head.weight @ normed_by_hand(x, model.norm, shape)
        losses.append(logits.exp().sum().log() - logits[target])
    return torch.stack(losses).mean()


def normed_by_hand(x: torch.Tensor, norm: torch.nn.Module, shape: DecoderShape) -> torch.Tensor:
    """x / sqrt(mean x^2) for RMSNorm; LayerNorm takes the mean away first and adds a shift last."""
    if shape.norm == "layernorm":
        x = x - x.mean()
    scaled = x / ((x * x).mean() + 1e-5).sqrt() * norm.weight
    return scaled + norm.bias if shape.norm == "layernorm" else scaled


def attended_by_hand(block: Block, shape: DecoderShape, normed: list[torch.Tensor]) -> list[torch.Tensor]:
    """softmax(q k / sqrt(head_dim)) v over the positions up to one's own."""
    weight = torch.cat([each.weight for each in block.attention.qkv])
    bias = torch.cat([each.bias for each in block.attention.qkv]) if shape.bias else torch.zeros(len(weight))
    q, k, v = zip(*((weight @ x + bias).reshape(3, shape.num_heads, shape.head_dim) for x in normed), strict=True)
    if shape.positions == "rotary":
        q, k = ([turned_by_hand(x, t) for t, x in enumerate(each)] for each in (q, k))
    attended = []
    for t in range(len(normed)):
        heads = []
        for head in range(shape.num_heads):
            scores = [q[t][head] @ k[s][head] / math.sqrt(shape.head_dim) for s in range(t + 1)]
            shares = torch.stack(scores).exp() / torch.stack(scores).exp().sum()
            heads.append(sum(shares[s] * v[s][head] for s in range(t + 1)))
        attended.append(torch.cat(heads))
    return attended


def turned_by_hand(heads: torch.Tensor, position: int) -> torch.Tensor:
    """Each pair (i, i + head_dim / 2) as a complex number, turned by position x 10000^(-2 i / head_dim)."""
    half = heads.shape[1] // 2
    turned = heads.clone()
    for i in range(half):
        angle = position * 10_000 ** (-2 * i / (2 * half))
        pair = torch.complex(heads[:, i], heads[:, i + half]) * complex(math.cos(angle), math.sin(angle))
        turned[:, i], turned[:, i + half] = pair.real, pair.imag
    return turned


def fed_by_hand(block: Block, shape: DecoderShape, x: torch.Tensor) -> torch.Tensor:
    """silu(x G) * (x U) D, or gelu(x U) D with the exact or the approximate gelu."""
    feedforward = block.feedforward
    if shape.activation == "swiglu":
        gate, up = (feedforward.gate_up.weight @ x).split(shape.d_ff)
        return feedforward.output(gate / (1 + (-gate).exp()) * up)
    up = feedforward.up(x)
    if shape.activation == "gelu":
        return feedforward.output(up * (1 + (up / math.sqrt(2)).erf()) / 2)
    return feedforward.output(up * (1 + (math.sqrt(2 / math.pi) * (up + 0.044715 * up**3)).tanh()) / 2)


@pytest.mark.parametrize("name", TINY)
def test_the_loss_is_that_of_the_papers(name: str) -> None:
    """Mean over two sequences, each worked out on its own."""
    model, batch = tiny(name), batch_of(2)
    expected = torch.stack([by_hand(model, TINY[name], sequence.tolist()) for sequence in batch]).mean()
    assert torch.allclose(model(batch), expected, rtol=1e-5)


def test_rotated_products_know_only_the_distance() -> None:
    """q at 7 and k at 4 give the same product as q at 3 and k at 0, and another one than q at 4 and k at 0."""
    rotation = _rotation(8, 6)
    q, k = torch.randn(2, 6, generator=torch.Generator().manual_seed(0))
    turned_q, turned_k = (rotated(x.expand(1, 8, 1, 6), rotation)[0, :, 0] for x in (q, k))
    assert torch.allclose(turned_q[7] @ turned_k[4], turned_q[3] @ turned_k[0], rtol=1e-5)
    assert not torch.allclose(turned_q[4] @ turned_k[0], turned_q[3] @ turned_k[0], rtol=1e-2)
    assert torch.allclose(turned_q[0] @ turned_k[0], q @ k, rtol=1e-6)


@pytest.mark.parametrize("name", TINY)
def test_no_token_sees_a_later_one(name: str) -> None:
    """Changing token 4 changes the logits of positions 4 and 5 only."""
    model, batch = tiny(name), batch_of(1)
    seen: list[torch.Tensor] = []
    model.head.register_forward_hook(lambda module, args, output: seen.append(output.detach()))
    model(batch)
    batch[0, 4] = (batch[0, 4] + 1) % 32
    model(batch)
    before, after = (logits.reshape(6, 32) for logits in seen)
    assert torch.allclose(before[:4], after[:4], atol=1e-6)
    assert not torch.allclose(before[4], after[4], atol=1e-3)
    assert not torch.allclose(before[5], after[5], atol=1e-3)


def test_initial_weights_are_those_of_gpt2() -> None:
    """Standard deviation 0.02; 0.02 / sqrt(2 x 8 layers) = 0.005 where the residual stream is added to; no biases."""
    torch.manual_seed(0)
    shape = GPT2.model_copy(update={"d_model": 128, "d_ff": 512, "num_layers": 8})
    model = Decoder(shape, seq_len=4, vocab_size=512)
    block = model.blocks[0]
    assert isinstance(block, Block)
    assert block.feedforward.up.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert block.attention.output.weight.std().item() == pytest.approx(0.005, rel=0.05)
    assert block.feedforward.output.weight.std().item() == pytest.approx(0.005, rel=0.02)
    assert model.head.weight is model.tokens.weight
    assert model.tokens.weight.std().item() == pytest.approx(0.02, rel=0.02)
    assert not block.attention.qkv[0].bias.any()
    assert model(torch.randint(0, 512, (2, 5))).item() == pytest.approx(math.log(512), rel=0.02)


def test_the_loss_is_fp32_under_autocast() -> None:
    """Logits are bf16 products; the loss over them is not."""
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = tiny("modern")(batch_of(2))
    assert loss.dtype == torch.float32
    assert torch.allclose(loss, tiny("modern")(batch_of(2)), rtol=0.02)


def test_tokens_are_inputs() -> None:
    """3 sequences of 6 + 1 train on 6 each."""
    assert tiny("gpt2").tokens_in(batch_of(3)) == 18


@pytest.mark.parametrize("name", TINY)
def test_one_graph(name: str) -> None:
    """torch.compile finds nothing that it must leave: one graph, no break, in training as in evaluation."""
    model = Decoder(TINY[name], seq_len=6, vocab_size=32).train()
    found = torch._dynamo.explain(model)(batch_of(2))
    assert (found.graph_count, found.graph_break_count) == (1, 0)
