"""What an encoder-decoder step amounts to, from its shape alone. No torch, so that `plan` is instant.

Notation, as in the docstrings below: B samples, S source tokens, T = S - 1 target tokens (teacher forcing drops the
last target token from the input and the first from the labels), d `d_model`, f `dim_feedforward`, V `vocab_size`.
"""

from __future__ import annotations

from raybench.measure.counts import Counts
from raybench.measure.phase import FORWARD_MULTIPLE, OPERAND_BYTES, state_bytes
from raybench.spec.config import TrialConfig
from raybench.spec.models.encdec import EncDecShape


def counts(config: TrialConfig) -> Counts:
    """Work of one step (one global batch): samples are sentence pairs, tokens are target tokens."""
    shape, seq_len, vocab_size = _shape(config)
    assert config.global_batch is not None
    assert config.phase is not None
    scale = config.global_batch * FORWARD_MULTIPLE[config.phase]
    full = forward_flops(shape, seq_len, vocab_size)
    return Counts(
        parameters=parameters(shape, seq_len, vocab_size),
        samples_per_step=config.global_batch,
        tokens_per_step=config.global_batch * (seq_len - 1),
        model_flops_per_step=float(scale * full),
        model_flops_causal_per_step=float(scale * (full - masked_flops(shape, seq_len))),
        memory_bytes=memory_bytes(config),
        recomputed_flops_per_step=float(config.global_batch * recomputed_flops(config)),
    )


def parameters(shape: EncDecShape, seq_len: int, vocab_size: int) -> int:
    """Trainable numbers: one token embedding for both sides, learned positions, untied output projection with bias.

    Every projection has a bias and every layer norm a scale and a shift. `torch.nn.Transformer` ends each stack with a
    layer norm of its own.
    """
    d, f = shape.d_model, shape.dim_feedforward
    attention = 4 * (d * d + d)
    feedforward = 2 * d * f + f + d
    norm = 2 * d
    encoder = shape.num_encoder_layers * (attention + feedforward + 2 * norm) + norm
    decoder = shape.num_decoder_layers * (2 * attention + feedforward + 3 * norm) + norm
    return vocab_size * d + seq_len * d + encoder + decoder + d * vocab_size + vocab_size


def forward_flops(shape: EncDecShape, seq_len: int, vocab_size: int) -> int:
    """FLOPs of the forward pass of one sample: 2mkn for each product of (m, k) by (k, n), full attention.

    Counted as PaLM (arXiv:2204.02311, appendix B) and llm-foundry count: projections, feed-forward, scores (Q K^T),
    weighted values (A V) and output projection. Left out: embedding look-ups, biases, norms, softmax, dropout, loss.
    """
    return layer_flops(shape, seq_len) + 2 * (seq_len - 1) * shape.d_model * vocab_size


def layer_flops(shape: EncDecShape, seq_len: int) -> int:
    """The part of `forward_flops` that is done in the encoder's and the decoder's layers: all but the output."""
    d, f, source, target = shape.d_model, shape.dim_feedforward, seq_len, seq_len - 1
    feedforward = 2 * 2 * d * f
    projections = 4 * 2 * d * d                        # Q, K, V and output, of one token
    encoder = source * (projections + feedforward) + _attention(source, source, d)
    self_attention = target * projections + _attention(target, target, d)
    # Cross-attention: Q and output are of target tokens, K and V of source tokens.
    cross_attention = (target + source) * projections // 2 + _attention(target, source, d)
    decoder = self_attention + cross_attention + target * feedforward
    return shape.num_encoder_layers * encoder + shape.num_decoder_layers * decoder


def masked_flops(shape: EncDecShape, seq_len: int) -> int:
    """FLOPs of one sample's forward pass that a causal mask makes needless: half of the decoder's self-attention.

    Exactly T^2 / 2 of the T^2 pairs, the usual convention (FlashAttention, arXiv:2205.14135; 6 L h T instead of
    12 L h T), not the T (T - 1) / 2 that lie strictly above the diagonal.
    """
    target = seq_len - 1
    return shape.num_decoder_layers * _attention(target, target, shape.d_model) // 2


def recomputed_flops(config: TrialConfig) -> int:
    """FLOPs of one sample that the backward pass computes again: with `activation_checkpointing: full` every layer.

    To the last product, since each layer ends with a norm, whose backward pass needs what it was given.
    """
    shape, seq_len, _ = _shape(config)
    return layer_flops(shape, seq_len) if config.activation_checkpointing == "full" else 0


def memory_bytes(config: TrialConfig) -> int:
    """Rough device memory of one rank: state, activations that the backward pass needs, logits.

    Activations follow Korthikanti et al. 2022 (arXiv:2205.05198) without the score matrix, which fused attention never
    stores: per token about 11 d + 2 f numbers in an encoder layer and 17 d + 2 f in a decoder layer. Logits are held
    three times in fp32 (logits, log-softmax, gradient), which for small models is most of it.
    """
    shape, seq_len, vocab_size = _shape(config)
    assert config.phase is not None
    assert config.micro_batch is not None
    d, f = shape.d_model, shape.dim_feedforward
    per_token = shape.num_encoder_layers * (11 * d + 2 * f) + shape.num_decoder_layers * (17 * d + 2 * f)
    if config.phase == "forward":                      # only the widest layer lives at a time
        per_token = 17 * d + 2 * f
    if config.activation_checkpointing == "full":      # the same, and each layer's input
        per_token = 17 * d + 2 * f + (shape.num_encoder_layers + shape.num_decoder_layers) * d
    activations = OPERAND_BYTES[config.precision] * config.micro_batch * seq_len * per_token
    logits = (2 if config.phase == "forward" else 3) * 4 * config.micro_batch * (seq_len - 1) * vocab_size
    state = state_bytes(parameters(shape, seq_len, vocab_size), config)
    return state + activations + logits


def _attention(queries: int, keys: int, d_model: int) -> int:
    """FLOPs of Q K^T and A V over all heads together: 2 x 2 x queries x keys x d."""
    return 2 * 2 * queries * keys * d_model


def _shape(config: TrialConfig) -> tuple[EncDecShape, int, int]:
    assert isinstance(config.model, EncDecShape)
    assert config.seq_len is not None
    assert config.vocab_size is not None
    return config.model, config.seq_len, config.vocab_size
