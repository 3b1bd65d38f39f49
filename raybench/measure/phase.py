"""What a training phase adds to the forward pass: FLOPs and per-parameter memory, the same for every network."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from raybench.spec.config import Phase, Precision, TrialConfig

FORWARD_MULTIPLE: Mapping[Phase, int] = MappingProxyType({"forward": 1, "forward_backward": 3, "train": 3})
"""FLOPs of a phase over those of its forward pass.

The backward pass of a product of matrices is two products of the same size, one for each operand's gradient (Kaplan et
al. 2020, arXiv:2001.08361, section 2.1; PaLM, arXiv:2204.02311, appendix B). The optimizer's elementwise work is left
out, as both papers do.
"""

OPERAND_BYTES: Mapping[Precision, int] = MappingProxyType({
    "fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2, "bf16_params": 2,
})  # fmt: skip
"""Bytes of an operand of a matmul. tf32 is a way to compute: its numbers are stored as fp32."""

_SHARDED: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "zero1": ("moments",),
    "fsdp": ("weights", "gradients", "moments"),
    "deepspeed 1": ("moments",),
    "deepspeed 2": ("gradients", "moments"),
    "deepspeed 3": ("weights", "gradients", "moments"),
})
"""What a rank holds only its share of. ZeRO (Rajbhandari et al. 2020, arXiv:1910.02054), section 5."""


def state_bytes(parameters: int, config: TrialConfig) -> int:
    """Bytes of what one rank holds for each parameter, whatever the batch.

    The parameter; its gradient, and once more in DDP's communication buckets, unless forward only; when training, the
    two moments of Adam or the momentum of SGD. Autocast keeps all of them in fp32; `bf16_params` all in bf16. What a
    strategy shards counts by the rank's share; the one block that is gathered at a time is left out.
    """
    trains = config.phase == "train" and config.optimizer is not None
    held = {
        "weights": 1,
        "gradients": 0 if config.phase == "forward" else 1,
        "buckets": 1 if config.phase != "forward" and config.strategy in ("ddp", "zero1") else 0,
        "moments": _moments(config) if trains else 0,
    }
    stage = "" if config.zero_stage is None else f" {config.zero_stage}"
    sharded = _SHARDED.get(f"{config.strategy}{stage}", ())
    whole = sum(copies for name, copies in held.items() if name not in sharded)
    shared = sum(copies for name, copies in held.items() if name in sharded)
    share = -(-parameters // config.world_size)
    return (2 if config.precision == "bf16_params" else 4) * (whole * parameters + shared * share)


def _moments(config: TrialConfig) -> int:
    """Numbers that the optimizer keeps for each parameter."""
    assert config.optimizer is not None
    return int(config.optimizer.momentum > 0) if config.optimizer.name == "sgd" else 2
