"""What a decoder step amounts to, from its shape alone. No torch, so that `plan` is instant.

Notation, as in the docstrings below: B sequences, T tokens each, L layers, d `d_model`, f `d_ff`, m matrices of the
feed-forward block (3 for SwiGLU, 2 for GELU), V `vocab_size`.
"""

from __future__ import annotations

from raybench.measure.counts import Counts
from raybench.measure.phase import FORWARD_MULTIPLE, OPERAND_BYTES, state_bytes
from raybench.spec.config import TrialConfig
from raybench.spec.models.decoder import DecoderShape


def counts(config: TrialConfig) -> Counts:
    """Work of one step (one global batch): samples are sequences, tokens B x T."""
    shape, seq_len, vocab_size = _shape(config)
    assert config.global_batch is not None
    assert config.phase is not None
    scale = config.global_batch * FORWARD_MULTIPLE[config.phase]
    full = forward_flops(shape, seq_len, vocab_size)
    return Counts(
        parameters=parameters(shape, vocab_size),
        samples_per_step=config.global_batch,
        tokens_per_step=config.global_batch * seq_len,
        model_flops_per_step=float(scale * full),
        model_flops_causal_per_step=float(scale * (full - masked_flops(shape, seq_len))),
        memory_bytes=memory_bytes(config),
        recomputed_flops_per_step=float(config.global_batch * recomputed_flops(config)),
    )


def parameters(shape: DecoderShape, vocab_size: int) -> int:
    """Trainable numbers: L (4 d^2 + m d f + 2 d) + V d, learned positions, an untied head's V d, the last norm's d.

    `bias` adds one number a column of every projection, and a shift to each layer norm; RMSNorm has no shift.
    """
    d, f = shape.d_model, shape.d_ff
    bias = int(shape.bias)
    inner = (_matrices(shape) - 1) * f                 # columns of what leads into the feed-forward block
    attention = 4 * d * d + bias * 4 * d
    feedforward = _matrices(shape) * d * f + bias * (inner + d)
    norm = d * (1 + (bias if shape.norm == "layernorm" else 0))
    embeddings = vocab_size * d * (1 if shape.tied else 2) + (shape.max_positions or 0) * d
    return shape.num_layers * (attention + feedforward + 2 * norm) + norm + embeddings


def forward_flops(shape: DecoderShape, seq_len: int, vocab_size: int) -> int:
    """FLOPs of the forward pass of one sequence: 2mkn for each product of (m, k) by (k, n), full attention.

    T (2 (L (4 d^2 + m d f) + V d) + 4 L d T): twice each weight that multiplies, and Q K^T and A V. Times three and
    over T this is PaLM's 6 N + 12 L d T a token of training (arXiv:2204.02311, appendix B), N without embeddings. Left
    out: look-ups, rotations, norms, activations, softmax, dropout, loss. The head counts, tied or not.
    """
    weights = shape.num_layers * _layer_weights(shape) + vocab_size * shape.d_model
    return seq_len * 2 * weights + shape.num_layers * _attention(shape, seq_len)


def masked_flops(shape: DecoderShape, seq_len: int) -> int:
    """FLOPs of one sequence's forward pass that the causal mask makes needless: half of attention.

    Exactly T^2 / 2 of the T^2 pairs, the usual convention (FlashAttention, arXiv:2205.14135; 6 L d T instead of
    12 L d T), not the T (T - 1) / 2 that lie strictly above the diagonal.
    """
    return shape.num_layers * _attention(shape, seq_len) // 2


def recomputed_flops(config: TrialConfig) -> int:
    """FLOPs of one sequence that the backward pass computes again.

    With `activation_checkpointing: full` every block's forward pass but its last product, of which the backward pass
    needs the input only. Eager torch stops there, unless dropout comes after it; compiled code leaves it out, though
    perhaps not in the last block (under 1 % of a step). The head is no part of a block.
    """
    if config.activation_checkpointing != "full":
        return 0
    shape, seq_len, _ = _shape(config)
    stops = shape.dropout == 0 or config.compile != "off"
    weights = _layer_weights(shape) - (shape.d_model * shape.d_ff if stops else 0)
    return shape.num_layers * (seq_len * 2 * weights + _attention(shape, seq_len))


def memory_bytes(config: TrialConfig) -> int:
    """Rough device memory of one rank: state, activations that the backward pass needs, logits.

    Without gradients, and where blocks are computed again, one block's activations live at a time, in the latter case
    beside every block's input.

    GPT-2 small in bf16 (batch 64, T 1024, compiled) is estimated at 32 GB; 28.9 GB were measured on an H200.
    """
    shape, seq_len, vocab_size = _shape(config)
    assert config.micro_batch is not None
    assert config.phase is not None
    tokens = config.micro_batch * seq_len
    recomputes = config.activation_checkpointing == "full"
    layers = 1 if config.phase == "forward" or recomputes else shape.num_layers
    inputs = _residual_bytes(config) * shape.num_layers * shape.d_model if recomputes else 0
    state = state_bytes(parameters(shape, vocab_size), config)
    return state + tokens * (inputs + layers * _layer_bytes(config, shape) + _logit_bytes(config, vocab_size))


def _layer_bytes(config: TrialConfig, shape: DecoderShape) -> int:
    """What one layer keeps of a token for its backward pass.

    Korthikanti et al. 2022 (arXiv:2205.05198) without the score matrix, which fused attention never stores: two inputs
    of norms on the residual stream; two outputs of norms, queries, keys, values and what attention gives; the
    feed-forward block's inner numbers, before and after the activation (compiled code computes the latter again).
    """
    d = shape.d_model
    inner = shape.d_ff * (_matrices(shape) if config.compile == "off" else _matrices(shape) - 1)
    return 2 * _residual_bytes(config) * d + OPERAND_BYTES[config.precision] * (6 * d + inner)


def _residual_bytes(config: TrialConfig) -> int:
    """Bytes of a number of the residual stream: what embeddings are kept in, to which autocast's results are added."""
    return 2 if config.precision == "bf16_params" else 4


def _logit_bytes(config: TrialConfig, vocab_size: int) -> int:
    """A token's logits: in fp32 with their log-softmax and its gradient; compiled, as operands with the gradient."""
    held = 2 if config.phase == "forward" else 3
    return held * 4 * vocab_size if config.compile == "off" else 2 * OPERAND_BYTES[config.precision] * vocab_size


def _layer_weights(shape: DecoderShape) -> int:
    """Weights of a layer's projections and feed-forward block, each of which multiplies every token once."""
    return 4 * shape.d_model**2 + _matrices(shape) * shape.d_model * shape.d_ff


def _matrices(shape: DecoderShape) -> int:
    """Matrices of the feed-forward block: SwiGLU has a gate beside the usual two (Shazeer 2020, arXiv:2002.05202)."""
    return 3 if shape.activation == "swiglu" else 2


def _attention(shape: DecoderShape, seq_len: int) -> int:
    """FLOPs of Q K^T and A V of one layer over all heads together: 2 x 2 x T x T x d."""
    return 2 * 2 * seq_len * seq_len * shape.d_model


def _shape(config: TrialConfig) -> tuple[DecoderShape, int, int]:
    assert isinstance(config.model, DecoderShape)
    assert config.seq_len is not None
    assert config.vocab_size is not None
    return config.model, config.seq_len, config.vocab_size
