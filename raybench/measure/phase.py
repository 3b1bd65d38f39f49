"""What a training phase adds to the forward pass: FLOPs and per-parameter memory, the same for every network."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.config import Optimizer, Phase, Precision, Strategy

FORWARD_MULTIPLE: Mapping[Phase, int] = MappingProxyType({"forward": 1, "forward_backward": 3, "train": 3})
"""FLOPs of a phase over those of its forward pass.

The backward pass of a product of matrices is two products of the same size, one for each operand's gradient (Kaplan et
al. 2020, arXiv:2001.08361, section 2.1; PaLM, arXiv:2204.02311, appendix B). The optimizer's elementwise work is left
out, as both papers do.
"""

OPERAND_BYTES: Mapping[Precision, int] = MappingProxyType({"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2})
"""Bytes of an operand of a matmul. tf32 is a way to compute: its numbers are stored as fp32."""

_WEIGHT_BYTES = 4     # autocast keeps parameters, gradients and optimizer state in fp32


def state_bytes(parameters: int, phase: Phase, strategy: Strategy, optimizer: Optimizer | None) -> int:
    """Bytes of what one rank holds for each parameter, whatever the batch.

    The parameter; its gradient, and once more in DDP's communication buckets, unless forward only; when training, the
    two moments of Adam or the momentum of SGD.
    """
    copies = 1
    if phase != "forward":
        copies += 2 if strategy == "ddp" else 1
    if phase == "train" and optimizer is not None:
        copies += int(optimizer.momentum > 0) if optimizer.name == "sgd" else 2
    return _WEIGHT_BYTES * copies * parameters
